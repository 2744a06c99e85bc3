/** Events as rows of a table, the same columns wherever a report lists them. */
import { html, nothing, type Html, type HtmlPart } from "./Html.ts"
import type { EventLine } from "./EventLine.ts"
import { count, micros, seconds, shortHash, shown } from "./ShownText.ts"
import { table } from "./Tables.ts"

const erased = ({ erasedAt }: EventLine): Html =>
  erasedAt === undefined
    ? nothing
    : html`<br><span class="erased">Details erased ${seconds(erasedAt)} UTC</span>`

const second = (text: EventLine["actorEmail"]): Html =>
  text === undefined ? nothing : html`<br><span class="quiet">${shown(text)}</span>`

export const outcomeMark = (outcome: EventLine["outcome"]): Html =>
  html`<span class="outcome ${outcome}">${outcome}</span>`

/** An id and its type; the brackets are ours, so they are quiet. */
const typed = (id: EventLine["actorId"], type: Html): Html =>
  html`${shown(id)} <span class="quiet">(</span>${type}<span class="quiet">)</span>`

const row = (event: EventLine): ReadonlyArray<HtmlPart> => {
  const [date, time] = micros(event.timestamp).split(" ")
  return [
    count(event.sequenceNumber),
    html`<span class="short">${date}<br><span class="quiet">${time}</span></span>`,
    html`${typed(event.actorId, html`${event.actorType}`)}${second(event.actorEmail)}`,
    html`${shown(event.action)}${erased(event)}`,
    html`${typed(event.resourceId, shown(event.resourceType))}${second(event.resourceName)}`,
    outcomeMark(event.outcome),
    shortHash(event.hash)
  ]
}

export const eventTable = (caption: HtmlPart, events: ReadonlyArray<EventLine>): Html =>
  table({
    caption,
    className: "events",
    columns: [
      { title: "Sequence", width: 10.5, numeric: true },
      { title: "Time (UTC)", width: 12.5 },
      { title: "Actor", width: 22 },
      { title: "Action", width: 17 },
      { title: "Resource", width: 21 },
      { title: "Outcome", width: 8 },
      { title: "Hash", width: 9 }
    ],
    rows: events.map(row)
  })

/** Events as rows of a table, the same columns wherever a report lists them. */
import { html, nothing, type Html, type HtmlPart } from "./Html.ts"
import type { EventLine } from "./EventLine.ts"
import { marked, type Mark, type Marks } from "./Marks.ts"
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

/** The hash of an event that does not hold would look like evidence. */
const hashOrMark = (event: EventLine, mark: Mark | undefined): Html =>
  mark === undefined ? shortHash(event.hash) : marked(mark)

const row = (event: EventLine, mark: Mark | undefined): ReadonlyArray<HtmlPart> => {
  const [date, time] = micros(event.timestamp).split(" ")
  return [
    count(event.sequenceNumber),
    html`<span class="short">${date}<br><span class="quiet">${time}</span></span>`,
    html`${typed(event.actorId, html`${event.actorType}`)}${second(event.actorEmail)}`,
    html`${shown(event.action)}${erased(event)}`,
    html`${typed(event.resourceId, shown(event.resourceType))}${second(event.resourceName)}`,
    outcomeMark(event.outcome),
    hashOrMark(event, mark)
  ]
}

/** Said under a table with marks. */
const MARKS_NOTE =
  "In the place of the hash: broken, a break of chapter 3 names the event; in doubt, a break that "
  + "is not listed, or a signed checkpoint, may concern it."

export const eventTable = (
  caption: HtmlPart,
  events: ReadonlyArray<EventLine>,
  marks: Marks
): Html => {
  const marksOfRows = events.map(({ sequenceNumber }) => marks(sequenceNumber))
  const note = marksOfRows.some((mark) => mark !== undefined)
    ? html`<p class="note">${MARKS_NOTE}</p>`
    : nothing
  return html`${table({
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
    rows: events.map((event, index) => row(event, marksOfRows[index])),
    rowClass: (index) => (marksOfRows[index] === undefined ? "" : "marked")
  })}${note}`
}

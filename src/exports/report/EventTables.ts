/** Events as rows of a table, one line each, the same columns wherever a report lists them. */

import { type BrokenEvents, type Doubt, marked } from "./BrokenEvents.ts"
import type { EventLine } from "./EventLine.ts"
import type { Mention } from "./EventSurvey.ts"
import { type Html, type HtmlPart, html, nothing } from "./Html.ts"
import { chapter } from "./Report.ts"
import { type CutText, count, seconds, shown } from "./ShownText.ts"
import { table } from "./Tables.ts"

/** Hexadecimal digits of a hash in a row. */
const HASH_DIGITS = 8
/** Characters of a cell at most: more never fit into a line. */
const CELL_LENGTH_MAX = 64

export const outcomeMark = (outcome: EventLine["outcome"]): Html =>
  html`<span class="outcome ${outcome}">${outcome}</span>`

/** As much as fits; the caption explains the mark for what was cut. */
const cell = ({ leftOut, text }: CutText): Html => {
  const characters = Array.from(text.slice(0, 2 * CELL_LENGTH_MAX))
  const isCut = leftOut > 0 || characters.length > CELL_LENGTH_MAX
  const kept = characters.slice(0, CELL_LENGTH_MAX).join("")
  return isCut ? html`${shown(kept)}<span class="quiet">…</span>` : shown(text)
}

/** The e-mail address where there is one, else the id. */
export const eventActor = ({ actorEmail, actorId }: EventLine): Html => cell(actorEmail ?? actorId)

const actionOf = ({ action, erasedAt }: EventLine): Html =>
  erasedAt === undefined ? cell(action) : html`<span class="erased">erased</span> ${cell(action)}`

/** The hash of an event that does not hold would look like evidence. */
const hashOrMark = (event: EventLine, mark: Doubt | undefined): Html =>
  mark === undefined ? html`<code>${event.hash.slice(0, HASH_DIGITS)}</code>` : marked(mark)

/** A sequence number, with its mark. */
export const sequenceCell = (sequenceNumber: number, marks: BrokenEvents): Html =>
  html`${count(sequenceNumber)} ${marked(marks(sequenceNumber))}`

/** An event in a cell: sequence number and time. */
export const moment = ({ sequenceNumber, timestamp }: Mention, marks: BrokenEvents): Html =>
  html`${sequenceCell(sequenceNumber, marks)}<span class="quiet">at ${seconds(timestamp)}</span>`

/** The same and the actor. */
export const mention = (event: Mention, marks: BrokenEvents): Html =>
  html`${moment(event, marks)} <span class="quiet">by</span> ${shown(event.actor)}`

const row = (event: EventLine, mark: Doubt | undefined): ReadonlyArray<HtmlPart> => [
  count(event.sequenceNumber),
  seconds(event.timestamp),
  eventActor(event),
  actionOf(event),
  html`${cell(event.resourceId)} <span class="quiet">${cell(event.resourceType)}</span>`,
  outcomeMark(event.outcome),
  hashOrMark(event, mark)
]

/** Said under a table with marks. */
const marksNote = (): string =>
  `In the place of the hash: broken, a break of ${chapter("integrity")} names the event; in doubt, `
  + "a break that is not listed, or a signed checkpoint, may concern it."

const LINE_NOTE =
  "Actor: e-mail address, else id. Hash: its first 8 digits. … means that the rest of a value was cut."

export const eventTable = (
  caption: HtmlPart,
  events: ReadonlyArray<EventLine>,
  marks: BrokenEvents
): Html => {
  const marksOfRows = events.map(({ sequenceNumber }) => marks(sequenceNumber))
  const note = marksOfRows.some((mark) => mark !== undefined)
    ? html`<p class="note">${marksNote()}</p>`
    : nothing
  return html`${table({
    caption: html`${caption}. ${LINE_NOTE}`,
    className: "events",
    columns: [
      { title: "Sequence", width: 9, numeric: true },
      { title: "Time (UTC)", width: 15 },
      { title: "Actor", width: 23 },
      { title: "Action", width: 19 },
      { title: "Resource", width: 17 },
      { title: "Outcome", width: 8 },
      { title: "Hash", width: 9 }
    ],
    rows: events.map((event, index) => row(event, marksOfRows[index])),
    rowClass: (index) => (marksOfRows[index] === undefined ? "" : "marked")
  })}${note}`
}

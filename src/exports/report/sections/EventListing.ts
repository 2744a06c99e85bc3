/** The events themselves, up to a limit that is said on the page. */

import { EVENT_ROWS_MAX } from "../EventSurvey.ts"
import { eventTable } from "../EventTables.ts"
import { type Html, html } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { count } from "../ShownText.ts"
import { extent } from "../Tables.ts"

const WHERE =
  `because this document lists at most ${count(EVENT_ROWS_MAX)} events, the most recent ones. `
  + "The evidence pack of the same bounds holds every event, in events.ndjson."

const CAPTION = "Events in ascending sequence order"

const body = (report: Report): Html => {
  const { evidence, brokenEvents: marks } = report
  const { population, tables } = evidence
  const { events } = tables
  if (population === 0) return html`<p class="none">0 events.</p>`
  return html`${alteredNotice(report)}${extent(events.length, population, "event", WHERE)}
    ${eventTable(CAPTION, events, marks)}`
}

export const eventListing: Section = { title: "Event listing", body }

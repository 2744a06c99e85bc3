/** How long after it happened each event was recorded: late evidence is weaker evidence. */
import { type Counted, LATE_ROWS_MAX } from "../Delays.ts"
import { eventActor, sequenceCell } from "../EventTables.ts"
import { type Html, html, nothing } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { count, counted, duration, seconds, shown } from "../ShownText.ts"
import { extent, facts, groupTable, table } from "../Tables.ts"

const rangeOf = ({ first, last }: Counted): string =>
  first === last ? `sequence ${count(first)}` : `sequences ${count(first)} to ${count(last)}`

/** What the numbers mean, in words. */
const said = ({ evidence }: Report): Html => {
  const { ahead, backdated } = evidence.survey.timeliness
  const late =
    backdated === undefined
      ? html`<p>No event was recorded more than 1 day after its event time.</p>`
      : html`<p><strong>${counted(backdated.count, "event")}, within ${rangeOf(backdated)}, were
          recorded more than 1 day after their event time.</strong> They were sent afterwards, as an
          import is. For them the log shows that nothing has changed since the recording; the event
          time itself is what the source said.</p>`
  return ahead === undefined
    ? late
    : html`${late}<p><strong>${counted(ahead.count, "event")}, within ${rangeOf(ahead)}, have an
        event time more than 5 minutes after the recording.</strong> A clock of the source was
        ahead, or the time was chosen; their delay counts as 0.</p>`
}

const lateTable = (report: Report): Html => {
  const { late, lateTotal } = report.evidence.survey.timeliness
  if (lateTotal === 0) {
    return html`<p class="none">No event was recorded more than 1 minute after its event time.</p>`
  }
  return html`${table({
    caption: `Events recorded more than 1 minute late, at most ${LATE_ROWS_MAX}, the latest first`,
    className: "events",
    columns: [
      { title: "Sequence", width: 11, numeric: true },
      { title: "Delay", width: 12, numeric: true },
      { title: "Event time (UTC)", width: 16 },
      { title: "Recorded (UTC)", width: 16 },
      { title: "Actor", width: 23 },
      { title: "Action", width: 22 }
    ],
    rows: late.map(({ delay, event }) => [
      sequenceCell(event.sequenceNumber, report.brokenEvents),
      duration(delay),
      seconds(event.timestamp),
      seconds(event.createdAt),
      eventActor(event),
      shown(event.action)
    ])
  })}${extent(late.length, lateTotal, "late event", "here, those with shorter delays.")}`
}

const body = (report: Report): Html => {
  const { timeliness, unreadable, ...survey } = report.evidence.survey
  const events = survey.events - unreadable
  if (events === 0) return html`<p class="none">0 events: there is no delay to measure.</p>`
  const groups = timeliness.buckets
    .filter((bucket) => bucket.count > 0)
    .map((bucket) => ({ key: bucket.label, count: bucket.count }))
  return html`${alteredNotice(report)}
    <p>The delay from the event time, which the source states, to the recording, which the service
      states.</p>
    ${facts([
      ["Median", duration(timeliness.median)],
      ["95th percentile", duration(timeliness.p95)],
      ["Maximum", duration(timeliness.maximum)]
    ])}
    ${said(report)}
    ${groupTable("Events by delay", "Delay", { groups, other: 0 }, events)}
    ${timeliness.lateTotal === 0 ? nothing : html`<h2>The latest events</h2>`}
    ${lateTable(report)}`
}

export const timeliness: Section = { title: "Timeliness", body }

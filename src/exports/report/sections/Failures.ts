/** What was refused, what went wrong and why, and what was erased. */
import type { Exceptions, FailureGroup } from "../EventSurvey.ts"
import { eventTable, mention, outcomeMark } from "../EventTables.ts"
import { type Html, html, nothing } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { count, counted, shown } from "../ShownText.ts"
import { extent, share, table } from "../Tables.ts"

/** Groups of failures that are listed. */
const GROUP_ROWS_MAX = 25

const ELSEWHERE = "here, the older ones; the evidence pack of the same bounds holds them all."

const titles = {
  success: "Successes",
  failure: "Failures: refused or not permitted",
  error: "Errors: attempted and gone wrong"
}

const eventsOf = (groups: ReadonlyArray<FailureGroup>): number =>
  groups.reduce((sum, group) => sum + group.count, 0)

/** Failures by what they have in common: what an auditor reads first. */
const grouped = (report: Report): Html => {
  const { groups, other } = report.evidence.survey.failures
  if (groups.length === 0) {
    return html`<p class="none">No event of this population was refused or went wrong.</p>`
  }
  const listed = groups.slice(0, GROUP_ROWS_MAX)
  const rest = groups.slice(GROUP_ROWS_MAX)
  const left = eventsOf(rest) + other
  return html`${table({
    caption: "Failures and errors by action and reason, the most frequent first",
    className: "dense",
    columns: [
      { title: "Events", width: 8, numeric: true },
      { title: "Outcome", width: 9 },
      { title: "Action", width: 21 },
      { title: "Reason in the metadata", width: 24 },
      { title: "Newest", width: 38 }
    ],
    rows: listed.map(({ action, count: events, latest, outcome, reason }) => [
      count(events),
      outcomeMark(outcome),
      shown(action),
      reason === undefined ? html`<span class="none">none given</span>` : shown(reason),
      mention(latest, report.brokenEvents)
    ])
  })}${
    left === 0
      ? nothing
      : html`<p class="note">${counted(left, "event")} in other groups, not listed here.</p>`
  }
  <p class="note">The reason is the first of reason, failure_reason, error, error_message,
    error_code, outcome_reason, outcome and message in the metadata.</p>`
}

const exceptionsPart = (
  { evidence, brokenEvents: marks }: Report,
  exceptions: Exceptions
): Html => {
  const { outcome, shown: events, total } = exceptions
  if (total === 0) return nothing
  const part = `${counted(total, "event")}, ${share(total, evidence.population)} of the population`
  return html`<h2>${titles[outcome]}</h2><p>${part}.</p>
    ${eventTable(`Events with the outcome ${outcome}, the newest first`, events, marks)}
    ${extent(events.length, total, "event", ELSEWHERE)}`
}

const erasuresPart = ({ evidence, brokenEvents: marks }: Report): Html => {
  const { shown: events, total } = evidence.tables.erasures
  if (total === 0) return html`<p class="none">No erasure was recorded in this population.</p>`
  return html`<p>${count(total)} recorded. Each names the event whose details were removed; the
      event itself and its hash remain.</p>
    ${eventTable("Recorded erasures, the newest first", events, marks)}
    ${extent(events.length, total, "erasure", ELSEWHERE)}`
}

const body = (report: Report): Html => html`
  ${alteredNotice(report)}
  ${grouped(report)}
  ${report.evidence.tables.exceptions.map((one) => exceptionsPart(report, one))}
  <h2>Erasures</h2>
  ${erasuresPart(report)}`

export const failures: Section = { title: "Exceptions and failures", body }

/** Who used rights that change rights, settings or records. */
import type { PrivilegedGroup } from "../EventSurvey.ts"
import { moment } from "../EventTables.ts"
import { type Html, html, nothing } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { count, counted, shown } from "../ShownText.ts"
import { table } from "../Tables.ts"

/** Rows of the table. */
const ROWS_MAX = 40

export const privilegedEvents = ({ evidence }: Report): number => {
  const { groups, other } = evidence.survey.privileged
  return groups.reduce((sum, group) => sum + group.count, other)
}

const row = (report: Report, group: PrivilegedGroup) => [
  shown(group.action),
  shown(group.actor),
  count(group.count),
  group.failed === 0 ? "0" : html`<span class="outcome failure">${count(group.failed)}</span>`,
  moment(group.latest, report.brokenEvents)
]

const listed = (report: Report): Html => {
  const { groups, other } = report.evidence.survey.privileged
  if (groups.length === 0) {
    return html`<p class="none">No event of this population has a privileged action.</p>`
  }
  const left = groups.slice(ROWS_MAX).reduce((sum, group) => sum + group.count, other)
  return html`${table({
    caption: "Privileged actions by actor, the most frequent first",
    className: "dense",
    columns: [
      { title: "Action", width: 27 },
      { title: "Actor", width: 27 },
      { title: "Events", width: 9, numeric: true },
      { title: "Failed", width: 9, numeric: true },
      { title: "Newest", width: 28 }
    ],
    rows: groups.slice(0, ROWS_MAX).map((group) => row(report, group))
  })}${
    left === 0
      ? nothing
      : html`<p class="note">${counted(left, "event")} of other actions and actors, not listed
          here.</p>`
  }`
}

const body = (report: Report): Html => html`${alteredNotice(report)}
  <p>${counted(privilegedEvents(report), "event")} with an action that the mapping of criteria names
    as privileged: changes of rights, users, credentials, settings and boundaries, and the removal
    of records. That each was allowed has to be tested against its approval.</p>
  ${listed(report)}`

export const privileged: Section = { title: "Privileged actions", body }

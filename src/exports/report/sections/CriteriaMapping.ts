/** For which criteria the log can serve as evidence, and which actions were counted for them. */
import { countedBy, type OutcomesCounted } from "../Criteria.ts"
import { FIELD_LENGTH_MAX } from "../EventLine.ts"
import { type ActionCount, type Mention, SURVEY_GROUPS_MAX } from "../EventSurvey.ts"
import { mention } from "../EventTables.ts"
import { type Html, html, nothing } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { count, counted, cut, shown } from "../ShownText.ts"
import { table } from "../Tables.ts"

/** Actions that are named under a criterion. */
const ACTIONS_SHOWN_MAX = 6
/** Actions that are named as counted for no criterion. */
const OTHERS_SHOWN_MAX = 10

interface CountedAction {
  readonly action: string
  readonly events: number
  /** The newest event that counts. */
  readonly latest: Mention
}

/** The actions that a criterion counts, the most frequent first. */
const actionsOf = (
  outcomesOf: OutcomesCounted,
  actions: ReadonlyArray<ActionCount>
): ReadonlyArray<CountedAction> =>
  actions
    .flatMap(({ action, outcomes }) => {
      const counts = outcomesOf(action).flatMap((outcome) => outcomes[outcome] ?? [])
      const [first, ...others] = counts
      if (first === undefined) return []
      const latest = others.reduce(
        (newest, other) =>
          other.latest.sequenceNumber > newest.sequenceNumber ? other.latest : newest,
        first.latest
      )
      return [{ action, events: counts.reduce((sum, one) => sum + one.count, 0), latest }]
    })
    .sort((left, right) => right.events - left.events)

const sumOf = (counts: ReadonlyArray<CountedAction>): number =>
  counts.reduce((sum, { events }) => sum + events, 0)

const actionLine = (report: Report, { action, events, latest }: CountedAction): Html =>
  html`<li>${shown(cut(action, FIELD_LENGTH_MAX))} <strong>${count(events)}</strong><br>
    <span class="quiet">newest</span> ${mention(latest, report.brokenEvents)}</li>`

const countedActions = (report: Report, counts: ReadonlyArray<CountedAction>): Html => {
  if (counts.length === 0) return html`<span class="none">none in this population</span>`
  const named = counts.slice(0, ACTIONS_SHOWN_MAX)
  const rest = counts.slice(ACTIONS_SHOWN_MAX)
  const others =
    rest.length === 0
      ? nothing
      : html`<li class="quiet">${counted(rest.length, "more action")}, ${counted(
          sumOf(rest),
          "event"
        )}</li>`
  return html`<ul class="actions">${named.map((one) => actionLine(report, one))}${others}</ul>`
}

const mappingTable = (report: Report): Html =>
  table({
    caption: "Criteria, what this log holds for them, and the actions that were counted",
    className: "criteria",
    columns: [
      { title: "Id", width: 7 },
      { title: "Concerns", width: 40 },
      { title: "Counted actions, each with its newest event", width: 43 },
      { title: "Events", width: 10, numeric: true }
    ],
    rows: report.mapping.criteria.map((criterion) => {
      const counts = actionsOf(countedBy(criterion), report.evidence.survey.actions.groups)
      return [
        html`<strong>${criterion.id}</strong>`,
        html`<strong>${criterion.topic}.</strong><br>In this log: ${criterion.evidence}<br>
          <span class="quiet">To be found elsewhere: ${criterion.elsewhere}</span>`,
        countedActions(report, counts),
        count(sumOf(counts))
      ]
    })
  })

/** What an auditor asks next: is an action missing from the mapping? */
const unassigned = ({ evidence, mapping }: Report): Html => {
  const { groups, other } = evidence.survey.actions
  const criteria = mapping.criteria.map(countedBy)
  const none = groups.filter(({ action, outcomes }) =>
    criteria.every((outcomesOf) =>
      outcomesOf(action).every((outcome) => outcomes[outcome] === undefined)
    )
  )
  const named = none
    .slice(0, OTHERS_SHOWN_MAX)
    .map(({ action, total }) => html`${shown(cut(action, FIELD_LENGTH_MAX))} (${count(total)})`)
    .flatMap((one, index) => (index === 0 ? [one] : [html`, `, one]))
  const rest = none.length - Math.min(none.length, OTHERS_SHOWN_MAX)
  return html`<p class="note">Counted for no criterion: ${
    none.length === 0 ? "no action" : named
  }${rest === 0 ? nothing : html` and ${counted(rest, "more action")}`}.${
    other === 0
      ? nothing
      : html` ${counted(other, "event")} beyond the first ${count(SURVEY_GROUPS_MAX)} actions were
        not assigned.`
  }</p>`
}

const body = (report: Report): Html => html`${alteredNotice(report)}
  <p class="lead">Evidence supporting the examination of the criteria named, by their ids in the SOC
    2 trust services criteria. Descriptions are this service's own words. Whether a criterion is met
    is for the auditor to conclude; this table does not say so.</p>
  
  ${mappingTable(report)}
  <p class="note">An event counts for a criterion if a pattern of the mapping means its action. One
    event may count for several criteria, and many for none.</p>
  ${unassigned(report)}`

export const criteriaMapping: Section = { title: "Mapping to SOC 2 criteria", body }

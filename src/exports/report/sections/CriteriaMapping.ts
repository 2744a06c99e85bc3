/** Chapter 4: for which criteria the log can serve as evidence, and for which part of them. */
import { ACTIONS_MAX } from "../Evidence.ts"
import { countByCriterion } from "../Criteria.ts"
import { html, type Html } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { count } from "../ShownText.ts"
import { table } from "../Tables.ts"

const body = (report: Report): Html => {
  const { criteria, evidence } = report
  const counts = countByCriterion(criteria, evidence.actions.groups)
  const { other } = evidence.actions
  const unassigned =
    other === 0
      ? ""
      : `Beyond the ${count(ACTIONS_MAX)} most frequent actions, ${count(other)} events were not `
        + "assigned."
  return html`${alteredNotice(report)}
    <p class="lead">Evidence supporting the examination of the criteria named, by their ids in the
      SOC 2 trust services criteria. Descriptions are this service's own words. Whether a criterion
      is met is for the auditor to conclude; this table does not say so.</p>
    ${table({
      caption: "Criteria and what this log holds for them",
      className: "criteria",
      columns: [
        { title: "Id", width: 7.5 },
        { title: "Concerns", width: 25 },
        { title: "Evidence supporting it in this log", width: 30 },
        { title: "To be found elsewhere", width: 28.5 },
        { title: "Events", width: 9, numeric: true }
      ],
      rows: criteria.map((criterion) => [
        html`<strong>${criterion.id}</strong>`,
        criterion.topic,
        criterion.evidence,
        criterion.elsewhere,
        count(counts.get(criterion.id) ?? 0)
      ])
    })}
    <p class="note">Events: those of the population whose action has one of the words that the
      mapping names for the criterion. One event may stand for several criteria, and many for none.
      ${unassigned}</p>`
}

export const criteriaMapping: Section = { id: "criteria", title: "Mapping to SOC 2 criteria", body }

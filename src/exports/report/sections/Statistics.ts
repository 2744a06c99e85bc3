/** The population in numbers, each exact. */
import { timelineChart, timelineText } from "../Charts.ts"
import { type Html, html } from "../Html.ts"
import { alteredNotice, type Report, type Section } from "../Report.ts"
import { groupTable } from "../Tables.ts"
import { timelineOf } from "../Timeline.ts"

const byTime = ({ evidence }: Report): Html => {
  if (evidence.tables.days === undefined) {
    return html`<p class="none">The events are spread over more days than a report counts;
      there is no chart.</p>`
  }
  const timeline = timelineOf(evidence.tables.days)
  return html`<figure><figcaption>${timelineText(timeline)}</figcaption>
    ${timelineChart(timeline)}</figure>`
}

const body = (report: Report): Html => {
  const { population, tables } = report.evidence
  const { actions, actors, actorTypes, outcomes, resourceTypes } = tables
  if (population === 0) return html`<p class="none">0 events: there is nothing to count.</p>`
  return html`${alteredNotice(report)}<h2>By time</h2>${byTime(report)}
    <h2>By action</h2>
    ${groupTable("Events by action", "Action", actions, population)}
    <h2>By outcome and type of actor</h2>
    <div class="columns">
    ${groupTable("Events by outcome", "Outcome", outcomes, population)}
    ${groupTable("Events by type of actor", "Type of actor", actorTypes, population)}</div>
    <h2>By actor and type of resource</h2>
    <div class="columns">
    ${groupTable("Events by actor", "Actor", actors, population)}
    ${groupTable("Events by type of resource", "Type of resource", resourceTypes, population)}
    </div>`
}

export const statistics: Section = { title: "Statistics", body }

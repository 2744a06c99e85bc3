/** Chapter 2: which events are meant, how they were counted, and why none is missing. */
import { html, type Html } from "../Html.ts"
import { conditionsOf, isWholePopulation, periodOf, type Report, type Section } from "../Report.ts"
import { count, counted, cut, seconds, shown } from "../ShownText.ts"
import { facts, table } from "../Tables.ts"

/** Characters of one value of a filter. */
const CONDITION_LENGTH_MAX = 300

const filterTable = ({ input }: Report): Html => {
  const conditions = conditionsOf(input.filter)
  if (conditions.length === 0) {
    return html`<p>No filter: every event of the period belongs to the population.</p>`
  }
  return table({
    caption: "Conditions beside the period, all of which an event meets",
    columns: [{ title: "Field", width: 35 }, { title: "Value", width: 65 }],
    rows: conditions.map(([name, value]) => [
      shown(name),
      shown(cut(value, CONDITION_LENGTH_MAX))
    ])
  })
}

/** The walk over the chain and the count of the store are made apart and must agree. */
const reconciliation = ({ evidence, input }: Report): Html => {
  const { events_in_bounds } = input.verification
  const { population } = evidence
  if (!isWholePopulation(input)) {
    return html`<p>Of the ${counted(events_in_bounds, "event")} that the check of the chain found
      within the period, ${count(population)} meet the filter.</p>`
  }
  return population === events_in_bounds
    ? html`<p><strong class="tone intact">The two counts agree.</strong> The query that made this
      report counts ${counted(population, "event")}; the check of the chain, which reads every
      stored event in order, counted ${count(events_in_bounds)} within the same period.</p>`
    : html`<p class="alarm"><strong>The two counts differ.</strong> The query that made this report
      counts ${counted(population, "event")}, but the check of the chain counted
      ${count(events_in_bounds)} within the same period. The population is not established.</p>`
}

const body = (report: Report): Html => {
  const { evidence, input } = report
  const { verification } = input
  const { bounds, events_checked, first_sequence_number, last_sequence_number } = verification
  const span =
    first_sequence_number === null || last_sequence_number === null
      ? "none"
      : `${count(first_sequence_number)} to ${count(last_sequence_number)}`
  return html`
    <h2>Scope</h2>
    ${facts([
      ["Period, by event time", periodOf(verification)],
      ["Exact bounds, inclusive", html`${bounds.from}<br>${bounds.to}`],
      ["Sequence numbers checked", span],
      ["Events checked", count(events_checked)],
      ["Population of this report", counted(evidence.population, "event")],
      ["Read at", html`${seconds(input.generatedAt)} UTC`]
    ])}
    <p>Bounds that were left out mean the entire history that the service supports, events dated in
      the future included. Events that arrived after the last sequence number above are in none of
      the numbers.</p>
    <h2>Filter</h2>
    ${filterTable(report)}
    <h2>Completeness</h2>
    ${reconciliation(report)}
    <p>Each tenant's events are numbered from 1 without gaps when they are recorded, and each holds
      the hash of the one before it. An event that was removed, added or moved leaves a gap, a
      second event under one number, or a link that does not hold; chapter 3 reports each. A removed
      end is found by comparing with the head that the log itself names, or with a signed
      checkpoint.</p>
    <p>What a system never sent can't be in a log. That sources send all that they should has to be
      tested at the sources.</p>`
}

export const population: Section = {
  id: "population",
  title: "Population and completeness",
  body
}

/** How many events there have to be, how many there are, and why none is missing. */
import { type Completeness, completenessOf } from "../Completeness.ts"
import { type Html, html, nothing } from "../Html.ts"
import { chapter, isWholePopulation, type Report, type Section } from "../Report.ts"
import { count, counted } from "../ShownText.ts"
import { facts } from "../Tables.ts"

const numbersOf = ({ span }: Completeness): string =>
  span === undefined ? "none" : `${count(span.first)} to ${count(span.last)}`

/** The sum as an auditor would write it. */
const expectedOf = ({ expected, span }: Completeness): string =>
  span === undefined ? "0" : `${count(span.last)} - ${count(span.first)} + 1 = ${count(expected)}`

const differenceOf = ({ checked, expected }: Completeness): string => {
  const difference = checked - expected
  if (difference === 0) return "none"
  return difference < 0
    ? `${counted(-difference, "event")} missing`
    : `${counted(difference, "event")} too many`
}

/** The check reads every row in order, the query of the report counts apart. */
const countsOf = ({ evidence, input }: Report, complete: Completeness): Html => {
  const { events_in_bounds } = input.verification
  const within = isWholePopulation(input) ? "within the period" : "within the period and the filter"
  return facts([
    ["Sequence numbers", numbersOf(complete)],
    ["Events expected", expectedOf(complete)],
    ["Events read by the check", count(complete.checked)],
    ["Difference", differenceOf(complete)],
    ["Of those read, within the period", count(events_in_bounds)],
    ["Counted by the query", `${count(evidence.population)} ${within}`]
  ])
}

const BROKEN_COUNTS =
  "Counts that agree do not establish anything here: an altered event counts like a genuine one."

const conclusion = ({ evidence, input }: Report, complete: Completeness): Html => {
  const { breaks_total, events_in_bounds } = input.verification
  if (complete.isEstablished && complete.span === undefined) {
    return html`<p>The chain has no event within these bounds, and none is expected.</p>`
  }
  if (!complete.isEstablished) {
    const reason =
      breaks_total === 0
        ? `the check read ${counted(complete.checked, "event")} of ${count(complete.expected)}`
        : `the chain has ${counted(breaks_total, "break")}`
    return html`<p class="alarm"><strong>Completeness is not established:</strong> ${reason}.
      ${breaks_total > 0 && complete.checked === complete.expected ? BROKEN_COUNTS : nothing}</p>`
  }
  if (isWholePopulation(input) && evidence.population !== events_in_bounds) {
    return html`<p class="alarm"><strong>The counts differ.</strong> The query that made this report
      counts ${counted(evidence.population, "event")}, the check of the chain
      ${count(events_in_bounds)} within the same period. The population is not established.</p>`
  }
  return html`<p><strong class="tone intact">No sequence number is missing.</strong> As many events
    were read as the sequence numbers require, each once.</p>`
}

/** Rows that a person with access to the store has put there. */
const unreadable = ({ evidence }: Report): Html =>
  evidence.survey.unreadable === 0
    ? nothing
    : html`<p class="alarm"><strong>${counted(evidence.survey.unreadable, "row")} of the store can't
        be read as an event.</strong> They are counted above and listed nowhere in this report.</p>`

const body = (report: Report): Html => {
  const complete = completenessOf(report.input.verification)
  return html`
    ${countsOf(report, complete)}
    ${conclusion(report, complete)}
    ${unreadable(report)}
    <p>Each tenant's events are numbered from 1 without gaps when they are recorded, and each holds
      the hash of the one before it. An event that was removed, added or moved leaves a gap, a
      second event under one number, or a link that does not hold; ${chapter("integrity")} reports
      each. A removed end is found by comparing with the head that the log itself names, or with a
      signed checkpoint.</p>
    <p>Events that arrived after the last sequence number above are in none of the numbers. What a
      system never sent can't be in a log: that sources send all that they should has to be tested at
      the sources.</p>`
}

export const population: Section = { title: "Population and completeness", body }

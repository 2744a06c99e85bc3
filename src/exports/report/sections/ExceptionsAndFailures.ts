/** Chapter 6: what was refused, what went wrong, and what was erased. */
import type { Exceptions } from "../Evidence.ts"
import { eventTable } from "../EventTables.ts"
import { html, type Html } from "../Html.ts"
import type { Report, Section } from "../Report.ts"
import { count, counted } from "../ShownText.ts"
import { extent, groupTable, share } from "../Tables.ts"

const ELSEWHERE = "here, the older ones; the evidence pack of the same bounds holds them all."

const titles = {
  success: "Successes",
  failure: "Failures: refused or not permitted",
  error: "Errors: attempted and gone wrong"
}

const exceptionsPart = ({ evidence, marks }: Report, exceptions: Exceptions): Html => {
  const { population } = evidence
  const { actions, outcome, shown, total } = exceptions
  const part = population === 0 ? "" : `, ${share(total, population)} of the population`
  if (total === 0) return html`<h2>${titles[outcome]}</h2><p class="none">0 events.</p>`
  return html`<h2>${titles[outcome]}</h2><p>${counted(total, "event")}${part}.</p>
    ${groupTable(`Actions with the outcome ${outcome}`, "Action", actions, total)}
    ${eventTable(`Events with the outcome ${outcome}, the newest first`, shown, marks)}
    ${extent(shown.length, total, "event", ELSEWHERE)}`
}

const body = (report: Report): Html => {
  const { evidence, input, marks } = report
  const { erasures, exceptions } = evidence
  const { breaks_total } = input.verification
  return html`
    ${
      breaks_total === 0
        ? html`<p>The check of the chain found no exception.</p>`
        : html`<p class="alarm"><strong>${counted(breaks_total, "break")} of the chain</strong>,
          listed in chapter 3. They put every statement of this report about the events concerned in
          doubt.</p>`
    }
    ${exceptions.map((one) => exceptionsPart(report, one))}
    <h2>Erasures</h2>
    ${
      erasures.total === 0
        ? html`<p class="none">No erasure was recorded within this population.</p>`
        : html`<p>${count(erasures.total)} recorded. Each names the event whose details were
          removed; the event itself and its hash remain.</p>
          ${eventTable("Recorded erasures, the newest first", erasures.shown, marks)}
          ${extent(erasures.shown.length, erasures.total, "erasure", ELSEWHERE)}`
    }`
}

export const exceptionsAndFailures: Section = {
  id: "exceptions",
  title: "Exceptions and failures",
  body
}

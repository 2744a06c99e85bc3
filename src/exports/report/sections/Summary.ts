/** Chapter 1: the findings on one page, each with the chapter that shows how it was reached. */
import { html, type Html } from "../Html.ts"
import { isWholePopulation, periodOf, type Report, type Section } from "../Report.ts"
import { count, counted, micros } from "../ShownText.ts"
import { facts, share } from "../Tables.ts"
import { verdictOf } from "../Verdict.ts"

const outcomeLine = ({ evidence }: Report): Html => {
  const { outcomes, population } = evidence
  const of = (key: string) => outcomes.groups.find((group) => group.key === key)?.count ?? 0
  const part = (key: string) => `${count(of(key))} ${key} (${share(of(key), population)})`
  return population === 0
    ? html`none`
    : html`${["success", "failure", "error"].map(part).join(", ")}`
}

const body = (report: Report): Html => {
  const { evidence, input } = report
  const { verification } = input
  const { first, last, population, sample } = evidence
  const { sentence, tone, word } = verdictOf(verification)
  const missing = sample.drawn.filter(({ event }) => event === undefined).length
  return html`
    <p class="lead">This report shows what the audit log of one tenant holds for a period, whether
      that record is the one that was written, and where an auditor can test it further.</p>
    ${facts([
      ["Period", periodOf(verification)],
      ["Selection", isWholePopulation(input) ? "every event of the period" : "see chapter 2"],
      ["Population", counted(population, "event")],
      [
        "First and last event",
        first === undefined || last === undefined
          ? "none"
          : html`sequence ${count(first.sequenceNumber)}, ${micros(first.timestamp)}<br>sequence
              ${count(last.sequenceNumber)}, ${micros(last.timestamp)}`
      ],
      ["Outcomes", outcomeLine(report)],
      ["Integrity", html`<strong class="tone ${tone}">${word}.</strong> ${sentence}`],
      ["Erased events", verification.erased_events === 0
        ? "none in the checked span"
        : `${count(verification.erased_events)} in the checked span: their details were removed on `
          + "request, their hashes remain"],
      ["Sample", missing === 0
        ? `${counted(sample.drawn.length, "event")}, drawn from the head hash, see chapter 7`
        : html`<strong class="tone broken">${counted(missing, "drawn event")} of ${count(
            sample.drawn.length
          )} could not be read</strong>, see chapter 7`]
    ])}
    ${population === 0 ? html`<p class="none">0 events: nothing in the log matches. The chapters
      that follow say so one by one, so that this document can stand as evidence of
      it.</p>` : undefined}`
}

export const summary: Section = { id: "summary", title: "Summary", body }

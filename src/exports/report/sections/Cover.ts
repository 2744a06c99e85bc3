/**
 * The first page: whose record it is, of which time, and whether it holds. Whoever reads no further
 * has seen the verdict.
 */
import type { VerifyReport } from "../../../verify/Verifier.ts"
import { html, nothing, type Html } from "../Html.ts"
import { isWholePopulation, periodOf, type Report } from "../Report.ts"
import { count, counted, hash, seconds, shown } from "../ShownText.ts"
import { facts } from "../Tables.ts"
import { reasonText, verdictOf } from "../Verdict.ts"

/** Breaks that the cover names. */
const BREAKS_MAX = 3

const breaksOf = ({ breaks, breaks_total }: VerifyReport): Html => {
  if (breaks_total === 0) return nothing
  const named = breaks.slice(0, BREAKS_MAX)
  const rest = breaks_total - named.length
  return html`<ul>${named.map(
    ({ reason, sequence_number }) =>
      html`<li><strong>Sequence ${count(sequence_number)}</strong>: ${reason}.
        ${reasonText(reason)}</li>`
  )}${rest === 0 ? nothing : html`<li>and ${counted(rest, "more break")}, see chapter 3</li>`}</ul>`
}

const headOf = ({ head }: VerifyReport): Html =>
  head === null
    ? html`none: the chain has no events`
    : html`${hash(head.hash)}<br><span class="quiet">sequence
        ${count(head.sequence_number)}, chained ${seconds(head.created_at)} UTC</span>`

export const cover = ({ evidence, input }: Report): Html => {
  const { generatedAt, serviceName, tenant, verification } = input
  const { sentence, tone, word } = verdictOf(verification)
  const narrowed = isWholePopulation(input) ? "" : " that match the filter of chapter 2"
  return html`<header class="cover">
    <p class="service">${shown(serviceName)}</p>
    <p class="kind">Audit evidence report</p>
    <p class="tenant">${shown(tenant.name ?? tenant.id)}</p>
    <p class="period">${periodOf(verification)}</p>
    <section class="verdict ${tone}"><p class="label">Integrity of the record</p>
      <p class="word">${word}</p><p class="sentence">${sentence}</p>
      ${breaksOf(verification)}</section>
    ${facts([
      ["Tenant", shown(tenant.id)],
      ["Population", html`${counted(evidence.population, "event")}${narrowed}`],
      ["Head of the chain", headOf(verification)],
      ["Generated", html`${seconds(generatedAt)} UTC`]
    ])}
    <p class="notice">Evidence supporting an examination, not an opinion on it. Times are UTC. May
      hold personal data: pass it on only to those who need it.</p>
  </header>`
}

/**
 * The first page, for a reader who reads no further: whose record it is, of which time, whether it
 * holds, how much there is of it, and what to look at first.
 */

import { noticesOf } from "../../../verify/VerifyReport.ts"
import { completenessOf } from "../Completeness.ts"
import { type Html, html, nothing } from "../Html.ts"
import type { Report } from "../Report.ts"
import { boundsText, chapter, eventsHold, isWholePopulation, periodText } from "../Report.ts"
import { count, counted, cut, hash, seconds, shown } from "../ShownText.ts"
import { facts } from "../Tables.ts"
import { reasonText, verdictOf } from "../Verdict.ts"
import { failedExecutions } from "./Executions.ts"
import { privilegedEvents } from "./Privileged.ts"

/** Breaks that the first page names. */
const BREAKS_MAX = 3
/** Groups of failures that the first page names. */
const FAILURES_MAX = 3
/** Notices that the first page names, and characters of one: all are in their chapter. */
const NOTICES_MAX = 2
const NOTICE_LENGTH_MAX = 240
/** Characters of a reason: the rest is in its chapter. */
const REASON_LENGTH_MAX = 80

const breaksOf = ({ input }: Report): Html => {
  const { breaks, breaks_total } = input.verification
  if (breaks_total === 0) return nothing
  const named = breaks.slice(0, BREAKS_MAX)
  const rest = breaks_total - named.length
  return html`<ul>${named.map(
    ({ reason, sequence_number }) =>
      html`<li><strong>Sequence ${count(sequence_number)}</strong>: ${reason}.
        ${reasonText(reason)}</li>`
  )}${
    rest === 0
      ? nothing
      : html`<li>and ${counted(rest, "more break")}, see ${chapter("integrity")}</li>`
  }</ul>`
}

const headOf = ({ input }: Report): Html => {
  const { head } = input.verification
  return head === null
    ? html`none: the chain has no events`
    : html`${hash(head.hash)}<br><span class="quiet">sequence
        ${count(head.sequence_number)}, recorded ${seconds(head.created_at)} UTC</span>`
}

const failedEvents = ({ evidence }: Report): number =>
  evidence.tables.exceptions.reduce((sum, { total }) => sum + total, 0)

const ofExecutions = (report: Report): ReadonlyArray<readonly [number, string]> =>
  report.input.eventsOnly === true
    ? []
    : [
        [report.evidence.traces.executions, "agent executions"],
        [failedExecutions(report), "of them failed"]
      ]

const figures = (report: Report): Html => {
  const { population, survey } = report.evidence
  const values: ReadonlyArray<readonly [number, string]> = [
    [population, "events"],
    [failedEvents(report), "refused or failed"],
    [privilegedEvents(report), "privileged"],
    [survey.timeliness.backdated?.count ?? 0, "recorded over a day late"],
    ...ofExecutions(report)
  ]
  const altered = eventsHold(report.input.verification)
    ? nothing
    : html`<p class="tone broken">These numbers are computed from altered records.</p>`
  return html`<div class="figures">${values.map(
    ([value, name]) => html`<p><strong>${count(value)}</strong> ${name}</p>`
  )}</div>${altered}`
}

/** What to look at first; the verdict above says what is broken. */
const exceptionsOf = (report: Report): ReadonlyArray<Html> => {
  const { evidence, input } = report
  const { failures, timeliness } = evidence.survey
  const { verification } = input
  const complete = completenessOf(verification)
  const found: Array<Html> = []
  const add = (text: Html, id: Parameters<typeof chapter>[0]) =>
    found.push(html`<li>${text} <span class="quiet">${chapter(id)}</span></li>`)
  if (!complete.isEstablished) {
    add(
      html`<strong>Completeness is not established</strong>: ${count(complete.expected)} expected,
        ${count(complete.checked)} read.`,
      "population"
    )
  }
  const notices = noticesOf(verification)
  for (const notice of notices.slice(0, NOTICES_MAX)) {
    const text = shown(cut(notice, NOTICE_LENGTH_MAX))
    add(html`<strong>Not established</strong>, ${text}.`, "integrity")
  }
  if (notices.length > NOTICES_MAX) {
    add(html`and ${counted(notices.length - NOTICES_MAX, "more notice")}.`, "integrity")
  }
  for (const group of failures.groups.slice(0, FAILURES_MAX)) {
    const reason =
      group.reason === undefined
        ? nothing
        : html`: ${shown(cut(group.reason.text, REASON_LENGTH_MAX))}`
    const events = counted(group.count, group.outcome)
    add(html`${events} of ${shown(group.action)}${reason}.`, "failures")
  }
  const failed = failedExecutions(report)
  if (failed > 0) add(html`${counted(failed, "execution")} of agents failed.`, "executions")
  const { ahead, backdated } = timeliness
  if (backdated !== undefined) {
    add(html`${counted(backdated.count, "event")} recorded more than 1 day late.`, "timeliness")
  }
  if (ahead !== undefined) {
    add(html`${counted(ahead.count, "event")} dated after the recording.`, "timeliness")
  }
  if (verification.erased_events > 0) {
    add(html`Details of ${counted(verification.erased_events, "event")} erased.`, "failures")
  }
  return found
}

const exceptions = (report: Report): Html => {
  const found = exceptionsOf(report)
  const heading = html`<h2>To look at first</h2>`
  if (found.length > 0) return html`${heading}<ul class="exceptions">${found}</ul>`
  if (!eventsHold(report.input.verification)) return nothing
  return html`${heading}<p>Nothing was refused, went wrong, was recorded late or erased.</p>`
}

const title = ({ logo, organisation, input }: Report): Html => {
  const picture =
    logo === undefined
      ? nothing
      : html`<img class="logo" alt="" src="data:${logo.mediaType};base64,${logo.bytes.toString(
          "base64"
        )}">`
  const owner = organisation === undefined ? nothing : html`${shown(organisation)}, `
  return html`<p class="service">${picture}<span>${owner}${shown(input.serviceName)}</span></p>`
}

export const cover = (report: Report): Html => {
  const { evidence, id, input } = report
  const { generatedAt, request, tenant, verification } = input
  const { sentence, tone, word } = verdictOf(verification)
  const narrowed = isWholePopulation(input) ? "" : `, the filter of ${chapter("request")} applied`
  return html`<header class="cover">
    ${title(report)}
    <p class="kind">Audit evidence report</p>
    <p class="tenant">${shown(tenant.name ?? tenant.id)}</p>
    <p class="period">${boundsText(verification)}<span class="quiet">${narrowed}; events found:
      ${periodText(evidence)}</span></p>
    <section class="verdict ${tone}"><p class="label">Integrity of the record, as found by the
        service itself</p>
      <p class="word">${word}</p><p class="sentence">${sentence}</p>
      ${breaksOf(report)}</section>
    ${figures(report)}
    ${exceptions(report)}
    <div class="foot">${facts([
      ["Tenant", shown(tenant.id)],
      ["Population", counted(evidence.population, "event")],
      ["Head of the chain", headOf(report)],
      [
        "Report",
        html`<code>${id}</code>, asked for with ${request.askedBy.kind}
        ${shown(request.askedBy.id)}`
      ],
      ["Generated", html`${seconds(generatedAt)} UTC`]
    ])}
    <p class="notice">Evidence supporting an examination, not an opinion on it. Times are UTC. May
      hold personal data: pass it on only to those who need it.</p></div>
  </header>`
}

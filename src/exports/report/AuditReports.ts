/**
 * The PDF that is handed to an auditor: evidence from the store and a finished verification, set as
 * chapters and printed. Checks nothing itself and decides nothing about the events.
 */
import { Context, Effect, Layer } from "effect"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { EventStore, StoreUnavailable } from "../../ports/EventStore.ts"
import {
  type PdfBusy,
  type PdfDocument,
  type PdfFailed,
  PdfRenderer,
  type PdfUnavailable
} from "../../ports/PdfRenderer.ts"
import type { CheckedEvents } from "../../verify/CheckedEvents.ts"
import { verificationText } from "../pack/PackText.ts"
import type { TraceExport } from "../pack/TraceExport.ts"
import { matcherOf } from "./ActionPattern.ts"
import { brokenEventsOf } from "./BrokenEvents.ts"
import { collectEvidence } from "./Evidence.ts"
import { fontFaces } from "./Fonts.ts"
import { type Html, html } from "./Html.ts"
import {
  boundsText,
  type ChapterId,
  chapterIds,
  type Report,
  type ReportInput,
  reportIdOf,
  type Section
} from "./Report.ts"
import { defaultReportSettings, fingerprintOf, type ReportSettings } from "./ReportSettings.ts"
import { seconds } from "./ShownText.ts"
import { type RunningText, stylesheet } from "./Stylesheet.ts"
import { cover } from "./sections/Cover.ts"
import { criteriaMapping } from "./sections/CriteriaMapping.ts"
import { eventListing } from "./sections/EventListing.ts"
import { executions } from "./sections/Executions.ts"
import { failures } from "./sections/Failures.ts"
import { glossary } from "./sections/Glossary.ts"
import { integrity } from "./sections/Integrity.ts"
import { population } from "./sections/Population.ts"
import { privileged } from "./sections/Privileged.ts"
import { request } from "./sections/Request.ts"
import { samples } from "./sections/Samples.ts"
import { signOff } from "./sections/SignOff.ts"
import { statistics } from "./sections/Statistics.ts"
import { timeliness } from "./sections/Timeliness.ts"
import { verdictOf } from "./Verdict.ts"

const sections: Readonly<Record<ChapterId, Section>> = {
  request,
  population,
  integrity,
  criteria: criteriaMapping,
  failures,
  privileged,
  timeliness,
  statistics,
  executions,
  samples,
  events: eventListing,
  "sign-off": signOff,
  glossary
}

const contents = (): Html =>
  html`<nav class="contents"><h1>Contents</h1><ol>${chapterIds.map(
    (id, index) =>
      html`<li><a href="#${id}"><span class="chapter-number">${index + 1}</span>
        <span class="chapter-title">${sections[id].title}</span>
        <span class="chapter-page" data-page-of="${id}"></span></a></li>`
  )}</ol></nav>`

const chapterOf = (report: Report, id: ChapterId, index: number): Html => {
  const { body, title } = sections[id]
  return html`<section class="chapter ${id}"><h1 id="${id}"><span
    class="chapter-number">${index + 1}</span> ${title}</h1>${body(report)}</section>`
}

/** The document of a report: pure, the same for the same report. */
export const documentOf = (report: Report): PdfDocument => {
  const { generatedAt, serviceName, tenant, verification } = report.input
  const { markup } = html`${cover(report)}${contents()}${chapterIds.map((id, index) =>
    chapterOf(report, id, index)
  )}`
  const { tone, word } = verdictOf(verification)
  const title = `Audit evidence report: ${tenant.name ?? tenant.id}`
  const running: RunningText = {
    left: tone === "broken" ? `Audit evidence report: ${word}` : "Audit evidence report",
    right: tenant.id,
    foot: `${serviceName}, generated ${seconds(generatedAt)} UTC, report ${report.id}`,
    alarm: tone === "broken"
  }
  return {
    title: `${title}, ${boundsText(verification)}`,
    language: "en",
    styles: fontFaces([markup, serviceName]) + stylesheet(running),
    body: markup,
    createdAt: generatedAt,
    attachments: [
      {
        name: "verification.json",
        mediaType: "application/json",
        description: "What the service found when it recomputed the chain",
        // When and how long it ran is no property of the content.
        bytes: Buffer.from(
          verificationText({ ...verification, verified_at: generatedAt, duration_ms: 0 })
        )
      }
    ]
  }
}

export class AuditReports extends Context.Service<
  AuditReports,
  {
    /** Changes with the operator's settings: a report of the same content would be another one. */
    readonly fingerprint: string
    /** A PDF. The same input over the same events gives the same bytes. */
    render(
      input: ReportInput
    ): Effect.Effect<
      Uint8Array,
      LogUnavailable | StoreUnavailable | PdfUnavailable | PdfBusy | PdfFailed
    >
  }
>()("alk/AuditReports") {
  static readonly layer = (
    settings: ReportSettings = defaultReportSettings
  ): Layer.Layer<AuditReports, never, CheckedEvents | EventStore | PdfRenderer | TraceExport> =>
    Layer.effect(AuditReports, makeReports(settings))
}

const makeReports = Effect.fnUntraced(function* (settings: ReportSettings) {
  const { mapping } = settings
  const isPrivileged = matcherOf(mapping.privileged_actions)
  const renderer = yield* PdfRenderer
  const stores = yield* Effect.context<CheckedEvents | EventStore | TraceExport>()
  const render = Effect.fn("AuditReports.render")(function* (input: ReportInput) {
    const { filter, deduplicate, tenant, traces, verification } = input
    const wanted = { tenantId: tenant.id, filter, deduplicate, verification, isPrivileged, traces }
    const evidence = yield* collectEvidence(wanted).pipe(Effect.provideContext(stores))
    const marks = brokenEventsOf(verification)
    const report: Report = {
      id: reportIdOf(input),
      input,
      evidence,
      brokenEvents: marks,
      ...settings
    }
    return yield* renderer.render(documentOf(report))
  })
  return AuditReports.of({ fingerprint: fingerprintOf(settings), render })
})

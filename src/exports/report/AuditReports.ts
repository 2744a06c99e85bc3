/**
 * The PDF that is handed to an auditor: evidence from the store and a finished verification, set as
 * chapters and printed. Checks nothing itself and decides nothing about the events.
 */
import { Context, Effect, Layer } from "effect"
import { EventStore, type StoreUnavailable } from "../../ports/EventStore.ts"
import {
  PdfRenderer,
  type PdfBusy,
  type PdfDocument,
  type PdfFailed,
  type PdfUnavailable
} from "../../ports/PdfRenderer.ts"
import { matcherOf } from "./ActionPattern.ts"
import { collectEvidence } from "./Evidence.ts"
import { fontFaces } from "./Fonts.ts"
import { html, type Html } from "./Html.ts"
import { marksOf } from "./Marks.ts"
import { periodOf, type Report, type ReportInput, type Section } from "./Report.ts"
import { defaultReportSettings, type ReportSettings } from "./ReportSettings.ts"
import { seconds } from "./ShownText.ts"
import { stylesheet, type RunningText } from "./Stylesheet.ts"
import { verdictOf } from "./Verdict.ts"
import { cover } from "./sections/Cover.ts"
import { criteriaMapping } from "./sections/CriteriaMapping.ts"
import { eventListing } from "./sections/EventListing.ts"
import { exceptionsAndFailures } from "./sections/ExceptionsAndFailures.ts"
import { glossary } from "./sections/Glossary.ts"
import { integrity } from "./sections/Integrity.ts"
import { population } from "./sections/Population.ts"
import { samples } from "./sections/Samples.ts"
import { signOff } from "./sections/SignOff.ts"
import { statistics } from "./sections/Statistics.ts"
import { summary } from "./sections/Summary.ts"

/** In their order; the texts of the chapters refer to one another by these numbers. */
const chapters: ReadonlyArray<Section> = [
  summary,
  population,
  integrity,
  criteriaMapping,
  statistics,
  exceptionsAndFailures,
  samples,
  eventListing,
  signOff,
  glossary
]

const contents = (): Html =>
  html`<nav class="contents"><h1>Contents</h1><ol>${chapters.map(
    ({ id, title }, index) =>
      html`<li><a href="#${id}"><span class="chapter-number">${index + 1}</span>
        <span class="chapter-title">${title}</span>
        <span class="chapter-page" data-page-of="${id}"></span></a></li>`
  )}</ol></nav>`

const chapter = (report: Report, { body, id, title }: Section, index: number): Html =>
  html`<section class="chapter"><h1 id="${id}"><span class="chapter-number">${index + 1}</span>
    ${title}</h1>${body(report)}</section>`

/** The document of a report: pure, the same for the same report. */
export const documentOf = (report: Report): PdfDocument => {
  const { generatedAt, serviceName, tenant, verification } = report.input
  const { markup } = html`${cover(report)}${contents()}${chapters.map((section, index) =>
    chapter(report, section, index)
  )}`
  const { tone, word } = verdictOf(verification)
  const title = `Audit evidence report: ${tenant.name ?? tenant.id}`
  const running: RunningText = {
    left: tone === "broken" ? `Audit evidence report: ${word}` : "Audit evidence report",
    right: tenant.id,
    foot: `${serviceName}, generated ${seconds(generatedAt)} UTC`,
    alarm: tone === "broken"
  }
  return {
    title: `${title}, ${periodOf(verification)}`,
    language: "en",
    styles: fontFaces([markup, serviceName]) + stylesheet(running),
    body: markup,
    createdAt: generatedAt
  }
}

export class AuditReports extends Context.Service<
  AuditReports,
  {
    /** A PDF. The same input over the same events gives the same bytes. */
    render(
      input: ReportInput
    ): Effect.Effect<Uint8Array, StoreUnavailable | PdfUnavailable | PdfBusy | PdfFailed>
  }
>()("alk/AuditReports") {
  static readonly layer = (
    settings: ReportSettings = defaultReportSettings
  ): Layer.Layer<AuditReports, never, EventStore | PdfRenderer> => Layer.effect(
    AuditReports,
    Effect.gen(function*() {
      const store = yield* EventStore
      const renderer = yield* PdfRenderer
      const { mapping } = settings
      const isPrivileged = matcherOf(mapping.privileged_actions)
      const render = Effect.fn("AuditReports.render")(function*(input: ReportInput) {
        const { filter, final, tenant, verification } = input
        const request = { tenantId: tenant.id, filter, final, verification, isPrivileged }
        const evidence = yield* collectEvidence(request).pipe(
          Effect.provideService(EventStore, store)
        )
        return yield* renderer.render(
          documentOf({ input, evidence, mapping, marks: marksOf(verification) })
        )
      })
      return AuditReports.of({ render })
    })
  )
}

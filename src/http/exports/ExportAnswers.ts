/**
 * Exports as answers: one scope for everything in a document, the ETag in front of the work, and
 * the export itself on the record before its first byte leaves. What a document says is made
 * elsewhere.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Heads } from "../../actors/follower/Heads.ts"
import { Keys } from "../../actors/follower/Keys.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { chains, treeNameOf } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import { sha256Hex } from "../../domain/Identifiers.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { EvidenceSeal } from "../../exports/EvidenceSeal.ts"
import {
  currentEtag,
  type ExportKind,
  type ExportRequest,
  type ExportScope,
  openScope,
  scopeEtag
} from "../../exports/ExportScope.ts"
import { evidencePack } from "../../exports/pack/EvidencePack.ts"
import type { TraceExport } from "../../exports/pack/TraceExport.ts"
import { AuditReports } from "../../exports/report/AuditReports.ts"
import { type ReportInput, type ReportRequest, reportIdOf } from "../../exports/report/Report.ts"
import type { Archive } from "../../ports/Archive.ts"
import { EventLog } from "../../ports/EventLog.ts"
import type { EventStore } from "../../ports/EventStore.ts"
import { SystemAuditLog } from "../../services/administration/SystemAuditLog.ts"
import type { Verifier } from "../../verify/Verifier.ts"
import { API_VERSION } from "../Api.ts"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import type { Failure } from "../messages/Failure.ts"
import { matchesEtag } from "../messages/StaticAnswer.ts"
import { readableView } from "../messages/StoreView.ts"
import { transfer } from "../messages/Transfer.ts"
import { ExportSlots } from "./ExportSlots.ts"
import { PDF_TYPE, ZIP_TYPE } from "./ExportTypes.ts"

/** What is to be exported, and for whom. */
export interface ExportOrder extends ExportRequest {
  /** The API key or the share link: the actor on the record. */
  readonly askedBy: ReportRequest["askedBy"]
  /** Where this process is reached, unless the configuration says where the service is. */
  readonly ownUrl: string
  /** Asked when there is something to hand out, before it goes on record. */
  readonly permit?: Effect.Effect<void, Failure>
}

type Request = HttpServerRequest.HttpServerRequest
type Answered = Effect.Effect<HttpServerResponse.HttpServerResponse, Failure, Scope.Scope>

export class ExportAnswers extends Context.Service<
  ExportAnswers,
  {
    /** The ZIP, with or without the PDF in it. */
    pack(request: Request, order: ExportOrder, withPdf: boolean): Answered
    /** The PDF alone. */
    pdf(request: Request, order: ExportOrder): Answered
  }
>()("alk/http/ExportAnswers") {}

/**
 * Time that a checkpoint of the whole chain may take to be signed and stored before an export is
 * made. Without it the verification in the export says less, and the export is made all the same.
 */
const CHECKPOINT_TIMEOUT = "5 seconds"

const extensions = { pack: "zip", "pack-without-pdf": "zip", pdf: "pdf" } as const
const types = { pack: ZIP_TYPE, "pack-without-pdf": ZIP_TYPE, pdf: PDF_TYPE } as const
const nouns = { pack: "evidence", "pack-without-pdf": "evidence", pdf: "audit-report" } as const
const resourceTypes = {
  pack: "evidence_pack",
  "pack-without-pdf": "evidence_pack",
  pdf: "audit_report"
} as const

const plain = (text: string): string => text.replaceAll(/[^A-Za-z0-9._-]/gu, "-")

/** `alk-evidence-acme-20261121T120000Z.zip` */
const fileName = (kind: ExportKind, service: string, tenantId: string, time: string): string => {
  const compact = `${time.slice(0, 19).replaceAll(/[-:]/gu, "")}Z`
  return `${plain(service)}-${nouns[kind]}-${plain(tenantId)}-${compact}.${extensions[kind]}`
}

/** Hexadecimal digits of an ETag. */
const ETAG_DIGITS = 32

/** The client keeps its copy but asks each time; nobody in between keeps one. */
const CACHE_CONTROL = "private, no-cache"

const unchanged = (etag: string) =>
  HttpServerResponse.empty({ status: 304, headers: { etag, "cache-control": CACHE_CONTROL } })

const unprintable = (message: string, retryAfterSeconds?: number): ApiError =>
  new ApiError({
    code: "pdf_unavailable",
    message,
    ...(retryAfterSeconds === undefined
      ? {}
      : { headers: { "retry-after": String(retryAfterSeconds) } })
  })

const make = Effect.gen(function* () {
  const { publicUrl, serviceName } = yield* ApiSettings
  const auditLog = yield* SystemAuditLog
  const keys = yield* Keys
  const log = yield* EventLog
  const reports = yield* AuditReports
  const seal = yield* EvidenceSeal
  const slots = yield* ExportSlots
  const projection = yield* ProjectionProgress
  const services = yield* Effect.context<
    | Archive
    | EventLog
    | EventStore
    | EvidenceSeal
    | Heads
    | TraceExport
    | Verifier
    | ProjectionProgress
  >()

  /** What is verified now is compared with a checkpoint of now: the next export says the same. */
  const checkpointed = (tenantId: string) =>
    Effect.gen(function* () {
      for (const chain of chains) yield* seal.latest(treeNameOf(tenantId, chain))
      const partition = log.partitionOf(tenantId)
      const [end = 0] = yield* log.ends([{ topic: "checkpoints", partition }])
      yield* projection.awaitOffset(partition, { checkpoints: end })
    }).pipe(Effect.timeoutOption(CHECKPOINT_TIMEOUT), Effect.exit)

  const requestOf = (request: Request, { askedBy, ownUrl }: ExportOrder): ReportRequest => ({
    askedBy,
    line: `${request.method} ${request.url}`,
    serviceUrl: publicUrl ?? ownUrl,
    apiVersion: API_VERSION
  })

  const inputOf = Effect.fnUntraced(function* (
    scope: ExportScope,
    request: ReportRequest,
    deduplicate: boolean
  ) {
    const tenant = (yield* keys.tenants).find(({ id }) => id === scope.tenantId)
    const { bounds, filter, generatedAt, surroundings, tenantId, verification } = scope
    const last = surroundings.traceHead?.sequence_number
    const { from, to } = bounds
    const input: ReportInput = {
      tenant: {
        id: tenantId,
        ...defined({ name: tenant?.name })
      },
      filter,
      verification,
      generatedAt,
      serviceName,
      request,
      traces: last === undefined ? undefined : { tenantId, from, to, last },
      deduplicate
    }
    return input
  })

  const print = (input: ReportInput) =>
    reports.render(input).pipe(
      Effect.catchTags({
        PdfUnavailable: ({ message }) => Effect.fail(unprintable(message)),
        PdfBusy: ({ retryAfterSeconds }) =>
          Effect.fail(unprintable("too many documents wait to be printed", retryAfterSeconds)),
        PdfFailed: (failure) =>
          Effect.logWarning("a PDF could not be printed", failure.reason, failure.cause).pipe(
            Effect.andThen(Effect.fail(unprintable(`it could not be printed: ${failure.message}`)))
          )
      })
    )

  const record = (
    kind: ExportKind,
    { askedBy }: ExportOrder,
    scope: ExportScope,
    report: ReportInput | undefined
  ) =>
    auditLog.log({
      actor: askedBy.id,
      action: "export.created",
      resource: { type: resourceTypes[kind], id: scope.tenantId },
      metadata: {
        tenant_id: scope.tenantId,
        bounds: scope.bounds,
        filter: scope.conditions ?? null,
        events: scope.verification.events_in_bounds,
        head_hash: scope.verification.head?.hash ?? null,
        generated_at: scope.generatedAt,
        ...(report === undefined ? {} : { report_id: reportIdOf(report) })
      }
    })

  const packBytes = (scope: ExportScope, pdf: Uint8Array | undefined, deduplicate: boolean) =>
    evidencePack(scope, { serviceName, pdf, deduplicate }).pipe(Effect.provideContext(services))

  /** The tag of an export with a report in it covers the settings of reports, too. */
  const tagged = (kind: ExportKind, etag: string): string =>
    kind === "pack-without-pdf"
      ? etag
      : `W/"${sha256Hex(`${etag}\n${reports.fingerprint}`).slice(0, ETAG_DIGITS)}"`

  const headersOf = (kind: ExportKind, tenantId: string, etag: string, time: string) => ({
    etag,
    "cache-control": CACHE_CONTROL,
    "content-disposition": `attachment; filename="${fileName(kind, serviceName, tenantId, time)}"`
  })

  const answer = Effect.fnUntraced(function* (
    kind: ExportKind,
    request: Request,
    order: ExportOrder
  ) {
    const { filter, tenantId } = order
    const { deduplicate } = yield* readableView(projection, tenantId)
    const current = yield* currentEtag(kind, order).pipe(Effect.provideContext(services))
    const etag = tagged(kind, current)
    if (matchesEtag(request.headers["if-none-match"], etag)) return unchanged(etag)
    // Nobody would see the document: nothing is made and nothing was exported.
    if (request.method === "HEAD") {
      const now = currentTime()
      const headers = { ...headersOf(kind, tenantId, etag, now), "content-type": types[kind] }
      return HttpServerResponse.empty({ status: 200, headers })
    }
    yield* slots.take(tenantId)
    yield* checkpointed(tenantId)
    const scope = yield* openScope({ tenantId, filter }).pipe(Effect.provideContext(services))
    const report =
      kind === "pack-without-pdf"
        ? undefined
        : yield* inputOf(scope, requestOf(request, order), deduplicate)
    const pdf = report === undefined ? undefined : yield* print(report)
    const options = {
      contentType: types[kind],
      headers: headersOf(kind, tenantId, tagged(kind, scopeEtag(kind, scope)), scope.generatedAt)
    }
    yield* order.permit ?? Effect.void
    if (kind === "pdf") {
      yield* record(kind, order, scope, report)
      return HttpServerResponse.uint8Array(pdf!, options)
    }
    const bytes = yield* packBytes(scope, pdf, deduplicate)
    yield* record(kind, order, scope, report)
    const of = { operation: "exportEvidencePack", tenantId }
    return HttpServerResponse.stream(transfer(request, bytes, of), options)
  })

  return ExportAnswers.of({
    pack: (request, order, withPdf) =>
      answer(withPdf ? "pack" : "pack-without-pdf", request, order),
    pdf: (request, order) => answer("pdf", request, order)
  })
})

/** Exports of the services behind the API. */
export const layerExportAnswers = Layer.effect(ExportAnswers, make)

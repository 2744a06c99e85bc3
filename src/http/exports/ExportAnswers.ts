/**
 * Exports as answers: one scope for everything in a document, the ETag in front of the work, and
 * the export itself on the record before its first byte leaves. What a document says is made
 * elsewhere.
 */
import { Context, Effect, Layer, Scope } from "effect"
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
import { PDF_TYPE, ZIP_TYPE } from "../messages/MediaTypes.ts"
import { matchesEtag } from "../messages/StaticAnswer.ts"
import { readableView } from "../messages/StoreView.ts"
import { transfer } from "../messages/Transfer.ts"
import { ExportSlots } from "./ExportSlots.ts"

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

/** The client keeps its copy but asks each time; no cache in between keeps one. */
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

/** What exports are made with. */
type Services =
  | ApiSettings
  | Archive
  | AuditReports
  | EventLog
  | EventStore
  | EvidenceSeal
  | ExportSlots
  | Heads
  | Keys
  | ProjectionProgress
  | SystemAuditLog
  | TraceExport
  | Verifier

/** What is verified now is compared with a checkpoint of now: the next export says the same. */
const checkpointed = (tenantId: string) =>
  Effect.gen(function* () {
    const seal = yield* EvidenceSeal
    const log = yield* EventLog
    const projection = yield* ProjectionProgress
    for (const chain of chains) yield* seal.latest(treeNameOf(tenantId, chain))
    const partition = log.partitionOf(tenantId)
    const [end = 0] = yield* log.ends([{ topic: "checkpoints", partition }])
    yield* projection.awaitOffset(partition, { checkpoints: end })
  }).pipe(Effect.timeoutOption(CHECKPOINT_TIMEOUT), Effect.exit)

const reportInput = Effect.fnUntraced(function* (
  scope: ExportScope,
  request: Request,
  { askedBy, ownUrl }: ExportOrder,
  deduplicate: boolean
) {
  const { publicUrl, serviceName } = yield* ApiSettings
  const keys = yield* Keys
  const tenant = (yield* keys.tenants).find(({ id }) => id === scope.tenantId)
  const { bounds, filter, generatedAt, surroundings, tenantId, verification } = scope
  const last = surroundings.traceHead?.sequence_number
  const { from, to } = bounds
  const input: ReportInput = {
    tenant: { id: tenantId, ...defined({ name: tenant?.name }) },
    filter,
    verification,
    generatedAt,
    serviceName,
    request: {
      askedBy,
      line: `${request.method} ${request.url}`,
      serviceUrl: publicUrl ?? ownUrl,
      apiVersion: API_VERSION
    },
    traces: last === undefined ? undefined : { tenantId, from, to, last },
    deduplicate
  }
  return input
})

const print = (input: ReportInput) =>
  Effect.flatMap(AuditReports, (reports) => reports.render(input)).pipe(
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

const record = Effect.fnUntraced(function* (
  kind: ExportKind,
  { askedBy }: ExportOrder,
  scope: ExportScope,
  report: ReportInput | undefined
) {
  const auditLog = yield* SystemAuditLog
  yield* auditLog.log({
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
})

/** Headers of an export. The tag of one with a report in it covers the settings of reports, too. */
const makeHeaders = Effect.fnUntraced(function* (kind: ExportKind, tenantId: string) {
  const { serviceName } = yield* ApiSettings
  const { fingerprint } = yield* AuditReports
  return (etag: string, time: string) => ({
    etag:
      kind === "pack-without-pdf"
        ? etag
        : `W/"${sha256Hex(`${etag}\n${fingerprint}`).slice(0, ETAG_DIGITS)}"`,
    "cache-control": CACHE_CONTROL,
    "content-disposition": `attachment; filename="${fileName(kind, serviceName, tenantId, time)}"`
  })
})

/** The scope of the export, and the report if there is one in it. */
const prepare = Effect.fnUntraced(function* (
  kind: ExportKind,
  request: Request,
  order: ExportOrder,
  deduplicate: boolean
) {
  const { filter, tenantId } = order
  const slots = yield* ExportSlots
  yield* slots.take(tenantId)
  yield* checkpointed(tenantId)
  const scope = yield* openScope({ tenantId, filter })
  if (kind === "pack-without-pdf") return { scope, report: undefined, pdf: undefined }
  const report = yield* reportInput(scope, request, order, deduplicate)
  return { scope, report, pdf: yield* print(report) }
})

const answer = Effect.fnUntraced(function* (
  kind: ExportKind,
  request: Request,
  order: ExportOrder
) {
  const { tenantId } = order
  const { deduplicate } = yield* readableView(yield* ProjectionProgress, tenantId)
  const headersOf = yield* makeHeaders(kind, tenantId)
  const current = headersOf(yield* currentEtag(kind, order), currentTime())
  if (matchesEtag(request.headers["if-none-match"], current.etag)) return unchanged(current.etag)
  // HEAD shows no document: nothing is made and nothing was exported.
  if (request.method === "HEAD") {
    const headers = { ...current, "content-type": types[kind] }
    return HttpServerResponse.empty({ status: 200, headers })
  }
  const { pdf, report, scope } = yield* prepare(kind, request, order, deduplicate)
  const headers = headersOf(scopeEtag(kind, scope), scope.generatedAt)
  const options = { contentType: types[kind], headers }
  yield* order.permit ?? Effect.void
  if (kind === "pdf") {
    yield* record(kind, order, scope, report)
    return HttpServerResponse.uint8Array(pdf!, options)
  }
  const { serviceName } = yield* ApiSettings
  const bytes = yield* evidencePack(scope, { serviceName, pdf, deduplicate })
  yield* record(kind, order, scope, report)
  const of = { operation: "exportEvidencePack", tenantId }
  return HttpServerResponse.stream(transfer(request, bytes, of), options)
})

/** Exports of the services of this process. */
export const layerExportAnswers = Layer.effect(
  ExportAnswers,
  Effect.map(Effect.context<Services>(), (context) => {
    // The scope of an answer is that of its request, not that of this layer.
    const services = Context.omit(Scope.Scope)(context as Context.Context<Services | Scope.Scope>)
    const answered = (kind: ExportKind, request: Request, order: ExportOrder) =>
      answer(kind, request, order).pipe(Effect.provideContext(services))
    return ExportAnswers.of({
      pack: (request, order, withPdf) =>
        answered(withPdf ? "pack" : "pack-without-pdf", request, order),
      pdf: (request, order) => answered("pdf", request, order)
    })
  })
)

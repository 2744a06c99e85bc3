/**
 * How exports are made, for answers and for jobs alike: one scope for everything in a document, the
 * stages told on the way, and the export itself on the record before its first byte leaves. What a
 * document says is made elsewhere.
 */
import { Context, Effect, Layer, type Stream } from "effect"
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
import { evidencePack, type PackFailure } from "../../exports/pack/EvidencePack.ts"
import type { TraceExport } from "../../exports/pack/TraceExport.ts"
import { AuditReports } from "../../exports/report/AuditReports.ts"
import { type ReportInput, reportIdOf } from "../../exports/report/Report.ts"
import type { Archive } from "../../ports/Archive.ts"
import { EventLog } from "../../ports/EventLog.ts"
import type { EventStore } from "../../ports/EventStore.ts"
import type { TableKind } from "../../ports/ExportJob.ts"
import type { PackVerifiers } from "../../ports/PackVerifiers.ts"
import type { SystemAuditLog } from "../../services/administration/SystemAuditLog.ts"
import type { CheckedEvents } from "../../verify/CheckedEvents.ts"
import type { CheckedFacts } from "../../verify/CheckedFacts.ts"
import type { Verifier, VerifyRequest } from "../../verify/Verifier.ts"
import { API_VERSION } from "../Api.ts"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import type { Failure } from "../messages/Failure.ts"
import { readableView } from "../messages/StoreView.ts"
import { type MadeTable, makeTable } from "./EventTables.ts"
import { exportFileName } from "./ExportFiles.ts"
import { type Making, recordExport } from "./ExportOrder.ts"

/** What identifies an export for its client. */
export interface ExportTag {
  readonly etag: string
  readonly fileName: string
}

/** An export that is on record. */
export interface MadeExport extends ExportTag {
  /** Whole where it had to be, else made as it is read: a reader that stops, stops the work. */
  readonly content: Uint8Array | Stream.Stream<Uint8Array, PackFailure>
}

export class ExportMaker extends Context.Service<
  ExportMaker,
  {
    /** How a document would be tagged now. Cheap: nothing of it is made. */
    tag(kind: ExportKind, order: ExportRequest): Effect.Effect<ExportTag, Failure>
    document(kind: ExportKind, making: Making): Effect.Effect<MadeExport, Failure>
    table(kind: TableKind, making: Making): Effect.Effect<MadeTable, Failure>
  }
>()("alk/http/ExportMaker") {}

/**
 * Time that a checkpoint of the whole chain may take to be signed and stored before an export is
 * made. Without it the verification in the export says less, and the export is made all the same.
 */
const CHECKPOINT_TIMEOUT = "5 seconds"

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
  | CheckedEvents
  | CheckedFacts
  | EventLog
  | EventStore
  | EvidenceSeal
  | Heads
  | Keys
  | PackVerifiers
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
  { askedBy, line, ownUrl }: Making,
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
    request: { askedBy, line, serviceUrl: publicUrl ?? ownUrl, apiVersion: API_VERSION },
    traces: last === undefined ? undefined : { tenantId, from, to, last },
    eventsOnly: scope.eventsOnly,
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

/** Hexadecimal digits of an ETag. */
const ETAG_DIGITS = 32

/** The tag of an export with a report in it covers the settings of reports, too. */
const tagOf = Effect.fnUntraced(function* (
  kind: ExportKind,
  tenantId: string,
  etag: string,
  time: string
) {
  const { serviceName } = yield* ApiSettings
  const { fingerprint } = yield* AuditReports
  const withSettings = () => sha256Hex(`${etag}\n${fingerprint}`).slice(0, ETAG_DIGITS)
  const tag: ExportTag = {
    etag: kind === "pack-without-pdf" ? etag : `W/"${withSettings()}"`,
    fileName: exportFileName(kind, serviceName, tenantId, time)
  }
  return tag
})

/** The verification as stages: how many events it has gone over, of how many. */
const verifying =
  (told: NonNullable<Making["told"]>): VerifyRequest["onProgress"] =>
  ({ eventsChecked, of, upToSequence }) =>
    told({
      stage: "verifying",
      progress: { done: eventsChecked, total: eventsChecked + of - upToSequence, unit: "events" }
    })

const untold = () => Effect.void

/** The scope of the export, and the report if there is one in it. */
const prepare = Effect.fnUntraced(function* (
  kind: ExportKind,
  making: Making,
  deduplicate: boolean
) {
  const { eventsOnly = false, filter, tenantId, told = untold } = making
  yield* told({ stage: "checkpoint" })
  yield* checkpointed(tenantId)
  yield* told({ stage: "verifying" })
  const scope = yield* openScope({ tenantId, filter, eventsOnly }, verifying(told))
  if (kind === "pack-without-pdf") return { scope, report: undefined, pdf: undefined }
  yield* told({ stage: "printing" })
  const report = yield* reportInput(scope, making, deduplicate)
  return { scope, report, pdf: yield* print(report) }
})

const recordDocument = (
  kind: ExportKind,
  making: Making,
  { bounds, conditions, generatedAt, verification }: ExportScope,
  report: ReportInput | undefined
) =>
  recordExport(making, kind === "pdf" ? "audit_report" : "evidence_pack", {
    bounds,
    filter: conditions ?? null,
    events: verification.events_in_bounds,
    head_hash: verification.head?.hash ?? null,
    generated_at: generatedAt,
    ...(report === undefined ? {} : { report_id: reportIdOf(report) })
  })

const makeDocument = Effect.fnUntraced(function* (kind: ExportKind, making: Making) {
  const { permit = Effect.void, tenantId } = making
  const { deduplicate } = yield* readableView(yield* ProjectionProgress, tenantId)
  const { pdf, report, scope } = yield* prepare(kind, making, deduplicate)
  const { serviceName } = yield* ApiSettings
  const content =
    kind === "pdf" ? pdf! : yield* evidencePack(scope, { serviceName, pdf, deduplicate })
  yield* permit
  yield* recordDocument(kind, making, scope, report)
  const tag = yield* tagOf(kind, tenantId, scopeEtag(kind, scope), scope.generatedAt)
  const made: MadeExport = { ...tag, content }
  return made
})

/** The makers of exports with the services of this process. */
export const layerExportMaker = Layer.effect(
  ExportMaker,
  Effect.map(Effect.context<Services>(), (services) =>
    ExportMaker.of({
      tag: (kind, order) =>
        Effect.flatMap(currentEtag(kind, order), (etag) =>
          tagOf(kind, order.tenantId, etag, currentTime())
        ).pipe(Effect.provideContext(services)),
      document: (kind, making) => makeDocument(kind, making).pipe(Effect.provideContext(services)),
      table: (kind, making) => makeTable(kind, making).pipe(Effect.provideContext(services))
    })
  )
)

/**
 * Serves the ingest routes: reads the request exactly, hands its items to the pipeline, and says
 * what came of it. Validation, ids and waiting are the pipeline's.
 */
import { Effect, Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Receipts } from "../../actors/follower/Receipts.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { verifyReceiptId } from "../../domain/Identifiers.ts"
import { isObject } from "../../domain/json/Json.ts"
import { areLines, parseStrictBatch, parseStrictLines } from "../../domain/json/StrictBatch.ts"
import {
  type JsonProblem,
  parseInSteps,
  type StrictOptions,
  type StrictResult
} from "../../domain/json/StrictJson.ts"
import { BATCH_ITEMS_MAX } from "../../domain/records/Command.ts"
import { idAt, idsOf } from "../../domain/records/EventBatch.ts"
import { type Receipt, toAnswer } from "../../domain/records/Receipt.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { EventLog } from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { fastAccept, type RequestForm } from "../../services/ingest/fast/FastAccept.ts"
import { prepareRequest } from "../../services/ingest/fast/PrepareRequest.ts"
import {
  fingerprintOf,
  Ingest,
  type IngestOutcome,
  type PreparedItems,
  type PrepareItemsOptions,
  prepareItems,
  readingOf,
  receivedAtOf
} from "../../services/ingest/Ingest.ts"
import { RecentEvents } from "../../services/ingest/RecentEvents.ts"
import { Api } from "../Api.ts"
import { refuseUnknown } from "../contract/Bodies.ts"
import { type AnswerOptions, createdAt, json, jsonText } from "../messages/Answer.ts"
import {
  ApiError,
  notFound,
  RETRY_AFTER_SECONDS,
  refusable,
  refusedItem,
  unavailable
} from "../messages/ApiError.ts"
import { ApiSettings, type Settings } from "../messages/ApiSettings.ts"
import { idempotencyMismatch, notApplied } from "../messages/Failure.ts"
import { inSlices } from "../messages/InSlices.ts"
import { JSON_TYPE, NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { type ReceivedBody, readBody } from "../messages/RequestBody.ts"
import {
  type Accepted,
  acceptedAt,
  idempotencyKey,
  type ingestQuery,
  unreadable,
  wantsSync
} from "../messages/WriteRequest.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { ingestAnswered, itemsPrepared } from "../server/Metrics.ts"
import { Quota } from "../server/Quota.ts"

/** The refusal of a body; of lines of JSON under another type it names theirs. */
const unreadableBody = (problem: JsonProblem, { bytes, mediaType }: ReceivedBody): ApiError =>
  problem.code === "invalid_json" && mediaType === JSON_TYPE && areLines(bytes)
    ? unreadable({ ...problem, message: `${problem.message}; ${LINES_HINT}` })
    : unreadable(problem)

const LINES_HINT = `one event a line is ${NDJSON_TYPE}, for POST /v1/events/batch`

/** One event, and no batch of them. */
const isEvent = (item: StrictResult): boolean =>
  "value" in item
    ? isObject(item.value) && !Array.isArray(item.value["events"])
    : item.problem.code !== "invalid_json"

/** The lines of a body that came as JSON, which each of them is by itself. */
function* linesOf(
  { bytes, mediaType }: ReceivedBody,
  reading: StrictOptions
): Sliced<ReadonlyArray<StrictResult> | undefined> {
  if (mediaType !== JSON_TYPE || !areLines(bytes)) return undefined
  const lines = yield* parseStrictLines(bytes, BATCH_ITEMS_MAX, reading)
  if ("problem" in lines) throw unreadable(lines.problem)
  return lines.items.every(isEvent) ? lines.items : undefined
}

function* batchItems(
  body: ReceivedBody,
  reading: StrictOptions
): Sliced<ReadonlyArray<StrictResult>> {
  const { bytes, mediaType } = body
  const batch = yield* mediaType === NDJSON_TYPE
    ? parseStrictLines(bytes, BATCH_ITEMS_MAX, reading)
    : parseStrictBatch(bytes, "events", BATCH_ITEMS_MAX, reading)
  if ("problem" in batch) {
    const lines = yield* linesOf(body, reading)
    if (lines === undefined) throw unreadableBody(batch.problem, body)
    return lines
  }
  refuseUnknown(batch.beside, ["events"], "a batch")
  return batch.items
}

const formOf = ({ mediaType }: ReceivedBody): RequestForm =>
  mediaType === NDJSON_TYPE ? "lines" : "batch"

/** The one item of a single request; an item that can't be stored refuses the request. */
function* singleItem(
  body: ReceivedBody,
  reading: StrictOptions
): Sliced<ReadonlyArray<StrictResult>> {
  yield
  const item = yield* parseInSteps(body.bytes, reading)
  if ("problem" in item) throw unreadableBody(item.problem, body)
  return [item]
}

/** Validated items, how many were sent, and how many of them were prepared in WebAssembly. */
interface ReadItems {
  readonly count: number
  readonly fast: number
  readonly prepare: () => Sliced<PreparedItems>
}

function* prepared(items: PreparedItems): Sliced<PreparedItems> {
  yield
  return items
}

/** Read a body: at once on the fast path, else item by item. Throws what refuses the request. */
function* readItems(
  body: ReceivedBody,
  kind: RequestKind,
  options: PrepareItemsOptions,
  isFast: boolean
): Sliced<ReadItems> {
  const form = kind.mode === "single" ? "single" : formOf(body)
  const fast = isFast ? fastAccept() : undefined
  const done = fast && (yield* prepareRequest(fast, body.bytes, form, options))
  if (done !== undefined) {
    return { count: done.count, fast: done.count - done.slow, prepare: () => prepared(done.items) }
  }
  const items = yield* kind.itemsOf(body, readingOf(options))
  return { count: items.length, fast: 0, prepare: () => prepareItems(items, options) }
}

/** How the two ingest routes differ before the pipeline. */
interface RequestKind {
  readonly mode: "single" | "batch"
  readonly mediaTypes: ReadonlyArray<string>
  readonly itemsOf: (
    body: ReceivedBody,
    reading: StrictOptions
  ) => Sliced<ReadonlyArray<StrictResult>>
}

const single: RequestKind = {
  mode: "single",
  mediaTypes: [JSON_TYPE],
  itemsOf: singleItem
}

const batch: RequestKind = {
  mode: "batch",
  mediaTypes: [JSON_TYPE, NDJSON_TYPE],
  itemsOf: batchItems
}

/** What of a request both routes look at. */
interface IngestInput {
  readonly endpoint: { readonly path: string }
  readonly query: typeof ingestQuery.Type
  readonly request: HttpServerRequest.HttpServerRequest
}

/** What the request leaves open is as the service is set. */
const choicesOf = (
  { actions, numbers }: IngestInput["query"],
  { anyAction }: Settings
): Pick<PrepareItemsOptions, "anyAction" | "numbersAsText"> => ({
  anyAction: actions === undefined ? anyAction : actions === "any",
  numbersAsText: numbers === "text"
})

type Visible = Extract<IngestOutcome, { readonly kind: "visible" }>
type Settled = Extract<IngestOutcome, { readonly kind: "written" }> | Visible

/** The outcome, unless it is one that refuses the request. */
export const toResponse = (outcome: IngestOutcome): Effect.Effect<Settled, ApiError> => {
  switch (outcome.kind) {
    case "written":
    case "visible":
      return Effect.succeed(outcome)
    case "failed":
      return Effect.fail(notApplied(outcome.receipt.error?.message ?? "unknown"))
    case "mismatch":
      return Effect.fail(idempotencyMismatch)
    case "undecided":
      return Effect.fail(
        unavailable("no sequencer decided in time; the events may be stored, so retry with the key")
      )
  }
}

const withWarnings = ({ warnings }: PreparedItems) => (warnings.length === 0 ? {} : { warnings })

const batchWritten = (items: PreparedItems, receiptId: string, accepted: Accepted) =>
  json(
    {
      receipt_id: receiptId,
      status: "pending",
      accepted: items.events.count,
      rejected: items.errors.length,
      ids: idsOf(items.events),
      errors: items.errors,
      ...withWarnings(items)
    },
    accepted(receiptId)
  )

const batchVisible = (receipt: Receipt) => {
  const { duplicates, first_sequence_number, last_sequence_number, warnings } = receipt
  return json({
    receipt_id: receipt.receipt_id,
    status: receipt.status,
    accepted: receipt.accepted,
    rejected: receipt.rejected,
    ids: receipt.ids,
    errors: receipt.errors,
    warnings,
    duplicates,
    first_sequence_number,
    last_sequence_number
  })
}

const singleWritten = (items: PreparedItems, receiptId: string, accepted: Accepted) =>
  json(
    {
      receipt_id: receiptId,
      status: "pending",
      id: idAt(items.events, 0),
      ...withWarnings(items)
    },
    accepted(receiptId)
  )

/** The stored event; what was sent but not stored is named after its own members. */
const singleVisible = (items: PreparedItems, stored: string, options: AnswerOptions) =>
  jsonText(
    items.warnings.length === 0
      ? stored
      : `${stored.slice(0, -1)},"warnings":${JSON.stringify(items.warnings)}}`,
    options
  )

/** What is known of a receipt before the sequencer's decision. */
const pendingReceipt = (receiptId: string) => {
  return json(
    { receipt_id: receiptId, status: "pending", received_at: receivedAtOf(receiptId) },
    { headers: { "retry-after": String(RETRY_AFTER_SECONDS) } }
  )
}

/** Reads the one event of a receipt; a conflict of its id has appended nothing. */
const storedEventReader = Effect.gen(function* () {
  const store = yield* EventStore
  const log = yield* EventLog
  const recent = yield* RecentEvents
  const projection = yield* ProjectionProgress
  return Effect.fnUntraced(function* (tenantId: string, { isRepeat, receipt }: Visible) {
    const [conflict] = receipt.errors
    if (conflict !== undefined) {
      return yield* new ApiError({ code: "id_conflict", message: conflict.message, field: "id" })
    }
    const { duplicates, first_sequence_number: appended, ids } = receipt
    if (appended !== undefined && !isRepeat) {
      const body = recent.bodyOf({
        partition: log.partitionOf(tenantId),
        offset: receipt.events_next - 1,
        tenantId,
        sequenceNumber: appended
      })
      if (body !== undefined) return { body, status: 201 }
    }
    const sequence = appended ?? duplicates?.[0]?.sequence_number
    const { final: deduplicate } = projection.of(tenantId)
    const found = yield* store.byId(tenantId, ids[0]!, sequence, deduplicate)
    const body = found?.body
    return body === undefined
      ? yield* unavailable("the event is committed, but can't be read for now")
      : { body, status: appended === undefined ? 200 : 201 }
  })
})

/** The handlers of IngestApi. */
export const layerIngestHandlers = HttpApiBuilder.group(
  Api,
  "Ingest",
  Effect.fnUntraced(function* (handlers) {
    const settings = yield* ApiSettings
    const { fastAccept: isFast, limits, publicUrl, secret: redacted } = settings
    if (isFast && fastAccept() === undefined) {
      yield* Effect.logWarning(
        "the fast path of accept can't run here: events are prepared without it"
      )
    }
    const accepted = acceptedAt(publicUrl)
    const ingest = yield* Ingest
    const quota = yield* Quota
    const receipts = yield* Receipts
    const secret = Redacted.value(redacted)

    /** Read, prepare and ingest; counted once the log has it. */
    const run = Effect.fnUntraced(function* (input: IngestInput, kind: RequestKind) {
      const { endpoint, request } = input
      const { tenantId } = yield* CurrentPrincipal
      const { idempotency: key, sync } = yield* refusable(() => ({
        sync: wantsSync(input),
        idempotency: idempotencyKey(request, endpoint.path)
      }))
      const body = yield* readBody(request, kind.mediaTypes, limits.bodyBytesMax)
      const { mode } = kind
      const chosen = choicesOf(input.query, settings)
      const options = { mode, tenantId, secret, limits, idempotency: key, ...chosen }
      const given = yield* inSlices(() => readItems(body, kind, options, isFast))
      yield* quota.admit(tenantId, given.count)
      const items = yield* inSlices(given.prepare)
      yield* itemsPrepared({ fast: given.fast, slow: given.count - given.fast })
      const [problem] = items.errors
      if (mode === "single" && problem !== undefined) return yield* refusedItem(problem.message)
      const startedAt = performance.now()
      const until = sync ? "visible" : "written"
      const forgetConflict = mode === "single" && sync
      const idempotency = key && {
        key,
        fingerprint: fingerprintOf(tenantId, key, body.bytes, { forgetConflict, waits: sync }),
        waitingIsOptional: true as const
      }
      const outcome = yield* toResponse(
        yield* ingest.ingest({ tenantId, items, until, idempotency })
      )
      yield* ingestAnswered({
        accepted: items.events.count,
        rejected: items.errors,
        until,
        seconds: (performance.now() - startedAt) / 1_000
      })
      return { tenantId, items, outcome }
    })

    const storedEvent = yield* storedEventReader

    return handlers
      .handleRaw(
        "createEvent",
        Effect.fnUntraced(function* (input) {
          const { items, outcome, tenantId } = yield* run(input, single)
          if (outcome.kind === "written") {
            return singleWritten(items, outcome.receiptId, accepted)
          }
          const { body, status } = yield* storedEvent(tenantId, outcome)
          const id = outcome.receipt.ids[0]!
          const headers = status === 201 ? createdAt(publicUrl, input.endpoint.path, id) : {}
          return singleVisible(items, body, { status, headers })
        })
      )
      .handleRaw(
        "createEvents",
        Effect.fnUntraced(function* (input) {
          const { items, outcome } = yield* run(input, batch)
          return outcome.kind === "written"
            ? batchWritten(items, outcome.receiptId, accepted)
            : batchVisible(outcome.receipt)
        })
      )
      .handle(
        "getReceipt",
        Effect.fnUntraced(function* ({ params: { id } }) {
          const { tenantId } = yield* CurrentPrincipal
          if (!verifyReceiptId(secret, tenantId, id)) return yield* notFound("receipt")
          const state = yield* receipts.state(tenantId, id)
          return state.status === "pending" ? pendingReceipt(id) : json(toAnswer(state.receipt))
        })
      )
  })
)

/**
 * Serves OTLP/HTTP: reads an export in either encoding, hands its spans to the pipeline, and says
 * in the same encoding what was refused. Of logs the events of models are taken as events of their
 * spans; other log records, and metrics, are counted and refused. What spans mean is decided by the
 * mapping, and what exists by the sequencer.
 */
import type { DescMessage } from "@bufbuild/protobuf"
import { Effect, Layer, Option } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { parseJson } from "../../domain/json/Json.ts"
import type { ItemError } from "../../domain/records/Command.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { decidedRepairOf } from "../../domain/traces/ShownSpans.ts"
import type {
  RecordOtlpEvents,
  RecordOtlpSpan,
  TraceResult
} from "../../domain/traces/TraceOperation.ts"
import { COMMIT_TIMEOUT_MS, Ingest } from "../../services/ingest/Ingest.ts"
import { decodeJson, decodeProtobuf } from "../../services/ingest/otlp/Decode.ts"
import {
  countDataPoints,
  logsDecoders,
  metricsDecoders
} from "../../services/ingest/otlp/OtherSignals.ts"
import type {
  ExportTooLarge,
  PreparedItems,
  RefusedItem
} from "../../services/ingest/otlp/Prepared.ts"
import { logLabelOf, prepareLogs } from "../../services/ingest/otlp/PrepareLogs.ts"
import {
  countSpans,
  countSpansAndEvents,
  hasTraceIds,
  labelsOf,
  prepareSpans
} from "../../services/ingest/otlp/PrepareSpans.ts"
import type { Decoded, ReadRequest } from "../../services/ingest/otlp/Reading.ts"
import { describeRepairs } from "../../services/ingest/otlp/RepairLog.ts"
import { Api } from "../Api.ts"
import { ApiError, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { inSlices } from "../messages/InSlices.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { type ReceivedBody, readBody } from "../messages/RequestBody.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { ingestAnswered, repairWarnings, valuesApart, valuesCut } from "../server/Metrics.ts"
import { Quota } from "../server/Quota.ts"
import { OtlpRefusals } from "./OtlpContract.ts"
import {
  encodingOf,
  logsAnswer,
  metricsAnswer,
  type OtlpEncoding,
  PROTOBUF_TYPE,
  type Refusal,
  refusalAnswer,
  tracesAnswer
} from "./OtlpEncoding.ts"

/** Refused spans that an answer names; the others it counts. */
export const REFUSALS_NAMED_MAX = 20

const encoded = (
  encoding: OtlpEncoding,
  body: Uint8Array | string,
  status: number
): HttpServerResponse.HttpServerResponse =>
  typeof body === "string"
    ? HttpServerResponse.text(body, { contentType: encoding, status })
    : HttpServerResponse.uint8Array(body, { contentType: encoding, status })

interface Decoders<Type extends DescMessage> {
  readonly protobuf: (bytes: Uint8Array) => Sliced<Decoded<Type>>
  readonly json: (bytes: Buffer) => Sliced<Decoded<Type>>
}

const decode = <Type extends DescMessage>(
  { bytes, mediaType }: ReceivedBody,
  { json, protobuf }: Decoders<Type>
): Effect.Effect<ReadRequest<Type>, ApiError> =>
  inSlices(function* () {
    const decoded = yield* mediaType === PROTOBUF_TYPE ? protobuf(bytes) : json(bytes)
    if ("problem" in decoded) throw new ApiError(decoded.problem)
    return decoded
  })

/** Which items were refused, cut or repaired, and why, as many as an answer names. */
const describe = (items: ReadonlyArray<{ readonly message: string }>, what: string): string => {
  const named = items.slice(0, REFUSALS_NAMED_MAX).map(({ message }) => message)
  const more = items.length - named.length
  return [...named, ...(more === 0 ? [] : [`and ${more} more ${what}`])].join("; ")
}

const tooLate = unavailable(
  "the spans were not visible in time; they may be stored, so send the same again"
)

/** The sequencer did not want these; a span that it could not judge is to be sent again. */
const judged = (
  labelAt: (index: number) => string,
  errors: ReadonlyArray<ItemError>
): Effect.Effect<ReadonlyArray<RefusedItem>, ApiError> => {
  const unjudged = errors.find(({ code }) => code === "unavailable")
  if (unjudged !== undefined) {
    return Effect.fail(unavailable(`${unjudged.message}; send the same again`))
  }
  // A span with many events is several operations, of which each is judged.
  const byIndex = new Map(errors.map((error) => [error.index, error]))
  return Effect.succeed(
    [...byIndex.values()].map(({ code, index, message }) => ({
      index,
      code,
      message: `${labelAt(index)}: ${message}`
    }))
  )
}

/** What the sequencer has repaired, of which it has counted each. */
const repairedOf = (
  labelAt: (index: number) => string,
  results: ReadonlyArray<TraceResult>
): ReadonlyArray<{ readonly message: string }> =>
  results.flatMap(({ index, repairs = [] }) =>
    repairs.map((code) => ({
      message: `${labelAt(index)}: repaired: ${describeRepairs([decidedRepairOf[code]], 1)}`
    }))
  )

/** Of an export whose spans have no trace ids: so are log records and metrics read in protobuf. */
const noTrace = {
  message: "no span has a trace_id; log records are sent to /v1/logs, metrics to /v1/metrics"
}

/** Whether it is said: not where spans were too much to be read, nor of JSON that is not a span. */
const lacksTraces = ({ flaws, request }: ReadRequest, mediaType: string): boolean =>
  countSpans(request) > 0
  && !hasTraceIds(request)
  && !flaws.all.some(
    ({ isTooMuch = false, kind }) =>
      kind === "unreadable" && (isTooMuch || mediaType !== PROTOBUF_TYPE)
  )

const onlyTraces = (what: string): string =>
  `the ${what} were not stored: this service keeps traces only; export spans to /v1/traces, and `
  + "switch this exporter off or send it to another backend"

const onlyModelEvents = (others: number): string =>
  `log records that were not stored: ${others}; this service keeps traces, and of logs the events of `
  + "models, whose names begin with gen_ai. and which name their span; export spans to /v1/traces, "
  + "and other logs to another backend"

/** An export as operations, and what of it is kept otherwise than it was sent. */
interface PreparedExport extends Pick<PreparedItems, "apart" | "cut" | "refused" | "repaired"> {
  readonly commands: ReadonlyArray<ReadonlyArray<RecordOtlpEvents | RecordOtlpSpan>>
}

/** What an export is, to those who send it. */
interface ExportKind {
  readonly items: number
  readonly what: string
  readonly labelAt: (index: number) => string
  /** To be said before everything else. */
  readonly first: ReadonlyArray<{ readonly message: string }>
}

/** Items of an export that were meant to be kept. */
const countOf = ({ commands, refused }: PreparedExport): number =>
  commands.reduce((sum, { length }) => sum + length, refused.length)

/** Writes exports: says how many items were refused, and what is to be said of all of it. */
const recorderOf = (ingest: Ingest["Service"]) => {
  const warnOfRepairs = repairWarnings()

  /** Write one command, and wait until it can be read; what the sequencer has decided. */
  const record = Effect.fnUntraced(function* (
    tenantId: string,
    traces: PreparedExport["commands"][number]
  ) {
    const items = { events: EMPTY_BATCH, errors: [], warnings: [], traces }
    const until = "visible"
    const outcome = yield* ingest.ingest({ tenantId, items, until, idempotency: undefined })
    if (outcome.kind === "visible") return outcome.receipt
    if (outcome.kind !== "failed") return yield* tooLate
    const reason = outcome.receipt.error?.message ?? "unknown"
    return yield* unavailable(`the spans were not stored: ${reason}`)
  })

  return Effect.fnUntraced(function* (
    tenantId: string,
    prepared: ExportTooLarge | PreparedExport,
    { first, items, labelAt, what }: ExportKind
  ) {
    if ("tooLarge" in prepared) {
      return yield* new ApiError({ code: "payload_too_large", message: prepared.tooLarge })
    }
    const { apart, commands, cut, repaired } = prepared
    const startedAt = performance.now()
    const receipts = yield* Effect.forEach(commands, (traces) => record(tenantId, traces)).pipe(
      Effect.timeoutOption(COMMIT_TIMEOUT_MS)
    )
    if (Option.isNone(receipts)) return yield* tooLate
    const decided = receipts.value
    const judgements = yield* judged(
      labelAt,
      decided.flatMap(({ errors }) => errors)
    )
    const amended = repairedOf(
      labelAt,
      decided.flatMap(({ results = [] }) => results)
    )
    const refused = [...prepared.refused, ...judgements]
    const seconds = (performance.now() - startedAt) / 1_000
    const accepted = items - refused.length
    if (items > 0) {
      yield* ingestAnswered({ accepted, rejected: prepared.refused, until: "visible", seconds })
    }
    if (apart > 0) yield* valuesApart(apart)
    if (cut.length > 0) yield* valuesCut(cut)
    if (repaired.length > 0) yield* warnOfRepairs(repaired)
    const said = describe([...first, ...refused, ...cut, ...repaired, ...amended], what)
    return { refused: refused.length, said }
  })
}

/** The handlers of OtlpApi. */
export const layerOtlpHandlers = HttpApiBuilder.group(
  Api,
  "OpenTelemetry",
  Effect.fnUntraced(function* (handlers) {
    const { limits } = yield* ApiSettings
    const ingest = yield* Ingest
    const quota = yield* Quota
    const recordAll = recorderOf(ingest)
    const received = (request: HttpServerRequest.HttpServerRequest) =>
      readBody(request, [JSON_TYPE, PROTOBUF_TYPE], limits.bodyBytesMax)

    return handlers
      .handleRaw(
        "exportLogs",
        Effect.fnUntraced(function* ({ request }) {
          const { tenantId } = yield* CurrentPrincipal
          const body = yield* received(request)
          const { flaws, request: logs } = yield* decode(body, logsDecoders)
          const prepared = yield* inSlices(() => prepareLogs(logs, tenantId, limits, flaws))
          const others = "others" in prepared ? prepared.others : 0
          const items = "commands" in prepared ? countOf(prepared) : 0
          if (items > 0) yield* quota.admit(tenantId, items)
          const kind = { items, what: "log records", labelAt: logLabelOf, first: [] }
          const { refused, said } = yield* recordAll(tenantId, prepared, kind)
          const parts = [said, others === 0 ? "" : onlyModelEvents(others)]
          const encoding = encodingOf(body.mediaType)
          const message = parts.filter((part) => part !== "").join("; ")
          return encoded(encoding, logsAnswer(encoding, refused + others, message), 200)
        })
      )
      .handleRaw(
        "exportMetrics",
        Effect.fnUntraced(function* ({ request }) {
          const body = yield* received(request)
          const points = countDataPoints((yield* decode(body, metricsDecoders)).request)
          const encoding = encodingOf(body.mediaType)
          const said = points === 0 ? "" : onlyTraces("data points")
          return encoded(encoding, metricsAnswer(encoding, points, said), 200)
        })
      )
      .handleRaw(
        "exportTraces",
        Effect.fnUntraced(function* ({ request }) {
          const { tenantId } = yield* CurrentPrincipal
          const body = yield* received(request)
          const decoders = { json: decodeJson, protobuf: decodeProtobuf }
          const read = yield* decode(body, decoders)
          const { flaws, request: traces } = read
          const items = countSpans(traces)
          yield* quota.admit(tenantId, countSpansAndEvents(traces))
          const prepared = yield* inSlices(() => prepareSpans(traces, tenantId, limits, flaws))
          const first = lacksTraces(read, body.mediaType) ? [noTrace] : []
          const kind = { items, what: "spans", labelAt: labelsOf(traces), first }
          const { refused, said } = yield* recordAll(tenantId, prepared, kind)
          const encoding = encodingOf(body.mediaType)
          return encoded(encoding, tracesAnswer(encoding, refused, said), 200)
        })
      )
  })
)

/** The refusal in an answer of the other routes' form; undefined if there is none. */
const refusalIn = (response: HttpServerResponse.HttpServerResponse): Refusal | undefined => {
  const { body, status } = response
  if (status < 400 || body._tag !== "Uint8Array") return undefined
  const { error } = parseJson(Buffer.from(body.body).toString()) as { readonly error: Refusal }
  return error
}

/** Refusals of the authorization and of the handler alike, in the request's encoding. */
export const layerOtlpRefusals: Layer.Layer<OtlpRefusals> = Layer.succeed(
  OtlpRefusals,
  OtlpRefusals.of((handler) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const response = yield* handler
      const refusal = refusalIn(response)
      if (refusal === undefined) return response
      const encoding = encodingOf(request.headers["content-type"])
      const { "content-length": _length, "content-type": _type, ...kept } = response.headers
      const answer = encoded(encoding, refusalAnswer(encoding, refusal), response.status)
      return HttpServerResponse.setHeaders(answer, kept)
    })
  )
)

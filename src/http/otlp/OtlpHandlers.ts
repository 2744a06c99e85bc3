/**
 * Serves OTLP/HTTP: reads an export in either encoding, hands its spans to the pipeline, and says
 * in the same encoding what was refused. What spans mean is the mapping's business, what exists the
 * sequencer's. Logs and metrics are counted, and refused as a whole.
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf"
import { Effect, Layer, Option } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { parseJson } from "../../domain/json/Json.ts"
import type { ItemError } from "../../domain/records/Command.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import type { Sliced } from "../../domain/Slices.ts"
import type { RecordOtlpSpan } from "../../domain/traces/TraceOperation.ts"
import { COMMIT_TIMEOUT_MS, Ingest } from "../../services/ingest/Ingest.ts"
import { decodeJson, decodeProtobuf } from "../../services/ingest/otlp/Decode.ts"
import type { ExportTraceServiceRequest } from "../../services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import {
  countDataPoints,
  countLogRecords,
  logsDecoders,
  metricsDecoders
} from "../../services/ingest/otlp/OtherSignals.ts"
import {
  countSpans,
  hasTraceIds,
  labelsOf,
  prepareSpans,
  type RefusedSpan
} from "../../services/ingest/otlp/PrepareSpans.ts"
import type { Decoded, ReadRequest } from "../../services/ingest/otlp/Reading.ts"
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
  type ExportAnswer,
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

/** Which spans were refused or cut, and why, as many as an answer names. */
const describe = (spans: ReadonlyArray<{ readonly message: string }>): string => {
  const named = spans.slice(0, REFUSALS_NAMED_MAX).map(({ message }) => message)
  const more = spans.length - named.length
  return [...named, ...(more === 0 ? [] : [`and ${more} more spans`])].join("; ")
}

const tooLate = unavailable(
  "the spans were not visible in time; they may be stored, so send the same again"
)

/** The sequencer did not want these; a span that it could not judge is to be sent again. */
const judged = (
  received: ExportTraceServiceRequest,
  errors: ReadonlyArray<ItemError>
): Effect.Effect<ReadonlyArray<RefusedSpan>, ApiError> => {
  const unjudged = errors.find(({ code }) => code === "unavailable")
  if (unjudged !== undefined) {
    return Effect.fail(unavailable(`${unjudged.message}; send the same again`))
  }
  const labelAt = labelsOf(received)
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

/** Of an export whose spans have no trace ids: so are log records and metrics read in protobuf. */
const noTrace = {
  message: "no span has a trace_id; log records are sent to /v1/logs, metrics to /v1/metrics"
}

/** A signal that is not kept. */
interface OtherSignal<Type extends DescMessage> {
  readonly what: string
  readonly decoders: Decoders<Type>
  readonly count: (request: MessageShape<Type>) => number
  readonly answer: ExportAnswer
}

const logs = {
  what: "log records",
  decoders: logsDecoders,
  count: countLogRecords,
  answer: logsAnswer
}

const metrics = {
  what: "data points",
  decoders: metricsDecoders,
  count: countDataPoints,
  answer: metricsAnswer
}

const onlyTraces = (what: string): string =>
  `the ${what} were not stored: this service keeps traces only; export spans to /v1/traces, and `
  + "switch this exporter off or send it to another backend"

/** The handlers of OtlpApi. */
export const layerOtlpHandlers = HttpApiBuilder.group(
  Api,
  "OpenTelemetry",
  Effect.fnUntraced(function* (handlers) {
    const { limits } = yield* ApiSettings
    const ingest = yield* Ingest
    const quota = yield* Quota
    const warnOfRepairs = repairWarnings()

    /** Write one command, and wait until it can be read; what the sequencer refused of it. */
    const record = Effect.fnUntraced(function* (
      tenantId: string,
      traces: ReadonlyArray<RecordOtlpSpan>
    ) {
      const items = { events: EMPTY_BATCH, errors: [], warnings: [], traces }
      const until = "visible"
      const outcome = yield* ingest.ingest({ tenantId, items, until, idempotency: undefined })
      if (outcome.kind === "visible") return outcome.receipt.errors
      if (outcome.kind !== "failed") return yield* tooLate
      const reason = outcome.receipt.error?.message ?? "unknown"
      return yield* unavailable(`the spans were not stored: ${reason}`)
    })

    /** Reads an export of a signal that is not kept, and says so in an answer without a retry. */
    const refuseAll = <Type extends DescMessage>({
      answer,
      count,
      decoders,
      what
    }: OtherSignal<Type>) =>
      Effect.fnUntraced(function* ({
        request
      }: {
        readonly request: HttpServerRequest.HttpServerRequest
      }) {
        const body = yield* readBody(request, [JSON_TYPE, PROTOBUF_TYPE], limits.bodyBytesMax)
        const items = count((yield* decode(body, decoders)).request)
        const encoding = encodingOf(body.mediaType)
        const said = items === 0 ? "" : onlyTraces(what)
        return encoded(encoding, answer(encoding, items, said), 200)
      })

    return handlers
      .handleRaw("exportLogs", refuseAll(logs))
      .handleRaw("exportMetrics", refuseAll(metrics))
      .handleRaw(
        "exportTraces",
        Effect.fnUntraced(function* ({ request }) {
          const { tenantId } = yield* CurrentPrincipal
          const body = yield* readBody(request, [JSON_TYPE, PROTOBUF_TYPE], limits.bodyBytesMax)
          const decoders = { json: decodeJson, protobuf: decodeProtobuf }
          const { flaws, request: received } = yield* decode(body, decoders)
          const spans = countSpans(received)
          yield* quota.admit(tenantId, spans)
          const prepared = yield* inSlices(() => prepareSpans(received, tenantId, limits, flaws))
          if ("tooLarge" in prepared) {
            return yield* new ApiError({ code: "payload_too_large", message: prepared.tooLarge })
          }
          const startedAt = performance.now()
          const results = yield* Effect.forEach(prepared.commands, (traces) =>
            record(tenantId, traces)
          ).pipe(Effect.timeoutOption(COMMIT_TIMEOUT_MS))
          if (Option.isNone(results)) return yield* tooLate
          const judgements = yield* judged(received, results.value.flat())
          const refused = [...prepared.refused, ...judgements]
          yield* ingestAnswered({
            accepted: spans - refused.length,
            rejected: prepared.refused,
            until: "visible",
            seconds: (performance.now() - startedAt) / 1_000
          })
          const encoding = encodingOf(body.mediaType)
          if (prepared.apart > 0) yield* valuesApart(prepared.apart)
          if (prepared.cut.length > 0) yield* valuesCut(prepared.cut)
          if (prepared.repaired.length > 0) yield* warnOfRepairs(prepared.repaired)
          const parts = [...refused, ...prepared.cut, ...prepared.repaired]
          const said = describe(spans > 0 && !hasTraceIds(received) ? [noTrace, ...parts] : parts)
          const answer = tracesAnswer(encoding, refused.length, said)
          return encoded(encoding, answer, 200)
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

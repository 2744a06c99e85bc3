/**
 * What the HTTP side counts, by the names under which `/metrics` shows it. Labels say routes,
 * methods and statuses; never tenants, ids or anything else that a client chose.
 */
import { Effect, Metric } from "effect"
import { HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { countByCode, itemsRejected } from "../../actors/sequencer/RejectedItems.ts"

/** Upper bounds in seconds: from an answer out of memory to the longest wait for a commit. */
const secondsBoundaries = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const requests = Metric.counter("alk_http_requests_total", {
  description: "Requests answered.",
  incremental: true
})

const requestSeconds = Metric.histogram("alk_http_request_duration_seconds", {
  description: "Seconds from the request's head to the end of its answer, streams included.",
  boundaries: secondsBoundaries
})

const acceptedItems = Metric.counter("alk_ingest_accepted_items_total", {
  description: "Items that passed validation and were written to the log.",
  incremental: true
})

const preparedItems = Metric.counter("alk_ingest_prepared_items_total", {
  description: "Items read and checked, by path: fast is WebAssembly, slow is TypeScript.",
  incremental: true
})

const ingestSeconds = Metric.histogram("alk_ingest_duration_seconds", {
  description: "Seconds from a prepared request to what was waited for: written, or visible.",
  boundaries: secondsBoundaries
})

const cutValues = Metric.counter("alk_otlp_values_cut_total", {
  description: "Values of OpenTelemetry spans that were too large, of which the beginning is kept.",
  incremental: true
})

const apartValues = Metric.counter("alk_otlp_values_apart_total", {
  description: "Values of OpenTelemetry spans that are stored apart from their span, whole.",
  incremental: true
})

const failedCredentials = Metric.counter("alk_http_failed_credentials_total", {
  description: "Wrong keys and tokens, by the status that they were answered with.",
  incremental: true
})

const subscribers = Metric.gauge("alk_live_subscribers", {
  description: "Open live streams of this process."
})

const bodyBytes = Metric.gauge("alk_http_body_bytes", {
  description: "Bytes that the bodies of requests in flight take of ALK_BODY_BUDGET_BYTES."
})

/** Count an answered request. */
export const requestAnswered = (request: {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}): Effect.Effect<void> => {
  const { method, route, seconds, status } = request
  return Effect.andThen(
    Metric.update(Metric.withAttributes(requests, { method, route, status: String(status) }), 1),
    Metric.update(Metric.withAttributes(requestSeconds, { method, route }), seconds)
  )
}

/** Count a wrong key or token. */
export const credentialFailed = (answer: 401 | 429): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(failedCredentials, { answer: String(answer) }), 1)

/** Count the items of a request by how they were prepared. */
export const itemsPrepared = (items: {
  readonly fast: number
  readonly slow: number
}): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(preparedItems, { path: "fast" }), items.fast),
    Metric.update(Metric.withAttributes(preparedItems, { path: "slow" }), items.slow)
  )

/** Count an ingest request that is answered with 2xx, and warn of items that were rejected. */
export const ingestAnswered = (request: {
  readonly accepted: number
  /** By validation; what the sequencer refuses it counts by itself. */
  readonly rejected: ReadonlyArray<{ readonly code: string }>
  readonly until: "written" | "visible"
  readonly seconds: number
}): Effect.Effect<void> =>
  Effect.all(
    [
      Metric.update(acceptedItems, request.accepted),
      itemsRejected(countByCode(request.rejected), { accepted: request.accepted }),
      Metric.update(Metric.withAttributes(ingestSeconds, { until: request.until }), request.seconds)
    ],
    { discard: true }
  )

/** Count values of spans that were too large to be kept whole, and warn of them. */
export const valuesCut = (
  spans: ReadonlyArray<{ readonly values: number }>
): Effect.Effect<void> => {
  const values = spans.reduce((total, one) => total + one.values, 0)
  return Effect.andThen(
    Metric.update(cutValues, values),
    Effect.logWarning("values of spans were too large: of each the beginning is kept").pipe(
      Effect.annotateLogs({ spans: spans.length, values })
    )
  )
}

/** Count values of spans that are stored apart. */
export const valuesApart = (values: number): Effect.Effect<void> =>
  Metric.update(apartValues, values)

/** Set the number of open streams, before it is shown. */
export const liveSubscribers = (count: number): Effect.Effect<void> =>
  Metric.update(subscribers, count)

/** Set the bytes of the bodies in flight, before they are shown. */
export const bodyBytesInFlight = (bytes: number): Effect.Effect<void> =>
  Metric.update(bodyBytes, bytes)

/** Everything that this process has counted, in the text format of Prometheus. */
export const metricsText: Effect.Effect<string> = PrometheusMetrics.format()

export const metricsResponse = (text: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })

/** Everything that this process has counted, as an answer. */
export const metricsAnswer: Effect.Effect<HttpServerResponse.HttpServerResponse> = Effect.map(
  metricsText,
  metricsResponse
)

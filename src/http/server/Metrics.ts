/**
 * What the HTTP side counts, by the names under which `/metrics` shows it. Labels say routes,
 * methods and statuses; never tenants, ids or anything else that a client chose.
 */
import { Clock, Effect, Metric } from "effect"
import { HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { countByCode, itemsRejected } from "../../actors/sequencer/RejectedItems.ts"
import { counterOf, gaugeOf, histogramOf } from "../../domain/metrics/Metrics.ts"
import { type RepairCode, repairRules } from "../../domain/traces/Repairs.ts"
import { measureProcess } from "./ProcessMetrics.ts"

const requests = counterOf("alk_http_requests_total")
const refusals = counterOf("alk_http_refusals_total")
const requestSeconds = histogramOf("alk_http_request_duration_seconds")
const acceptedItems = counterOf("alk_ingest_accepted_items_total")
const preparedItems = counterOf("alk_ingest_prepared_items_total")
const ingestSeconds = histogramOf("alk_ingest_duration_seconds")
const cutValues = counterOf("alk_otlp_values_cut_total")
const repairsMade = counterOf("alk_repairs_total")
const apartValues = counterOf("alk_otlp_values_apart_total")
const failedCredentials = counterOf("alk_http_failed_credentials_total")
const subscribers = gaugeOf("alk_live_subscribers")
const bodyBytes = gaugeOf("alk_http_body_bytes")

/** Count an answered request. */
export const requestAnswered = (request: {
  readonly method: string
  readonly route: string
  readonly status: number
  /** The code of the error that it was answered with. */
  readonly code: string | undefined
  readonly seconds: number
}): Effect.Effect<void> => {
  const { code, method, route, seconds, status } = request
  return Effect.all(
    [
      Metric.update(Metric.withAttributes(requests, { method, route, status: String(status) }), 1),
      Metric.update(Metric.withAttributes(requestSeconds, { method, route }), seconds),
      code === undefined
        ? Effect.void
        : Metric.update(Metric.withAttributes(refusals, { route, code }), 1)
    ],
    { discard: true }
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

/** Milliseconds after which a code of repairs is warned of again. */
const REPAIR_WARNING_MS = 60_000

/** Counts repairs by their code, and warns of each code once a minute. */
export const repairWarnings = () => {
  const warnedAt = new Map<RepairCode, number>()
  return Effect.fnUntraced(function* (
    parts: ReadonlyArray<{ readonly counts: ReadonlyMap<RepairCode, number> }>
  ) {
    const repairs = new Map<RepairCode, number>()
    for (const { counts } of parts) {
      for (const [code, count] of counts) repairs.set(code, (repairs.get(code) ?? 0) + count)
    }
    const now = yield* Clock.currentTimeMillis
    for (const [code, count] of repairs) {
      yield* Metric.update(Metric.withAttributes(repairsMade, { code }), count)
      if (now - (warnedAt.get(code) ?? Number.NEGATIVE_INFINITY) < REPAIR_WARNING_MS) continue
      warnedAt.set(code, now)
      yield* Effect.logWarning("OpenTelemetry spans were repaired").pipe(
        Effect.annotateLogs({ code, count, rule: repairRules[code] })
      )
    }
  })
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
export const metricsText: Effect.Effect<string> = Effect.andThen(
  measureProcess,
  PrometheusMetrics.format()
)

export const metricsResponse = (text: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })

/** Everything that this process has counted, as an answer. */
export const metricsAnswer: Effect.Effect<HttpServerResponse.HttpServerResponse> = Effect.map(
  metricsText,
  metricsResponse
)

/**
 * Health and metrics of a process that serves no API: a sequencer, a projection, a store. Two routes
 * for its supervisor, on a port of their own, and nothing of any tenant.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { type Cause, Effect, Layer } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { errorResponse, isRouteNotFound, json } from "../messages/Answer.ts"
import { ApiError, unavailable } from "../messages/ApiError.ts"
import { CurrentRequest, requestIdOf } from "../messages/CurrentRequest.ts"
import { metricsAnswer } from "../server/Metrics.ts"
import { makeNodeServer } from "../server/NodeServer.ts"

/** Milliseconds that answers in flight have when the process stops. */
const SHUTDOWN_TIMEOUT_MS = 1_000
/** Milliseconds after which every connection is cut. */
const CUT_AFTER_MS = SHUTDOWN_TIMEOUT_MS + 500

export interface WorkerServerSettings {
  readonly host: string
  readonly port: number
  /** Partitions that the process works on, by role. */
  readonly working: Effect.Effect<Readonly<Record<string, ReadonlyArray<number>>>>
}

const layerRoutes = ({ working }: WorkerServerSettings) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      yield* router.add(
        "GET",
        "/healthz",
        Effect.map(working, (partitions) => json({ status: "ok", partitions }))
      )
      yield* router.add("GET", "/metrics", metricsAnswer)
    })
  )

const unknownRoute = new ApiError({
  code: "not_found",
  message: "this process serves no API: it has GET /healthz and GET /metrics"
})

const failed = (cause: Cause.Cause<unknown>) =>
  isRouteNotFound(cause)
    ? errorResponse(unknownRoute)
    : Effect.andThen(
        Effect.logError("a request failed unexpectedly", cause),
        errorResponse(unavailable("the request failed unexpectedly; the log says more"))
      )

/** The routes; every answer names its request, and what no route answers gets an error body. */
const layerServing = Layer.unwrap(
  Effect.map(HttpRouter.HttpRouter, (router) =>
    HttpServer.serve(
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const id = requestIdOf(headers["x-request-id"])
        const response = yield* Effect.catchCause(router.asHttpEffect(), failed).pipe(
          Effect.provideService(CurrentRequest, { ...CurrentRequest.defaultValue(), id })
        )
        return HttpServerResponse.setHeader(response, "x-request-id", id)
      })
    )
  )
)

/** Listens when the layer is built. */
export const layerWorkerServer = (settings: WorkerServerSettings) =>
  layerServing.pipe(
    Layer.provide(layerRoutes(settings)),
    Layer.provide(HttpRouter.layer),
    Layer.provideMerge(
      NodeHttpServer.layer(() => makeNodeServer([], CUT_AFTER_MS), {
        host: settings.host,
        port: settings.port,
        gracefulShutdownTimeout: SHUTDOWN_TIMEOUT_MS
      })
    )
  )

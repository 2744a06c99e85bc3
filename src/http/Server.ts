/**
 * The HTTP server: the router in node's server, and the order in which it goes down: stop
 * accepting, end the streams, let replies in flight finish.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { layerQuarantine } from "../services/administration/Quarantine.ts"
import { layerIngest } from "../services/ingest/Ingest.ts"
import { layerTraceWrites } from "../services/ingest/TraceWrites.ts"
import { layerEventErasures } from "../services/retention/EventErasures.ts"
import { consolePage } from "./console/ConsolePage.ts"
import { layerConsoleRoutes } from "./console/ConsoleRoutes.ts"
import { layerGuideRoutes } from "./docs/GuideRoutes.ts"
import { layerApiRoutes } from "./Handlers.ts"
import { ApiSettings } from "./messages/ApiSettings.ts"
import { Bodies } from "./messages/BodyBudget.ts"
import { layerOpsRoutes } from "./operations/OpsRoutes.ts"
import { OtlpGrpcListener } from "./otlp/OtlpGrpcListener.ts"
import { Draining } from "./server/Draining.ts"
import { layerFailedCredentials } from "./server/FailedCredentials.ts"
import { layerListener } from "./server/HttpListener.ts"
import { makeNodeServer } from "./server/NodeServer.ts"
import { layerQuota } from "./server/Quota.ts"
import { makeRequestFrame } from "./server/RequestFrame.ts"
import { CurrentServerTimes } from "./server/ServerTimes.ts"

/** Milliseconds from the last refusal until every connection is cut. */
const CUT_AFTER_MS = 1_000
/** Characters of a path parameter at most: an id of 256 characters, four bytes each, encoded. */
const PARAMETER_LENGTH_MAX = 3_072

/** Every route of the process, added to the router. */
export const layerRoutes = Layer.mergeAll(
  layerApiRoutes,
  layerConsoleRoutes,
  layerGuideRoutes,
  layerOpsRoutes
)

const layerRouter = HttpRouter.layer.pipe(
  Layer.provide(
    Layer.succeed(HttpRouter.RouterConfig, {
      caseSensitive: true,
      ignoreTrailingSlash: false,
      ignoreDuplicateSlashes: false,
      maxParamLength: PARAMETER_LENGTH_MAX
    })
  )
)

const layerServing = Layer.unwrap(
  Effect.gen(function* () {
    const router = yield* HttpRouter.HttpRouter
    const { hasConsole, otlpGrpcPort } = yield* ApiSettings
    const page = yield* consolePage
    const frame = yield* makeRequestFrame(hasConsole ? page : undefined)
    const app = frame(router.asHttpEffect())
    const layerHttp = HttpServer.serve(app)
    if (otlpGrpcPort === undefined) {
      return Layer.merge(layerHttp, Layer.succeed(OtlpGrpcListener, { url: undefined }))
    }
    // 17 MB of memory and 60 ms, for those who want it.
    const { layerOtlpGrpc } = yield* Effect.promise(() => import("./otlp/OtlpGrpc.ts"))
    return Layer.merge(layerHttp, layerOtlpGrpc(app, otlpGrpcPort))
  })
).pipe(Layer.provide(layerRoutes), Layer.provide(layerRouter))

const layerNode = Layer.unwrap(
  Effect.gen(function* () {
    const { corsOrigins, host, port, sharesPort = false } = yield* ApiSettings
    const times = yield* CurrentServerTimes
    const graceMs = times.shutdownMs + CUT_AFTER_MS
    return NodeHttpServer.layer(() => makeNodeServer(corsOrigins, graceMs, times), {
      host,
      port,
      reusePort: sharesPort,
      gracefulShutdownTimeout: times.shutdownMs
    })
  })
)

/** The ways in which requests become commands. */
const layerWrites = Layer.unwrap(
  Effect.map(ApiSettings, ({ secret }) =>
    Layer.mergeAll(layerEventErasures(secret), layerTraceWrites, layerQuarantine).pipe(
      Layer.provideMerge(layerIngest(secret))
    )
  )
)

/** Built after the serving layer, so that its end comes first. */
const layerDrain = Layer.effectDiscard(
  Effect.flatMap(Draining, ({ begin }) => Effect.addFinalizer(() => begin))
)

/**
 * The HTTP API of this process, listening when the layer is built. Fails with ServeError if the
 * address can't be listened on.
 */
export const layerServer = layerDrain.pipe(
  Layer.provideMerge(layerServing),
  Layer.provide([Bodies.layer, Draining.layer, layerFailedCredentials, layerQuota, layerWrites]),
  Layer.provideMerge(layerListener),
  Layer.provideMerge(layerNode)
)

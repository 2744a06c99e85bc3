/**
 * The HTTP server: a node server with its limits and timeouts, the router behind it, and the order
 * in which it goes down: stop accepting, end the streams, let replies in flight finish. Knows no
 * route.
 */
import { createServer, type Server } from "node:http"
import type { Socket } from "node:net"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { layerEventErasures } from "../pipeline/EventErasures.ts"
import { layerIngest } from "../pipeline/Ingest.ts"
import { layerTraceWrites } from "../pipeline/TraceWrites.ts"
import { ApiError, errorBody } from "./ApiError.ts"
import { ApiSettings } from "./ApiSettings.ts"
import { Draining } from "./Draining.ts"
import { layerFailedCredentials } from "./FailedCredentials.ts"
import { layerApiRoutes } from "./Handlers.ts"
import { layerListener } from "./HttpListener.ts"
import { layerOpsRoutes } from "./OpsRoutes.ts"
import { layerQuota } from "./Quota.ts"
import { makeRequestFrame } from "./RequestFrame.ts"

/** Milliseconds that the head of a request may take to arrive. */
const HEADERS_TIMEOUT_MS = 15_000
/** Milliseconds for a whole request: above BODY_TIMEOUT_MS, whose answer says more. */
const REQUEST_TIMEOUT_MS = 60_000
/** Milliseconds between two looks for connections that are over their time. */
const TIMEOUT_CHECK_INTERVAL_MS = 5_000
/** Milliseconds that a connection may idle between two requests. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000
/** Bytes of a request's line and headers at most: long filters and tokens fit. */
const HEADER_BYTES_MAX = 32_768
/** Time that replies in flight have when the server goes down. */
const SHUTDOWN_TIMEOUT = "10 seconds"
/** Characters of a path parameter at most: an id of 256 characters, four bytes each, encoded. */
const PARAMETER_LENGTH_MAX = 3_072

/** What node could not even parse is answered here, in the form of every other error. */
const answerUnparsable = (error: NodeJS.ErrnoException, socket: Socket): void => {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
  const refusal = new ApiError({
    code: "invalid_request",
    message:
      error.code === "HPE_HEADER_OVERFLOW"
        ? `the request line and headers are over ${HEADER_BYTES_MAX} bytes`
        : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
          ? "the request did not arrive in time"
          : "this is not an HTTP/1.1 request"
  })
  const id = crypto.randomUUID()
  const body = errorBody("object", refusal, id)
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `X-Request-Id: ${id}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

const makeServer = (): Server => {
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: HEADER_BYTES_MAX
  })
  server.on("clientError", answerUnparsable)
  return server
}

/** Every route of the process, added to the router. */
export const layerRoutes = Layer.mergeAll(layerApiRoutes, layerOpsRoutes)

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
  Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const frame = yield* makeRequestFrame
    return HttpServer.serve(frame(router.asHttpEffect()))
  })
).pipe(Layer.provide(layerRoutes), Layer.provide(layerRouter))

const layerNode = Layer.unwrap(
  Effect.map(ApiSettings, ({ host, port }) =>
    NodeHttpServer.layer(makeServer, { host, port, gracefulShutdownTimeout: SHUTDOWN_TIMEOUT })
  )
)

/** The ways in which requests become commands. */
const layerWrites = Layer.unwrap(
  Effect.map(ApiSettings, ({ secret }) =>
    Layer.mergeAll(layerEventErasures(secret), layerTraceWrites).pipe(
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
  Layer.provide([Draining.layer, layerFailedCredentials, layerQuota, layerWrites]),
  Layer.provideMerge(layerListener),
  Layer.provideMerge(layerNode)
)

/**
 * Serves OTLP/gRPC on a port of its own. A call becomes the request that the same export is over
 * HTTP, so keys, limits, quotas, log lines and answers are the same; one without a known key is refused
 * before it becomes one. What gRPC has beside that is here: statuses, deadlines, and how many calls
 * and connections are open, and messages received, at a time.
 */
import { constants, type ServerHttp2Stream } from "node:http2"
import { type AddressInfo, createServer, type Server as SocketServer } from "node:net"
import { fromBinary, toBinary } from "@bufbuild/protobuf"
import {
  type ConnectionInjector,
  Metadata,
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerUnaryCall,
  type ServiceDefinition,
  type StatusObject,
  type sendUnaryData
} from "@grpc/grpc-js"
import { Deferred, Effect, Fiber, FiberSet, Layer, Option, Schema, type Scope } from "effect"
import {
  type HttpPlatform,
  HttpServerError,
  HttpServerRequest,
  type HttpServerResponse
} from "effect/http"
import { Keys, type Principal } from "../../actors/follower/Keys.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { StatusSchema } from "../../services/ingest/otlp/gen/google/rpc/status_pb.js"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { BODY_TIMEOUT_MS } from "../messages/RequestBody.ts"
import { unauthenticated, withoutCredential } from "../server/Authorization.ts"
import { clientNetwork, FailedCredentials } from "../server/FailedCredentials.ts"
import { reachableUrl } from "../server/HttpListener.ts"
import { requestAnswered } from "../server/Metrics.ts"
import { RequestTurns } from "../server/RequestTurns.ts"
import { CurrentServerTimes } from "../server/ServerTimes.ts"
import { OpenLimit } from "./OpenLimit.ts"
import { PROTOBUF_TYPE, type Refusal, refusalStatus } from "./OtlpEncoding.ts"
import { OtlpGrpcListener } from "./OtlpGrpcListener.ts"
import { type Receiving, receivingOf } from "./Receiving.ts"

/** The methods, and where the same is taken over HTTP. */
const routes: Readonly<Record<string, string>> = {
  "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "/v1/traces",
  "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "/v1/logs",
  "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "/v1/metrics"
}

/**
 * Calls of one connection at a time; more of them wait at the client. Those of all connections can
 * arrive in one turn of the event loop, and each costs a tenth of a millisecond before it is seen here.
 */
const STREAMS_MAX = 16
/** Connections; an exporter has one. */
const CONNECTIONS = { max: 1_000, ofOneMax: 256 }
/** Calls that are not over yet, with or without a key. */
const CALLS = { max: 2_000, ofOneMax: 1_000 }
/** Milliseconds that a connection may idle. */
const IDLE_MS = 300_000
/** Milliseconds without a sign of life after which a connection is asked for one. */
const KEEPALIVE_MS = 60_000
/** Milliseconds that calls in flight have when the server goes down. */
const SHUTDOWN_TIMEOUT_MS = 10_000

/** Headers that a call hands on. */
const FORWARDED = ["authorization", "x-request-id", "traceparent", "tracestate", "user-agent"]

const DETAILS = "grpc-status-details-bin"

/** What the router makes of a request. */
type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | HttpPlatform.HttpPlatform | Scope.Scope
>
type Forked = Effect.Effect<void, never, HttpPlatform.HttpPlatform>

/** The port can't be listened on. */
export class GrpcNotListening extends Schema.TaggedError<GrpcNotListening>()("GrpcNotListening", {
  message: Schema.String
}) {}

/** A call as far as its message has not arrived. */
interface Head {
  /** Of the method. */
  readonly path: string
  readonly metadata: Metadata
  /** `address:port` of the client. */
  readonly peer: string
}

const headerOf = (metadata: Metadata, name: string): string | undefined => {
  const [value] = metadata.get(name)
  return typeof value === "string" ? value : undefined
}

const addressOf = (peer: string): string => peer.replace(/:\d+$/, "")

const requestOf = ({ metadata, path, peer }: Head, message: Buffer) => {
  const headers = new Headers({ "content-type": PROTOBUF_TYPE })
  for (const name of FORWARDED) {
    const value = headerOf(metadata, name)
    if (value !== undefined) headers.set(name, value)
  }
  const body = new Uint8Array(message.buffer, message.byteOffset, message.length)
  const request = new Request(`http://localhost${routes[path]}`, {
    method: "POST",
    headers,
    body: body as Uint8Array<ArrayBuffer>
  })
  return HttpServerRequest.fromWeb(request).modify({ remoteAddress: Option.some(addressOf(peer)) })
}

type Outcome = { readonly answer: Buffer } | { readonly refusal: StatusObject }

/** A refusal names its request, as the log does. */
const outcomeOf = (response: HttpServerResponse.HttpServerResponse): Outcome => {
  const { body, headers, status } = response
  const bytes = Buffer.from(body._tag === "Uint8Array" ? body.body : [])
  if (status === 200) return { answer: bytes }
  const isStatus = headers["content-type"] === PROTOBUF_TYPE
  const refused = isStatus
    ? fromBinary(StatusSchema, bytes)
    : refusalStatus((parseJson(bytes.toString()) as { readonly error: Refusal }).error)
  return { refusal: { code: refused.code, details: refused.message, metadata: detailsOf(refused) } }
}

const detailsOf = (status: ReturnType<typeof refusalStatus>): Metadata => {
  const metadata = new Metadata()
  metadata.set(DETAILS, Buffer.from(toBinary(StatusSchema, status)))
  return metadata
}

const tooSlow = (): ApiError =>
  new ApiError({
    code: "invalid_request",
    message: `the message did not arrive within ${BODY_TIMEOUT_MS / 1_000} s`
  })

const statusOf = ({ code, message }: ApiError): StatusObject => {
  const status = refusalStatus({ code, message, request_id: crypto.randomUUID() })
  return { code: status.code, details: message, metadata: detailsOf(status) }
}

const raw = (message: Buffer): Buffer => message

const serviceDefinition = (path: string): ServiceDefinition => ({
  Export: {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw
  }
})

type Fork = (effect: Forked) => Fiber.Fiber<unknown, unknown>

const interrupt = (fiber: Fiber.Fiber<unknown, unknown>): void =>
  fiber.interruptUnsafe(undefined, HttpServerError.ClientAbort.annotation)

/** The outcome of the request that a call is. */
const outcomes =
  (app: App) =>
  (head: Head, message: Buffer): Effect.Effect<Outcome, never, HttpPlatform.HttpPlatform> =>
    Effect.suspend(() =>
      Effect.scoped(
        Effect.provideService(app, HttpServerRequest.HttpServerRequest, requestOf(head, message))
      )
    ).pipe(Effect.map(outcomeOf), Effect.orDie)

const unaryHandler =
  (fork: Fork, outcome: ReturnType<typeof outcomes>, path: string) =>
  (call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>): void => {
    const head = { path, metadata: call.metadata, peer: call.getPeer() }
    const message = call.request
    // A call that waits for its client to take the answer holds no message.
    call.request = Buffer.alloc(0)
    const fiber = fork(
      Effect.map(outcome(head, message), (made) =>
        "answer" in made ? respond(null, made.answer) : respond(made.refusal)
      )
    )
    call.on("cancelled", () => interrupt(fiber))
  }

/** What is known of who calls, and how many. */
interface Door {
  readonly keys: Keys["Service"]
  readonly failed: FailedCredentials["Service"]
  readonly calls: OpenLimit
  readonly turns: RequestTurns
}

/** Made once: the cheapest answer is for those of whom there are most. */
const tooManyCalls = statusOf(
  new ApiError({
    code: "rate_limited",
    message: "too many calls are under way; try again when some are over"
  })
)

/** The principal of the key that a call came with. */
const callerOf = Effect.fnUntraced(function* (
  { failed, keys }: Door,
  { metadata, peer }: Head
): Effect.fn.Return<Principal, ApiError> {
  const sent = headerOf(metadata, "authorization")?.trim() ?? ""
  const scheme = /^bearer /i.exec(sent)?.[0]
  if (scheme === undefined) return yield* withoutCredential(sent)
  return yield* keys
    .authenticate(sent.slice(scheme.length))
    .pipe(
      Effect.catchTag("Unauthenticated", ({ message }) =>
        Effect.flip(failed.refusalOf(unauthenticated(message), addressOf(peer)))
      )
    )
})

/** The status of a call without a known key: no request is made of it, and no line in the log. */
const refusedUnknown = (path: string, error: ApiError): Effect.Effect<StatusObject> => {
  const { code, status } = error
  const request = { method: "POST", route: routes[path]!, status, code, seconds: 0 }
  return Effect.as(requestAnswered(request), statusOf(error))
}

/**
 * A message is held as a whole before it is looked at. So a call that may not write is answered
 * before its message is received, and not more messages are received at a time than have room
 * together. Heads take turns by connection.
 */
const admission =
  (
    fork: Fork,
    outcome: ReturnType<typeof outcomes>,
    door: Door,
    receiving: Receiving,
    stalledMs: number
  ): ServerInterceptor =>
  ({ path }, call) => {
    closeWhenAnswered(call)
    const received = Deferred.makeUnsafe<void>()
    const receive = (head: Head, proceed: () => void) =>
      Effect.gen(function* () {
        const known = yield* Effect.result(callerOf(door, head))
        if (known._tag === "Failure") {
          return call.sendStatus(yield* refusedUnknown(path, known.failure))
        }
        const principal = known.success
        if (!principal.scopes.includes("write")) {
          const made = yield* outcome(head, Buffer.alloc(0))
          if ("refusal" in made) call.sendStatus(made.refusal)
          return
        }
        const arrival = Effect.sync(proceed).pipe(
          Effect.andThen(Deferred.await(received)),
          Effect.timeoutOrElse({
            duration: BODY_TIMEOUT_MS,
            orElse: () => Effect.sync(() => call.sendStatus(statusOf(tooSlow())))
          })
        )
        yield* receiving
          .inTurn(principal.tenantId, arrival)
          .pipe(Effect.catch((error) => Effect.sync(() => call.sendStatus(statusOf(error)))))
      })
    return listening(call, {
      onHead: (metadata, proceed) => {
        const peer = call.getPeer()
        const { stream } = call as unknown as OnStream
        const close = door.calls.open(clientNetwork(addressOf(peer)))
        let cancel = (): void => undefined
        if (close === undefined) {
          call.sendStatus(tooManyCalls)
          return cancel
        }
        stream.once("close", close)
        door.turns.take(peer, () => {
          if (stream.closed) return
          const fiber = fork(receive({ path, metadata, peer }, proceed))
          cancel = () => interrupt(fiber)
        })
        return () => cancel()
      },
      onMessage: () => Deferred.doneUnsafe(received, Effect.void),
      onAnswer: () => endUnlessTaken(call, stalledMs)
    })
  }

/** What a call is sent on, which has no other name in public. */
interface OnStream {
  readonly stream: ServerHttp2Stream
}

/**
 * Closes a call that has its status before its message: without that it stays open until its client ends
 * it, and its connection is never idle.
 */
const closeWhenAnswered = (call: ServerInterceptingCallInterface): void => {
  const { stream } = call as unknown as OnStream
  stream.once("finish", () => {
    if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
  })
}

/** Ends a call whose client gives its answer no room, however alive its connection is. */
const endUnlessTaken = (call: ServerInterceptingCallInterface, stalledMs: number): void => {
  const { stream } = call as unknown as OnStream
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), stalledMs)
  stream.once("close", () => clearTimeout(timer))
}

/** A call, and what to do with its head, its whole message, its answer, and its end before that. */
const listening = (
  call: ServerInterceptingCallInterface,
  {
    onAnswer,
    onHead,
    onMessage
  }: {
    readonly onAnswer: () => void
    readonly onHead: (metadata: Metadata, proceed: () => void) => () => void
    readonly onMessage: () => void
  }
): ServerInterceptingCall => {
  let cancel = (): void => undefined
  return new ServerInterceptingCall(call, {
    start: (next) =>
      next({
        onReceiveMetadata: (metadata, proceed) => {
          cancel = onHead(metadata, () => proceed(metadata))
        },
        onReceiveHalfClose: (proceed) => {
          onMessage()
          proceed()
        },
        onCancel: () => cancel()
      }),
    sendMessage: (message, next) => {
      onAnswer()
      next(message)
    }
  })
}

/** Hands connections on, but for those that are too many. */
const listenerFor = (injector: ConnectionInjector): SocketServer => {
  const connections = new OpenLimit(CONNECTIONS)
  return createServer((socket) => {
    const close = connections.open(clientNetwork(socket.remoteAddress ?? ""))
    if (close === undefined) return void socket.destroy()
    socket.once("close", close)
    injector.injectConnection(socket)
  })
}

const listen = (listener: SocketServer, host: string, port: number) =>
  Effect.callback<number, GrpcNotListening>((resume) => {
    listener.on("error", ({ message }) =>
      resume(
        Effect.fail(
          new GrpcNotListening({
            message:
              `OTLP over gRPC can't listen on port ${port} of ${host}: set ALK_OTLP_GRPC_PORT`
              + ` to another one, or unset it (${message})`
          })
        )
      )
    )
    listener.listen(port, host, () =>
      resume(Effect.sync(() => (listener.address() as AddressInfo).port))
    )
  })

/** Milliseconds for the answers of calls that were given up. */
const ANSWERS_MS = 500

/** No new calls; those in flight have their time, then they are given up, then cut. */
const shutDown = (
  server: Server,
  listener: SocketServer,
  giveUp: Effect.Effect<void>
): Effect.Effect<void> => {
  const done = Effect.callback<void>((resume) => {
    // The listener is closed when its last connection is: those of `server` are not its own.
    listener.close(() => resume(Effect.void))
    server.tryShutdown(() => undefined)
  })
  const cut = Effect.sync(() => server.forceShutdown())
  return Effect.gen(function* () {
    const closing = yield* Effect.forkChild(done)
    const closed = Fiber.join(closing)
    const isLate = (yield* Effect.timeoutOption(closed, SHUTDOWN_TIMEOUT_MS))._tag === "None"
    if (!isLate) return
    yield* giveUp
    yield* Effect.timeoutOrElse(closed, { duration: ANSWERS_MS, orElse: () => cut })
  })
}

const serve = Effect.fnUntraced(function* (app: App, port: number) {
  const { host, limits } = yield* ApiSettings
  const door: Door = {
    keys: yield* Keys,
    failed: yield* FailedCredentials,
    calls: new OpenLimit(CALLS),
    turns: new RequestTurns()
  }
  const { stalledMs } = yield* CurrentServerTimes
  const calls = yield* FiberSet.make()
  const fork: Fork = yield* FiberSet.runtime(calls)<HttpPlatform.HttpPlatform>()
  const outcome = outcomes(app)
  const { bodyBudgetBytes, bodyBytesMax } = limits
  const receiving = receivingOf(Math.max(1, Math.floor(bodyBudgetBytes / bodyBytesMax)))
  const { server, listener } = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const made = new Server({
        "grpc.max_receive_message_length": bodyBytesMax,
        "grpc.max_concurrent_streams": STREAMS_MAX,
        "grpc.max_connection_idle_ms": IDLE_MS,
        "grpc.keepalive_time_ms": KEEPALIVE_MS,
        "grpc.enable_channelz": 0,
        interceptors: [admission(fork, outcome, door, receiving, stalledMs)]
      })
      const injector = made.createConnectionInjector(ServerCredentials.createInsecure())
      return { server: made, listener: listenerFor(injector) }
    }),
    (made) => shutDown(made.server, made.listener, FiberSet.clear(calls))
  )
  for (const path of Object.keys(routes)) {
    server.addService(serviceDefinition(path), { Export: unaryHandler(fork, outcome, path) })
  }
  const bound = yield* listen(listener, host, port)
  yield* Effect.logInfo("OTLP over gRPC is taken").pipe(Effect.annotateLogs({ host, port: bound }))
  return OtlpGrpcListener.of({ url: reachableUrl(host, bound) })
})

/** Listening when it is built. */
export const layerOtlpGrpc = (
  app: App,
  port: number
): Layer.Layer<
  OtlpGrpcListener,
  GrpcNotListening,
  ApiSettings | FailedCredentials | Keys | HttpPlatform.HttpPlatform
> => Layer.effect(OtlpGrpcListener, serve(app, port))

/**
 * Serves OTLP/gRPC on a port of its own. A call becomes the request that the same export is over
 * HTTP, so keys, limits, quotas, log lines and answers are the same. What gRPC has beside that is
 * here: statuses, deadlines, and how many messages are received at a time.
 */
import { constants, type ServerHttp2Stream } from "node:http2"
import { fromBinary, toBinary } from "@bufbuild/protobuf"
import {
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
import { Keys } from "../../actors/follower/Keys.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { StatusSchema } from "../../services/ingest/otlp/gen/google/rpc/status_pb.js"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { BODY_TIMEOUT_MS } from "../messages/RequestBody.ts"
import { reachableUrl } from "../server/HttpListener.ts"
import { CurrentServerTimes } from "../server/ServerTimes.ts"
import { PROTOBUF_TYPE, type Refusal, refusalStatus } from "./OtlpEncoding.ts"
import { OtlpGrpcListener } from "./OtlpGrpcListener.ts"
import { type Receiving, receivingOf } from "./Receiving.ts"

/** The methods, and where the same is taken over HTTP. */
const routes: Readonly<Record<string, string>> = {
  "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "/v1/traces",
  "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "/v1/logs",
  "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "/v1/metrics"
}

/** Calls of one connection at a time; an exporter sends one after the other. */
const STREAMS_MAX = 100
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
  return HttpServerRequest.fromWeb(request).modify({
    remoteAddress: Option.some(peer.replace(/:\d+$/, ""))
  })
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

/**
 * A message is held as a whole before it is looked at. So a call that may not write is answered
 * before its message is received, and not more messages are received at a time than have room
 * together.
 */
const admission =
  (
    fork: Fork,
    outcome: ReturnType<typeof outcomes>,
    keys: Keys["Service"],
    receiving: Receiving,
    stalledMs: number
  ): ServerInterceptor =>
  ({ path }, call) => {
    closeWhenAnswered(call)
    const received = Deferred.makeUnsafe<void>()
    const receive = (head: Head, proceed: () => void) =>
      Effect.gen(function* () {
        const token = headerOf(head.metadata, "authorization")?.replace(/^bearer /i, "") ?? ""
        const known = yield* Effect.option(keys.authenticate(token))
        const principal = Option.getOrUndefined(known)
        if (principal?.scopes.includes("write") !== true) {
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
        const fiber = fork(receive({ path, metadata, peer: call.getPeer() }, proceed))
        return () => interrupt(fiber)
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

const listen = (server: Server, host: string, port: number) =>
  Effect.callback<number, GrpcNotListening>((resume) => {
    const authority = host.includes(":") ? `[${host}]` : host
    server.bindAsync(`${authority}:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
      resume(
        error === null
          ? Effect.succeed(bound)
          : Effect.fail(
              new GrpcNotListening({
                message:
                  `OTLP over gRPC can't listen on port ${port} of ${host}: set ALK_OTLP_GRPC_PORT`
                  + ` to another one, or unset it (${error.message})`
              })
            )
      )
    )
  })

/** Milliseconds for the answers of calls that were given up. */
const ANSWERS_MS = 500

/** No new calls; those in flight have their time, then they are given up, then cut. */
const shutDown = (server: Server, giveUp: Effect.Effect<void>): Effect.Effect<void> => {
  const done = Effect.callback<void>((resume) => {
    server.tryShutdown(() => resume(Effect.void))
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
  const keys = yield* Keys
  const { stalledMs } = yield* CurrentServerTimes
  const calls = yield* FiberSet.make()
  const fork: Fork = yield* FiberSet.runtime(calls)<HttpPlatform.HttpPlatform>()
  const outcome = outcomes(app)
  const { bodyBudgetBytes, bodyBytesMax } = limits
  const receiving = receivingOf(Math.max(1, Math.floor(bodyBudgetBytes / bodyBytesMax)))
  const server = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Server({
          "grpc.max_receive_message_length": bodyBytesMax,
          "grpc.max_concurrent_streams": STREAMS_MAX,
          "grpc.max_connection_idle_ms": IDLE_MS,
          "grpc.keepalive_time_ms": KEEPALIVE_MS,
          "grpc.enable_channelz": 0,
          interceptors: [admission(fork, outcome, keys, receiving, stalledMs)]
        })
    ),
    (running) => shutDown(running, FiberSet.clear(calls))
  )
  for (const path of Object.keys(routes)) {
    server.addService(serviceDefinition(path), { Export: unaryHandler(fork, outcome, path) })
  }
  const bound = yield* listen(server, host, port)
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
  ApiSettings | Keys | HttpPlatform.HttpPlatform
> => Layer.effect(OtlpGrpcListener, serve(app, port))

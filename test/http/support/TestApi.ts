/**
 * The real node server of the API on a free port over the doubles, and a client that sees bytes: no
 * redirects, no decompression, no defaults.
 */
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage
} from "node:http"
import { Clock, Context, Effect, Exit, Layer, Logger, References, Scope } from "effect"
import type { Settings } from "../../../src/http/messages/ApiSettings.ts"
import { OtlpGrpcListener } from "../../../src/http/otlp/OtlpGrpcListener.ts"
import { layerServer } from "../../../src/http/Server.ts"
import { HttpListener } from "../../../src/http/server/HttpListener.ts"
import { assertConforms } from "../../support/Conformance.ts"
import { layerDoubles, World } from "./Doubles.ts"

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly annotations: Readonly<Record<string, unknown>>
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** The body as JSON; undefined if it is none. */
  readonly body: any
}

export interface Call {
  readonly method?: string
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: unknown
  readonly raw?: string | Buffer
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const collect = (response: IncomingMessage): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const chunks: Array<Buffer> = []
    response.on("data", (chunk: Buffer) => chunks.push(chunk))
    response.on("error", reject)
    response.on("aborted", () => reject(new Error("the answer broke off")))
    response.on("end", () => {
      const bytes = Buffer.concat(chunks)
      const text = bytes.toString()
      const { headers, statusCode = 0 } = response
      resolve({ status: statusCode, headers, bytes, text, body: parsed(text) })
    })
  })

/** Writes down what is logged. */
export const loggerTo = (logs: Array<LogLine>) =>
  Logger.make(({ fiber, logLevel, message }) => {
    logs.push({
      level: logLevel,
      message: [message].flat().map(String).join(" "),
      annotations: { ...fiber.getRef(References.CurrentLogAnnotations) }
    })
  })

export class TestApi {
  readonly world: World
  readonly url: string
  readonly port: number
  /** Where it takes OTLP over gRPC; undefined if it does not. */
  readonly otlpGrpc: string | undefined
  readonly logs: ReadonlyArray<LogLine>
  readonly #scope: Scope.Closeable

  constructor(
    world: World,
    built: Context.Context<HttpListener | OtlpGrpcListener>,
    logs: ReadonlyArray<LogLine>,
    scope: Scope.Closeable
  ) {
    this.world = world
    const { port, url } = Context.get(built, HttpListener)
    this.port = port
    this.url = url
    this.otlpGrpc = Context.get(built, OtlpGrpcListener).url
    this.logs = logs
    this.#scope = scope
  }

  static async start(
    changed: Partial<Settings> = {},
    world = new World(),
    /** What the whole process has, such as a tracer. */
    around: Layer.Layer<never> = Layer.empty
  ): Promise<TestApi> {
    const logs: Array<LogLine> = []
    const scope = await Effect.runPromise(Scope.make())
    const layer = layerServer.pipe(
      Layer.provide(layerDoubles(world, changed)),
      Layer.provide(Logger.layer([loggerTo(logs)])),
      Layer.provide(Layer.succeed(References.MinimumLogLevel, "Debug")),
      Layer.provide(Layer.succeed(Clock.Clock, world.clock)),
      Layer.provide(around)
    )
    const built = await Effect.runPromise(Layer.buildWithScope(layer, scope))
    return new TestApi(world, built, logs, scope)
  }

  stop(): Promise<void> {
    return Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }

  /** Send a request without waiting for anything; what becomes of it is the caller's to see. */
  sending(path: string, call: Call = {}): ClientRequest {
    const { headers = {}, json, key } = call
    const body = call.raw ?? (json === undefined ? undefined : JSON.stringify(json))
    const request = httpRequest({
      host: "127.0.0.1",
      port: this.port,
      path,
      method: call.method ?? (body === undefined ? "GET" : "POST"),
      agent: false,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
        ...headers
      }
    })
    request.on("error", () => {})
    request.end(body)
    return request
  }

  /** Send a request and wait for the head of the answer. */
  open(path: string, call: Call = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = this.sending(path, call)
      request.on("response", resolve)
      request.on("error", reject)
    })
  }

  async call(path: string, call: Call = {}): Promise<Answer> {
    const answer = await collect(await this.open(path, call))
    const { headers, status, text } = answer
    const encoded = headers["content-encoding"] !== undefined
    assertConforms({
      method: call.method ?? (call.json === undefined && call.raw === undefined ? "GET" : "POST"),
      target: path,
      status,
      contentType: headers["content-type"],
      text: encoded ? "" : text
    })
    return answer
  }
}

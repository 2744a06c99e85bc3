/**
 * Node's HTTP server with our limits, and an answer in our error form wherever node would give an
 * empty one or none: before the routes are there, after they have gone, and for what is not a
 * request that a route could see.
 */
import {
  createServer,
  type IncomingMessage,
  Server,
  type ServerResponse,
  STATUS_CODES
} from "node:http"
import { type Socket, Server as SocketServer } from "node:net"
import type { Duplex } from "node:stream"
import {
  ApiError,
  type ErrorForm,
  errorBody,
  errorFormOf,
  errorHeaders,
  unavailable
} from "../messages/ApiError.ts"
import { pathOf, requestIdOf } from "../messages/CurrentRequest.ts"
import { corsHeaders } from "./Cors.ts"
import { ReaderStalled } from "./ReaderStalled.ts"
import { RequestTurns } from "./RequestTurns.ts"
import { SERVER_TIMES, type ServerTimes } from "./ServerTimes.ts"

/** Milliseconds for a whole request: above BODY_TIMEOUT_MS, whose answer says more. */
const REQUEST_TIMEOUT_MS = 60_000
/** Milliseconds that a connection may idle between two requests. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000
/** Bytes of a request's line and headers at most: long filters and tokens fit. */
export const HEADER_BYTES_MAX = 32_768
/** Milliseconds that a turn of the event loop may take for the server to close after it. */
const QUIET_TURN_MS = 2
/** Milliseconds to wait for such a turn. */
const QUIET_WAIT_MS = 250
/** Milliseconds after a last answer that its client has to read it, whatever it still sends. */
const CLOSE_GRACE_MS = 500

/** Requests of one connection that wait for the answers to those before them, at most. */
const PIPELINED_MAX = 100

/** A refusal with the status that HTTP has for it, where that is not the one of its code. */
interface Refusal {
  readonly status: number
  readonly error: ApiError
}

const refusalOf = (code: string | undefined): Refusal => {
  const invalid = (status: number, message: string): Refusal => ({
    status,
    error: new ApiError({ code: "invalid_request", message })
  })
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return invalid(431, `the request line and headers are over ${HEADER_BYTES_MAX} bytes`)
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return invalid(413, "the chunk extensions of the body are too long")
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return invalid(408, "the request did not arrive in time")
    default:
      return invalid(400, "this is not an HTTP/1.1 request")
  }
}

const headersOf = (error: ApiError, id: string, body: string) => ({
  ...errorHeaders(error),
  "content-type": "application/json",
  "content-length": String(Buffer.byteLength(body)),
  "x-content-type-options": "nosniff",
  "x-request-id": id
})

/** The last that a connection says, where there is no request to answer. */
const endWith = (
  socket: Duplex,
  { error, status }: Refusal,
  more: Readonly<Record<string, string>>,
  form: ErrorForm = "object"
): void => {
  if (!socket.writable) return void socket.destroy()
  const id = crypto.randomUUID()
  const body = errorBody(form, error, id)
  const headers = { ...headersOf(error, id, body), ...more, connection: "close" }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`)
  // Destroyed at once, a connection on which more arrives is reset, and the answer lost.
  const timer = setTimeout(() => socket.destroy(), CLOSE_GRACE_MS)
  socket.once("close", () => clearTimeout(timer))
}

const hasUnreadBody = ({ complete, headers }: IncomingMessage): boolean =>
  !complete
  && (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0)

/** One connection as the server follows it. */
interface Connection {
  /** Of the newest request; undefined before the first. */
  response: ServerResponse | undefined
  /** It has been given its last answer. */
  isRefused: boolean
  /** A request of it is being answered, or has its turn to come. */
  isBusy: boolean
  /** Requests behind that one, in order. */
  readonly waiting: Array<() => void>
}

class AlkServer {
  readonly server: Server
  readonly #corsOrigins: ReadonlyArray<string>
  readonly #times: ServerTimes
  readonly #connections = new Map<Duplex, Connection>()
  readonly #turns = new RequestTurns()
  #isStopping = false
  /** Connections so far. */
  #accepted = 0

  constructor(corsOrigins: ReadonlyArray<string>, graceMs: number, times: ServerTimes) {
    this.#corsOrigins = corsOrigins
    this.#times = times
    this.server = createServer({
      headersTimeout: times.headMs,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: times.lookMs,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      // The request frame refuses those without, in the error form.
      requireHostHeader: false,
      // An upgrade that is not taken is a request like any other (RFC 9110, section 7.8). Java's
      // client offers HTTP/2 in this way with each first request of a connection, body and all.
      shouldUpgradeCallback: () => false
    })
    this.#listen(graceMs)
  }

  #listen(graceMs: number): void {
    const { server } = this
    this.#oneAtATime()
    server.timeout = this.#times.stalledMs
    server.on("timeout", (socket) => this.#quiet(socket))
    server.on("connection", (socket) => {
      this.#accepted += 1
      this.#connections.set(socket, {
        response: undefined,
        isRefused: false,
        isBusy: false,
        waiting: []
      })
      socket.once("close", () => this.#connections.delete(socket))
    })
    // First of its kind: it answers until the router listens too, and when it no longer does.
    for (const event of ["request", "checkContinue"] as const) {
      server.on(event, (request: IncomingMessage, response: ServerResponse) => {
        const connection = this.#connections.get(request.socket)
        if (connection !== undefined) connection.response = response
        if (this.#isStopping) response.setHeader("connection", "close")
        // Many clients read no answer before all of their body is sent: until the platform cuts the
        // connection, 500 ms later, what still comes of it is thrown away.
        response.once("finish", () => {
          if (!request.complete && !request.destroyed) request.resume()
        })
        if (server.listenerCount(event) === 1) this.#answer(request, response)
      })
    }
    server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
      const message = "Expect: 100-continue is the only expectation that is met here"
      const error = new ApiError({ code: "invalid_request", message, field: "Expect" })
      this.#refuse(request, response, { status: 417, error })
    })
    server.on("connect", (request: IncomingMessage, socket: Duplex) => {
      socket.on("error", () => {})
      const message = "CONNECT is not allowed: this is no proxy"
      const error = new ApiError({ code: "method_not_allowed", message })
      endWith(socket, { status: error.status, error }, { allow: "", ...this.#cors(request) })
    })
    server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      this.#unparsable(error, socket)
    })
    // Node's own `close` cuts idle connections at once and stops looking at timeouts.
    server.close = (done) => {
      this.#whenNoneWaits(() => this.#stop(graceMs, done))
      return server
    }
  }

  /**
   * Node would begin all requests of a connection at once, those of all connections in the same turn of
   * the event loop, and hold the answers behind the first.
   */
  #oneAtATime(): void {
    const { server } = this
    const emit = server.emit.bind(server) as (event: string, ...given: Array<unknown>) => boolean
    server.emit = (event: string, ...given: Array<unknown>): boolean => {
      if (event !== "request" && event !== "checkContinue") return emit(event, ...given)
      const [{ socket }, response] = given as [IncomingMessage, ServerResponse]
      const connection = this.#connections.get(socket)
      if (connection === undefined) return emit(event, ...given)
      // Of one that is cut, node still reads to the end of what it has received.
      if (socket.destroyed) return true
      const { waiting } = connection
      const client = socket.remoteAddress ?? ""
      const begin = () => {
        if (socket.destroyed) return
        response.once("close", () => {
          const next = waiting.shift()
          if (next === undefined) connection.isBusy = false
          else this.#turns.take(client, next)
        })
        emit(event, ...given)
      }
      if (connection.isBusy) {
        if (waiting.push(begin) > PIPELINED_MAX) socket.destroy()
      } else {
        connection.isBusy = true
        this.#turns.take(client, begin)
      }
      return true
    }
  }

  /** Nothing has moved on a connection for a while. */
  #quiet(socket: Socket): void {
    const response = this.#connections.get(socket)?.response
    if (socket.writableLength > 0) socket.destroy(new ReaderStalled())
    // What makes the answer may take its time.
    else if (response?.writableFinished === false) socket.setTimeout(this.#times.stalledMs)
    else socket.destroy()
  }

  /**
   * Connections that wait to be accepted when a server closes are reset by the system, with what was
   * sent on them: so it closes right after a short turn of the event loop that accepted none.
   */
  #whenNoneWaits(stop: () => void, until = performance.now() + QUIET_WAIT_MS): void {
    const accepted = this.#accepted
    const startedAt = performance.now()
    setImmediate(() => {
      const now = performance.now()
      const isQuiet = this.#accepted === accepted && now - startedAt < QUIET_TURN_MS
      if (isQuiet || now >= until) stop()
      else this.#whenNoneWaits(stop, until)
    })
  }

  #stop(graceMs: number, done: ((error?: Error) => void) | undefined): void {
    const { server } = this
    SocketServer.prototype.close.call(server, done)
    // Only after the port is closed: a client whose connection ends opens a new one.
    this.#isStopping = true
    for (const { response } of this.#connections.values()) {
      if (response?.headersSent === false) response.setHeader("connection", "close")
    }
    const timers = [
      setTimeout(() => this.#closeIdle(), this.#times.idleGraceMs),
      setTimeout(() => server.closeAllConnections(), graceMs)
    ]
    server.once("close", () => {
      for (const timer of timers) clearTimeout(timer)
      Server.prototype.close.call(server)
    })
  }

  #closeIdle(): void {
    this.server.closeIdleConnections()
    // Node takes a connection that has never sent anything for a busy one.
    for (const [socket, { response }] of this.#connections) {
      if (response === undefined && (socket as Socket).bytesRead === 0) socket.destroy()
    }
  }

  #cors(request: IncomingMessage | undefined): Readonly<Record<string, string>> {
    return corsHeaders(this.#corsOrigins, request?.headers.origin)
  }

  /** What is asked while no route is there. */
  #answer(request: IncomingMessage, response: ServerResponse): void {
    const state = this.#isStopping ? "stopping" : "starting"
    if (request.method === "GET" && pathOf(request.url ?? "") === "/healthz") {
      const body = JSON.stringify({ status: state })
      const headers = { "content-type": "application/json", "cache-control": "no-store" }
      return void response.writeHead(200, { ...headers, ...this.#ending(request) }).end(body)
    }
    const error = unavailable(`the service is ${state}; try again`)
    this.#refuse(request, response, { status: error.status, error })
  }

  /** A server that stops needs its connections back; a body that was announced may never come. */
  #ending({ headers }: IncomingMessage): Readonly<Record<string, string>> {
    return this.#isStopping || headers.expect !== undefined ? { connection: "close" } : {}
  }

  /** An answer to a request whose body is not read: node discards it. */
  #refuse(request: IncomingMessage, response: ServerResponse, { error, status }: Refusal): void {
    const { headers, url = "" } = request
    const sent = headers["x-request-id"]
    const id = requestIdOf(typeof sent === "string" ? sent : undefined)
    const body = errorBody(errorFormOf(pathOf(url)), error, id)
    const ending = this.#ending(request)
    const more = { ...this.#cors(request), ...ending }
    const answer = () => {
      if (response.headersSent) return
      response.writeHead(status, { ...headersOf(error, id, body), ...more }).end(body)
    }
    const isSent = headers.expect !== undefined || !hasUnreadBody(request)
    if (isSent || ending["connection"] === undefined) return answer()
    // A connection that ends with bytes unread is reset, and the answer may be lost.
    request.resume().once("end", answer)
    setTimeout(answer, CLOSE_GRACE_MS).unref()
  }

  /** Bytes that are no request, or a request that did not arrive in time. */
  #unparsable(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.#connections.get(socket)
    if (connection?.isRefused === true) return
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
    const response = connection?.response
    const isAnswering = response !== undefined && !response.writableFinished
    if (isAnswering && response.headersSent && !response.req.complete) {
      return void socket.destroy()
    }
    if (connection !== undefined) connection.isRefused = true
    const refuse = () => endWith(socket, refusalOf(error.code), this.#cors(undefined))
    // An answer that is under way goes first: it belongs to an earlier, whole request.
    if (isAnswering && response.req.complete) response.once("finish", refuse)
    else refuse()
  }
}

/**
 * A server that answers from the first connection on. `corsOrigins` as in the settings. When it is
 * closed, connections that are still open after `graceMs` are cut.
 */
export const makeNodeServer = (
  corsOrigins: ReadonlyArray<string>,
  graceMs: number,
  times: ServerTimes = SERVER_TIMES
): Server => new AlkServer(corsOrigins, graceMs, times).server

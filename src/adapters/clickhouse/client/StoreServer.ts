/**
 * The embedded engine for other processes of this machine: as much of ClickHouse's HTTP protocol,
 * on loopback only, as the unmodified `@clickhouse/client` needs. Adds no meaning of its own:
 * what it is asked, it asks the engine.
 */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { type Coding, InflateFailed, inflate } from "../../../domain/Inflate.ts"
import {
  type Answer,
  ChdbEngine,
  type Inserted,
  type Settings,
  type Statement
} from "./ChdbEngine.ts"
import { summaryOf } from "./EmbeddedConnection.ts"
import { bindLiterals } from "./LiteralParameters.ts"
import { isKnownSetting, isOwnDatabase, isRead, refusalOf } from "./StatementGuard.ts"

/** The port is taken, or this process may not listen on it. */
export class StoreServerNotStarted extends Schema.TaggedError<StoreServerNotStarted>()(
  "StoreServerNotStarted",
  { port: Schema.Int, cause: Schema.Defect() }
) {
  override get message(): string {
    const why =
      (this.cause as NodeJS.ErrnoException).code === "EADDRINUSE"
        ? "is in use"
        : `can't be listened on (${(this.cause as Error).message})`
    return (
      `Port ${this.port} of 127.0.0.1 ${why}:`
      + " set ALK_STORE_PORT to another one, or to 0 for any"
    )
  }
}

export interface StoreServerSettings {
  /** 0 takes any free port. */
  readonly port: number
  /** Without one every user of this machine may use the store. */
  readonly password?: Redacted.Redacted
  /** Sockets at once beyond `SOCKETS_MAX`, for processes that are known to use it. */
  readonly moreSockets?: number
}

const HOST = "127.0.0.1"
/** Bytes of a request at most, after decompression: a block of 128 MiB and the frame around it. */
const BODY_BYTES_MAX = 144 * 1_048_576
/** Bytes of the request line and headers at most: parameters and settings are in the address. */
const HEADER_BYTES_MAX = 1_048_576
/** Milliseconds; longer than a client keeps an idle socket. */
const KEEP_ALIVE_MS = 10_000
/** Sockets at once: each may hold one body. */
const SOCKETS_MAX = 64
/** Milliseconds that statements in flight get to end when the server closes. */
const CLOSE_MS_MAX = 40_000

/** Parameters of the address that are not settings. */
const OWN_PARAMETERS = new Set([
  "query",
  "query_id",
  "database",
  "user",
  "password",
  "session_id",
  "role"
])

/** ClickHouse's exception codes whose HTTP status is not 500. */
const STATUS_OF_CODE: Record<string, number> = {
  27: 400,
  36: 400,
  43: 400,
  47: 404,
  60: 404,
  62: 400,
  81: 404,
  115: 404,
  159: 408,
  202: 503,
  516: 403
}

/** A request that is refused before the engine sees it; worded as ClickHouse would. */
class Refused extends Error {
  readonly status: number
  readonly code: number

  constructor(status: number, code: number, type: string, message: string) {
    super(`Code: ${code}. DB::Exception: ${message}. (${type})`)
    this.status = status
    this.code = code
  }
}

const codings = new Set<string>(["gzip", "zstd", "br"] satisfies ReadonlyArray<Coding>)
const isCoding = (name: string): name is Coding => codings.has(name)

const tooLarge = () =>
  new Refused(413, 396, "TOO_MANY_BYTES", `More than ${BODY_BYTES_MAX} bytes in one request`)

const bodyOf = async (request: http.IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > BODY_BYTES_MAX) throw tooLarge()
    chunks.push(chunk)
  }
  const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  const encoding = request.headers["content-encoding"] ?? "identity"
  if (encoding === "identity") return body
  if (!isCoding(encoding)) {
    throw new Refused(400, 89, "UNKNOWN_COMPRESSION_METHOD", `Content-Encoding ${encoding}`)
  }
  return inflate(encoding, body, BODY_BYTES_MAX).catch((cause: unknown) => {
    throw cause instanceof InflateFailed && cause.reason === "too_large"
      ? tooLarge()
      : new Refused(400, 354, "ZLIB_INFLATE_FAILED", `The body is no ${encoding}`)
  })
}

const UNESCAPED: Record<string, string> = { t: "\t", n: "\n", r: "\r", 0: "\0", b: "\b", f: "\f" }

/** Parameters travel as a field of TabSeparated does. */
const unescaped = (value: string): string =>
  value.replace(/\\(.)/gs, (_, mark: string) => UNESCAPED[mark] ?? mark)

const statementOf = (address: URLSearchParams, body: string, signal: AbortSignal): Statement => {
  const parameters = new Map<string, string>()
  const settings: Record<string, Settings[string]> = {}
  for (const [name, value] of address) {
    if (name.startsWith("param_")) parameters.set(name.slice(6), unescaped(value))
    else if (isKnownSetting(name)) settings[name] = value
    else if (!OWN_PARAMETERS.has(name)) {
      throw new Refused(403, 497, "ACCESS_DENIED", `the setting ${name} can't be given`)
    }
  }
  return {
    // What is looked at is what the engine gets.
    sql: bindLiterals(`${address.get("query") ?? ""}${body}`, parameters),
    settings,
    signal,
    database: address.get("database") ?? NO_DATABASE
  }
}

const INSERT = /^\s*INSERT\s/i

/** Where nothing is found by a name alone. */
const NO_DATABASE = "system"

const refuseOutside = ({ database = NO_DATABASE, sql }: Statement): void => {
  const reason = isOwnDatabase(database)
    ? refusalOf(sql)
    : `tables of the database ${database} may be files`
  if (reason !== undefined) throw new Refused(403, 497, "ACCESS_DENIED", reason)
}

const ask = async (
  engine: ChdbEngine["Service"],
  request: http.IncomingMessage,
  address: URLSearchParams,
  signal: AbortSignal
): Promise<Answer | Inserted> => {
  const body = await bodyOf(request)
  if (INSERT.test(address.get("query") ?? "") && body.length > 0) {
    const statement = statementOf(address, "", signal)
    refuseOutside(statement)
    return engine.insert({ ...statement, rows: body })
  }
  const statement = statementOf(address, body.toString("utf8"), signal)
  refuseOutside(statement)
  if (request.method !== "POST" && !isRead(statement.sql)) {
    throw new Refused(500, 164, "READONLY", "Only POST may change anything")
  }
  return engine.run(statement)
}

const digest = (text: string) => createHash("sha256").update(text).digest()

/** Of basic authentication; the user's name doesn't matter. */
const passwordOf = (request: http.IncomingMessage): string => {
  const [, basic] = /^Basic (.+)$/.exec(request.headers.authorization ?? "") ?? []
  const pair = Buffer.from(basic ?? "", "base64").toString("utf8")
  return pair.slice(pair.indexOf(":") + 1)
}

/**
 * Web pages reach loopback too: a browser sends where a request comes from, and by what name this
 * host was addressed.
 */
const refuseStrangers = (
  request: http.IncomingMessage,
  port: number,
  password: Redacted.Redacted | undefined
): void => {
  const { headers } = request
  const host = headers.host ?? ""
  if (
    headers.origin !== undefined
    || headers["sec-fetch-site"] !== undefined
    || ![`${HOST}:${port}`, `localhost:${port}`].includes(host)
  ) {
    throw new Refused(403, 497, "ACCESS_DENIED", "The store answers processes of this machine only")
  }
  if (password === undefined) return
  if (!timingSafeEqual(digest(passwordOf(request)), digest(Redacted.value(password)))) {
    throw new Refused(401, 516, "AUTHENTICATION_FAILED", "Wrong password")
  }
}

const sendError = (response: http.ServerResponse, cause: unknown): void => {
  const message = cause instanceof Error ? cause.message : String(cause)
  const code = cause instanceof Refused ? String(cause.code) : /Code: (\d+)/.exec(message)?.[1]
  const status = cause instanceof Refused ? cause.status : (STATUS_OF_CODE[code ?? ""] ?? 500)
  response.writeHead(status, {
    "content-type": "text/plain; charset=UTF-8",
    "x-clickhouse-exception-code": code ?? "1002",
    // What is left of a refused body is not read, so the socket can't be used again.
    ...(status === 413 ? { connection: "close" } : {})
  })
  const unknown = `Code: 1002. DB::Exception: ${message} (UNKNOWN_EXCEPTION)`
  response.end(`${code === undefined ? unknown : message}\n`)
}

const handle = async (
  engine: ChdbEngine["Service"],
  settings: StoreServerSettings,
  request: http.IncomingMessage,
  response: http.ServerResponse
): Promise<void> => {
  const gone = new AbortController()
  response.on("close", () => gone.abort(new Error("the client is gone")))
  try {
    refuseStrangers(request, request.socket.localPort ?? 0, settings.password)
    const { pathname, searchParams } = new URL(request.url ?? "/", `http://${HOST}`)
    if (pathname === "/ping") {
      response.end("Ok.\n")
      return
    }
    response.setHeader("x-clickhouse-query-id", searchParams.get("query_id") ?? randomUUID())
    const result = await ask(engine, request, searchParams, gone.signal)
    const bytes = "bytes" in result ? result.bytes : Buffer.alloc(0)
    response.writeHead(200, {
      "content-type": "application/octet-stream",
      "content-length": bytes.length,
      "x-clickhouse-summary": JSON.stringify(summaryOf(result))
    })
    response.end(bytes)
  } catch (cause) {
    if (!response.destroyed) sendError(response, cause)
  }
}

const listen = (server: http.Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, HOST, () => resolve((server.address() as AddressInfo).port))
  })

const close = (server: http.Server): Promise<void> =>
  new Promise((resolve) => {
    const impatience = setTimeout(() => server.closeAllConnections(), CLOSE_MS_MAX)
    server.close(() => {
      clearTimeout(impatience)
      resolve()
    })
    server.closeIdleConnections()
  })

export class StoreServer extends Context.Service<
  StoreServer,
  {
    readonly host: string
    readonly port: number
    /** What other processes set as CLICKHOUSE_URL. */
    readonly url: string
  }
>()("alk/adapters/clickhouse/StoreServer") {
  /** Listens until the scope closes, then lets what runs end. */
  static readonly listen = (
    settings: StoreServerSettings
  ): Effect.Effect<StoreServer["Service"], StoreServerNotStarted, ChdbEngine | Scope.Scope> =>
    Effect.gen(function* () {
      const engine = yield* ChdbEngine
      const server = http.createServer(
        { maxHeaderSize: HEADER_BYTES_MAX, keepAliveTimeout: KEEP_ALIVE_MS },
        (request, response) => {
          void handle(engine, settings, request, response).finally(() => {
            // A socket that is kept alive would hold up the end.
            if (!server.listening) server.closeIdleConnections()
          })
        }
      )
      server.maxConnections = SOCKETS_MAX + (settings.moreSockets ?? 0)
      const port = yield* Effect.acquireRelease(
        Effect.tryPromise({
          try: () => listen(server, settings.port),
          catch: (cause) => new StoreServerNotStarted({ port: settings.port, cause })
        }),
        () => Effect.promise(() => close(server))
      )
      return StoreServer.of({ host: HOST, port, url: `http://${HOST}:${port}` })
    })

  static readonly layer = (
    settings: StoreServerSettings
  ): Layer.Layer<StoreServer, StoreServerNotStarted, ChdbEngine> =>
    Layer.effect(StoreServer, StoreServer.listen(settings))
}

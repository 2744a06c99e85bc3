/**
 * The one client of the query store, for a ClickHouse server or cluster by URL, or for the engine
 * inside this process. Its users see no difference.
 */
import { rootCertificates } from "node:tls"
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client"
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { ChdbEngine } from "./ChdbEngine.ts"
import { makeEmbeddedConnection } from "./EmbeddedConnection.ts"

/** A name in statements, where no parameter is possible. */
export class ClickHouseSettingsInvalid extends Schema.TaggedError<ClickHouseSettingsInvalid>()(
  "ClickHouseSettingsInvalid",
  { message: Schema.String }
) {}

/** Where alk's tables are. */
export interface StorePlace {
  readonly database: string
  /** Name of the ClickHouse cluster: tables become replicated, inserts and reads agree. */
  readonly cluster?: string
}

export interface ServerSettings extends StorePlace {
  readonly url: string
  readonly username?: string
  readonly password?: Redacted.Redacted
  /** PEM, for an https URL: without an authority those that Node knows are trusted. */
  readonly tls?: {
    readonly ca?: Buffer
    readonly certificate?: Buffer
    readonly key?: Buffer
  }
}

/** Milliseconds without a byte from the server; statements have shorter limits of their own. */
const SILENCE_MS_MAX = 900_000
/** Sockets to the server at most. */
const SOCKETS_MAX = 16
/** Milliseconds; a server closes an idle socket after 3 s, the oldest in use after 10 s. */
const IDLE_SOCKET_MS = 2_000

/**
 * ClickHouse 26 buffers inserts by default and acknowledges before they are stored; and an error
 * after the first bytes of an answer would be lost after a 200.
 */
const SERVER_DEFAULTS = { async_insert: 0, wait_end_of_query: 1 } as const

/** Failures reach our callers as typed errors; the client would print each of them as well. */
const SILENT = { level: ClickHouseLogLevel.OFF }

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
/** A cluster's name, or a macro of the server such as {cluster}. */
const CLUSTER = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62}|\{[a-z_]+\})$/

const check = ({ cluster, database }: StorePlace): ClickHouseSettingsInvalid | undefined => {
  if (!NAME.test(database)) {
    return new ClickHouseSettingsInvalid({
      message:
        `CLICKHOUSE_DATABASE ${JSON.stringify(database)} is not a name of at most 63`
        + " letters, digits and _ that starts with no digit"
    })
  }
  if (cluster !== undefined && !CLUSTER.test(cluster)) {
    return new ClickHouseSettingsInvalid({
      message:
        `the ClickHouse cluster ${JSON.stringify(cluster)} is neither a name of at most`
        + " 63 letters, digits, _, . and - nor a {macro}"
    })
  }
  return undefined
}

/** The client wants an authority wherever it is told anything of TLS. */
const tlsOf = ({ ca, certificate, key }: NonNullable<ServerSettings["tls"]>) => {
  const ca_cert = ca ?? Buffer.from(rootCertificates.join("\n"))
  return certificate === undefined || key === undefined
    ? { ca_cert }
    : { ca_cert, cert: certificate, key }
}

const serverClient = (settings: ServerSettings): ClickHouseClient =>
  createClient({
    url: settings.url,
    username: settings.username ?? "default",
    password: settings.password === undefined ? "" : Redacted.value(settings.password),
    application: "alk",
    request_timeout: SILENCE_MS_MAX,
    max_open_connections: SOCKETS_MAX,
    keep_alive: { enabled: true, idle_socket_ttl: IDLE_SOCKET_MS },
    clickhouse_settings: SERVER_DEFAULTS,
    log: SILENT,
    ...(settings.tls === undefined ? {} : { tls: tlsOf(settings.tls) })
  })

export class ClickHouseConnection extends Context.Service<
  ClickHouseConnection,
  {
    readonly client: ClickHouseClient
    readonly place: StorePlace
    /** True for the engine in this process: what it has begun, only its end can stop. */
    readonly embedded: boolean
  }
>()("alk/adapters/clickhouse/ClickHouseConnection") {
  static readonly toServer = (
    settings: ServerSettings
  ): Effect.Effect<ClickHouseConnection["Service"], ClickHouseSettingsInvalid, Scope.Scope> =>
    Effect.gen(function* () {
      const invalid = check(settings)
      if (invalid !== undefined) return yield* invalid
      const client = yield* Effect.acquireRelease(
        Effect.try({
          try: () => serverClient(settings),
          catch: (cause) => {
            const message = `CLICKHOUSE_URL: ${(cause as Error).message}`
            return new ClickHouseSettingsInvalid({ message })
          }
        }),
        (acquired) => Effect.promise(() => acquired.close())
      )
      const { cluster, database } = settings
      return ClickHouseConnection.of({
        client,
        place: cluster === undefined ? { database } : { database, cluster },
        embedded: false
      })
    })

  static readonly toEngine = (
    place: Pick<StorePlace, "database">
  ): Effect.Effect<ClickHouseConnection["Service"], ClickHouseSettingsInvalid, ChdbEngine> =>
    Effect.gen(function* () {
      const invalid = check(place)
      if (invalid !== undefined) return yield* invalid
      const connection = makeEmbeddedConnection(yield* ChdbEngine)
      const client = createClient({ connection, log: SILENT })
      return ClickHouseConnection.of({ client, place, embedded: true })
    })

  static readonly layerServer = (
    settings: ServerSettings
  ): Layer.Layer<ClickHouseConnection, ClickHouseSettingsInvalid> =>
    Layer.effect(ClickHouseConnection, ClickHouseConnection.toServer(settings))

  static readonly layerEmbedded = (
    place: Pick<StorePlace, "database">
  ): Layer.Layer<ClickHouseConnection, ClickHouseSettingsInvalid, ChdbEngine> =>
    Layer.effect(ClickHouseConnection, ClickHouseConnection.toEngine(place))
}

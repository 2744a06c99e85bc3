/**
 * Every environment variable of alk, once, with its default, unit and meaning, and the one typed
 * object that they become. Refuses to know what the values are used for: it opens no file, no
 * connection and no port, so what it refuses, it refuses before anything has been started.
 */
import { homedir } from "node:os"
import { isAbsolute, join, relative, resolve } from "node:path"
import { Effect, Redacted, Result, Schema } from "effect"
import { isVkey } from "../domain/chain/Checkpoint.ts"
import { nearestName } from "../domain/NearestName.ts"

export const roles = ["api", "sequencer", "projection", "store"] as const
export type Role = (typeof roles)[number]

export const scopes = ["read", "write"] as const
export type Scope = (typeof scopes)[number]

/** A key that is known from the start, without the admin API. */
export interface BootstrapKey {
  readonly key: Redacted.Redacted
  readonly tenantId: string
  readonly scopes: ReadonlyArray<Scope>
}

export interface KafkaSasl {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  readonly username: string
  readonly password: Redacted.Redacted
}

/** The embedded broker, or a cluster elsewhere. */
export type KafkaConfig =
  | { readonly _tag: "Embedded"; readonly port: number }
  | {
      readonly _tag: "External"
      readonly brokers: ReadonlyArray<string>
      /** Without a file the system's certificate authorities are trusted. */
      readonly tls: { readonly caFile: string | undefined } | undefined
      readonly sasl: KafkaSasl | undefined
    }

/** chDB in this process, or a ClickHouse server (or the `store` role of another process). */
export type ClickHouseConfig =
  | { readonly _tag: "Embedded" }
  | {
      readonly _tag: "External"
      readonly url: string
      readonly user: string | undefined
      readonly password: Redacted.Redacted | undefined
      /** Name for ON CLUSTER; with it tables use the Replicated engines. */
      readonly cluster: string | undefined
    }

/** What the environment said, checked and frozen. Paths are absolute. */
export interface Config {
  readonly roles: ReadonlyArray<Role>
  readonly serviceName: string
  readonly http: {
    readonly host: string
    /** 0 takes any free port. */
    readonly port: number
    /** Without a trailing slash; undefined: taken from the address that is listened on. */
    readonly publicUrl: string | undefined
    /** Empty: CORS is off. */
    readonly corsOrigins: ReadonlyArray<string>
  }
  readonly dataDir: string
  readonly cacheDir: string
  readonly storePort: number
  /** Of a process without the role api; undefined: it listens on none. */
  readonly workerPort: number | undefined
  readonly kafka: KafkaConfig
  readonly topics: {
    readonly prefix: string
    readonly partitions: number
    readonly replication: number
    readonly minInSyncReplicas: number
    /** Of `events` and `traces`, in milliseconds. */
    readonly eventsRetentionMs: number | "forever"
  }
  readonly clickhouse: ClickHouseConfig
  readonly database: string
  /** Undefined only with the embedded broker: then it is made and kept in the data folder. */
  readonly secret: Redacted.Redacted | undefined
  readonly signingKeyFile: string | undefined
  /** The key before that one, while it is being changed. */
  readonly previousKeyFile: string | undefined
  /** vkeys of signing keys that count without an endorsement. */
  readonly trustedKeys: ReadonlyArray<string>
  readonly adminToken: Redacted.Redacted | undefined
  readonly bootstrapKeys: ReadonlyArray<BootstrapKey>
  readonly limits: {
    readonly bodyBytesMax: number
    /** Of all requests in flight together. */
    readonly bodyBudgetBytes: number
    readonly eventBytesMax: number
    readonly metadataBytesMax: number
    readonly payloadBytesMax: number
    readonly actionLengthMax: number
    readonly streamsPerTenantMax: number
  }
  /** Per tenant; undefined is off. */
  readonly quotas: {
    readonly eventsPerSecond: number | undefined
    readonly exportsAtOnce: number | undefined
    /** Per client address; 0 is off. */
    readonly failedKeysPerMinute: number
  }
  readonly dedupWindowEvents: number
  readonly idempotencyWindowEntries: number
  /** 0 is off. */
  readonly selfVerifyEventsPerSecond: number
  readonly chromiumPath: string | undefined
  readonly chromiumSandbox: "auto" | "required" | "off"
  /** Of the PDF; undefined: as it comes with the program. */
  readonly report: {
    readonly criteriaFile: string | undefined
    readonly organisation: string | undefined
    readonly logoFile: string | undefined
  }
  readonly log: {
    readonly level: "debug" | "info" | "warn" | "error"
    readonly format: "json" | "pretty"
  }
}

/** The environment can't be used; each problem names the variable and what is allowed. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const count = this.problems.length === 1 ? "1 problem" : `${this.problems.length} problems`
    return [
      `The configuration has ${count} (npm start -- --help lists every variable):`,
      ...this.problems.map((problem) => `  ${problem}`)
    ].join("\n")
  }
}

/** Where the process is: what relative paths and defaults refer to. */
export interface Surroundings {
  readonly workingDirectory: string
  readonly homeDirectory: string
  /** True if a person reads the standard output. */
  readonly terminal: boolean
}

const MIB = 1_048_576
/** Stays below `message.max.bytes` (32 MiB) with what alk adds to each of 1,000 events. */
const BODY_BYTES_MAX_MAX = 24 * MIB
/** A body, its inflated form and the copy of one of them fit into the part for large bodies. */
const BODY_BUDGET_FACTOR = 4
/** More than any machine that this runs on has. */
const BODY_BUDGET_MAX = 1_048_576 * MIB
/** Half a Kafka send, so that an event with its chain fields always fits into one. */
const EVENT_BYTES_MAX_MAX = MIB / 2
/** Both windows are kept in memory, about 40 bytes an entry. */
const WINDOW_MAX = 50_000_000
/** 256 bits as hex are 64, as base64 43 characters; 32 is where guessing is out of the question. */
const SECRET_LENGTH_MIN = 32
/** 96 bits as hex: too many to guess through the API. */
const ADMIN_TOKEN_LENGTH_MIN = 24
const MAKE_SECRET = "make one with: openssl rand -hex 32"
const MAKE_TOKEN = "make one with: openssl rand -hex 16"

/** How a text becomes a value; a failure says what is wrong with it. */
interface Kind<A> {
  readonly allowed: string
  readonly parse: (text: string) => Result.Result<A, string>
  /** The value is never shown. */
  readonly secret?: true
}

/** Without a unit it is a port. */
const integer = (minimum: number, maximum: number, unit?: string): Kind<number> => ({
  allowed:
    unit === undefined
      ? `an integer from ${minimum} to ${maximum}`
      : `${minimum} to ${maximum} ${unit}`,
  parse: (text) => {
    if (!/^\d{1,15}$/.test(text)) return Result.fail("is not an integer")
    const value = Number(text)
    if (value < minimum) return Result.fail("is too small")
    return value > maximum ? Result.fail("is too large") : Result.succeed(value)
  }
})

const text = (pattern: RegExp, allowed: string): Kind<string> => ({
  allowed,
  parse: (value) =>
    pattern.test(value) ? Result.succeed(value) : Result.fail("is not of that form")
})

const secretText = (lengthMin: number, allowed: string): Kind<Redacted.Redacted> => ({
  allowed,
  secret: true,
  parse: (value) => {
    if (!/^[\x21-\x7e]+$/.test(value)) return Result.fail("has a space or a non-ASCII character")
    return value.length < lengthMin
      ? Result.fail(`has only ${value.length} characters`)
      : Result.succeed(Redacted.make(value))
  }
})

const password: Kind<Redacted.Redacted> = {
  allowed: "any text",
  secret: true,
  parse: (value) => Result.succeed(Redacted.make(value))
}

const oneOf = <const Names extends ReadonlyArray<string>>(names: Names): Kind<Names[number]> => ({
  allowed: names.join(", "),
  parse: (value) =>
    names.includes(value) ? Result.succeed(value) : Result.fail("is none of these")
})

const listOf = <A>(kind: Kind<A>, allowed: string): Kind<ReadonlyArray<A>> => ({
  allowed,
  parse: (value) => {
    const items: Array<A> = []
    for (const [index, item] of value.split(",").entries()) {
      const parsed = kind.parse(item.trim())
      if (Result.isFailure(parsed)) {
        return Result.fail(`has an item, number ${index + 1}, that ${parsed.failure}`)
      }
      items.push(parsed.success)
    }
    return Result.succeed(items)
  },
  ...(kind.secret ? { secret: true as const } : {})
})

const path = text(/^[^\0]+$/, "a path")
const anyText = text(/^[^\0]+$/, "any text")

const url = (allowed: string, refuse: (url: URL) => string | undefined): Kind<string> => ({
  allowed,
  parse: (value) => {
    const parsed = URL.canParse(value) ? new URL(value) : undefined
    if (parsed === undefined) return Result.fail("is not a URL")
    if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
      return Result.fail("is neither http nor https")
    }
    if (parsed.username !== "" || parsed.password !== "") return Result.fail("holds a user name")
    if (parsed.search !== "" || parsed.hash !== "") return Result.fail("has a query or a fragment")
    const refusal = refuse(parsed)
    return refusal === undefined
      ? Result.succeed(parsed.href.replace(/\/+$/, ""))
      : Result.fail(refusal)
  }
})

const pathOfUrl = (parsed: URL) => (parsed.pathname === "/" ? undefined : "has a path")

const origin: Kind<string> = {
  allowed: "an origin such as https://console.example.com, or *",
  parse: (value) =>
    value === "*" || (URL.canParse(value) && new URL(value).origin === value)
      ? Result.succeed(value)
      : Result.fail("is not an origin")
}

const vkey: Kind<string> = {
  allowed: "name+id+base64",
  parse: (value) =>
    isVkey(value) ? Result.succeed(value) : Result.fail("is not a C2SP Ed25519 public key")
}

const broker: Kind<string> = {
  allowed: "host:port",
  parse: (value) => {
    const port = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(value)?.[1]
    return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535
      ? Result.succeed(value)
      : Result.fail("is not host:port")
  }
}

const durationUnits: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000
}

const retention: Kind<number | "forever"> = {
  allowed: "forever, or a number with m, h or d such as 400d",
  parse: (value) => {
    if (value === "forever") return Result.succeed(value)
    const [, count, unit] = /^([1-9]\d{0,8})([mhd])$/.exec(value) ?? []
    return count === undefined || unit === undefined
      ? Result.fail("is not a time")
      : Result.succeed(Number(count) * (durationUnits[unit] ?? 0))
  }
}

const bootstrapKey: Kind<BootstrapKey> = {
  allowed: "key=tenant:scope+scope",
  secret: true,
  parse: (item) => {
    const [, key = "", tenantId = "", scopeText = ""] = /^([^=]*)=([^:]*):(.*)$/.exec(item) ?? []
    if (!/^(?:alk|svc)_live_[0-9A-Za-z]{32,128}$/.test(key)) {
      return Result.fail("has no key of the form alk_live_ or svc_live_ and 32 to 128 of A-Za-z0-9")
    }
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(tenantId)) {
      return Result.fail("has no tenant of the form [a-z0-9][a-z0-9_-]{0,62}")
    }
    const named = scopeText.split("+")
    const unknown = named.find((name) => !(scopes as ReadonlyArray<string>).includes(name))
    return unknown === undefined
      ? Result.succeed({
          key: Redacted.make(key),
          tenantId,
          scopes: scopes.filter((scope) => named.includes(scope))
        })
      : Result.fail("has a scope that is neither read nor write")
  }
}

interface Variable<A> extends Kind<A> {
  readonly group: string
  readonly about: string
  /** Parsed as if it had been set. */
  readonly default: string | undefined
  /** What the help says instead of a default. */
  readonly unset: string
}

/** The variables of one group of the help text. */
const inGroup = (group: string) => ({
  withDefault: <A>(kind: Kind<A>, value: string, about: string): Variable<A> => ({
    ...kind,
    group,
    about,
    default: value,
    unset: value
  }),
  optional: <A>(kind: Kind<A>, unset: string, about: string): Variable<A | undefined> => ({
    ...kind,
    group,
    about,
    default: undefined,
    unset
  })
})

const server = inGroup("Server")
const keys = inGroup("Keys and secrets")
const kafka = inGroup("Kafka")
const clickhouse = inGroup("ClickHouse")
const limits = inGroup("Limits")
const report = inGroup("Report")
const logs = inGroup("Logs and tools")

const variables = {
  PORT: server.withDefault(
    integer(0, 65_535),
    "8080",
    "port of the HTTP API; 0 takes any free one"
  ),
  HOST: server.withDefault(
    text(/^[A-Za-z0-9._:-]+$/, "a host name or an address"),
    "127.0.0.1",
    "address that the HTTP API listens on"
  ),
  ALK_ROLES: server.withDefault(
    listOf(oneOf(roles), `some of ${roles.join(",")}`),
    "api,sequencer,projection",
    "what this process does; store shares the embedded ClickHouse with other processes"
  ),
  ALK_WORKER_PORT: server.optional(
    integer(0, 65_535),
    "off",
    "port of /healthz and /metrics in a process without the role api; 0 takes any free one"
  ),
  ALK_DATA_DIR: server.withDefault(
    path,
    "./.data",
    "folder of the embedded parts and of the generated secret"
  ),
  ALK_CACHE_DIR: server.optional(
    text(/^[^\0:]+$/, "a path without a colon"),
    "~/.cache/alk",
    "folder of the broker's jars; may be deleted"
  ),
  ALK_PUBLIC_URL: server.optional(
    url("http(s)://host[:port][/path]", () => undefined),
    "the address listened on",
    "how clients reach the API; stands in links"
  ),
  ALK_CORS_ORIGINS: server.optional(
    listOf(origin, "origins such as https://console.example.com, or *, separated by commas"),
    "off",
    "web pages that may call the API"
  ),
  ALK_SERVICE_NAME: server.withDefault(
    text(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "1 to 63 letters, digits, dots, - and _"),
    "alk",
    "name in checkpoints, logs and metrics; keep it for the life of the data"
  ),
  ALK_SECRET: keys.optional(
    secretText(SECRET_LENGTH_MIN, `at least ${SECRET_LENGTH_MIN} characters; ${MAKE_SECRET}`),
    "made once and kept in the data folder; required with KAFKA_BROKERS",
    "signs receipt ids and internal records; the same for all processes, and for ever"
  ),
  ALK_ADMIN_TOKEN: keys.optional(
    secretText(
      ADMIN_TOKEN_LENGTH_MIN,
      `at least ${ADMIN_TOKEN_LENGTH_MIN} characters; ${MAKE_TOKEN}`
    ),
    "the admin API is off",
    "bearer token of the admin API; make it random"
  ),
  ALK_BOOTSTRAP_KEYS: keys.optional(
    listOf(
      bootstrapKey,
      "key=tenant:scope+scope, separated by commas; a key is alk_live_ or svc_live_ and 32 to 128 "
        + "of A-Za-z0-9, a scope read or write"
    ),
    "a first start with everything embedded makes one key for the tenant default",
    "API keys known from the start"
  ),
  ALK_SIGNING_KEY_FILE: keys.optional(
    path,
    "made once and kept in the data folder",
    "Ed25519 private key (PKCS 8, PEM) that signs checkpoints"
  ),
  ALK_SIGNING_KEY_PREVIOUS_FILE: keys.optional(
    path,
    "the key is not being changed",
    "the key before ALK_SIGNING_KEY_FILE, which endorses it; for the first start after a change"
  ),
  ALK_TRUSTED_KEYS: keys.optional(
    listOf(vkey, "public Ed25519 keys as name+id+base64 (C2SP), separated by commas"),
    "none",
    "signing keys that count although the key before them has not endorsed them"
  ),
  KAFKA_BROKERS: kafka.optional(
    listOf(broker, "host:port, separated by commas"),
    "a broker is started on this machine",
    "bootstrap addresses of an existing cluster"
  ),
  ALK_KAFKA_PORT: kafka.withDefault(
    integer(0, 65_535),
    "9092",
    "port of the embedded broker on 127.0.0.1; the next free one if taken, 0 takes any"
  ),
  KAFKA_TLS: kafka.withDefault(
    oneOf(["true", "false"]),
    "false",
    "encrypt the connections to KAFKA_BROKERS"
  ),
  KAFKA_TLS_CA_FILE: kafka.optional(
    path,
    "the system's authorities",
    "certificate authority of the brokers (PEM)"
  ),
  KAFKA_SASL_MECHANISM: kafka.optional(
    oneOf(["plain", "scram-sha-256", "scram-sha-512"]),
    "no authentication",
    "how alk signs in to KAFKA_BROKERS"
  ),
  KAFKA_SASL_USERNAME: kafka.optional(anyText, "none", "user at the brokers"),
  KAFKA_SASL_PASSWORD: kafka.optional(password, "none", "its password"),
  ALK_TOPIC_PREFIX: kafka.withDefault(
    text(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "1 to 100 letters, digits, dots, - and _"),
    "alk",
    "first part of the topic names"
  ),
  ALK_PARTITIONS: kafka.withDefault(
    integer(1, 1_024, "partitions"),
    "4",
    "partitions of each topic; fixed at the first start"
  ),
  ALK_REPLICATION: kafka.optional(
    integer(1, 15, "copies"),
    "1 embedded, 3 with KAFKA_BROKERS",
    "copies of each topic; over 1, two of them must be in sync for a write"
  ),
  ALK_EVENTS_RETENTION: kafka.withDefault(
    retention,
    "forever",
    "how long the topics of events and traces keep their records"
  ),
  CLICKHOUSE_URL: clickhouse.optional(
    url("http(s)://host:port, user and password in CLICKHOUSE_USER and _PASSWORD", pathOfUrl),
    "ClickHouse runs inside this process",
    "an existing server, or another process in the role store"
  ),
  CLICKHOUSE_DATABASE: clickhouse.withDefault(
    text(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, "a letter or _, then letters, digits and _"),
    "alk",
    "database of the tables"
  ),
  CLICKHOUSE_USER: clickhouse.optional(anyText, "default", "user at CLICKHOUSE_URL"),
  CLICKHOUSE_PASSWORD: clickhouse.optional(password, "none", "its password"),
  CLICKHOUSE_CLUSTER: clickhouse.optional(
    text(/^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62}|\{[a-z_]+\})$/, "a cluster's name or a {macro}"),
    "a single server",
    "name for ON CLUSTER; tables use the Replicated engines"
  ),
  ALK_STORE_PORT: clickhouse.withDefault(
    integer(0, 65_535),
    "8123",
    "port of the role store on 127.0.0.1; 0 takes any free one"
  ),
  ALK_BODY_BYTES_MAX: limits.withDefault(
    integer(1_024, BODY_BYTES_MAX_MAX, "bytes"),
    String(16 * MIB),
    "request body, after decompression"
  ),
  ALK_BODY_BUDGET_BYTES: limits.withDefault(
    integer(BODY_BUDGET_FACTOR * 1_024, BODY_BUDGET_MAX, "bytes"),
    String(128 * MIB),
    "request bodies of all requests in flight together; what does not fit is answered with 503"
      + " and Retry-After, and an eighth is kept for bodies of at most 64 KiB"
  ),
  ALK_EVENT_BYTES_MAX: limits.withDefault(
    integer(1_024, EVENT_BYTES_MAX_MAX, "bytes"),
    "65536",
    "one event"
  ),
  ALK_METADATA_BYTES_MAX: limits.withDefault(
    integer(2, EVENT_BYTES_MAX_MAX, "bytes"),
    "32768",
    "metadata of one event, execution or span"
  ),
  ALK_PAYLOAD_BYTES_MAX: limits.withDefault(
    integer(2, EVENT_BYTES_MAX_MAX, "bytes"),
    "65536",
    "payload of one trace event"
  ),
  ALK_ACTION_LENGTH_MAX: limits.withDefault(
    integer(3, 1_024, "characters"),
    "128",
    "action of an event"
  ),
  ALK_STREAMS_MAX: limits.withDefault(
    integer(1, 100_000, "streams"),
    "100",
    "open streams of one tenant"
  ),
  ALK_QUOTA_EVENTS_PER_SECOND: limits.optional(
    integer(1, 10_000_000, "events per second"),
    "off",
    "events that one tenant may send"
  ),
  ALK_QUOTA_EXPORTS: limits.optional(
    integer(1, 1_000, "exports"),
    "off",
    "exports of one tenant at once"
  ),
  ALK_QUOTA_FAILED_KEYS: limits.withDefault(
    integer(0, 1_000_000, "wrong keys"),
    "60",
    "wrong keys and tokens of one client address in a minute, then 429; 0 is off"
  ),
  ALK_DEDUP_WINDOW: limits.withDefault(
    integer(1, WINDOW_MAX, "events"),
    "1000000",
    "last events with client ids that duplicates are found among, per partition"
  ),
  ALK_IDEMPOTENCY_WINDOW: limits.withDefault(
    integer(1, WINDOW_MAX, "entries"),
    "1000000",
    "last Idempotency-Keys that are remembered, per partition"
  ),
  ALK_SELF_VERIFY_EVENTS_PER_SECOND: limits.withDefault(
    integer(0, 1_000_000, "events per second"),
    "1000",
    "how fast an API process goes over all chains in the background; 0 is off"
  ),
  CHROMIUM_PATH: logs.optional(
    path,
    "an installed one, else the one from npm",
    "Chromium that prints the PDFs"
  ),
  ALK_CHROMIUM_SANDBOX: logs.withDefault(
    oneOf(["auto", "required", "off"]),
    "auto",
    "auto goes on without its sandbox where it does not start with one, and warns; required prints "
      + "nothing then; off never asks for it"
  ),
  ALK_CRITERIA_FILE: report.optional(
    path,
    "the mapping of schemas/criteria.json",
    "JSON file that says which actions the report counts for which SOC 2 criterion"
  ),
  ALK_REPORT_ORGANISATION: report.optional(
    text(/^[^\0-\x1f\x7f]{1,120}$/u, "1 to 120 characters without control characters"),
    "only the service is named",
    "organisation that the report is about"
  ),
  ALK_REPORT_LOGO_FILE: report.optional(
    path,
    "no logo",
    "PNG or JPEG of at most 512 KiB on the first page of the report"
  ),
  LOG_LEVEL: logs.withDefault(
    oneOf(["debug", "info", "warn", "error"]),
    "info",
    "the least important lines that are logged"
  ),
  ALK_LOG_FORMAT: logs.optional(
    oneOf(["json", "pretty"]),
    "pretty on a terminal, else json",
    "form of the log lines"
  )
} satisfies Readonly<Record<string, Variable<unknown>>>

type Variables = typeof variables
type Name = keyof Variables
type Values = { readonly [N in Name]: Variables[N] extends Variable<infer A> ? A : never }

/** The variables that have a value; an empty one counts as unset. */
type Environment = Readonly<Record<string, string | undefined>>

const isSet = (environment: Environment, name: string) =>
  environment[name] !== undefined && environment[name] !== ""

const refusalOf = (name: string, value: string, variable: Variable<unknown>, wrong: string) =>
  variable.secret || value.includes("@")
    ? `${name} ${wrong} (its value is not shown); allowed: ${variable.allowed}`
    : `${name}="${value}" ${wrong}; allowed: ${variable.allowed}`

/** Reads each variable alone. One that is refused has its default in `values`. */
const readValues = (environment: Environment, problems: Array<string>): Values => {
  const values: Record<string, unknown> = {}
  for (const [name, variable] of Object.entries<Variable<unknown>>(variables)) {
    const fallback = variable.default === undefined ? undefined : variable.parse(variable.default)
    values[name] = fallback === undefined ? undefined : Result.getOrThrow(fallback)
    if (!isSet(environment, name)) continue
    const value = environment[name] ?? ""
    const parsed = variable.parse(value)
    if (Result.isSuccess(parsed)) values[name] = parsed.success
    else problems.push(refusalOf(name, value, variable, parsed.failure))
  }
  return values as Values
}

/** Edits that an unknown `ALK_` name may be away from the one that it is said to mean. */
const ALK_MISTAKES_MAX = 4

const unknownNames = (environment: Environment): ReadonlyArray<string> =>
  Object.keys(environment)
    .filter((name) => name.startsWith("ALK_") && !Object.hasOwn(variables, name))
    .map((name) => {
      const nearest = nearestName(name, Object.keys(variables), () => ALK_MISTAKES_MAX)
      return nearest === undefined
        ? `${name} is unknown; allowed are the names that npm start -- --help lists`
        : `${name} is unknown; did you mean ${nearest}?`
    })

/**
 * Names of variables without the prefix that decide what is started: an unknown name near one of
 * them would silently start an embedded part instead.
 */
const unprefixedNames = Object.keys(variables).filter((name) =>
  /^(?:KAFKA|CLICKHOUSE|CHROMIUM)_/.test(name)
)

/** What other programs call the same. */
const otherNames: ReadonlyArray<readonly [names: RegExp, meant: Name]> = [
  [
    /^KAFKA_(?:BROKERS?_)?(?:BOOTSTRAP(?:_SERVERS?)?|SERVERS?|HOSTS?|UR[IL]S?|LIST)$/,
    "KAFKA_BROKERS"
  ],
  [/^CLICKHOUSE_(?:HOST|URI|ADDR(?:ESS)?|ENDPOINT|SERVERS?|DSN)$/, "CLICKHOUSE_URL"],
  [/^CLICKHOUSE_DB$/, "CLICKHOUSE_DATABASE"]
]

/** One slip in a short name, two in a long one: `KAFKA_OPTS` is not `KAFKA_TLS`. */
const unprefixedMistakes = (length: number): number => (length < 12 ? 1 : 2)

/**
 * Names that were probably meant to be ours and are not. One whose right name is set as well does
 * no harm and may belong to another program.
 */
const nearMisses = (environment: Environment): ReadonlyArray<string> =>
  Object.keys(environment).flatMap((name) => {
    if (Object.hasOwn(variables, name) || name.startsWith("ALK_")) return []
    const meant =
      otherNames.find(([names]) => names.test(name))?.[1]
      ?? nearestName(name, unprefixedNames, unprefixedMistakes)
    return meant === undefined || !isSet(environment, name) || isSet(environment, meant)
      ? []
      : [
          `${name} is no variable of alk; did you mean ${meant}? Unset it if it is not meant for alk`
        ]
  })

/** What one variable asks of another. */
const conflictsOf = (environment: Environment, values: Values): ReadonlyArray<string> => {
  const set = (name: Name) => isSet(environment, name)
  const problems: Array<string> = []
  const needs = (names: ReadonlyArray<Name>, needed: Name, why: string) => {
    if (set(needed)) return
    for (const name of names) {
      if (set(name)) problems.push(`${name} is set, but ${needed} is not: ${why}`)
    }
  }
  if (set("KAFKA_BROKERS") && !set("ALK_SECRET")) {
    problems.push(
      "ALK_SECRET is missing: with KAFKA_BROKERS several processes may serve the same receipts, so"
        + ` all of them need the same secret of at least ${SECRET_LENGTH_MIN} characters;`
        + ` ${MAKE_SECRET}`
    )
  }
  needs(
    ["ALK_SIGNING_KEY_PREVIOUS_FILE"],
    "ALK_SIGNING_KEY_FILE",
    "the data folder keeps the key before its own by itself; rotate-key changes it"
  )
  const sasl = ["KAFKA_SASL_MECHANISM", "KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"] as const
  needs([...sasl, "KAFKA_TLS_CA_FILE"], "KAFKA_BROKERS", "the embedded broker needs none")
  if (values.KAFKA_TLS === "true") {
    needs(["KAFKA_TLS"], "KAFKA_BROKERS", "the embedded broker has no TLS")
  } else if (set("KAFKA_TLS_CA_FILE")) {
    problems.push("KAFKA_TLS_CA_FILE is set, but KAFKA_TLS is not true; set KAFKA_TLS=true")
  }
  if (sasl.some(set) && !sasl.every(set)) {
    const missing = sasl.filter((name) => !set(name)).join(" and ")
    problems.push(`${missing} is missing: ${sasl.join(", ")} are set together or not at all`)
  }
  if ((values.ALK_REPLICATION ?? 1) > 1) {
    needs(["ALK_REPLICATION"], "KAFKA_BROKERS", "the embedded broker can only hold 1 copy")
  }
  needs(
    ["CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD", "CLICKHOUSE_CLUSTER"],
    "CLICKHOUSE_URL",
    "the embedded ClickHouse has no users and no cluster"
  )
  if (values.ALK_ROLES.includes("store") && set("CLICKHOUSE_URL")) {
    problems.push(
      "ALK_ROLES has store, but CLICKHOUSE_URL is set: the role store shares the embedded"
        + " ClickHouse of this process; leave out one of the two"
    )
  }
  const notOver = (small: Name, large: Name) => {
    if (Number(values[small]) > Number(values[large])) {
      problems.push(`${small} (${values[small]}) is over ${large} (${values[large]})`)
    }
  }
  notOver("ALK_METADATA_BYTES_MAX", "ALK_EVENT_BYTES_MAX")
  notOver("ALK_EVENT_BYTES_MAX", "ALK_BODY_BYTES_MAX")
  notOver("ALK_PAYLOAD_BYTES_MAX", "ALK_BODY_BYTES_MAX")
  const budgetMin = BODY_BUDGET_FACTOR * values.ALK_BODY_BYTES_MAX
  if (values.ALK_BODY_BUDGET_BYTES < budgetMin) {
    problems.push(
      `ALK_BODY_BUDGET_BYTES (${values.ALK_BODY_BUDGET_BYTES}) is under ${BODY_BUDGET_FACTOR} times`
        + ` ALK_BODY_BYTES_MAX, ${budgetMin}: a body, what it inflates to and a copy have to fit`
    )
  }
  return problems
}

const repeatedKeys = (values: Values): ReadonlyArray<string> => {
  const all = (values.ALK_BOOTSTRAP_KEYS ?? []).map(({ key }) => Redacted.value(key))
  return new Set(all).size === all.length
    ? []
    : ["ALK_BOOTSTRAP_KEYS has the same key twice (its value is not shown); name each key once"]
}

const isInside = (folder: string, parent: string): boolean => {
  const way = relative(parent, folder)
  return way === "" || (!way.startsWith("..") && !isAbsolute(way))
}

/** Kubernetes puts such names into every pod for each Service of the namespace. */
const serviceLink = /^ALK_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT\w*|PORT\w*)\b/

const serviceLinkHint = (environment: Environment, problems: ReadonlyArray<string>) =>
  isSet(environment, "KUBERNETES_SERVICE_HOST") && problems.some((line) => serviceLink.test(line))
    ? ["Kubernetes made such variables for a Service: set enableServiceLinks: false in the pod"]
    : []

const kafkaOf = (values: Values, absolute: (path: string) => string): KafkaConfig => {
  const { KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD } = values
  if (values.KAFKA_BROKERS === undefined) return { _tag: "Embedded", port: values.ALK_KAFKA_PORT }
  return {
    _tag: "External",
    brokers: values.KAFKA_BROKERS,
    tls:
      values.KAFKA_TLS === "true"
        ? { caFile: values.KAFKA_TLS_CA_FILE && absolute(values.KAFKA_TLS_CA_FILE) }
        : undefined,
    sasl:
      KAFKA_SASL_MECHANISM && KAFKA_SASL_USERNAME && KAFKA_SASL_PASSWORD
        ? {
            mechanism: KAFKA_SASL_MECHANISM,
            username: KAFKA_SASL_USERNAME,
            password: KAFKA_SASL_PASSWORD
          }
        : undefined
  }
}

const clickHouseOf = (values: Values): ClickHouseConfig =>
  values.CLICKHOUSE_URL === undefined
    ? { _tag: "Embedded" }
    : {
        _tag: "External",
        url: values.CLICKHOUSE_URL,
        user: values.CLICKHOUSE_USER,
        password: values.CLICKHOUSE_PASSWORD,
        cluster: values.CLICKHOUSE_CLUSTER
      }

const limitsOf = (values: Values): Config["limits"] => ({
  bodyBytesMax: values.ALK_BODY_BYTES_MAX,
  bodyBudgetBytes: values.ALK_BODY_BUDGET_BYTES,
  eventBytesMax: values.ALK_EVENT_BYTES_MAX,
  metadataBytesMax: values.ALK_METADATA_BYTES_MAX,
  payloadBytesMax: values.ALK_PAYLOAD_BYTES_MAX,
  actionLengthMax: values.ALK_ACTION_LENGTH_MAX,
  streamsPerTenantMax: values.ALK_STREAMS_MAX
})

const configOf = (values: Values, surroundings: Surroundings): Config => {
  const absolute = (path: string) => resolve(surroundings.workingDirectory, path)
  const replication = values.ALK_REPLICATION ?? (values.KAFKA_BROKERS === undefined ? 1 : 3)
  return {
    roles: roles.filter((role) => values.ALK_ROLES.includes(role)),
    serviceName: values.ALK_SERVICE_NAME,
    http: {
      host: values.HOST,
      port: values.PORT,
      publicUrl: values.ALK_PUBLIC_URL,
      corsOrigins: values.ALK_CORS_ORIGINS ?? []
    },
    dataDir: absolute(values.ALK_DATA_DIR),
    cacheDir: absolute(values.ALK_CACHE_DIR ?? join(surroundings.homeDirectory, ".cache", "alk")),
    storePort: values.ALK_STORE_PORT,
    workerPort: values.ALK_WORKER_PORT,
    kafka: kafkaOf(values, absolute),
    topics: {
      prefix: values.ALK_TOPIC_PREFIX,
      partitions: values.ALK_PARTITIONS,
      replication,
      minInSyncReplicas: Math.min(replication, 2),
      eventsRetentionMs: values.ALK_EVENTS_RETENTION
    },
    clickhouse: clickHouseOf(values),
    database: values.CLICKHOUSE_DATABASE,
    secret: values.ALK_SECRET,
    signingKeyFile: values.ALK_SIGNING_KEY_FILE && absolute(values.ALK_SIGNING_KEY_FILE),
    previousKeyFile:
      values.ALK_SIGNING_KEY_PREVIOUS_FILE && absolute(values.ALK_SIGNING_KEY_PREVIOUS_FILE),
    trustedKeys: values.ALK_TRUSTED_KEYS ?? [],
    adminToken: values.ALK_ADMIN_TOKEN,
    bootstrapKeys: values.ALK_BOOTSTRAP_KEYS ?? [],
    limits: limitsOf(values),
    quotas: {
      eventsPerSecond: values.ALK_QUOTA_EVENTS_PER_SECOND,
      exportsAtOnce: values.ALK_QUOTA_EXPORTS,
      failedKeysPerMinute: values.ALK_QUOTA_FAILED_KEYS
    },
    dedupWindowEvents: values.ALK_DEDUP_WINDOW,
    idempotencyWindowEntries: values.ALK_IDEMPOTENCY_WINDOW,
    selfVerifyEventsPerSecond: values.ALK_SELF_VERIFY_EVENTS_PER_SECOND,
    chromiumPath: values.CHROMIUM_PATH && absolute(values.CHROMIUM_PATH),
    chromiumSandbox: values.ALK_CHROMIUM_SANDBOX,
    report: {
      criteriaFile: values.ALK_CRITERIA_FILE && absolute(values.ALK_CRITERIA_FILE),
      organisation: values.ALK_REPORT_ORGANISATION,
      logoFile: values.ALK_REPORT_LOGO_FILE && absolute(values.ALK_REPORT_LOGO_FILE)
    },
    log: {
      level: values.LOG_LEVEL,
      format: values.ALK_LOG_FORMAT ?? (surroundings.terminal ? "pretty" : "json")
    }
  }
}

const freeze = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Redacted.isRedacted(value)) return value
  Object.values(value).forEach(freeze)
  return Object.freeze(value)
}

/** Turns the environment into a `Config`, or says everything that is wrong with it at once. */
export const parseConfig = (
  environment: Environment,
  surroundings: Surroundings
): Result.Result<Config, ConfigInvalid> => {
  const problems: Array<string> = []
  const values = readValues(environment, problems)
  problems.push(
    ...unknownNames(environment),
    ...nearMisses(environment),
    ...conflictsOf(environment, values),
    ...repeatedKeys(values)
  )
  const config = configOf(values, surroundings)
  if (isInside(config.cacheDir, config.dataDir) || isInside(config.dataDir, config.cacheDir)) {
    problems.push(
      `ALK_CACHE_DIR (${config.cacheDir}) and ALK_DATA_DIR (${config.dataDir}) lie in one another;`
        + " allowed: two separate folders, since a cache may be deleted and data may not"
    )
  }
  problems.push(...serviceLinkHint(environment, problems))
  return problems.length === 0
    ? Result.succeed(freeze(config))
    : Result.fail(new ConfigInvalid({ problems }))
}

/** The `Config` of this process. */
export const loadConfig: Effect.Effect<Config, ConfigInvalid> = Effect.suspend(() =>
  Effect.fromResult(
    parseConfig(process.env, {
      workingDirectory: process.cwd(),
      homeDirectory: homedir(),
      terminal: process.stdout.isTTY === true
    })
  )
)

/** Two spaces, the longest name, and one more. */
const HELP_NAME_COLUMNS = Math.max(...Object.keys(variables).map((name) => name.length)) + 3
const HELP_COLUMNS = 100

const wrapped = (words: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of words.split(" ")) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > columns) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Every variable with its meaning, what is allowed and its default: the text of `--help`. */
export const configHelp = (): string => {
  const lines: Array<string> = []
  let group = ""
  for (const [name, variable] of Object.entries<Variable<unknown>>(variables)) {
    if (variable.group !== group) {
      group = variable.group
      lines.push(...(lines.length === 0 ? [] : [""]), group)
    }
    const columns = HELP_COLUMNS - HELP_NAME_COLUMNS
    const about = [
      ...wrapped(variable.about, columns),
      ...wrapped(`allowed: ${variable.allowed}`, columns),
      ...wrapped(`default: ${variable.unset}`, columns)
    ]
    for (const [index, line] of about.entries()) {
      lines.push(`${(index === 0 ? `  ${name}` : "").padEnd(HELP_NAME_COLUMNS)}${line}`)
    }
  }
  return `${lines.join("\n")}\n`
}

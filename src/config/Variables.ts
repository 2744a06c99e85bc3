/**
 * Every environment variable of alk, once, with its default, unit and meaning. The help is made of
 * this table, and so are the refusals.
 */
import { compressions } from "../domain/records/Topics.ts"
import { PARTITIONS_MAX } from "../domain/registry/RegistryEntry.ts"
import { requestLogs, roles } from "./Config.ts"
import {
  anyText,
  bootstrapKey,
  broker,
  integer,
  type Kind,
  listOf,
  oneOf,
  origin,
  password,
  path,
  pathOfUrl,
  retention,
  secretText,
  text,
  url,
  vkey
} from "./Kinds.ts"
import { WORKERS_MAX } from "./Workers.ts"

const MIB = 1_048_576
/** Stays below `message.max.bytes` (32 MiB) with what alk adds to each of 1,000 events. */
const BODY_BYTES_LIMIT = 24 * MIB
/** A body, its inflated form and the copy of one of them fit into the part for large bodies. */
export const BODY_BUDGET_FACTOR = 4
/** More than any machine that this runs on has. */
const BODY_BUDGET_MAX = 1_048_576 * MIB
/** Half a Kafka send, so that an event with its chain fields always fits into one. */
const EVENT_BYTES_MAX_MAX = MIB / 2
/** Both windows are kept in memory, about 40 bytes an entry. */
const WINDOW_MAX = 50_000_000
/** A year: what is to be kept for longer belongs elsewhere. */
const EXPORTS_KEPT_HOURS_MAX = 8_760
/** More than any disk that this runs on has. */
const EXPORTS_BYTES_MAX_MAX = 1_048_576 * MIB * 16
/** 256 bits as hex are 64, as base64 43 characters; 32 is where guessing is out of the question. */
export const SECRET_LENGTH_MIN = 32
/** 96 bits as hex: too many to guess through the API. */
const ADMIN_TOKEN_LENGTH_MIN = 24
export const MAKE_SECRET = "make one with: openssl rand -hex 32"
const MAKE_TOKEN = "make one with: openssl rand -hex 16"

export interface Variable<A> extends Kind<A> {
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

export const variables = {
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
  ALK_OTLP_GRPC_PORT: server.optional(
    integer(0, 65_535),
    "off",
    "port of OTLP over gRPC, without TLS; its usual one is 4317"
  ),
  ALK_CONSOLE: server.withDefault(
    oneOf(["on", "off"]),
    "on",
    "whether browsers get the console; off leaves the API alone"
  ),
  ALK_ROLES: server.withDefault(
    listOf(oneOf(roles), `some of ${roles.join(",")}`),
    "api,sequencer,projection",
    "what this process does; store shares the embedded ClickHouse with other processes"
  ),
  ALK_WORKERS: server.optional(
    integer(0, WORKERS_MAX, "processes"),
    "by cores with everything embedded, else 0",
    "further processes that serve the HTTP API on the same port and share the partitions; Linux only"
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
  ALK_EXPORTS_DIR: server.optional(
    path,
    "the folder exports below ALK_DATA_DIR",
    "folder of exports that are made in the background; the same one for all API processes"
  ),
  ALK_CACHE_DIR: server.optional(
    text(/^[^\0:]+$/, "a path without a colon"),
    "~/.cache/alk",
    "folder of the broker's jars; may be deleted"
  ),
  ALK_PUBLIC_URL: server.optional(
    url("http(s)://host[:port][/path]", () => undefined),
    "the address listened on",
    "how clients reach the API; used in links"
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
    "signs receipt ids and internal records; the same for all processes and for the life of the data"
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
  ALK_EMBEDDED_OPEN: kafka.withDefault(
    oneOf(["true", "false"]),
    "false",
    "true: the embedded broker, and the store of role store, take everybody on this machine"
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
  KAFKA_TLS_CERT_FILE: kafka.optional(
    path,
    "none",
    "certificate of alk (PEM), for brokers that ask for one (mutual TLS)"
  ),
  KAFKA_TLS_KEY_FILE: kafka.optional(path, "none", "private key of that certificate (PEM)"),
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
    integer(1, PARTITIONS_MAX, "partitions"),
    "4",
    "partitions of each topic at the first start; more come with 'alk partitions add'"
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
  ALK_PUBLIC_COMPRESSION: kafka.withDefault(
    oneOf(compressions),
    "zstd",
    "how records on the public topics are compressed; gzip for readers without zstd, such as"
      + " kafkajs as it comes; records keep what they were written with"
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
  CLICKHOUSE_TLS_CA_FILE: clickhouse.optional(
    path,
    "the system's authorities",
    "certificate authority of a CLICKHOUSE_URL with https (PEM)"
  ),
  CLICKHOUSE_TLS_CERT_FILE: clickhouse.optional(
    path,
    "none",
    "certificate of alk (PEM), for a server that asks for one (mutual TLS)"
  ),
  CLICKHOUSE_TLS_KEY_FILE: clickhouse.optional(
    path,
    "none",
    "private key of that certificate (PEM)"
  ),
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
    integer(1_024, BODY_BYTES_LIMIT, "bytes"),
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
  ALK_ACTIONS: limits.withDefault(
    oneOf(["noun.verb", "any"]),
    "noun.verb",
    "names that actions of events may have, unless a request says actions=: dotted names, or any 1 to"
      + " 256 printable characters"
  ),
  ALK_FAST_ACCEPT: server.withDefault(
    oneOf(["true", "false"]),
    "true",
    "reads, checks and hashes plain events in WebAssembly, and cuts stored ones into columns;"
      + " false does so in TypeScript, at several times the cost, with the same result"
  ),
  ALK_STREAMS_MAX: limits.withDefault(
    integer(1, 100_000, "streams"),
    "100",
    "open streams of one tenant"
  ),
  ALK_QUOTA_EVENTS_PER_SECOND: limits.optional(
    integer(1, 10_000_000, "events per second"),
    "off",
    "events that one tenant may send; a span and each event in it count as one"
  ),
  ALK_QUOTA_EXPORTS: limits.optional(
    integer(1, 1_000, "exports"),
    "off",
    "exports of one tenant at once"
  ),
  ALK_EXPORTS_KEPT_HOURS: limits.withDefault(
    integer(1, EXPORTS_KEPT_HOURS_MAX, "hours"),
    "24",
    "how long the file of an export that was made in the background can be fetched"
  ),
  ALK_EXPORTS_BYTES_MAX: limits.withDefault(
    integer(MIB, EXPORTS_BYTES_MAX_MAX, "bytes"),
    String(10_240 * MIB),
    "files of such exports of one tenant together"
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
  ALK_REQUEST_LOG: logs.withDefault(
    oneOf(requestLogs),
    "all",
    "which requests have a line in the log: all, failed (status 400 and above), or off; those to"
      + " /healthz, /readyz and /metrics have one at LOG_LEVEL=debug only"
  ),
  ALK_LOG_FORMAT: logs.optional(
    oneOf(["json", "pretty"]),
    "pretty on a terminal, else json",
    "form of the log lines"
  )
} satisfies Readonly<Record<string, Variable<unknown>>>

type Variables = typeof variables
export type Name = keyof Variables
export type Values = { readonly [N in Name]: Variables[N] extends Variable<infer A> ? A : never }

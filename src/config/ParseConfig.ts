/**
 * Turns the environment into a `Config`, or says everything that is wrong with it. Opens no file but
 * those of secrets, no connection and no port, so what it refuses, it refuses before anything has been
 * started.
 */
import { availableParallelism, homedir } from "node:os"
import { isAbsolute, join, relative, resolve } from "node:path"
import { Effect, Redacted, Result } from "effect"
import { nearestName } from "../domain/NearestName.ts"
import {
  type ClickHouseConfig,
  type Config,
  ConfigInvalid,
  type KafkaConfig,
  type ProcessContext,
  roles,
  type TlsFiles
} from "./Config.ts"
import {
  fileNameOf,
  noSecretFiles,
  readSecretFiles,
  type SecretFiles,
  secretNames
} from "./SecretFiles.ts"
import {
  BODY_BUDGET_FACTOR,
  MAKE_SECRET,
  type Name,
  SECRET_LENGTH_MIN,
  type Values,
  type Variable,
  variables
} from "./Variables.ts"
import { defaultWorkers, sharesPorts } from "./Workers.ts"

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

/** What clients read: they may be set where the service is started too. */
const ofClients: ReadonlyArray<string> = ["ALK_URL", "ALK_API_KEY", "ALK_CONTEXT"]

const secretFileNames = secretNames.map(fileNameOf)
const knownNames: ReadonlyArray<string> = [...Object.keys(variables), ...secretFileNames]

const unknownNames = (environment: Environment): ReadonlyArray<string> =>
  Object.keys(environment)
    .filter((name) => name.startsWith("ALK_") && !knownNames.includes(name))
    .filter((name) => !ofClients.includes(name))
    .map((name) => {
      const nearest = nearestName(name, knownNames, () => ALK_MISTAKES_MAX)
      return nearest === undefined
        ? `${name} is unknown; allowed are the names that npm start -- --help lists`
        : `${name} is unknown; did you mean ${nearest}?`
    })

/**
 * Names of variables without the prefix that decide what is started: an unknown name near one of
 * them would silently start an embedded part instead.
 */
const unprefixedNames = knownNames.filter((name) => /^(?:KAFKA|CLICKHOUSE|CHROMIUM)_/.test(name))

/** What other programs call the same. */
const otherNames: ReadonlyArray<readonly [names: RegExp, meant: Name]> = [
  [
    /^KAFKA_(?:BROKERS?_)?(?:BOOTSTRAP(?:_SERVERS?)?|SERVERS?|HOSTS?|UR[IL]S?|LIST)$/,
    "KAFKA_BROKERS"
  ],
  [/^CLICKHOUSE_(?:HOST|URI|ADDR(?:ESS)?|ENDPOINT|SERVERS?|DSN)$/, "CLICKHOUSE_URL"],
  [/^CLICKHOUSE_DB$/, "CLICKHOUSE_DATABASE"]
]

/** Authority, certificate and key of a connection. */
const KAFKA_TLS_FILES = ["KAFKA_TLS_CA_FILE", "KAFKA_TLS_CERT_FILE", "KAFKA_TLS_KEY_FILE"] as const
const CLICKHOUSE_TLS_FILES = [
  "CLICKHOUSE_TLS_CA_FILE",
  "CLICKHOUSE_TLS_CERT_FILE",
  "CLICKHOUSE_TLS_KEY_FILE"
] as const

/** One slip in a short name, two in a long one: `KAFKA_OPTS` is not `KAFKA_TLS`. */
const unprefixedMistakes = (length: number): number => (length < 12 ? 1 : 2)

/**
 * Names that were probably meant to be ours and are not. One whose right name is set as well does
 * no harm and may belong to another program.
 */
const nearMisses = (environment: Environment): ReadonlyArray<string> =>
  Object.keys(environment).flatMap((name) => {
    if (knownNames.includes(name) || name.startsWith("ALK_")) return []
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
  const set = (name: Name) => isSet(environment, name) || isSet(environment, fileNameOf(name))
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
  needs(sasl, "KAFKA_BROKERS", "the embedded broker has users of its own")
  needs(KAFKA_TLS_FILES, "KAFKA_BROKERS", "the embedded broker has no TLS")
  if (values.KAFKA_TLS === "true") {
    needs(["KAFKA_TLS"], "KAFKA_BROKERS", "the embedded broker has no TLS")
  } else {
    for (const name of KAFKA_TLS_FILES.filter(set)) {
      problems.push(`${name} is set, but KAFKA_TLS is not true; set KAFKA_TLS=true`)
    }
  }
  needs(CLICKHOUSE_TLS_FILES, "CLICKHOUSE_URL", "the embedded ClickHouse is in this process")
  if (values.CLICKHOUSE_URL?.startsWith("http:")) {
    for (const name of CLICKHOUSE_TLS_FILES.filter(set)) {
      problems.push(`${name} is set, but CLICKHOUSE_URL is http; set it to an https address`)
    }
  }
  for (const [, certificate, key] of [KAFKA_TLS_FILES, CLICKHOUSE_TLS_FILES]) {
    if (set(certificate) === set(key)) continue
    const [missing, given] = set(certificate) ? [key, certificate] : [certificate, key]
    problems.push(`${missing} is missing: it belongs to ${given}`)
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

/**
 * Only `npm start` with everything of its own takes the whole machine without being told to. With the
 * role store other processes are expected, and workers leave no partition to them.
 */
const workersOf = (values: Values, { cores, platform }: ProcessContext): number => {
  const isAlone =
    values.KAFKA_BROKERS === undefined
    && values.CLICKHOUSE_URL === undefined
    && values.ALK_ROLES.includes("api")
    && !values.ALK_ROLES.includes("store")
  return (
    values.ALK_WORKERS
    ?? (isAlone && sharesPorts(platform) ? defaultWorkers(cores, values.ALK_PARTITIONS) : 0)
  )
}

const workerProblems = (values: Values, { platform }: ProcessContext): ReadonlyArray<string> => {
  const wanted = values.ALK_WORKERS ?? 0
  if (wanted === 0) return []
  if (!sharesPorts(platform)) {
    return [
      `ALK_WORKERS=${wanted} needs Linux, where processes can share a port; here set it to 0 and`
        + " start processes with ALK_ROLES=api on ports of their own"
    ]
  }
  return values.ALK_ROLES.includes("api")
    ? []
    : [`ALK_WORKERS=${wanted} is set, but ALK_ROLES has no api: workers share the port of one`]
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

type TlsVariables = typeof KAFKA_TLS_FILES | typeof CLICKHOUSE_TLS_FILES

const tlsFilesOf = (
  values: Values,
  names: TlsVariables,
  absolute: (path: string) => string
): TlsFiles => {
  const [caFile, certFile, keyFile] = names.map((name) => values[name] && absolute(values[name]))
  return { caFile, certFile, keyFile }
}

const kafkaOf = (values: Values, absolute: (path: string) => string): KafkaConfig => {
  const { KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD } = values
  if (values.KAFKA_BROKERS === undefined) {
    const { ALK_EMBEDDED_OPEN: open, ALK_KAFKA_PORT: port } = values
    return { _tag: "Embedded", port, isOpen: open === "true" }
  }
  return {
    _tag: "External",
    brokers: values.KAFKA_BROKERS,
    tls: values.KAFKA_TLS === "true" ? tlsFilesOf(values, KAFKA_TLS_FILES, absolute) : undefined,
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

const clickHouseOf = (values: Values, absolute: (path: string) => string): ClickHouseConfig =>
  values.CLICKHOUSE_URL === undefined
    ? { _tag: "Embedded", isOpen: values.ALK_EMBEDDED_OPEN === "true" }
    : {
        _tag: "External",
        url: values.CLICKHOUSE_URL,
        user: values.CLICKHOUSE_USER,
        password: values.CLICKHOUSE_PASSWORD,
        tls: CLICKHOUSE_TLS_FILES.some((name) => values[name] !== undefined)
          ? tlsFilesOf(values, CLICKHOUSE_TLS_FILES, absolute)
          : undefined,
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

const secretsOf = (given: Environment, { open }: SecretFiles): Config["secrets"] => ({
  variables: Object.fromEntries(
    secretNames
      .filter((name) => isSet(given, name))
      .map((name) => [name, Redacted.make(given[name] ?? "")])
  ),
  openFiles: open
})

const configOf = (values: Values, context: ProcessContext, secrets: Config["secrets"]): Config => {
  const absolute = (path: string) => resolve(context.workingDirectory, path)
  const replication = values.ALK_REPLICATION ?? (values.KAFKA_BROKERS === undefined ? 1 : 3)
  return {
    roles: roles.filter((role) => values.ALK_ROLES.includes(role)),
    serviceName: values.ALK_SERVICE_NAME,
    http: {
      host: values.HOST,
      port: values.PORT,
      hasConsole: values.ALK_CONSOLE === "on",
      otlpGrpcPort: values.ALK_OTLP_GRPC_PORT,
      publicUrl: values.ALK_PUBLIC_URL,
      sharesPort: workersOf(values, context) > 0,
      corsOrigins: values.ALK_CORS_ORIGINS ?? []
    },
    dataDir: absolute(values.ALK_DATA_DIR),
    cacheDir: absolute(values.ALK_CACHE_DIR ?? join(context.homeDirectory, ".cache", "alk")),
    storePort: values.ALK_STORE_PORT,
    workers: workersOf(values, context),
    workerPort: values.ALK_WORKER_PORT,
    kafka: kafkaOf(values, absolute),
    topics: {
      prefix: values.ALK_TOPIC_PREFIX,
      partitions: values.ALK_PARTITIONS,
      replication,
      minInSyncReplicas: Math.min(replication, 2),
      eventsRetentionMs: values.ALK_EVENTS_RETENTION,
      publicCompression: values.ALK_PUBLIC_COMPRESSION
    },
    clickhouse: clickHouseOf(values, absolute),
    database: values.CLICKHOUSE_DATABASE,
    secret: values.ALK_SECRET,
    secrets,
    signingKeyFile: values.ALK_SIGNING_KEY_FILE && absolute(values.ALK_SIGNING_KEY_FILE),
    previousKeyFile:
      values.ALK_SIGNING_KEY_PREVIOUS_FILE && absolute(values.ALK_SIGNING_KEY_PREVIOUS_FILE),
    trustedKeys: values.ALK_TRUSTED_KEYS ?? [],
    adminToken: values.ALK_ADMIN_TOKEN,
    bootstrapKeys: values.ALK_BOOTSTRAP_KEYS ?? [],
    fastAccept: values.ALK_FAST_ACCEPT === "true",
    anyAction: values.ALK_ACTIONS === "any",
    limits: limitsOf(values),
    quotas: {
      eventsPerSecond: values.ALK_QUOTA_EVENTS_PER_SECOND,
      exportsAtOnce: values.ALK_QUOTA_EXPORTS,
      failedKeysPerMinute: values.ALK_QUOTA_FAILED_KEYS
    },
    exports: {
      folder: absolute(values.ALK_EXPORTS_DIR ?? join(values.ALK_DATA_DIR, "exports")),
      keptHours: values.ALK_EXPORTS_KEPT_HOURS,
      bytesMax: values.ALK_EXPORTS_BYTES_MAX
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
      format: values.ALK_LOG_FORMAT ?? (context.terminal ? "pretty" : "json"),
      requests: values.ALK_REQUEST_LOG
    }
  }
}

const freeze = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Redacted.isRedacted(value)) return value
  Object.values(value).forEach(freeze)
  return Object.freeze(value)
}

/**
 * Turns the environment into a `Config`, or says everything that is wrong with it at once. `files` are
 * those that the environment names.
 */
export const parseConfig = (
  given: Environment,
  context: ProcessContext,
  files: SecretFiles = noSecretFiles
): Result.Result<Config, ConfigInvalid> => {
  const environment = { ...given, ...files.values }
  const problems: Array<string> = [...files.problems]
  const values = readValues(environment, problems)
  problems.push(
    ...unknownNames(environment),
    ...nearMisses(environment),
    ...conflictsOf(environment, values),
    ...workerProblems(values, context),
    ...repeatedKeys(values)
  )
  const config = configOf(values, context, secretsOf(given, files))
  if (isInside(config.cacheDir, config.dataDir) || isInside(config.dataDir, config.cacheDir)) {
    problems.push(
      `ALK_CACHE_DIR (${config.cacheDir}) and ALK_DATA_DIR (${config.dataDir}) overlap: one is inside the other;`
        + " allowed: two separate folders, since a cache may be deleted and data may not"
    )
  }
  problems.push(...serviceLinkHint(environment, problems))
  return problems.length === 0
    ? Result.succeed(freeze(config))
    : Result.fail(new ConfigInvalid({ problems }))
}

/** The `Config` of this process, which from then on has no secret in its environment. */
export const loadConfig: Effect.Effect<Config, ConfigInvalid> = Effect.suspend(() => {
  const context = {
    workingDirectory: process.cwd(),
    homeDirectory: homedir(),
    terminal: process.stdout.isTTY === true,
    cores: availableParallelism(),
    platform: process.platform
  }
  const files = readSecretFiles(process.env, context.workingDirectory)
  const config = parseConfig(process.env, context, files)
  for (const name of secretNames) delete process.env[name]
  return Effect.fromResult(config)
})

import { readFileSync } from "node:fs"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import type { Config } from "../../src/config/Config.ts"
import { configHelp } from "../../src/config/ConfigHelp.ts"
import { parseConfig } from "../../src/config/ParseConfig.ts"
import { SETTINGS_PAGE_FILE, settingsPage } from "../../src/tools/SettingsPage.ts"

const surroundings = {
  workingDirectory: "/srv",
  homeDirectory: "/home/you",
  terminal: false,
  cores: 2,
  platform: "linux"
}
const SECRET = "0123456789abcdef0123456789abcdef"
const KEY = `alk_live_${"A1b2".repeat(8)}`

const configOf = (environment: Record<string, string>): Config =>
  Result.getOrThrow(parseConfig(environment, surroundings))

const problemsOf = (environment: Record<string, string>): ReadonlyArray<string> => {
  const parsed = parseConfig(environment, surroundings)
  assert(Result.isFailure(parsed), "the environment was accepted")
  return parsed.failure.problems
}

/** All of one external deployment. */
const external = {
  KAFKA_BROKERS: "kafka-1:9092, [::1]:9093",
  KAFKA_TLS: "true",
  KAFKA_TLS_CA_FILE: "ca.pem",
  KAFKA_SASL_MECHANISM: "scram-sha-512",
  KAFKA_SASL_USERNAME: "alk",
  KAFKA_SASL_PASSWORD: "kafka password",
  CLICKHOUSE_URL: "https://clickhouse:8443/",
  CLICKHOUSE_USER: "writer",
  CLICKHOUSE_PASSWORD: "store password",
  CLICKHOUSE_CLUSTER: "{cluster}",
  ALK_SECRET: SECRET,
  ALK_ADMIN_TOKEN: "an-admin-token-of-24-char",
  ALK_BOOTSTRAP_KEYS: `${KEY}=acme:write+read`
}

describe("the processes that serve the API", () => {
  const workersOn = (cores: number, environment: Record<string, string> = {}) =>
    Result.getOrThrow(parseConfig(environment, { ...surroundings, cores })).workers

  it("are one for every second core beyond two, each with a partition, at most four", () => {
    const cores = [1, 2, 3, 4, 6, 8, 16, 18, 64]
    assert.deepStrictEqual(
      cores.map((count) => workersOn(count)),
      [0, 0, 0, 1, 2, 3, 3, 3, 3]
    )
    assert.strictEqual(workersOn(16, { ALK_PARTITIONS: "16" }), 4)
    assert.strictEqual(workersOn(16, { ALK_PARTITIONS: "1" }), 0)
  })

  it("are none without being asked for where something is elsewhere, or no API", () => {
    assert.strictEqual(workersOn(16, external), 0)
    assert.strictEqual(workersOn(16, { CLICKHOUSE_URL: "http://clickhouse:8123" }), 0)
    assert.strictEqual(workersOn(16, { ALK_ROLES: "store" }), 0)
    const shared = { ALK_ROLES: "api,sequencer,projection,store" }
    assert.strictEqual(workersOn(16, shared), 0)
  })

  it("are as many as ALK_WORKERS says, with a role to serve", () => {
    assert.strictEqual(workersOn(16, { ALK_WORKERS: "0" }), 0)
    assert.strictEqual(workersOn(2, { ...external, ALK_WORKERS: "3" }), 3)
    assert.match(problemsOf({ ALK_WORKERS: "65" })[0]!, /ALK_WORKERS="65" is too large/)
    assert.match(
      problemsOf({ ALK_WORKERS: "1", ALK_ROLES: "sequencer" })[0]!,
      /ALK_WORKERS=1 is set, but ALK_ROLES has no api/
    )
  })

  it("are none where processes can't share a port, and asking for some is refused", () => {
    const mac = { ...surroundings, platform: "darwin", cores: 16 }
    assert.strictEqual(Result.getOrThrow(parseConfig({}, mac)).workers, 0)
    const asked = parseConfig({ ALK_WORKERS: "1" }, mac)
    assert(Result.isFailure(asked))
    assert.match(asked.failure.problems[0]!, /ALK_WORKERS=1 needs Linux/)
  })
})

describe("parseConfig", () => {
  it("needs nothing: every default is a working one", () => {
    assert.deepStrictEqual(configOf({}), {
      roles: ["api", "sequencer", "projection"],
      serviceName: "alk",
      http: {
        host: "127.0.0.1",
        port: 8_080,
        publicUrl: undefined,
        otlpGrpcPort: undefined,
        sharesPort: false,
        corsOrigins: [],
        hasConsole: true
      },
      dataDir: "/srv/.data",
      cacheDir: "/home/you/.cache/alk",
      storePort: 8_123,
      workers: 0,
      workerPort: undefined,
      kafka: { _tag: "Embedded", port: 9_092, isOpen: false },
      topics: {
        prefix: "alk",
        partitions: 4,
        replication: 1,
        minInSyncReplicas: 1,
        eventsRetentionMs: "forever",
        publicCompression: "zstd"
      },
      clickhouse: { _tag: "Embedded", isOpen: false },
      database: "alk",
      secret: undefined,
      secrets: { variables: {}, openFiles: [] },
      signingKeyFile: undefined,
      previousKeyFile: undefined,
      trustedKeys: [],
      adminToken: undefined,
      bootstrapKeys: [],
      fastAccept: true,
      anyAction: false,
      limits: {
        bodyBytesMax: 16_777_216,
        bodyBudgetBytes: 134_217_728,
        eventBytesMax: 65_536,
        metadataBytesMax: 32_768,
        payloadBytesMax: 65_536,
        actionLengthMax: 128,
        streamsPerTenantMax: 100
      },
      quotas: { eventsPerSecond: undefined, exportsAtOnce: undefined, failedKeysPerMinute: 60 },
      exports: { folder: "/srv/.data/exports", keptHours: 24, bytesMax: 10_737_418_240 },
      dedupWindowEvents: 1_000_000,
      idempotencyWindowEntries: 1_000_000,
      selfVerifyEventsPerSecond: 1_000,
      chromiumPath: undefined,
      chromiumSandbox: "auto",
      report: { criteriaFile: undefined, organisation: undefined, logoFile: undefined },
      log: { level: "info", format: "json", requests: "all" }
    })
  })

  it("takes an empty variable for one that is not set", () => {
    assert.deepStrictEqual(configOf({ PORT: "", ALK_SECRET: "", KAFKA_BROKERS: "" }), configOf({}))
  })

  it("replaces the embedded parts by clusters", () => {
    const { kafka, clickhouse, topics } = configOf(external)
    assert(kafka._tag === "External" && kafka.sasl !== undefined)
    assert.deepStrictEqual(kafka.brokers, ["kafka-1:9092", "[::1]:9093"])
    const certFile = undefined
    assert.deepStrictEqual(kafka.tls, { caFile: "/srv/ca.pem", certFile, keyFile: undefined })
    assert.strictEqual(kafka.sasl.mechanism, "scram-sha-512")
    assert.strictEqual(Redacted.value(kafka.sasl.password), "kafka password")
    assert(clickhouse._tag === "External")
    assert.strictEqual(clickhouse.url, "https://clickhouse:8443")
    assert.strictEqual(clickhouse.cluster, "{cluster}")
    assert.deepInclude(topics, { replication: 3, minInSyncReplicas: 2 })
  })

  it("reads roles, retention, limits, windows, quotas and origins", () => {
    const config = configOf({
      ALK_ROLES: "projection, api,api",
      ALK_EVENTS_RETENTION: "400d",
      ALK_PUBLIC_COMPRESSION: "gzip",
      ALK_BODY_BYTES_MAX: "1048576",
      ALK_DEDUP_WINDOW: "10",
      ALK_QUOTA_EVENTS_PER_SECOND: "500",
      ALK_CORS_ORIGINS: "https://a.example,http://localhost:3000",
      ALK_PUBLIC_URL: "https://audit.example/alk/",
      PORT: "0"
    })
    assert.deepStrictEqual(config.roles, ["api", "projection"])
    assert.strictEqual(config.topics.eventsRetentionMs, 400 * 86_400_000)
    assert.strictEqual(config.topics.publicCompression, "gzip")
    assert.strictEqual(config.limits.bodyBytesMax, 1_048_576)
    assert.strictEqual(config.dedupWindowEvents, 10)
    assert.strictEqual(config.quotas.eventsPerSecond, 500)
    assert.deepStrictEqual(config.http.corsOrigins, ["https://a.example", "http://localhost:3000"])
    assert.strictEqual(config.http.publicUrl, "https://audit.example/alk")
    assert.strictEqual(config.http.port, 0)
  })

  it("reads bootstrap keys", () => {
    const second = `svc_live_${"z".repeat(128)}`
    const { bootstrapKeys } = configOf({
      ALK_BOOTSTRAP_KEYS: `${KEY}=acme:write+read,${second}=b_2-c:read`
    })
    assert.deepStrictEqual(
      bootstrapKeys.map(({ key, tenantId, scopes }) => [Redacted.value(key), tenantId, scopes]),
      [
        [KEY, "acme", ["read", "write"]],
        [second, "b_2-c", ["read"]]
      ]
    )
  })

  it("chooses the log's form by where it is read", () => {
    const onTerminal = parseConfig({}, { ...surroundings, terminal: true })
    assert.strictEqual(Result.getOrThrow(onTerminal).log.format, "pretty")
    assert.strictEqual(configOf({ ALK_LOG_FORMAT: "pretty" }).log.format, "pretty")
  })

  it("can't be changed", () => {
    const config = configOf(external)
    const { http, roles, limits, bootstrapKeys } = config
    for (const part of [config, http, roles, limits, bootstrapKeys[0]]) {
      assert.isTrue(Object.isFrozen(part))
    }
  })

  it("never shows a secret, whichever way it is printed", () => {
    const config = configOf(external)
    const printed = [
      inspect(config, { depth: 10, showHidden: true }),
      JSON.stringify(config),
      String(config.secret)
    ].join()
    for (const secret of [SECRET, KEY, "kafka password", "store password", "admin-token"]) {
      assert.notInclude(printed, secret)
    }
    assert.include(printed, "redacted")
  })
})

describe("ConfigInvalid", () => {
  const refused: ReadonlyArray<readonly [Record<string, string>, string]> = [
    [{ PORT: "70000" }, 'PORT="70000" is too large; allowed: an integer from 0 to 65535'],
    [{ PORT: "80a" }, 'PORT="80a" is not an integer'],
    [{ PORT: "-1" }, 'PORT="-1" is not an integer'],
    [{ HOST: "a b" }, 'HOST="a b"'],
    [{ ALK_ROLES: "api,writer" }, 'ALK_ROLES="api,writer" has an item, number 2,'],
    [{ ALK_PARTITIONS: "0" }, 'ALK_PARTITIONS="0" is too small; allowed: 1 to 1024 partitions'],
    [{ ALK_CACHE_DIR: "/a:b" }, "allowed: a path without a colon"],
    [{ ALK_CACHE_DIR: "/srv/.data/cache" }, "two separate folders"],
    [{ ALK_DATA_DIR: "/home/you/.cache/alk/data" }, "two separate folders"],
    [{ ALK_PUBLIC_URL: "ftp://x" }, "is neither http nor https"],
    [{ ALK_CORS_ORIGINS: "https://a.example/path" }, "is not an origin"],
    [{ ALK_SERVICE_NAME: "a/b" }, 'ALK_SERVICE_NAME="a/b"'],
    [{ ALK_EVENTS_RETENTION: "2 weeks" }, "allowed: forever, or a number with m, h or d"],
    [{ ALK_TOPIC_PREFIX: "a b" }, "ALK_TOPIC_PREFIX"],
    [{ KAFKA_BROKERS: "host", ALK_SECRET: SECRET }, "allowed: host:port"],
    [{ KAFKA_BROKERS: "host:70000", ALK_SECRET: SECRET }, "is not host:port"],
    [{ ALK_TRUSTED_KEYS: "alk+00000000+AAAA" }, "is not a C2SP Ed25519 public key"],
    [{ ALK_SIGNING_KEY_PREVIOUS_FILE: "old.pem" }, "ALK_SIGNING_KEY_FILE is not"],
    [{ KAFKA_TLS: "yes" }, "allowed: true, false"],
    [{ CLICKHOUSE_URL: "localhost:8123" }, "CLICKHOUSE_URL"],
    [{ CLICKHOUSE_URL: "http://h:1/db" }, "has a path"],
    [{ CLICKHOUSE_DATABASE: "a-b" }, 'CLICKHOUSE_DATABASE="a-b"'],
    [{ ALK_CHROMIUM_SANDBOX: "maybe" }, "allowed: auto, required, off"],
    [{ ALK_QUOTA_FAILED_KEYS: "-1" }, "ALK_QUOTA_FAILED_KEYS"],
    [
      { ALK_ADMIN_TOKEN: "eight888" },
      "at least 24 characters; make one with: openssl rand -hex 16"
    ],
    [{ LOG_LEVEL: "trace" }, "allowed: debug, info, warn, error"],
    [{ ALK_PARTITION: "4" }, "ALK_PARTITION is unknown; did you mean ALK_PARTITIONS?"],
    [{ ALK_SOMETHING_ELSE: "" }, "ALK_SOMETHING_ELSE is unknown"],
    [{ ALK_KAFKA_BROKERS: "h:1" }, "ALK_KAFKA_BROKERS is unknown; did you mean KAFKA_BROKERS?"],
    [{ KAFKA_BROKER: "h:1" }, "KAFKA_BROKER is no variable of alk; did you mean KAFKA_BROKERS?"],
    [{ KAKFA_BROKERS: "h:1" }, "KAKFA_BROKERS is no variable of alk; did you mean KAFKA_BROKERS?"],
    [{ kafka_brokers: "h:1" }, "kafka_brokers is no variable of alk; did you mean KAFKA_BROKERS?"],
    [{ KAFKA_BOOTSTRAP_SERVERS: "h:1" }, "did you mean KAFKA_BROKERS?"],
    [{ KAFKA_BROKER_LIST: "h:1" }, "did you mean KAFKA_BROKERS?"],
    [{ KAFKA_URL: "h:1" }, "did you mean KAFKA_BROKERS?"],
    [{ KAFKA_SASL_USER_NAME: "u" }, "did you mean KAFKA_SASL_USERNAME?"],
    [{ CLICKHOUSE_URLS: "http://h:1" }, "did you mean CLICKHOUSE_URL?"],
    [{ CLICKHOSE_URL: "http://h:1" }, "did you mean CLICKHOUSE_URL?"],
    [{ CLICKHOUSE_HOST: "h" }, "did you mean CLICKHOUSE_URL?"],
    [{ CLICKHOUSE_DB: "d" }, "did you mean CLICKHOUSE_DATABASE?"],
    [{ CHROMIUM_PAHT: "/usr/bin/chromium" }, "did you mean CHROMIUM_PATH?"],
    [{ KAFKA_BROKERS: "h:1" }, "make one with: openssl rand -hex 32"],
    [
      { KAFKA_SASL_USERNAME: "u" },
      "KAFKA_BROKERS is not: the embedded broker has users of its own"
    ],
    [{ KAFKA_TLS: "true" }, "the embedded broker has no TLS"],
    [{ ...external, KAFKA_TLS: "false" }, "set KAFKA_TLS=true"],
    [{ KAFKA_TLS_CERT_FILE: "c.pem" }, "the embedded broker has no TLS"],
    [{ ...external, KAFKA_TLS_CERT_FILE: "c.pem" }, "KAFKA_TLS_KEY_FILE is missing"],
    [{ ...external, CLICKHOUSE_TLS_KEY_FILE: "k.pem" }, "CLICKHOUSE_TLS_CERT_FILE is missing"],
    [{ CLICKHOUSE_TLS_CA_FILE: "c.pem" }, "CLICKHOUSE_URL is not"],
    [
      { ...external, CLICKHOUSE_URL: "http://h:1", CLICKHOUSE_TLS_CA_FILE: "c.pem" },
      "set it to an https address"
    ],
    [{ ...external, KAFKA_SASL_MECHANISM: "" }, "KAFKA_SASL_MECHANISM is missing"],
    [{ ALK_REPLICATION: "3" }, "the embedded broker can only hold 1 copy"],
    [{ CLICKHOUSE_CLUSTER: "c" }, "CLICKHOUSE_URL is not"],
    [{ ...external, ALK_ROLES: "store" }, "leave out one of the two"],
    [{ ALK_METADATA_BYTES_MAX: "70000" }, "is over ALK_EVENT_BYTES_MAX (65536)"],
    [{ ALK_BODY_BYTES_MAX: "2048" }, "is over ALK_BODY_BYTES_MAX (2048)"],
    [{ ALK_BODY_BUDGET_BYTES: "60000000" }, "is under 4 times ALK_BODY_BYTES_MAX, 67108864"]
  ]
  it.each(refused)("refuses %j", (environment, part) => {
    const problems = problemsOf(environment)
    assert.isTrue(
      problems.some((problem) => problem.includes(part)),
      problems.join("\n")
    )
  })

  it("leaves alone what other programs, container platforms and images are set with", () => {
    const others = {
      KAFKA_HOME: "/opt/kafka",
      KAFKA_OPTS: "-Xmx1g",
      KAFKA_HEAP_OPTS: "-Xmx1g",
      KAFKA_BROKER_ID: "1",
      KAFKA_PORT: "tcp://10.0.0.1:9092",
      KAFKA_SERVICE_HOST: "10.0.0.1",
      KAFKA_BROKER_SERVICE_PORT: "9092",
      CLICKHOUSE_PORT_8123_TCP_ADDR: "10.0.0.1",
      CLICKHOUSE_CONFIG: "/etc/clickhouse",
      CHROME_PATH: "/usr/bin/chrome",
      CHROME_BIN: "/usr/bin/chrome",
      LOGLEVEL: "loud",
      PORTS: "1",
      KAFKA_BROKER: ""
    }
    assert.strictEqual(configOf(others).kafka._tag, "Embedded")
  })

  it("takes no notice of a near miss beside the right name", () => {
    const others = { KAFKA_BOOTSTRAP_SERVERS: "h:1", CLICKHOUSE_URI: "http://h:1" }
    assert.deepStrictEqual(configOf({ ...external, ...others }), configOf(external))
  })

  it("lists every problem at once, each in one line that names its variable", () => {
    const problems = problemsOf({
      PORT: "x",
      ALK_NOTHING: "1",
      LOG_LEVEL: "loud",
      CLICKHOUSE_USER: "u",
      KAFKA_BROKERS: "h:1"
    })
    assert.deepStrictEqual(
      problems.map((problem) => problem.split(/[ =]/)[0]),
      ["PORT", "LOG_LEVEL", "ALK_NOTHING", "ALK_SECRET", "CLICKHOUSE_USER"]
    )
    for (const problem of problems) assert.notInclude(problem, "\n")
  })

  const badSecrets: ReadonlyArray<readonly [string, string]> = [
    ["ALK_SECRET", "far-too-short-secret"],
    ["ALK_ADMIN_TOKEN", "secret with space"],
    ["ALK_ADMIN_TOKEN", "only-23-characters-here"],
    ["CLICKHOUSE_URL", "http://user:secret@host:8123"],
    ["ALK_BOOTSTRAP_KEYS", "alk_live_secret=acme:read"],
    ["ALK_BOOTSTRAP_KEYS", `${KEY}secret=Acme:read`],
    ["ALK_BOOTSTRAP_KEYS", `${KEY}secret=acme:admin`],
    ["ALK_BOOTSTRAP_KEYS", `${KEY}secret=acme:read,${KEY}secret=acme:read`]
  ]
  it.each(badSecrets)("says what is wrong with %s without showing it", (name, value) => {
    const problems = problemsOf({ [name]: value })
    assert.lengthOf(problems, 1)
    assert.match(problems[0] ?? "", new RegExp(`^${name} .*its value is not shown.*`))
    assert.notInclude(problems[0] ?? "", "secret")
    assert.notInclude(problems[0] ?? "", KEY)
  })

  it("tells what Kubernetes did to a Service that is named alk", () => {
    const environment = { ALK_PORT: "tcp://10.0.0.1:80", ALK_SERVICE_HOST: "10.0.0.1" }
    const inPod = problemsOf({ ...environment, KUBERNETES_SERVICE_HOST: "10.0.0.1" })
    assert.include(inPod.join("\n"), "enableServiceLinks: false")
    assert.notInclude(problemsOf(environment).join("\n"), "enableServiceLinks")
  })
})

describe("configHelp", () => {
  it("tells of every variable what it is for, what is allowed and its default", () => {
    const help = configHelp()
    for (const name of Object.keys(external)) assert.include(help, `\n  ${name} `)
    assert.match(help, /PORT +port of [^]*?allowed: an integer from 0 to 65535\n +default: 8080/)
    assert.match(help, /BODY_BYTES_MAX[^]*?allowed: 1024 to 25165824 bytes\n +default: 1677/)
  })

  it("fits on a terminal of 100 columns", () => {
    for (const line of configHelp().split("\n")) assert.isAtMost(line.length, 100)
  })

  it("names what the page of settings has in a row each", () => {
    const named = [...configHelp().matchAll(/^ {2}([A-Z_]+) /gm)].map(([, name]) => name ?? "")
    const page = readFileSync(SETTINGS_PAGE_FILE, "utf8")
    assert.strictEqual(page, settingsPage())
    const rows = [...page.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => name ?? "")
    assert.deepStrictEqual(rows.sort(), named.sort())
  })

  it("names exactly the variables that the parser knows", () => {
    const named = [...configHelp().matchAll(/^ {2}([A-Z_]+) /gm)].map(([, name]) => name ?? "")
    const nonsense = "\0"
    const problems = problemsOf(Object.fromEntries(named.map((name) => [name, nonsense])))
    for (const name of named) {
      assert.isTrue(
        problems.some((problem) => problem.startsWith(name)) || name.endsWith("_PASSWORD"),
        name
      )
      assert.isFalse(
        problems.some((problem) => problem.startsWith(`${name} is unknown`)),
        name
      )
    }
  })

  it("leaves alone what clients read, but not what is near it", () => {
    const ofClients = { ALK_URL: "http://h:1", ALK_API_KEY: "alk_live_x", ALK_CONTEXT: "c" }
    assert.isTrue(Result.isSuccess(parseConfig(ofClients, surroundings)))
    assert.include(problemsOf({ ALK_API_KEYS: "alk_live_x" })[0], "ALK_API_KEYS is unknown")
  })
})

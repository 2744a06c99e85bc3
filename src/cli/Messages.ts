/**
 * What the program says to the person who starts it: where everything is, what went wrong in one
 * line, what can be configured. Starts nothing itself.
 */
import { Effect, References } from "effect"
import type { Config } from "../config/Config.ts"
import { configHelp } from "../config/ConfigHelp.ts"

/** Where the parts of this process are reached. */
export interface Endpoints {
  readonly url: string | undefined
  /** Where OTLP over gRPC is taken. */
  readonly otlpGrpc: string | undefined
  readonly kafka: string | undefined
  /** Settings with which others read the topics of an embedded broker. */
  readonly subscriberFile: string | undefined
  readonly store: string | undefined
  /** Made at the very first start and never shown again. */
  readonly firstKey: string | undefined
  /** Signs in to the console once, within ten minutes. */
  readonly signInCode: string | undefined
}

const SAMPLE =
  `{"actor":{"id":"alice","type":"human"},"action":"document.read",`
  + `"resource":{"id":"doc-1","type":"document"},"outcome":"success"}`

/** A line that works when it is pasted. */
const curlLine = (url: string, key: string): string =>
  `curl -X POST '${url}/v1/events?sync=true' -H 'Authorization: Bearer ${key}' `
  + `-H 'Content-Type: application/json' -d '${SAMPLE}'`

const keyLines = ({ firstKey }: Endpoints): ReadonlyArray<string> =>
  firstKey === undefined
    ? []
    : [
        `  API key    ${firstKey}`,
        "             tenant default, read and write; shown only this once"
      ]

const consoleLines = ({ http }: Config, { signInCode, url }: Endpoints): ReadonlyArray<string> => {
  if (!http.hasConsole) return []
  return signInCode === undefined
    ? [`  console    ${url}/`]
    : [
        `  console    ${url}/#code=${signInCode}`,
        "             opens signed in: once, within 10 minutes"
      ]
}

const banner = (config: Config, endpoints: Endpoints): ReadonlyArray<string> => {
  const { dataDir, roles } = config
  const { kafka, otlpGrpc, store, subscriberFile, url } = endpoints
  const isWhole = ["api", "sequencer", "projection"].every((role) =>
    roles.some((own) => own === role)
  )
  return [
    "",
    `alk is ready (${roles.join(", ")})`,
    ...(url === undefined
      ? []
      : !roles.includes("api")
        ? [`  health     ${url}/healthz`, `  metrics    ${url}/metrics`]
        : [
            ...consoleLines(config, endpoints),
            `  API        ${url}`,
            `  guide      ${url}/docs/guide`,
            `  reference  ${url}/docs`,
            `  readiness  ${url}/readyz`,
            `  metrics    ${url}/metrics`
          ]),
    ...(otlpGrpc === undefined ? [] : [`  OTLP gRPC  ${otlpGrpc}`]),
    ...(kafka === undefined
      ? []
      : [
          `  Kafka      ${kafka}, public topics ${config.topics.prefix}.events, .traces, .checkpoints`
        ]),
    ...(subscriberFile === undefined ? [] : [`             to read them: ${subscriberFile}`]),
    ...(store === undefined
      ? []
      : [`  store      ${store}; for other processes: ${dataDir}/processes.env`]),
    `  data       ${dataDir}`,
    ...keyLines(endpoints),
    ...(url === undefined || !roles.includes("api")
      ? []
      : ["", "Try it:", `  ${curlLine(url, endpoints.firstKey ?? "YOUR_KEY")}`]),
    "",
    isWhole ? "Ctrl-C stops everything." : "Ctrl-C stops this process.",
    ""
  ]
}

/** One JSON line for machines, or at most 30 lines for a person. */
export const announce = (config: Config, endpoints: Endpoints): Effect.Effect<void> => {
  const { kafka, otlpGrpc, store, subscriberFile, url } = endpoints
  if (config.log.format === "pretty") {
    return Effect.sync(() => void process.stdout.write(`${banner(config, endpoints).join("\n")}\n`))
  }
  return Effect.logInfo("ready").pipe(
    Effect.annotateLogs({
      kafka,
      subscriber_file: subscriberFile,
      store,
      url,
      otlp_grpc: otlpGrpc,
      roles: config.roles
    }),
    // The person who has started the program waits for this line, whatever the level of the others.
    Effect.provideService(References.MinimumLogLevel, "Info"),
    // A key in the log would stay there: it goes to the terminal's line of its own.
    Effect.andThen(
      Effect.sync(() => {
        for (const line of keyLines(endpoints)) process.stderr.write(`${line}\n`)
      })
    )
  )
}

/** What a failure that ends the program has to say: one clear line, the cause only for riddles. */
export const failureLines = (failure: unknown): ReadonlyArray<string> => {
  const { _tag, cause, message } = failure as {
    readonly _tag?: string
    readonly message?: string
    readonly cause?: unknown
  }
  const { address, code, port } = (cause ?? {}) as {
    readonly code?: string
    readonly address?: string
    readonly port?: number
  }
  if (code === "EADDRINUSE") {
    return [`alk: port ${port} of ${address} is taken: set PORT to another one, or to 0 for any`]
  }
  const reason = cause instanceof Error ? cause.message : undefined
  const because = reason === undefined ? "" : ` (${reason})`
  switch (_tag) {
    case "LogUnavailable":
      return [`alk: Kafka does not answer: check KAFKA_BROKERS and that it is up${because}`]
    case "StoreUnavailable":
      return [`alk: ClickHouse does not answer: check CLICKHOUSE_URL and that it is up${because}`]
  }
  const text = message !== undefined && message !== "" ? message : (reason ?? String(failure))
  return [`alk: ${text}`]
}

export const ROTATE_KEY_HELP = `alk rotate-key

Puts a new Ed25519 key in the place of the one in the data folder that signs checkpoints and
evidence packs. The service must not run. The next start lets the old key endorse the new one and sign
each tree a last time; then the old private key is deleted. The old public key stays published: what
it signed until then can still be verified, what it would sign later is refused. With
ALK_SIGNING_KEY_FILE, replace that file and name the old one in ALK_SIGNING_KEY_PREVIOUS_FILE instead.
`

export const VIEWS_HELP = `alk views <tenant>

Prints the SQL that gives tools on your ClickHouse the views of one tenant: events, executions, spans
and trace_events in the database bi_<tenant>, as POST /v1/sql has them. Run it with the configuration
of the service; it connects to nothing. An administrator of ClickHouse runs what it prints, again after
an update of alk, and then makes the user for the tool: docs/security.md.
`

export const HELP = (): string =>
  [
    "alk: audit log and execution traces that prove themselves",
    "",
    "  npm start                 run the service; without configuration, on embedded parts",
    "  npm start -- --help       this text",
    "  npm start -- verify FILE  check an evidence pack offline; verify --help says more",
    "  npm start -- doctor       check what the service needs on this machine",
    "  npm start -- rotate-key   a new key for checkpoints; rotate-key --help says more",
    "  npm start -- views T      SQL that gives tools on ClickHouse the views of tenant T",
    "  npm start -- rebuild-view compare the view with the log and mend it, while it is served",
    "  npm start -- repair P     give up what partition P has lost, after it was refused",
    "",
    "Every setting is an environment variable:",
    "",
    configHelp()
  ].join("\n")

/**
 * What alk is configured by: the one typed object that the environment becomes, and what can be
 * wrong with it. Holds no default and no name of a variable.
 */
import { type Redacted, Schema } from "effect"
import type { Compression } from "../domain/records/Topics.ts"
import type { Scope } from "../domain/registry/RegistryEntry.ts"

/** Which requests have a line in the log. */
export const requestLogs = ["all", "failed", "off"] as const
export type RequestLog = (typeof requestLogs)[number]

export const roles = ["api", "sequencer", "projection", "store"] as const
export type Role = (typeof roles)[number]

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

/** Files of an encrypted connection, PEM. */
export interface TlsFiles {
  /** Without it the system's certificate authorities are trusted. */
  readonly caFile: string | undefined
  /** What this process shows of itself, for servers that ask for it: both or none. */
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

/** The embedded broker, or a cluster elsewhere. */
export type KafkaConfig =
  | {
      readonly _tag: "Embedded"
      readonly port: number
      /** Every process of this machine may connect, without a password. */
      readonly isOpen: boolean
    }
  | {
      readonly _tag: "External"
      readonly brokers: ReadonlyArray<string>
      readonly tls: TlsFiles | undefined
      readonly sasl: KafkaSasl | undefined
    }

/** chDB in this process, or a ClickHouse server (or the `store` role of another process). */
export type ClickHouseConfig =
  | {
      readonly _tag: "Embedded"
      /** Every process of this machine may connect to the role store, without a password. */
      readonly isOpen: boolean
    }
  | {
      readonly _tag: "External"
      readonly url: string
      readonly user: string | undefined
      readonly password: Redacted.Redacted | undefined
      /** undefined: nothing but what the address says. */
      readonly tls: TlsFiles | undefined
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
    /** Browsers get the console. */
    readonly hasConsole: boolean
    /** Of OTLP over gRPC; undefined is off, 0 takes any free port. */
    readonly otlpGrpcPort: number | undefined
    /** Without a trailing slash; undefined: taken from the address that is listened on. */
    readonly publicUrl: string | undefined
    /** Other processes of this installation listen on the same port. */
    readonly sharesPort: boolean
    /** Empty: CORS is off. */
    readonly corsOrigins: ReadonlyArray<string>
  }
  readonly dataDir: string
  readonly cacheDir: string
  readonly storePort: number
  /** Processes beside this one that serve the API on the same port and have a share of its roles. */
  readonly workers: number
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
    /** Of the public topics; the others are the program's own and have zstd. */
    readonly publicCompression: Compression
  }
  readonly clickhouse: ClickHouseConfig
  readonly database: string
  /** Undefined only with the embedded broker: then it is made and kept in the data folder. */
  readonly secret: Redacted.Redacted | undefined
  /** How the secrets were given: by variable the values of those, and names of X_FILE. */
  readonly secrets: {
    readonly variables: Readonly<Record<string, Redacted.Redacted>>
    /** Every user of the machine may read the files that these name. */
    readonly openFiles: ReadonlyArray<string>
  }
  readonly signingKeyFile: string | undefined
  /** The key before that one, while it is being changed. */
  readonly previousKeyFile: string | undefined
  /** vkeys of signing keys that count without an endorsement. */
  readonly trustedKeys: ReadonlyArray<string>
  readonly adminToken: Redacted.Redacted | undefined
  readonly bootstrapKeys: ReadonlyArray<BootstrapKey>
  /** Plain events are prepared, and cut into columns, in WebAssembly. */
  readonly fastAccept: boolean
  /** Actions of events may have any printable name, unless a request says otherwise. */
  readonly anyAction: boolean
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
  /** Files that are made in the background. */
  readonly exports: {
    readonly folder: string
    readonly keptHours: number
    /** Of one tenant. */
    readonly bytesMax: number
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
    readonly requests: RequestLog
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
export interface ProcessContext {
  readonly workingDirectory: string
  readonly homeDirectory: string
  /** True if a person reads the standard output. */
  readonly terminal: boolean
  /** Cores that the process may use. */
  readonly cores: number
  /** As `process.platform` says it. */
  readonly platform: string
}

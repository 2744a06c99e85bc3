/**
 * The workers: processes that serve the API on the port of the first one, and have a share of its
 * partitions. Here is what the first process tells them, and what it answers them.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Redacted } from "effect"
import type { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { type Listening, startWorkerProcesses } from "../adapters/embedded/WorkerProcesses.ts"
import { PREVIOUS_KEY_FILE, SIGNING_KEY_FILE } from "../adapters/keys/SigningKey.ts"
import type { Config } from "../config/Config.ts"
import type { ProcessMetrics } from "../http/server/MergedMetrics.ts"
import {
  type FirstQuestion,
  firstOfGroup,
  type WorkerQuestion
} from "../http/server/ProcessGroup.ts"
import { sharesOf } from "./Shares.ts"
import type { OpenedStore } from "./Store.ts"
import { embedsBroker } from "./Topology.ts"

/** Milliseconds that a worker has to tell its metrics; then the answer is without them. */
const METRICS_TIMEOUT_MS = 2_000

/** Above the time that a server gives to replies in flight; then a worker is stopped all the same. */
const DRAIN_TIMEOUT = "15 seconds"

/** What a worker needs of the parts that the first process has started. */
export interface WorkerParts {
  readonly folder: DataFolder["Service"] | undefined
  readonly secret: Redacted.Redacted
  readonly brokers: ReadonlyArray<string>
  readonly server: OpenedStore["server"]
  readonly port: number
}

/** The files of the keys that the first process signs with, where they are its own. */
const signingKeys = (
  { signingKeyFile }: Config,
  folder: DataFolder["Service"] | undefined
): NodeJS.ProcessEnv => {
  if (signingKeyFile !== undefined || folder === undefined) return {}
  const previous = join(folder.path, PREVIOUS_KEY_FILE)
  return {
    ALK_SIGNING_KEY_FILE: join(folder.path, SIGNING_KEY_FILE),
    ...(existsSync(previous) ? { ALK_SIGNING_KEY_PREVIOUS_FILE: previous } : {})
  }
}

/**
 * The environment of a worker: that of the first process, with the addresses of what it has started
 * and without what is done once. `environment` is the one that `config` was read from.
 */
export const workerEnvironment = (
  environment: NodeJS.ProcessEnv,
  config: Config,
  { brokers, folder, port, secret, server }: WorkerParts
): NodeJS.ProcessEnv => ({
  ...environment,
  ALK_ROLES: config.roles.filter((role) => role !== "store").join(","),
  ALK_WORKERS: "0",
  PORT: String(port),
  ALK_LOG_FORMAT: config.log.format,
  ALK_SECRET: Redacted.value(secret),
  // The first process goes over all chains.
  ALK_SELF_VERIFY_EVENTS_PER_SECOND: "0",
  ...(embedsBroker(config) ? { KAFKA_BROKERS: brokers.join(","), ALK_REPLICATION: "1" } : {}),
  ...(server === undefined ? {} : { CLICKHOUSE_URL: server.url, CLICKHOUSE_USER: "alk" }),
  ...(server?.password === undefined
    ? {}
    : { CLICKHOUSE_PASSWORD: Redacted.value(server.password) }),
  ...signingKeys(config, folder)
})

/**
 * What the first process and its workers do together: `start` starts the workers, `drain` ends once
 * they serve no more.
 */
export const makeWorkers = () => {
  const running: Listening = new Map()
  const metricsOf = Effect.suspend(() =>
    Effect.forEach(
      running,
      ([worker, { channel }]) =>
        channel
          .ask({ ask: "metrics" } satisfies FirstQuestion)
          .pipe(
            Effect.timeoutOption(METRICS_TIMEOUT_MS),
            Effect.map(Option.map((text): ProcessMetrics => ({ worker, text: String(text) })))
          ),
      { concurrency: "unbounded" }
    )
  ).pipe(Effect.map((texts) => texts.flatMap((text) => Option.toArray(text))))
  const { answer, processes } = firstOfGroup(metricsOf)
  const start = (config: Config, parts: WorkerParts) =>
    startWorkerProcesses(
      config.workers,
      {
        environment: () => workerEnvironment(process.env, config, parts),
        more: sharesOf(config) === undefined ? [] : [String(sharesOf(config))],
        answer: (question) => Effect.runPromise(answer(question as WorkerQuestion))
      },
      running
    )
  const drain = Effect.suspend(() =>
    Effect.forEach(
      running.values(),
      ({ channel }) =>
        channel
          .ask({ ask: "drain" } satisfies FirstQuestion)
          .pipe(Effect.timeoutOption(DRAIN_TIMEOUT)),
      { concurrency: "unbounded", discard: true }
    )
  )
  return { processes, start, drain }
}

/**
 * The workers: processes that serve the API on the port of the first one, and have a share of its
 * partitions. Here is what the first process tells them, and what it answers them.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Record, Redacted } from "effect"
import { brokerVariables } from "../adapters/embedded/broker/BrokerUsers.ts"
import { type DataFolder, SECRET_FILE } from "../adapters/embedded/DataFolder.ts"
import { type Listening, startWorkerProcesses } from "../adapters/embedded/WorkerProcesses.ts"
import { PREVIOUS_KEY_FILE, SIGNING_KEY_FILE } from "../adapters/keys/SigningKey.ts"
import type { Config } from "../config/Config.ts"
import type { ProcessMetrics } from "../http/server/MergedMetrics.ts"
import {
  type FirstQuestion,
  firstOfGroup,
  type WorkerQuestion
} from "../http/server/ProcessGroup.ts"
import type { Brokers } from "./Log.ts"
import { sharesOf } from "./PartitionAssignment.ts"
import type { OpenedStore } from "./Store.ts"
import { embedsBroker } from "./Topology.ts"

/** Milliseconds that a worker has to tell its metrics; then the answer is without them. */
const METRICS_TIMEOUT_MS = 2_000

/** Above the time that a server gives to replies in flight; then a worker is stopped all the same. */
const DRAIN_TIMEOUT = "15 seconds"

/** What a worker needs of the parts that the first process has started. */
export interface WorkerParts {
  readonly folder: DataFolder["Service"] | undefined
  readonly brokers: Brokers
  readonly server: OpenedStore["server"]
  readonly port: number
}

/** The files of the keys that the first process signs with, where they are its own. */
const signingKeys = (
  { signingKeyFile }: Config,
  folder: DataFolder["Service"] | undefined
): Readonly<Record<string, string>> => {
  if (signingKeyFile !== undefined || folder === undefined) return {}
  const previous = join(folder.path, PREVIOUS_KEY_FILE)
  return {
    ALK_SIGNING_KEY_FILE: join(folder.path, SIGNING_KEY_FILE),
    ...(existsSync(previous) ? { ALK_SIGNING_KEY_PREVIOUS_FILE: previous } : {})
  }
}

/**
 * How another process reaches what this one has started and signs what this one signs, as its
 * environment. Secrets are named by their files: a process shows its environment for as long as it runs.
 */
export const environmentOf = (
  config: Config,
  { brokers, folder, server }: Pick<WorkerParts, "brokers" | "folder" | "server">
): Readonly<Record<string, string>> => ({
  ...(embedsBroker(config)
    ? {
        ...brokerVariables(brokers.addresses.join(","), brokers.signIn, brokers.passwordFile),
        ALK_REPLICATION: "1"
      }
    : {}),
  ...(server === undefined ? {} : { CLICKHOUSE_URL: server.url, CLICKHOUSE_USER: "alk" }),
  ...(server?.passwordFile === undefined ? {} : { CLICKHOUSE_PASSWORD_FILE: server.passwordFile }),
  // One that was given is given to other processes in the same way.
  ...(config.secret === undefined && folder !== undefined
    ? { ALK_SECRET_FILE: join(folder.path, SECRET_FILE) }
    : {}),
  ...signingKeys(config, folder)
})

/**
 * The environment of a worker: that of the first process, with the addresses of what it has started
 * and without what is done once. `environment` is the one that `config` was read from.
 */
export const workerEnvironment = (
  environment: NodeJS.ProcessEnv,
  config: Config,
  parts: WorkerParts
): NodeJS.ProcessEnv => ({
  ...environment,
  // Those of the files that it names are not in the environment.
  ...Record.map(config.secrets.variables, Redacted.value),
  ALK_ROLES: config.roles.filter((role) => role !== "store").join(","),
  ALK_WORKERS: "0",
  PORT: String(parts.port),
  ALK_LOG_FORMAT: config.log.format,
  // The first process goes over all chains.
  ALK_SELF_VERIFY_EVENTS_PER_SECOND: "0",
  ...environmentOf(config, parts)
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

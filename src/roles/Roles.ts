/**
 * Starts the roles of a process, each from its configuration, and what they share. Beside `main.ts`
 * the only folder that knows both the services and their adapters.
 */
import { Context, Effect, Layer, Schedule } from "effect"
import { HttpServer } from "effect/http"
import { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { silenceNegativeTimeoutWarning } from "../adapters/kafka/protocol/KafkaClient.ts"
import type { Endpoints } from "../cli/Messages.ts"
import type { Config } from "../config/Config.ts"
import { readReportSettings } from "../exports/report/ReportSettings.ts"
import { layerWorkerServer } from "../http/operations/WorkerServer.ts"
import { EventLog } from "../ports/EventLog.ts"
import { makeRecentEvents } from "../services/ingest/RecentEvents.ts"
import { startApi } from "./Api.ts"
import { bootstrapOf, logOf, type Report, secretOf } from "./Log.ts"
import { startProjection } from "./Projection.ts"
import { startSequencer } from "./Sequencer.ts"
import { signerOf } from "./SigningKey.ts"
import { openStore } from "./Store.ts"
import { embedsBroker, has, ownsFolder, usesLog } from "./Topology.ts"

/** The partitions that this process works on right now, by role. */
type Workers = Record<string, Effect.Effect<ReadonlySet<number>>>

/** Health and metrics of a process that serves no API, where they are wanted. */
const workerUrl = Effect.fnUntraced(function* ({ http, workerPort }: Config, workers: Workers) {
  if (workerPort === undefined) return undefined
  const working = Effect.all(workers).pipe(
    Effect.map((running) =>
      Object.fromEntries(Object.entries(running).map(([role, own]) => [role, [...own].sort()]))
    )
  )
  const server = yield* Layer.build(
    layerWorkerServer({ host: http.host, port: workerPort, working })
  )
  return HttpServer.formatAddress(Context.get(server, HttpServer.HttpServer).address)
})

/** Time that a start waits for its own workers before it says that it is ready all the same. */
const SETTLE_TIMEOUT = "15 seconds"

/** With a broker of its own a process has every partition to itself, a moment after the start. */
const settled = (workers: ReadonlyArray<Effect.Effect<ReadonlySet<number>>>, partitions: number) =>
  Effect.forEach(workers, (running) =>
    running.pipe(
      Effect.repeat({
        schedule: Schedule.spaced("50 millis"),
        until: (own) => own.size >= partitions
      })
    )
  ).pipe(Effect.timeoutOption(SETTLE_TIMEOUT), Effect.asVoid)

const none = Effect.succeed<ReadonlyArray<string>>([])

/**
 * Start every role of the process. The parts are in the caller's scope: closing it stops them in
 * the reverse order, the broker last.
 */
export const startRoles = Effect.fnUntraced(function* (config: Config, report: Report) {
  silenceNegativeTimeoutWarning()
  // Before anything runs: what is wrong with a file of the configuration stops the start.
  const reportSettings = yield* readReportSettings(config.report)
  const folder = ownsFolder(config) ? yield* DataFolder.open(config.dataDir) : undefined
  const secret = yield* secretOf(config, folder)
  const signer = yield* signerOf(config, folder)
  const [brokers, store] = yield* Effect.all(
    [
      usesLog(config) || embedsBroker(config) ? bootstrapOf(config, folder, report) : none,
      openStore(config, folder)
    ],
    { concurrency: "unbounded" }
  )
  const endpoints = {
    kafka: brokers.length === 0 ? undefined : brokers.join(","),
    store: store.server?.url
  }
  const workers: Workers = {}
  if (!usesLog(config)) {
    const url = yield* workerUrl(config, workers)
    return { ...endpoints, url, firstKey: undefined } satisfies Endpoints
  }
  const log = yield* logOf(config, brokers, secret, folder)
  const withLog = Effect.provideService(EventLog, log)
  const recent = makeRecentEvents()
  const parts = { folder, secret, signer, report: reportSettings, stores: store.stores, recent }
  if (has(config, "sequencer")) {
    workers["sequencer"] = yield* withLog(startSequencer(config, parts))
  }
  if (has(config, "projection"))
    workers["projection"] = yield* withLog(
      startProjection(store, has(config, "api") ? recent : undefined)
    )
  const api = has(config, "api") ? yield* withLog(startApi(config, parts)) : undefined
  if (embedsBroker(config)) yield* settled(Object.values(workers), log.partitions)
  const url = api?.url ?? (yield* workerUrl(config, workers))
  return { ...endpoints, url, firstKey: api?.firstKey } satisfies Endpoints
})

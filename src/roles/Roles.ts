/**
 * Starts the roles of a process, each from its configuration, and what they share. Beside `main.ts`
 * the only folder that knows both the services and their adapters.
 */
import { Context, Effect, Exit, Layer, Redacted, Schedule, Scope } from "effect"
import { HttpServer } from "effect/http"
import { variableLines } from "../adapters/embedded/broker/BrokerUsers.ts"
import { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { watchSpace } from "../adapters/embedded/FolderSpace.ts"
import { portFree } from "../adapters/embedded/FreePort.ts"
import type { Endpoints } from "../cli/Messages.ts"
import type { Config } from "../config/Config.ts"
import { startCounting } from "../domain/metrics/Metrics.ts"
import { RecordMac } from "../domain/records/RecordMac.ts"
import { readReportSettings } from "../exports/report/ReportSettings.ts"
import { layerWorkerServer } from "../http/operations/WorkerServer.ts"
import { ProcessGroup } from "../http/server/ProcessGroup.ts"
import { watchRuntime } from "../http/server/RuntimeMetrics.ts"
import { EventLog } from "../ports/EventLog.ts"
import { EventStore } from "../ports/EventStore.ts"
import { FactMac } from "../ports/FactMac.ts"
import { makeRecentEvents } from "../services/ingest/RecentEvents.ts"
import { startApi } from "./Api.ts"
import { type Brokers, bootstrapOf, logOf, type Report, secretOf } from "./Log.ts"
import {
  type PartitionAssignment,
  partitionsOf,
  sharesOf,
  withAssignment
} from "./PartitionAssignment.ts"
import { startProjection } from "./Projection.ts"
import { startSequencer } from "./Sequencer.ts"
import { signerOf } from "./SigningKey.ts"
import { openStore } from "./Store.ts"
import { embedsBroker, has, ownsFolder, usesLog, usesStore } from "./Topology.ts"
import { type RoleProgress, type WatchedRole, watchParts } from "./Watching.ts"
import { environmentOf, makeWorkers } from "./Workers.ts"

/** The partitions that this process works on, by role. */
type Workers = Partial<Record<WatchedRole, RoleProgress>>

/** Health and metrics of a process that serves no API, where they are wanted. */
const workerUrl = Effect.fnUntraced(function* ({ http, workerPort }: Config, workers: Workers) {
  if (workerPort === undefined) return undefined
  const running = Object.entries(workers).map(([role, one]) => [role, one.running] as const)
  const working = Effect.all(Object.fromEntries(running)).pipe(
    Effect.map((running) =>
      Object.fromEntries(Object.entries(running).map(([role, own]) => [role, [...own].sort()]))
    )
  )
  const server = yield* Layer.build(
    layerWorkerServer({ host: http.host, port: workerPort, working })
  )
  return HttpServer.formatAddress(Context.get(server, HttpServer.HttpServer).address)
})

/** What other processes of this machine need to use the embedded parts, in the data folder. */
const PROCESSES_FILE = "processes.env"

/** Time that a start waits for its own workers before it says that it is ready all the same. */
const SETTLE_TIMEOUT = "15 seconds"

/** A process that has these many partitions to itself works on them a moment after the start. */
const settled = (workers: ReadonlyArray<RoleProgress>, partitions: number) =>
  Effect.forEach(workers, ({ running }) =>
    running.pipe(
      Effect.repeat({
        schedule: Schedule.spaced("50 millis"),
        until: (own) => own.size >= partitions
      })
    )
  ).pipe(Effect.timeoutOption(SETTLE_TIMEOUT), Effect.asVoid)

/** The share of the first process of a group. */
const firstShare = (config: Config): PartitionAssignment | undefined => {
  const of = sharesOf(config)
  return of === undefined ? undefined : { index: 0, of }
}

/** What runs: where it is reached, and how its API is stopped before everything else. */
interface Started extends Endpoints {
  readonly stopServing: Effect.Effect<void>
}

const none = Effect.succeed<Brokers>({ addresses: [] })

/**
 * Start every role of the process. The parts are in the caller's scope: closing it stops them in
 * the reverse order, the broker last. `share`: of the partitions, where no consumer group shares
 * them out.
 */
export const startRoles = Effect.fnUntraced(function* (
  config: Config,
  report: Report,
  share = firstShare(config)
) {
  yield* startCounting
  yield* watchRuntime
  // Before anything runs: what is wrong with a file of the configuration stops the start.
  const reportSettings = yield* readReportSettings(config.report)
  const folder = ownsFolder(config) ? yield* DataFolder.open(config.dataDir) : undefined
  const secret = yield* secretOf(config, folder)
  const mac = new RecordMac(Redacted.value(secret))
  const signer = yield* signerOf(config, folder)
  const [brokers, store] = yield* Effect.all(
    [
      usesLog(config) || embedsBroker(config) ? bootstrapOf(config, folder, report) : none,
      openStore(config, folder, mac)
    ],
    { concurrency: "unbounded" }
  )
  const endpoints = {
    kafka: brokers.addresses.length === 0 ? undefined : brokers.addresses.join(","),
    subscriberFile: brokers.subscriberFile,
    store: has(config, "store") ? store.server?.url : undefined
  }
  if (folder !== undefined && has(config, "store")) {
    const text = variableLines(environmentOf(config, { brokers, folder, server: store.server }))
    yield* folder.file(PROCESSES_FILE).write(text)
  }
  const workers: Workers = {}
  // Once everything is started: before that the folder is small.
  const watched = folder === undefined ? Effect.void : watchSpace(folder.path)
  const openStores = usesStore(config) ? store.stores : Effect.void
  if (!usesLog(config)) {
    yield* openStores
    yield* watched
    const url = yield* workerUrl(config, workers)
    const first = { firstKey: undefined, signInCode: undefined }
    const stopServing = Effect.void
    return { ...endpoints, url, otlpGrpc: undefined, ...first, stopServing } satisfies Started
  }
  // The log first: topics of another installation are refused before any table is touched.
  const wholeLog = yield* logOf(config, brokers, secret)
  yield* openStores
  const log = share === undefined ? wholeLog : withAssignment(wholeLog, share)
  const withLog = <A, E, R>(role: Effect.Effect<A, E, R>) =>
    role.pipe(Effect.provideService(EventLog, log), Effect.provideService(FactMac, mac))
  const recent = makeRecentEvents()
  const parts = { folder, secret, signer, report: reportSettings, stores: store.stores, recent }
  if (has(config, "sequencer")) {
    workers["sequencer"] = yield* withLog(startSequencer(config, parts))
  }
  if (has(config, "projection"))
    workers["projection"] = yield* withLog(
      startProjection(store, has(config, "api") ? recent : undefined)
    )
  const group = config.workers > 0 ? makeWorkers() : undefined
  // Sockets that share a port don't notice those of another installation.
  if (group !== undefined) yield* portFree(config.http)
  const apiScope = yield* Scope.fork(yield* Effect.scope)
  const stopServing = Scope.close(apiScope, Exit.void)
  const serving = withLog(startApi(config, parts)).pipe(Scope.provide(apiScope))
  const api = !has(config, "api")
    ? undefined
    : yield* group === undefined
        ? serving
        : Effect.provideService(serving, ProcessGroup, group.processes)
  if (embedsBroker(config) || share !== undefined) {
    const own = share === undefined ? log.partitions : partitionsOf(share, log.partitions).length
    yield* settled(Object.values(workers), own)
  }
  yield* watched
  yield* watchParts({
    log,
    store: usesStore(config) ? Context.get(yield* store.stores, EventStore) : undefined,
    roles: workers
  })
  if (group !== undefined && api !== undefined) {
    yield* group.start(config, { folder, brokers, server: store.server, port: api.port })
    // Replies in flight need the sequencers of all processes, so no process stops before all served.
    yield* Effect.addFinalizer(() =>
      Effect.all([group.drain, stopServing], { concurrency: "unbounded", discard: true })
    )
  }
  const url = api?.url ?? (yield* workerUrl(config, workers))
  const first =
    api === undefined ? { firstKey: undefined, signInCode: undefined } : yield* api.complete
  return { ...endpoints, url, otlpGrpc: api?.otlpGrpc, ...first, stopServing } satisfies Started
})

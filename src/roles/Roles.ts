/**
 * The roles of a process as layers: what each needs, made from the configuration. Beside `main.ts`
 * the only place that knows both the services and their adapters.
 */
import { readFileSync } from "node:fs"
import { Context, Effect, Layer, Redacted, Schedule, Schema } from "effect"
import { HttpServer } from "effect/http"
import { layerChainEnds } from "../actors/chainEnds/ChainEndsOfLog.ts"
import { layerLiveFeed } from "../actors/feeds/LiveFeed.ts"
import { layerTraceFeed } from "../actors/feeds/TraceFeed.ts"
import { Keys } from "../actors/follower/Keys.ts"
import { layerLogFollower } from "../actors/follower/LogFollower.ts"
import { runProjection } from "../actors/projection/Projection.ts"
import { runSelfVerification } from "../actors/selfVerification/SelfVerification.ts"
import type { SequencerSettings } from "../actors/sequencer/Sequencer.ts"
import { runSequencers } from "../actors/sequencer/Sequencers.ts"
import { layerArchive } from "../adapters/archive/ArchiveZip.ts"
import { layerChromium } from "../adapters/chromium/PdfRendererChromium.ts"
import { layerCheckpointStore } from "../adapters/clickhouse/checkpoints/CheckpointStoreClickHouse.ts"
import { layerHashTree } from "../adapters/clickhouse/checkpoints/HashTreeClickHouse.ts"
import { ChdbEngine } from "../adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../adapters/clickhouse/client/ClickHouseConnection.ts"
import { StoreServer } from "../adapters/clickhouse/client/StoreServer.ts"
import { layerClickHouse } from "../adapters/clickhouse/EventStoreClickHouse.ts"
import { layerRecompute } from "../adapters/clickhouse/events/Recompute.ts"
import { layerStoredTopics } from "../adapters/clickhouse/StoredTopicsClickHouse.ts"
import { layerTraceStore } from "../adapters/clickhouse/TraceStoreClickHouse.ts"
import { EmbeddedBroker } from "../adapters/embedded/broker/EmbeddedBroker.ts"
import { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { layerKafka } from "../adapters/kafka/KafkaEventLog.ts"
import {
  type KafkaSettings,
  silenceNegativeTimeoutWarning
} from "../adapters/kafka/protocol/KafkaClient.ts"
import {
  deletePrevious,
  keptPrevious,
  keptSigner,
  rotateSigningKey,
  signerOfFile
} from "../adapters/keys/SigningKey.ts"
import type { Endpoints } from "../cli/Messages.ts"
import { clearChangelog } from "../cli/Repair.ts"
import type { Config, KafkaConfig, Role } from "../config/config.ts"
import { chainOfTree } from "../domain/chain/Chains.ts"
import type { Signer } from "../domain/chain/Checkpoint.ts"
import { RecordMac } from "../domain/records/RecordMac.ts"
import { layerEvidenceSeal } from "../exports/EvidenceSealLayer.ts"
import { layerStoredTraceExport } from "../exports/pack/StoredTraceExport.ts"
import { AuditReports } from "../exports/report/AuditReports.ts"
import { type ReportSettings, readReportSettings } from "../exports/report/ReportSettings.ts"
import { layerExportAnswers } from "../http/exports/ExportAnswers.ts"
import { layerExportSlots } from "../http/exports/ExportSlots.ts"
import { ApiSettings } from "../http/messages/ApiSettings.ts"
import { layerReadiness } from "../http/operations/ReadinessProbe.ts"
import { layerWorkerServer } from "../http/operations/WorkerServer.ts"
import { layerServer } from "../http/Server.ts"
import { HttpListener } from "../http/server/HttpListener.ts"
import { EventLog } from "../ports/EventLog.ts"
import { EventStore } from "../ports/EventStore.ts"
import { TraceStore } from "../ports/TraceStore.ts"
import { layerKeys } from "../services/administration/Administration.ts"
import { layerShareLinks } from "../services/administration/ShareLinks.ts"
import { layerSystemAuditLog } from "../services/administration/SystemAuditLog.ts"
import { layerCheckpoints } from "../services/checkpoints/Checkpoints.ts"
import {
  keyChanged,
  layerPublishedKeys,
  publishSigningKey
} from "../services/checkpoints/SigningKeys.ts"
import { authenticated } from "../services/commands/AuthenticatedLog.ts"
import { layerCommandLog } from "../services/commands/CommandLog.ts"
import { takeOver } from "../services/commands/TakeOver.ts"
import { layerSignedCheckpoints } from "../verify/SignedCheckpoints.ts"
import { layerTraceVerifier } from "../verify/TraceVerifier.ts"
import { layerVerifier, Verifier } from "../verify/Verifier.ts"

/** Milliseconds after which an insert, given again if need be, has ended on a server. */
const SERVER_SETTLE_MS = 70_000

const has = (config: Config, ...wanted: ReadonlyArray<Role>): boolean =>
  wanted.some((role) => config.roles.includes(role))

const embedsBroker = ({ kafka }: Config): boolean => kafka._tag === "Embedded"

/** A process that can do nothing without the store: it waits for it, and upgrades its schema. */
const needsStore = (config: Config): boolean => has(config, "api", "projection", "store")

/** True if this process opens the embedded store. */
export const embedsStore = (config: Config): boolean =>
  config.clickhouse._tag === "Embedded" && needsStore(config)

const usesLog = (config: Config): boolean => has(config, "api", "sequencer", "projection")

/** A sequencer looks up what it has evicted, where and when it can reach a store. */
const usesStore = (config: Config): boolean =>
  needsStore(config) || (has(config, "sequencer") && config.clickhouse._tag === "External")

/** A line for a person while something takes long. */
export type Report = (line: string) => void

const kafkaTls = (kafka: KafkaConfig): Partial<Pick<KafkaSettings, "tls">> => {
  if (kafka._tag === "Embedded" || kafka.tls === undefined) return {}
  const { caFile } = kafka.tls
  return { tls: caFile === undefined ? {} : { ca: readFileSync(caFile) } }
}

const kafkaSasl = (kafka: KafkaConfig): Partial<Pick<KafkaSettings, "sasl">> => {
  if (kafka._tag === "Embedded" || kafka.sasl === undefined) return {}
  const { mechanism, password, username } = kafka.sasl
  return { sasl: { mechanism, username, password: Redacted.value(password) } }
}

const kafkaSettings = (
  config: Config,
  brokers: ReadonlyArray<string>,
  log: KafkaSettings["log"]
): KafkaSettings => ({
  brokers,
  clientId: config.serviceName,
  log,
  ...kafkaTls(config.kafka),
  ...kafkaSasl(config.kafka)
})

/** kafkajs logs outside of Effect: its lines become debug lines of ours. */
const kafkaLog = Effect.gen(function* () {
  const context = yield* Effect.context()
  return (message: string, detail: object) => {
    Effect.runForkWith(context)(Effect.logDebug(message, detail))
  }
})

/** A broker of our own, or the addresses of a cluster elsewhere. */
const bootstrapOf = Effect.fnUntraced(function* (
  config: Config,
  folder: DataFolder["Service"] | undefined,
  report: Report
) {
  const { cacheDir, kafka } = config
  if (kafka._tag === "External" || folder === undefined) {
    return kafka._tag === "External" ? kafka.brokers : []
  }
  const broker = yield* Layer.build(
    EmbeddedBroker.layer({ port: kafka.port, cacheDir, report }).pipe(
      Layer.provide(Layer.succeed(DataFolder, folder))
    )
  )
  return [Context.get(broker, EmbeddedBroker).bootstrap]
})

/** Name of the file with the copy of the marker from which on records are authenticated. */
const MARKER_FILE = "authenticated-from.json"

/** The log, its internal records authenticated with the secret. */
const logOf = Effect.fnUntraced(function* (
  config: Config,
  brokers: ReadonlyArray<string>,
  secret: Redacted.Redacted,
  folder: DataFolder["Service"] | undefined
) {
  const kafka = kafkaSettings(config, brokers, yield* kafkaLog)
  const log = Context.get(yield* Layer.build(layerKafka(kafka, config.topics)), EventLog)
  const mac = new RecordMac(Redacted.value(secret))
  const { prefix } = config.topics
  const takenOver = yield* takeOver({ log, mac, prefix, copy: folder?.file(MARKER_FILE) })
  return authenticated(log, { mac, prefix, takenOver })
})

const connectionOf = (config: Config, engine: ChdbEngine["Service"] | undefined) => {
  const { clickhouse, database } = config
  if (clickhouse._tag === "Embedded" || engine !== undefined) {
    return ClickHouseConnection.toEngine({ database }).pipe(
      Effect.provideService(ChdbEngine, engine!)
    )
  }
  const { cluster, password, url, user } = clickhouse
  return ClickHouseConnection.toServer({
    database,
    url,
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password }),
    ...(cluster === undefined ? {} : { cluster })
  })
}

/** Everything that is asked of the query store. */
const layerStores = Layer.mergeAll(
  layerClickHouse,
  layerTraceStore,
  layerCheckpointStore,
  layerStoredTopics,
  layerHashTree,
  layerRecompute
)

type Stores = Layer.Success<typeof layerStores>

/** The query store, its schema up to date where this process needs it. */
const storesOf = Effect.fnUntraced(function* (
  config: Config,
  engine: ChdbEngine["Service"] | undefined
) {
  const connection = yield* connectionOf(config, engine)
  const stores = yield* Layer.build(
    layerStores.pipe(Layer.provide(Layer.succeed(ClickHouseConnection, connection)))
  )
  if (needsStore(config)) yield* Context.get(stores, EventStore).migrate
  return stores
})

/** The engine, the server before it for other processes, and the store on top. */
const storePartsOf = Effect.fnUntraced(function* (
  config: Config,
  folder: DataFolder["Service"] | undefined
) {
  const engine = embedsStore(config) ? yield* ChdbEngine.open(folder!.clickhouse) : undefined
  const server =
    has(config, "store") && engine !== undefined
      ? yield* StoreServer.listen({ port: config.storePort }).pipe(
          Effect.provideService(ChdbEngine, engine)
        )
      : undefined
  const stores = usesStore(config) ? yield* storesOf(config, engine) : undefined
  return { engine, server, stores }
})

/** The rounds that this process goes over all chains. */
const layerSelfVerification = ({ selfVerifyEventsPerSecond }: Config) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const verifier = yield* Verifier
      yield* runSelfVerification(
        { eventsPerSecond: selfVerifyEventsPerSecond },
        ({ fromSequence, toSequence, tree }) =>
          verifier.verify({
            ...chainOfTree(tree),
            fromSequence,
            requireHead: true,
            // What is outside of the chain is looked for with the first slice of each pass.
            onlySpan: fromSequence > 1,
            ...(toSequence === undefined ? {} : { toSequence })
          })
      )
    })
  )

/** What leaves the service as documents. */
const exportsOf = (
  { cacheDir, chromiumPath, chromiumSandbox, quotas }: Config,
  signer: Signer | undefined,
  report: ReportSettings
) =>
  layerExportAnswers.pipe(
    Layer.provide([
      AuditReports.layer(report).pipe(
        Layer.provide([
          layerChromium({ path: chromiumPath, cacheFolder: cacheDir, sandbox: chromiumSandbox }),
          layerStoredTraceExport
        ])
      ),
      layerArchive,
      layerEvidenceSeal(signer),
      layerExportSlots(quotas.exportsAtOnce),
      layerStoredTraceExport
    ])
  )

/** Everything behind the HTTP API, and the API before it. */
const apiOf = (
  config: Config,
  secret: Redacted.Redacted,
  signer: Signer | undefined,
  report: ReportSettings
) => {
  const { adminToken, bootstrapKeys, limits, roles, serviceName, trustedKeys } = config
  const keys = layerKeys({ adminToken, bootstrapKeys })
  const services = exportsOf(config, signer, report).pipe(
    Layer.provideMerge(Layer.mergeAll(layerTraceFeed, layerReadiness(roles))),
    Layer.provideMerge(layerSelfVerification(config)),
    Layer.provideMerge(Layer.mergeAll(layerVerifier, layerTraceVerifier)),
    Layer.provideMerge(layerSignedCheckpoints(serviceName)),
    Layer.provideMerge(layerCheckpoints({ secret, serviceName })),
    Layer.provideMerge(layerChainEnds(config.topics.eventsRetentionMs === "forever")),
    Layer.provideMerge(layerLiveFeed(limits.streamsPerTenantMax)),
    Layer.provideMerge(Layer.mergeAll(keys, layerShareLinks)),
    Layer.provideMerge(
      Layer.mergeAll(layerSystemAuditLog(secret), layerPublishedKeys(trustedKeys))
    ),
    Layer.provideMerge(Layer.mergeAll(layerLogFollower, layerCommandLog)),
    Layer.provideMerge(ApiSettings.fromConfig(config, secret))
  )
  return layerServer.pipe(Layer.provideMerge(services))
}

/** Who signs here: the key of the configuration, or the one in the data folder. */
const signerOf = Effect.fnUntraced(function* (
  { serviceName, signingKeyFile }: Config,
  folder: DataFolder["Service"] | undefined
) {
  if (signingKeyFile !== undefined) return yield* signerOfFile(serviceName, signingKeyFile)
  return folder === undefined ? undefined : yield* keptSigner(serviceName, folder.path)
})

/** Who signed here until now, while the change to another key is under way. */
const previousOf = Effect.fnUntraced(function* (
  { previousKeyFile, serviceName, signingKeyFile }: Config,
  folder: DataFolder["Service"] | undefined
) {
  if (previousKeyFile !== undefined) return yield* signerOfFile(serviceName, previousKeyFile)
  if (signingKeyFile !== undefined || folder === undefined) return undefined
  return yield* keptPrevious(serviceName, folder.path)
})

/** The key before is kept in the data folder until every partition has changed to the new one. */
const finishRotation = (
  { previousKeyFile }: Config,
  folder: DataFolder["Service"] | undefined,
  signer: Signer,
  previous: Signer
) =>
  keyChanged(signer, previous).pipe(
    Effect.andThen(
      previousKeyFile === undefined && folder !== undefined
        ? deletePrevious(folder.path)
        : Effect.void
    ),
    Effect.andThen(
      Effect.logInfo(
        "the signing key is changed everywhere; the one before is not needed any more",
        {
          from: previous.keyId,
          to: signer.keyId
        }
      )
    ),
    Effect.catchCause((cause) =>
      Effect.logWarning("the change of the signing key could not be finished", { cause })
    )
  )

/** A sequencer signs checkpoints, and all of them with one key. */
class SigningKeyMissing extends Schema.TaggedError<SigningKeyMissing>()("SigningKeyMissing", {
  message: Schema.String
}) {}

const sequencerSettings = Effect.fnUntraced(function* (
  config: Config,
  signer: Signer | undefined,
  previous: Signer | undefined,
  stores: Context.Context<Stores> | undefined
) {
  if (signer === undefined) {
    return yield* new SigningKeyMissing({
      message:
        "ALK_SIGNING_KEY_FILE: a process with the role sequencer and no data folder of its own "
        + "needs the key that signs checkpoints, the same for all; make one with: openssl genpkey "
        + "-algorithm ed25519 -out <file>"
    })
  }
  const settings: SequencerSettings = {
    serviceName: config.serviceName,
    signer,
    ...(previous === undefined ? {} : { previous }),
    windows: { dedup: config.dedupWindowEvents, idempotency: config.idempotencyWindowEntries },
    ...(stores === undefined ? {} : { traceStore: Context.get(stores, TraceStore) })
  }
  return settings
})

const FIRST_TENANT = "default"

/** An API without any key is a mistake that nothing else would show. */
const warnOfLockedDoors = Effect.fnUntraced(function* (config: Config, keys: Keys["Service"]) {
  if (config.adminToken !== undefined || (yield* keys.tenants).length > 0) return
  yield* Effect.logWarning(
    "nobody can use this API: there is no key, and no ALK_ADMIN_TOKEN to make one; "
      + "set that or ALK_BOOTSTRAP_KEYS"
  )
})

/**
 * The first start of an embedded installation without a key: a tenant and a key, so
 * that the first request needs no administration.
 */
const firstKeyOf = Effect.fnUntraced(function* (config: Config, keys: Keys["Service"]) {
  const alone = embedsBroker(config) && has(config, "sequencer")
  if (!alone || config.bootstrapKeys.length > 0) return undefined
  const others = (yield* keys.tenants).filter(({ id }) => id !== FIRST_TENANT)
  const known = yield* keys.keysOf(FIRST_TENANT)
  if (others.length > 0 || (known?.length ?? 0) > 0) return undefined
  if (known === undefined) yield* keys.createTenant({ id: FIRST_TENANT })
  const { secret } = yield* keys.createKey({
    tenantId: FIRST_TENANT,
    scopes: ["read", "write"],
    label: "made at the first start",
    prefix: "alk_live_"
  })
  return secret
})

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

/**
 * Start every role of the process. The parts are in the caller's scope: closing it stops them in
 * the reverse order, the broker last.
 */
export const startRoles = Effect.fnUntraced(function* (config: Config, report: Report) {
  silenceNegativeTimeoutWarning()
  // Before anything runs: what is wrong with a file of the configuration stops the start.
  const reportSettings = yield* readReportSettings(config.report)
  const needsFolder = embedsBroker(config) || embedsStore(config)
  const folder = needsFolder ? yield* DataFolder.open(config.dataDir) : undefined
  const secret = config.secret ?? (yield* folder!.secret)
  const needsBroker = usesLog(config) || embedsBroker(config)
  const signer = yield* signerOf(config, folder)
  const [brokers, { server, stores, engine }] = yield* Effect.all(
    [
      needsBroker ? bootstrapOf(config, folder, report) : Effect.succeed([]),
      storePartsOf(config, folder)
    ],
    { concurrency: "unbounded" }
  )
  const places = {
    kafka: brokers.length === 0 ? undefined : brokers.join(","),
    store: server?.url
  }
  if (!usesLog(config)) {
    const url = yield* workerUrl(config, {})
    return { ...places, url, firstKey: undefined } satisfies Endpoints
  }
  const log = yield* logOf(config, brokers, secret, folder)
  const withLog = Effect.provideService(EventLog, log)
  const workers: Workers = {}
  if (has(config, "sequencer")) {
    const previous = yield* previousOf(config, folder)
    const settings = yield* sequencerSettings(config, signer, previous, stores)
    workers["sequencer"] = (yield* runSequencers(settings).pipe(withLog)).running
    const publish = publishSigningKey(settings.signer, secret, previous)
    yield* publish.pipe(Effect.provide(layerCommandLog), Effect.scoped, withLog)
    if (previous !== undefined) {
      const finish = finishRotation(config, folder, settings.signer, previous)
      yield* Effect.forkScoped(withLog(finish))
    }
  }
  if (has(config, "projection")) {
    const settleMs = engine === undefined ? SERVER_SETTLE_MS : 0
    const projection = runProjection({ settleMs }).pipe(withLog, Effect.provideContext(stores!))
    workers["projection"] = (yield* projection).running
  }
  let url: string | undefined
  let firstKey: string | undefined
  if (has(config, "api")) {
    const parts = Layer.mergeAll(Layer.succeed(EventLog, log), Layer.succeedContext(stores!))
    const api = yield* Layer.build(
      apiOf(config, secret, signer, reportSettings).pipe(Layer.provide(parts))
    )
    url = config.http.publicUrl ?? Context.get(api, HttpListener).url
    const keys = Context.get(api, Keys)
    firstKey = yield* firstKeyOf(config, keys)
    yield* warnOfLockedDoors(config, keys)
  }
  if (embedsBroker(config)) yield* settled(Object.values(workers), log.partitions)
  url ??= yield* workerUrl(config, workers)
  return { ...places, url, firstKey } satisfies Endpoints
})

/** `alk rotate-key`: in the data folder that this configuration means, with nothing started. */
export const rotateKey = Effect.fnUntraced(function* (config: Config, report: Report) {
  if (config.signingKeyFile !== undefined) {
    return yield* new SigningKeyMissing({
      message:
        `rotate-key: ALK_SIGNING_KEY_FILE names ${config.signingKeyFile}; replace that file, `
        + "name the old one in ALK_SIGNING_KEY_PREVIOUS_FILE and start the processes that sign again"
    })
  }
  const folder = yield* DataFolder.open(config.dataDir)
  const { after, before } = yield* rotateSigningKey(config.serviceName, folder.path)
  report(
    `key ${after} signs from the next start on`
      + (before === undefined
        ? ""
        : `; ${before} endorses it then, and what it has signed until then stays verifiable`)
  )
}, Effect.scoped)

/** `alk repair`: on the log that this configuration means, with nothing else started. */
export const repairPartition = Effect.fnUntraced(function* (
  config: Config,
  args: ReadonlyArray<string>,
  report: Report
) {
  const folder = embedsBroker(config) ? yield* DataFolder.open(config.dataDir) : undefined
  const brokers = yield* bootstrapOf(config, folder, report)
  const secret = config.secret ?? (yield* folder!.secret)
  const log = yield* logOf(config, brokers, secret, folder)
  const { cleared, partition } = yield* clearChangelog(args).pipe(
    Effect.provideService(EventLog, log)
  )
  report(`partition ${partition}: ${cleared} records cleared; the next start rebuilds its state`)
}, Effect.scoped)

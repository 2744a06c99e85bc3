/** The role api: the HTTP API and everything that it needs, and the first key. */
import { Context, Effect, Layer, type Redacted } from "effect"
import { layerChainEnds } from "../actors/chainEnds/ChainEndsOfLog.ts"
import { layerLiveFeed } from "../actors/feeds/LiveFeed.ts"
import { layerTraceFeed } from "../actors/feeds/TraceFeed.ts"
import { Keys } from "../actors/follower/Keys.ts"
import { Following, layerLogFollower, RegistryView } from "../actors/follower/LogFollower.ts"
import { layerWrittenEvents } from "../actors/follower/WrittenEvents.ts"
import {
  runSelfVerification,
  type SliceReport
} from "../actors/selfVerification/SelfVerification.ts"
import { layerArchive } from "../adapters/archive/ArchiveZip.ts"
import { layerChromium } from "../adapters/chromium/PdfRendererChromium.ts"
import { layerConsoleBundle } from "../adapters/esbuild/ConsoleBundle.ts"
import { layerPackVerifiers } from "../adapters/esbuild/PackVerifiersBundle.ts"
import { layerExportFolder } from "../adapters/exports/ExportFolderFiles.ts"
import type { Config } from "../config/Config.ts"
import { programVersion } from "../config/ProgramVersion.ts"
import { chainOfTree } from "../domain/chain/Chains.ts"
import type { Signer } from "../domain/chain/Checkpoint.ts"
import { defined } from "../domain/Defined.ts"
import { layerEvidenceSeal } from "../exports/EvidenceSeal.ts"
import { layerStoredTraceExport } from "../exports/pack/TraceExport.ts"
import { AuditReports } from "../exports/report/AuditReports.ts"
import type { ReportSettings } from "../exports/report/ReportSettings.ts"
import { layerExportAnswers } from "../http/exports/ExportAnswers.ts"
import { layerExportMaker } from "../http/exports/ExportMaker.ts"
import { layerExportSlots } from "../http/exports/ExportSlots.ts"
import { layerExportJobs } from "../http/exports/jobs/ExportJobs.ts"
import { ApiSettings } from "../http/messages/ApiSettings.ts"
import { layerReadiness } from "../http/operations/ReadinessProbe.ts"
import { OtlpGrpcListener } from "../http/otlp/OtlpGrpcListener.ts"
import { layerServer } from "../http/Server.ts"
import { HttpListener } from "../http/server/HttpListener.ts"
import { layerKeys } from "../services/administration/Administration.ts"
import { noteDataVersion } from "../services/administration/DataVersions.ts"
import { layerKeyUses } from "../services/administration/KeyUses.ts"
import { layerPartitionGrowth } from "../services/administration/PartitionGrowth.ts"
import { layerQuarantineTopic } from "../services/administration/QuarantineTopic.ts"
import { layerQuarantineWatch } from "../services/administration/QuarantineWatch.ts"
import { layerSessions, Sessions } from "../services/administration/Sessions.ts"
import { layerShareLinks } from "../services/administration/ShareLinks.ts"
import { layerSystemAuditLog } from "../services/administration/SystemAuditLog.ts"
import { layerCheckpoints } from "../services/checkpoints/Checkpoints.ts"
import { layerPrunedHashTree, layerPrunedTrees } from "../services/checkpoints/PrunedTrees.ts"
import { layerPublishedKeys } from "../services/checkpoints/SigningKeys.ts"
import { CommandLog, layerCommandLog } from "../services/commands/CommandLog.ts"
import { RecentEvents } from "../services/ingest/RecentEvents.ts"
import { layerRetentions } from "../services/retention/Retentions.ts"
import { layerCheckedEvents } from "../verify/CheckedEvents.ts"
import { layerCheckedFacts } from "../verify/CheckedFacts.ts"
import { layerPrunedPoints } from "../verify/PrunedPoints.ts"
import { layerSignedCheckpoints } from "../verify/SignedCheckpoints.ts"
import { layerTraceVerifier } from "../verify/TraceVerifier.ts"
import { layerVerifier, Verifier } from "../verify/Verifier.ts"
import { logForgotten } from "./Forget.ts"
import { layerRetention } from "./Retention.ts"
import type { OpenedStore } from "./Store.ts"
import { embedsBroker, has } from "./Topology.ts"

/** What the check of a deleted tenant says. */
const NOTHING_LEFT: SliceReport = {
  status: "empty",
  events_checked: 0,
  last_sequence_number: null,
  breaks: [],
  breaks_total: 0
}

/** The rounds that this process goes over all chains. */
const layerSelfVerification = ({ selfVerifyEventsPerSecond }: Config) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const verifier = yield* Verifier
      const view = yield* RegistryView
      const { isAwaited } = yield* Following
      yield* runSelfVerification(
        { eventsPerSecond: selfVerifyEventsPerSecond, isAwaited },
        ({ fromSequence, toSequence, tree }) =>
          view.registry().tombstone(chainOfTree(tree).tenantId) !== undefined
            ? Effect.succeed(NOTHING_LEFT)
            : verifier.verify({
                ...chainOfTree(tree),
                fromSequence,
                requireHead: true,
                // What is outside of the chain is looked for with the first slice of each pass.
                onlyRange: fromSequence > 1,
                ...defined({ toSequence })
              })
      )
    })
  )

/** The first process of an installation that serves the API writes down what it writes. */
const layerDataVersion = (config: Config, secret: Redacted.Redacted) =>
  Layer.effectDiscard(
    isWorker(config) ? Effect.void : Effect.forkScoped(noteDataVersion(secret, programVersion()))
  )

const HOUR_MS = 3_600_000

/** What leaves the service as documents, in answers and in jobs. */
const exportsOf = (
  { cacheDir, chromiumPath, chromiumSandbox, exports, quotas }: Config,
  signer: Signer | undefined,
  report: ReportSettings
) =>
  Layer.mergeAll(
    layerExportAnswers,
    layerExportJobs({ keptMs: exports.keptHours * HOUR_MS, bytesMax: exports.bytesMax })
  ).pipe(
    Layer.provide(layerExportMaker),
    Layer.provide([
      AuditReports.layer(report).pipe(
        Layer.provide([
          layerChromium({ path: chromiumPath, cacheFolder: cacheDir, sandbox: chromiumSandbox }),
          layerStoredTraceExport
        ])
      ),
      layerArchive,
      layerEvidenceSeal(signer),
      layerExportFolder({ path: exports.folder }),
      layerExportSlots(quotas.exportsAtOnce),
      layerPackVerifiers,
      layerStoredTraceExport
    ])
  )

/** The HTTP API and everything that it needs beside the log and the store. */
const layerApi = (
  config: Config,
  secret: Redacted.Redacted,
  signer: Signer | undefined,
  report: ReportSettings
) => {
  const { adminToken, bootstrapKeys, limits, roles, serviceName, trustedKeys } = config
  const keys = layerKeys({ adminToken, bootstrapKeys })
  const services = exportsOf(config, signer, report).pipe(
    Layer.provideMerge(Layer.mergeAll(layerTraceFeed(), layerReadiness(roles), layerConsoleBundle)),
    Layer.provideMerge(
      Layer.mergeAll(
        layerSelfVerification(config),
        isWorker(config) ? Layer.empty : layerRetention(secret, serviceName),
        layerQuarantineWatch,
        layerDataVersion(config, secret)
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(layerVerifier, layerTraceVerifier, layerCheckedEvents, layerCheckedFacts)
    ),
    Layer.provideMerge(layerPrunedPoints),
    Layer.provideMerge(layerSignedCheckpoints(serviceName)),
    Layer.provideMerge(layerCheckpoints({ secret, serviceName })),
    Layer.provideMerge(layerChainEnds(config.topics.eventsRetentionMs === "forever")),
    Layer.provideMerge(layerLiveFeed(limits.streamsPerTenantMax)),
    Layer.provideMerge(
      Layer.mergeAll(
        Layer.mergeAll(
          layerSessions(secret),
          layerRetentions(programVersion()),
          layerShareLinks
        ).pipe(Layer.provideMerge(keys)),
        layerPartitionGrowth(programVersion())
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        layerSystemAuditLog(secret),
        layerKeyUses(secret),
        layerPublishedKeys(trustedKeys)
      )
    ),
    Layer.provideMerge(layerPrunedHashTree.pipe(Layer.provideMerge(layerPrunedTrees))),
    Layer.provideMerge(layerWrittenEvents),
    Layer.provideMerge(Layer.mergeAll(layerLogFollower, layerCommandLog, layerQuarantineTopic)),
    Layer.provideMerge(ApiSettings.fromConfig(config, secret))
  )
  return layerServer.pipe(Layer.provideMerge(services))
}

/** Where no other machine can reach the service. */
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"])

/** A process beside the first one: what is said of the installation, that one says. */
const isWorker = ({ http, workers }: Config): boolean => http.sharesPort && workers === 0

const FIRST_TENANT = "default"
const FIRST_LABEL = "made at the first start"

/** Without a key and without ALK_ADMIN_TOKEN no request is ever answered; nothing else shows it. */
const warnOfUnusableApi = Effect.fnUntraced(function* (config: Config, keys: Keys["Service"]) {
  if (config.adminToken !== undefined || (yield* keys.tenants).length > 0) return
  yield* Effect.logWarning(
    "no request can be authorised: there is no key, and no ALK_ADMIN_TOKEN to make one; "
      + "set that or ALK_BOOTSTRAP_KEYS"
  )
})

const isAlone = (config: Config): boolean => embedsBroker(config) && has(config, "sequencer")

/**
 * A code that opens the console signed in with the first key, once, for the person in front of the
 * terminal; undefined where the console is not on this machine alone, or that key is not there.
 */
const signInCodeOf = Effect.fnUntraced(function* (
  config: Config,
  keys: Keys["Service"],
  sessions: Sessions["Service"]
) {
  const { hasConsole, host, publicUrl } = config.http
  const isHere = hasConsole && publicUrl === undefined && LOOPBACK_HOSTS.has(host)
  if (!isHere || config.log.format !== "pretty" || !isAlone(config)) return undefined
  const first = (yield* keys.keysOf(FIRST_TENANT))?.find(({ label }) => label === FIRST_LABEL)
  return first === undefined ? undefined : sessions.codeFor(first.id)
})

/**
 * The first start of an embedded installation without a key: a tenant and a key, so
 * that the first request needs no administration.
 */
const firstKeyOf = Effect.fnUntraced(function* (config: Config, keys: Keys["Service"]) {
  if (!isAlone(config) || config.bootstrapKeys.length > 0) return undefined
  const others = (yield* keys.tenants).filter(({ id }) => id !== FIRST_TENANT)
  const known = yield* keys.keysOf(FIRST_TENANT)
  if (others.length > 0 || (known?.length ?? 0) > 0) return undefined
  if (known === undefined) yield* keys.createTenant({ id: FIRST_TENANT })
  const { secret } = yield* keys.createKey({
    tenantId: FIRST_TENANT,
    scopes: ["read", "write"],
    label: FIRST_LABEL,
    prefix: "alk_live_"
  })
  return secret
})

/**
 * Starts it; comes back with its addresses, and with how the start goes on once all partitions have a
 * sequencer: that ends with a key if this start has made the first one, and with a sign-in code.
 */
export const startApi = Effect.fnUntraced(function* (
  config: Config,
  parts: {
    readonly secret: Redacted.Redacted
    readonly signer: Signer | undefined
    readonly report: ReportSettings
    readonly stores: OpenedStore["stores"]
    readonly recent: RecentEvents["Service"]
  }
) {
  const stores = Layer.merge(
    Layer.succeedContext(yield* parts.stores),
    Layer.succeed(RecentEvents, parts.recent)
  )
  const api = yield* Layer.build(
    layerApi(config, parts.secret, parts.signer, parts.report).pipe(Layer.provide(stores))
  )
  const keys = Context.get(api, Keys)
  const { port, url } = Context.get(api, HttpListener)
  const { url: otlpGrpc } = Context.get(api, OtlpGrpcListener)
  const complete = Effect.gen(function* () {
    if (embedsBroker(config)) {
      const commands = Context.get(api, CommandLog)
      yield* Effect.provideService(logForgotten(config, parts.secret), CommandLog, commands)
    }
    const firstKey = yield* firstKeyOf(config, keys)
    const signInCode = yield* signInCodeOf(config, keys, Context.get(api, Sessions))
    if (!isWorker(config)) yield* warnOfUnusableApi(config, keys)
    return { firstKey, signInCode }
  })
  return { url: config.http.publicUrl ?? url, otlpGrpc, port, complete }
})

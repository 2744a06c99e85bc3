/** The role api: the HTTP API and everything that it needs, and the first key. */
import { Context, Effect, Layer, type Redacted } from "effect"
import { layerChainEnds } from "../actors/chainEnds/ChainEndsOfLog.ts"
import { layerLiveFeed } from "../actors/feeds/LiveFeed.ts"
import { layerTraceFeed } from "../actors/feeds/TraceFeed.ts"
import { Keys } from "../actors/follower/Keys.ts"
import { Following, layerLogFollower } from "../actors/follower/LogFollower.ts"
import { runSelfVerification } from "../actors/selfVerification/SelfVerification.ts"
import { layerArchive } from "../adapters/archive/ArchiveZip.ts"
import { layerChromium } from "../adapters/chromium/PdfRendererChromium.ts"
import type { Config } from "../config/Config.ts"
import { chainOfTree } from "../domain/chain/Chains.ts"
import type { Signer } from "../domain/chain/Checkpoint.ts"
import { defined } from "../domain/Defined.ts"
import { layerEvidenceSeal } from "../exports/EvidenceSeal.ts"
import { layerStoredTraceExport } from "../exports/pack/TraceExport.ts"
import { AuditReports } from "../exports/report/AuditReports.ts"
import type { ReportSettings } from "../exports/report/ReportSettings.ts"
import { layerExportAnswers } from "../http/exports/ExportAnswers.ts"
import { layerExportSlots } from "../http/exports/ExportSlots.ts"
import { ApiSettings } from "../http/messages/ApiSettings.ts"
import { layerReadiness } from "../http/operations/ReadinessProbe.ts"
import { layerServer } from "../http/Server.ts"
import { HttpListener } from "../http/server/HttpListener.ts"
import { layerKeys } from "../services/administration/Administration.ts"
import { layerShareLinks } from "../services/administration/ShareLinks.ts"
import { layerSystemAuditLog } from "../services/administration/SystemAuditLog.ts"
import { layerCheckpoints } from "../services/checkpoints/Checkpoints.ts"
import { layerPublishedKeys } from "../services/checkpoints/SigningKeys.ts"
import { layerCommandLog } from "../services/commands/CommandLog.ts"
import { RecentEvents } from "../services/ingest/RecentEvents.ts"
import { layerSignedCheckpoints } from "../verify/SignedCheckpoints.ts"
import { layerTraceVerifier } from "../verify/TraceVerifier.ts"
import { layerVerifier, Verifier } from "../verify/Verifier.ts"
import type { OpenedStore } from "./Store.ts"
import { embedsBroker, has } from "./Topology.ts"

/** The rounds that this process goes over all chains. */
const layerSelfVerification = ({ selfVerifyEventsPerSecond }: Config) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const verifier = yield* Verifier
      const { isAwaited } = yield* Following
      yield* runSelfVerification(
        { eventsPerSecond: selfVerifyEventsPerSecond, isAwaited },
        ({ fromSequence, toSequence, tree }) =>
          verifier.verify({
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

/** A process beside the first one: what is said of the installation, that one says. */
const isWorker = ({ http, workers }: Config): boolean => http.sharesPort && workers === 0

const FIRST_TENANT = "default"

/** Without a key and without ALK_ADMIN_TOKEN no request is ever answered; nothing else shows it. */
const warnOfUnusableApi = Effect.fnUntraced(function* (config: Config, keys: Keys["Service"]) {
  if (config.adminToken !== undefined || (yield* keys.tenants).length > 0) return
  yield* Effect.logWarning(
    "no request can be authorised: there is no key, and no ALK_ADMIN_TOKEN to make one; "
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

/**
 * Starts it; comes back with its address, and with how the start goes on once all partitions have a
 * sequencer: that ends with a key if this start has made the first one.
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
  const complete = Effect.gen(function* () {
    const firstKey = yield* firstKeyOf(config, keys)
    if (!isWorker(config)) yield* warnOfUnusableApi(config, keys)
    return firstKey
  })
  return { url: config.http.publicUrl ?? url, port, complete }
})

/**
 * When retention and deletion are looked at: at the start, every hour, and as soon as the registry says
 * something new of them.
 */
import { Effect, Metric, Schedule } from "effect"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import type { Chain } from "../../domain/chain/Chains.ts"
import { gaugeOf } from "../../domain/metrics/Metrics.ts"
import { type PruningSettings, pruneChain, type VerifyStretch } from "./Pruning.ts"
import { careForDeleted } from "./TenantDeletion.ts"

/** Time until everything is looked at again. */
const ROUND_INTERVAL = "1 hour"
/** The same where something could not be reached. */
const RETRY_INTERVAL = "30 seconds"
/** Time in which several changes become one round. */
const SETTLE = "200 millis"
/** Chains that are pruned. */
const PRUNED_CHAINS: ReadonlyArray<Chain> = ["events"]

const keptChains = gaugeOf("alk_retention_kept_chains")

/** What decides whether there is something to do. */
const changesOf = (registry: ReturnType<RegistryView["Service"]["registry"]>): string =>
  [
    ...[...registry.retentions.values()].map((one) => `${one.tenant_id} ${one.changed_at}`),
    ...[...registry.tombstones.values()].map((one) => `${one.tenant_id} ${one.removed_at}`)
  ].join("\n")

/** One piece of work; false if it has to be tried again soon. */
const attempt = <E extends { readonly _tag: string; readonly message: string }, R>(
  tenantId: string,
  work: Effect.Effect<unknown, E, R>
) =>
  work.pipe(
    Effect.as(true),
    Effect.catch((failure) => {
      // Another process was first, or a hold was set.
      if (failure._tag === "AdminRefused") {
        return Effect.as(
          Effect.logInfo("nothing is removed", { tenantId, reason: failure.message }),
          true
        )
      }
      const error = "cause" in failure ? String(failure.cause) : failure.message
      return Effect.as(Effect.logWarning("retention waits", { tenantId, error }), false)
    })
  )

/** Goes over all chains with a retention, and all tenants that are being deleted, forever. */
export const runRetention = Effect.fnUntraced(function* (
  settings: PruningSettings,
  verify: VerifyStretch
) {
  const view = yield* RegistryView
  const round = Effect.gen(function* () {
    yield* view.caughtUp
    const seen = changesOf(view.registry())
    let isDone = true
    let kept = 0
    for (const tombstone of [...view.registry().tombstones.values()]) {
      const work = careForDeleted(tombstone, settings.serviceName)
      if (!(yield* attempt(tombstone.tenant_id, work))) isDone = false
    }
    for (const tenantId of [...view.registry().retentions.keys()]) {
      for (const chain of PRUNED_CHAINS) {
        const work = Effect.map(pruneChain(settings, verify, { tenantId, chain }), (isKept) => {
          if (isKept) kept += 1
        })
        if (!(yield* attempt(tenantId, work))) isDone = false
      }
    }
    yield* Metric.update(keptChains, kept)
    yield* Effect.raceFirst(
      Effect.sleep(isDone ? ROUND_INTERVAL : RETRY_INTERVAL),
      view.until((registry) => changesOf(registry) !== seen)
    )
    yield* Effect.sleep(SETTLE)
  })
  yield* round.pipe(
    Effect.tapError((failure) => Effect.logWarning("retention waits", String(failure))),
    Effect.retry(Schedule.spaced(RETRY_INTERVAL)),
    Effect.catchDefect((defect) =>
      Effect.andThen(Effect.logError("retention starts over", defect), Effect.sleep(RETRY_INTERVAL))
    ),
    Effect.forever,
    Effect.forkScoped
  )
})

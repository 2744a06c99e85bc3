/**
 * What is left to do once it is decided that a tenant goes: take down where its chains have ended,
 * signed, and remove its rows. Each step can be done again, so what a kill has broken off the next
 * round ends.
 */
import { Clock, Effect } from "effect"
import { Heads, headOf } from "../../actors/follower/Heads.ts"
import { type Chain, treeNameOf } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import type { DeletedChain, Tombstone } from "../../domain/registry/RetentionEntry.ts"
import { formatMicros, microsOf } from "../../domain/Timestamp.ts"
import { LogUnavailable } from "../../ports/EventLog.ts"
import { StoreRemoval } from "../../ports/StoreRemoval.ts"
import { SystemAuditLog } from "../administration/SystemAuditLog.ts"
import { Checkpoints } from "../checkpoints/Checkpoints.ts"
import { storeCaughtUp } from "../checkpoints/KnownCheckpoints.ts"

/** Milliseconds in which every process has heard that the keys of the tenant are gone. */
const KEYS_GONE_MS = 5_000

/** The end of a chain as it was signed; undefined if there never was one. */
const endOf = Effect.fnUntraced(function* (tenantId: string, chain: Chain) {
  const checkpoints = yield* Checkpoints
  const heads = yield* Heads
  if ((yield* headOf(heads, { tenantId, chain })) === undefined) return undefined
  const { note, root_hash, tree_size } = yield* checkpoints.latest(treeNameOf(tenantId, chain))
  const head = yield* headOf(heads, { tenantId, chain })
  if (head?.sequence_number !== tree_size) {
    const cause = new Error(`the chain of ${chain} has grown beyond its checkpoint`)
    return yield* new LogUnavailable({ operation: "delete tenant", cause })
  }
  const end: DeletedChain = { size: tree_size, head_hash: head.hash, root_hash, note }
  return end
})

/** Ends a deletion that was decided. */
const finishDeletion = Effect.fn("TenantDeletion.finish")(function* (
  tombstone: Tombstone,
  serviceName: string
) {
  const removal = yield* StoreRemoval
  const auditLog = yield* SystemAuditLog
  const { deleted_at, tenant_id: tenantId } = tombstone
  const age = (yield* Clock.currentTimeMillis) - microsOf(deleted_at) / 1_000
  if (age < KEYS_GONE_MS) yield* Effect.sleep(Math.min(KEYS_GONE_MS, KEYS_GONE_MS - age))
  const events = yield* endOf(tenantId, "events")
  const traces = yield* endOf(tenantId, "traces")
  // Nothing of it comes into the store later: no record follows those.
  yield* storeCaughtUp(tenantId, "events")
  yield* storeCaughtUp(tenantId, "traces")
  yield* removal.forget(tenantId)
  const done: Tombstone = {
    ...tombstone,
    ...defined({ events, traces }),
    removed_at: formatMicros((yield* Clock.currentTimeMillis) * 1_000)
  }
  const sizeAndRoot = (end: DeletedChain | undefined) =>
    end && { size: end.size, head_hash: end.head_hash, root_hash: end.root_hash }
  yield* auditLog.record(
    { op: "complete_tombstone", tombstone: done },
    {
      actor: serviceName,
      action: "tenant.removed",
      resource: { type: "tenant", id: tenantId },
      metadata: defined({ events: sizeAndRoot(events), traces: sizeAndRoot(traces) })
    }
  )
  yield* Effect.logInfo("a tenant was removed", { tenantId })
})

/**
 * Removes what a process that had not heard of the deletion has still written; that is a matter of
 * seconds, and nothing for nearly every tenant.
 */
const removeLate = Effect.fnUntraced(function* (tenantId: string) {
  const removal = yield* StoreRemoval
  const rows = yield* removal.left(tenantId)
  if (rows === 0) return
  yield* Effect.logWarning("rows of a deleted tenant came late and are removed", { tenantId, rows })
  yield* removal.forget(tenantId)
})

/** What has to be done for a deleted tenant now. */
export const careForDeleted = (tombstone: Tombstone, serviceName: string) =>
  tombstone.removed_at === undefined
    ? finishDeletion(tombstone, serviceName)
    : removeLate(tombstone.tenant_id)

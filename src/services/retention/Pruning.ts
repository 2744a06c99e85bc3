/**
 * Removes the records of tenants that are older than their retention. Only what a signed checkpoint
 * covers goes, and only after it was verified against that. The order makes each step repeatable:
 * the registry says what was removed and why before a row goes, and again when all rows are gone.
 */
import { Clock, Effect, Redacted, Stream } from "effect"
import { AdminRefused } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { type ChainKey, treeNameOf } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import { hashesOf, inclusionParts, rootPart } from "../../domain/chain/MerkleTree.ts"
import {
  frontierText,
  openPoint,
  type PrunedEnd,
  type PrunedPoint,
  treeOfPoint
} from "../../domain/chain/PrunedPoint.ts"
import { emptyFilter } from "../../domain/events/EventFilter.ts"
import { recompute } from "../../domain/events/HashChain.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import { toBatch } from "../../domain/records/EventBatch.ts"
import { holdersIn } from "../../domain/records/EventValues.ts"
import type { RegistryReader } from "../../domain/registry/Registry.ts"
import { holdRefusal } from "../../domain/registry/Retention.ts"
import { formatMicros } from "../../domain/Timestamp.ts"
import { recomputeFact } from "../../domain/traces/FactText.ts"
import { EventLog, LogUnavailable } from "../../ports/EventLog.ts"
import { EventStore, type StoreUnavailable } from "../../ports/EventStore.ts"
import { HashTree } from "../../ports/HashTree.ts"
import { StoreRemoval } from "../../ports/StoreRemoval.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { SystemAuditLog } from "../administration/SystemAuditLog.ts"
import { Checkpoints } from "../checkpoints/Checkpoints.ts"
import type { CheckpointPage } from "../checkpoints/KnownCheckpoints.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { prepareOwnEvent } from "../ingest/Prepare.ts"
import { eraseHolders } from "./ValueErasures.ts"

const DAY_MICROS = 86_400_000_000
/** What a tenant's own chain says when its beginning goes. */
export const PRUNED_ACTION = "alk.chain.pruned"

/** What a verification of a stretch has to say. */
export interface StretchReport {
  readonly status: "valid" | "broken" | "incomplete" | "empty"
  readonly events_checked: number
}

/** The verification of the records from one sequence to another, against a signed checkpoint. */
export type VerifyStretch = (stretch: {
  readonly key: ChainKey
  readonly fromSequence: number
  readonly toSequence: number
  readonly checkpoint: Pick<CheckpointRecord, "note" | "root_hash" | "tree_size">
}) => Effect.Effect<StretchReport, LogUnavailable | StoreUnavailable>

export interface PruningSettings {
  /** `ALK_SECRET`. */
  readonly secret: Redacted.Redacted
  /** What the log calls the service. */
  readonly serviceName: string
}

/** The time before which records of a tenant go; undefined if none do. */
export const cutOffOf = (
  registry: Pick<RegistryReader, "retention" | "tombstone">,
  tenantId: string,
  nowMs: number
): string | undefined => {
  const days = registry.retention(tenantId)?.days
  const isKept =
    days === undefined
    || tenantId === SYSTEM_TENANT
    || holdRefusal(registry, tenantId) !== undefined
    || registry.tombstone(tenantId) !== undefined
  return isKept ? undefined : formatMicros(nowMs * 1_000 - days * DAY_MICROS)
}

/** The point of a chain at the size of a checkpoint, of what the store holds. */
const pointOf = Effect.fnUntraced(function* (
  { chain, tenantId }: ChainKey,
  { note, root_hash, tree_size: size }: CheckpointRecord,
  recordedBefore: string,
  { by, at }: { readonly by: string; readonly at: string }
) {
  const tree = yield* HashTree
  const peaks = rootPart(size)
  const proof = inclusionParts(size - 1, size)
  const head = { level: 0, index: size - 1 }
  const stored = yield* tree.nodes(treeNameOf(tenantId, chain), [...peaks, ...proof.flat(), head])
  const point: PrunedPoint = {
    tenant_id: tenantId,
    chain,
    size,
    head_hash: stored.eventHash(size - 1),
    root_hash,
    note,
    frontier: frontierText(
      size,
      peaks.map(({ index, level }) => stored.node(level, index))
    ),
    head_proof: hashesOf(proof, stored.node).map((hash) => hash.toString("hex")),
    recorded_before: recordedBefore,
    pruned_at: at,
    pruned_by: by
  }
  return point
})

/** What the logs say of a point. */
const metadataOf = ({ chain, head_hash, recorded_before, root_hash, size }: PrunedPoint) => ({
  chain,
  up_to_sequence: size,
  head_hash,
  root_hash,
  recorded_before
})

/** True if rows of the tenant's partition come and go only one by one, in order. */
const isSettled = Effect.fnUntraced(function* (tenantId: string) {
  const log = yield* EventLog
  const projection = yield* ProjectionProgress
  const { final, rebuilding } = projection.partition(log.partitionOf(tenantId))
  return !final && !rebuilding
})

const nowText = Effect.map(Clock.currentTimeMillis, (now) => formatMicros(now * 1_000))

/** What could be removed by its age, and is not. */
const KEPT = "kept" as const

/** Why that is, in the log of the process. */
const kept = (tree: string, why: string, more: Readonly<Record<string, unknown>>) =>
  Effect.as(
    Effect.logError("the beginning of a chain is kept beyond its retention", {
      tree,
      why,
      ...more
    }),
    KEPT
  )

/** The tenant's own chain says that its beginning goes; said again, it is the same event. */
const tellTenant = Effect.fnUntraced(function* (settings: PruningSettings, point: PrunedPoint) {
  const ingest = yield* Ingest
  const tenantId = point.tenant_id
  const tree = treeOfPoint(point)
  const event = prepareOwnEvent(
    {
      actor: { id: settings.serviceName, type: "system" },
      action: PRUNED_ACTION,
      resource: { id: tree, type: "chain" },
      timestamp: point.pruned_at,
      metadata: metadataOf(point)
    },
    {
      index: 0,
      tenantId,
      secret: Redacted.value(settings.secret),
      isOwn: true,
      // Its id is derived from this, so that the same is not said twice.
      idempotencyKey: `retention ${tree} ${point.size}`
    }
  )
  yield* ingest
    .ingest({
      tenantId,
      items: { events: toBatch([event]), errors: [], warnings: [] },
      until: "visible",
      idempotency: undefined
    })
    .pipe(Effect.mapError((cause) => new LogUnavailable({ operation: "retention", cause })))
})

/** Fails under a hold, or a longer retention, that was decided before this is asked. */
const refuseKept = Effect.fnUntraced(function* ({ recorded_before, tenant_id }: PrunedPoint) {
  const view = yield* RegistryView
  yield* view.caughtUp
  const registry = view.registry()
  const held = holdRefusal(registry, tenant_id)
  if (held !== undefined) return yield* new AdminRefused({ code: "legal_hold", message: held })
  const cutOff = cutOffOf(registry, tenant_id, yield* Clock.currentTimeMillis)
  if (cutOff !== undefined && cutOff >= recorded_before) return
  const message = `tenant ${tenant_id} has a longer retention now than when this was decided`
  return yield* new AdminRefused({ code: "id_conflict", message })
})

const VALUES_ERASED = "retention of their event"

/** Facts stay, so what has left the metadata of events that go is erased. */
const eraseValues = Effect.fnUntraced(function* (
  { serviceName: keyId }: PruningSettings,
  point: PrunedPoint
) {
  const { size: toSequence, tenant_id: tenantId } = point
  const ingest = yield* Ingest
  const store = yield* EventStore
  const request = { tenantId, keyId, reason: VALUES_ERASED, idempotency: undefined }
  const filter = { ...emptyFilter, toSequence }
  yield* Stream.runForEach(
    store.scan({ tenantId, filter, order: "asc" }, false),
    Effect.fnUntraced(function* (bodies) {
      yield* refuseKept(point)
      const undone = yield* eraseHolders(ingest, request, holdersIn(bodies))
      if (undone !== undefined) return yield* Effect.fail(new Error(`values: ${undone.kind}`))
    })
  ).pipe(
    Effect.mapError((cause) =>
      cause instanceof AdminRefused ? cause : new LogUnavailable({ operation: "retention", cause })
    )
  )
})

/**
 * Removes the rows that a point says are removed, unless a hold or a longer retention comes in between.
 * They are asked for before each step: the statement or batch of erasures that is under way goes on.
 */
const removeRows = Effect.fnUntraced(function* (settings: PruningSettings, point: PrunedPoint) {
  const removal = yield* StoreRemoval
  const auditLog = yield* SystemAuditLog
  const { chain, size, tenant_id: tenantId } = point
  yield* refuseKept(point)
  if (!(yield* isSettled(tenantId))) return
  yield* tellTenant(settings, point)
  if (chain === "events") yield* eraseValues(settings, point)
  yield* refuseKept(point)
  yield* removal.prune({ tenantId, chain }, size)
  const pruned = { ...point, removed_at: yield* nowText }
  yield* auditLog.record(
    { op: "note_removed", pruned },
    {
      actor: settings.serviceName,
      action: "retention.removed",
      resource: { type: "chain", id: treeOfPoint(point) },
      metadata: metadataOf(point)
    }
  )
  yield* Effect.logInfo("the beginning of a chain was removed", {
    tree: treeOfPoint(point),
    upToSequence: size
  })
})

/** The largest signed checkpoint of a chain of which everything was recorded before a time. */
const coveringCheckpoint = Effect.fnUntraced(function* (key: ChainKey, cutOff: string) {
  const removal = yield* StoreRemoval
  const checkpoints = yield* Checkpoints
  const last = yield* removal.recordedBefore(key, cutOff)
  if (last < 1) return undefined
  const tree = treeNameOf(key.tenantId, key.chain)
  for (let beforeSize: number | undefined = last + 1; beforeSize !== undefined; ) {
    const page: CheckpointPage = yield* checkpoints.list(tree, { beforeSize, limit: 1 })
    if (page.checkpoints[0] !== undefined) return page.checkpoints[0]
    beforeSize = page.beforeSize
  }
  return undefined
})

/**
 * When the last record of a proven point was recorded, as its hash covers it; undefined if the store
 * has no such record (any more). A column may have been changed.
 */
const recordedAt = Effect.fnUntraced(function* (
  { chain, tenantId }: ChainKey,
  { headHash, size }: PrunedEnd
) {
  if (chain === "events") {
    const store = yield* EventStore
    const rows = (yield* Stream.runCollect(store.rows(tenantId, size, size))).flat()
    const found = rows.map(({ body }) => recompute(body)).find((one) => one?.hash === headHash)
    return found?.event.created_at
  }
  const store = yield* TraceStore
  const rows = (yield* Stream.runCollect(store.chainRows(tenantId, size, size))).flat()
  const found = rows.map(({ body }) => recomputeFact(body)).find((one) => one?.hash === headHash)
  return found?.fact.created_at
})

/** Decides what goes of a chain next; undefined if nothing does. */
const decideNext = Effect.fnUntraced(function* (
  settings: PruningSettings,
  verify: VerifyStretch,
  key: ChainKey,
  cutOff: string
) {
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const tree = treeNameOf(key.tenantId, key.chain)
  const before = view.registry().pruned(tree)?.size ?? 0
  const checkpoint = yield* coveringCheckpoint(key, cutOff)
  if (checkpoint === undefined || checkpoint.tree_size <= before) return undefined
  const { root_hash: rootHash, tree_size: size } = checkpoint
  const report = yield* verify({ key, fromSequence: before + 1, toSequence: size, checkpoint })
  const isWhole = report.status === "valid" && report.events_checked === size - before
  if (!isWhole) {
    const { status } = report
    return yield* kept(tree, "its verification has failed", { upToSequence: size, status })
  }
  const origin = { by: settings.serviceName, at: yield* nowText }
  const point = yield* pointOf(key, checkpoint, cutOff, origin)
  const end = openPoint(point, { treeSize: size, rootHash })
  if (typeof end === "string") {
    return yield* kept(tree, end, { upToSequence: size })
  }
  // Times never decrease along a chain: the last one says it of all.
  const last = yield* recordedAt(key, end)
  if (last === undefined || last >= cutOff) {
    return yield* kept(tree, "its records are not as old as the store says", { upToSequence: size })
  }
  yield* auditLog.record(
    { op: "prune", pruned: point },
    {
      actor: settings.serviceName,
      action: "retention.pruned",
      resource: { type: "chain", id: tree },
      metadata: metadataOf(point)
    }
  )
  return point
})

/**
 * What has to be done with a chain now: what was begun is ended first. True if its beginning is kept
 * beyond its retention, because it does not verify.
 */
export const pruneChain = Effect.fn("Pruning.chain")(function* (
  settings: PruningSettings,
  verify: VerifyStretch,
  key: ChainKey
) {
  const view = yield* RegistryView
  if (!(yield* isSettled(key.tenantId))) return false
  const begun = view.registry().pruned(treeNameOf(key.tenantId, key.chain))
  if (begun !== undefined && begun.removed_at === undefined) yield* removeRows(settings, begun)
  const cutOff = cutOffOf(view.registry(), key.tenantId, yield* Clock.currentTimeMillis)
  if (cutOff === undefined) return false
  const next = yield* decideNext(settings, verify, key, cutOff)
  if (next !== undefined && next !== KEPT) yield* removeRows(settings, next)
  return next === KEPT
})

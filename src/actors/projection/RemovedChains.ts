/**
 * What the registry says was removed for good: a projection that reads old records once more does
 * not bring it back. Read from the topic itself, because a process that only projects follows no
 * registry.
 */
import { Effect } from "effect"
import { type Chain, treeNameOf } from "../../domain/chain/Chains.ts"
import type { PrunedPoint } from "../../domain/chain/PrunedPoint.ts"
import { treeOfPoint } from "../../domain/chain/PrunedPoint.ts"
import { EventLog, type LogReader, type LogRecord } from "../../ports/EventLog.ts"
import { scan } from "../log/PartitionScan.ts"
import { REGISTRY, registryChangeIn } from "../log/RegistryChanges.ts"

/** Up to which sequence a tenant's chain was removed; 0 of one that is whole. */
export type RemovedChains = (tenantId: string, chain: Chain) => number

export const nothingRemoved: RemovedChains = () => 0

/** True of a deleted tenant: nothing of it is shown, whatever its records are. */
export const isGone = (removed: RemovedChains, tenantId: string): boolean =>
  removed(tenantId, "events") === Infinity

const PREFIXES = ["pruned/", "tombstone/"]

const changeIn = (record: LogRecord) => {
  const name = record.key?.toString() ?? ""
  return PREFIXES.some((prefix) => name.startsWith(prefix)) ? registryChangeIn(record) : undefined
}

/** What was removed as of everything committed before each call; what was read is not read again. */
export const makeRemovedChains = (reader: LogReader) => {
  const points = new Map<string, PrunedPoint>()
  const gone = new Set<string>()
  let next: number | undefined
  const take = (records: ReadonlyArray<LogRecord>) => {
    for (const record of records) {
      const change = changeIn(record)
      if (change?.kind === "tombstone") gone.add(change.tombstone.tenant_id)
      if (change?.kind !== "pruned") continue
      const tree = treeOfPoint(change.pruned)
      if ((points.get(tree)?.size ?? 0) < change.pruned.size) points.set(tree, change.pruned)
    }
  }
  const removed: RemovedChains = (tenantId, chain) =>
    gone.has(tenantId) ? Infinity : (points.get(treeNameOf(tenantId, chain))?.size ?? 0)
  return Effect.gen(function* () {
    const log = yield* EventLog
    const { end, start } = yield* log.bounds(REGISTRY.topic, REGISTRY.partition)
    yield* scan(reader, { ...REGISTRY, offset: Math.max(start, next ?? start) }, end, take)
    next = end
    return removed
  }).pipe(Effect.withSpan("RemovedChains.read"))
}

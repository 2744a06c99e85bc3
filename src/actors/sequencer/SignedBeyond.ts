/**
 * Checkpoints that this service has signed of larger chains than the log has: the log was put back, and
 * numbers that were given out, and signed, would be given out once more. Neither the log nor its
 * changelog can say so where both were put back; the store can, which holds what was set aside as well.
 */
import { Effect, Option } from "effect"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import { type CheckpointRecord, treeOfCheckpoint } from "../../domain/chain/Checkpoint.ts"
import { openRecord } from "../../domain/chain/SignedRecord.ts"
import { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import { giveUp, type Restoring, writeState } from "./Restoring.ts"
import { readRegistry } from "./SequencerRebuild.ts"
import { givenUpRecord, headsOf, type SequencerState } from "./SequencerState.ts"

/** Time that a start waits for the store: it has to go on without it. */
const ASKED_TIMEOUT = "5 seconds"
/** Losses that one refusal names. */
const NAMED_MAX = 3

/** Up to which size checkpoints of a tree are expected. */
const sizeOf = (state: SequencerState, tree: string): number => {
  const { chain, tenantId } = chainOfTree(tree)
  const head = headsOf(state, chain).get(tenantId)?.sequence_number ?? 0
  return Math.max(head, state.givenUp.get(tree)?.tree_size ?? 0)
}

/** Those of the partition that a key has signed which has not handed its trees over. */
const genuine = Effect.fnUntraced(function* (
  restoring: Restoring,
  { handOvers }: SequencerState,
  candidates: ReadonlyArray<CheckpointRecord>
) {
  if (candidates.length === 0) return []
  const registry = new RegistryTable()
  yield* readRegistry(restoring, registry)
  const published = [...registry.allSigningKeys()].map(({ vkey }) => vkey)
  const vkeys = [...new Set([...published, ...restoring.vkeys])]
  const replaced = new Set([...handOvers.values()].map(({ key_id }) => key_id))
  return candidates.filter((one) => {
    const opened = openRecord(restoring.serviceName, treeOfCheckpoint(one), one, vkeys)
    return opened?.keyIds.some((keyId) => !replaced.has(keyId)) === true
  })
})

/** What the store holds; undefined where it does not answer. */
const storedBeyond = Effect.fnUntraced(function* ({ checkpoints, log, partition }: Restoring) {
  if (checkpoints === undefined) return []
  const { end } = yield* log.bounds("checkpoints", partition)
  const found = yield* checkpoints.beyond(partition, end).pipe(
    Effect.timeoutOption(ASKED_TIMEOUT),
    Effect.catch(() => Effect.succeedNone)
  )
  return Option.getOrUndefined(found)
})

/**
 * Refuses a partition whose log ends before what was signed of it, unless an operator accepts that:
 * then it is written down up to where. False where the store could not be asked.
 */
export const checkSigned = Effect.fnUntraced(function* (
  restoring: Restoring,
  state: SequencerState,
  acceptsLoss: boolean
) {
  const { log, partition } = restoring
  const stored = yield* storedBeyond(restoring)
  const isBeyond = (one: CheckpointRecord): boolean =>
    log.partitionOf(one.tenant_id) === partition
    && one.tree_size > sizeOf(state, treeOfCheckpoint(one))
  const known = [...state.checkpoints.values()].filter(isBeyond)
  const signed = yield* genuine(restoring, state, (stored ?? []).filter(isBeyond))
  const largest = new Map<string, CheckpointRecord>()
  for (const one of [...known, ...signed]) {
    const tree = treeOfCheckpoint(one)
    if (one.tree_size > (largest.get(tree)?.tree_size ?? 0)) largest.set(tree, one)
  }
  if (largest.size > 0) {
    const named = [...largest].slice(0, NAMED_MAX).map(([tree, { root_hash, tree_size }]) => {
      return `${tree} of ${tree_size} records with the root ${root_hash}, and ${sizeOf(state, tree)} are left`
    })
    const lost = `checkpoints that were signed are beyond the end of the log: ${named.join("; ")}`
    yield* giveUp(partition, acceptsLoss, lost)
    yield* writeState(restoring, [...largest.values()].map(givenUpRecord))
    for (const [tree, one] of largest) state.givenUp.set(tree, one)
  }
  return stored !== undefined
})

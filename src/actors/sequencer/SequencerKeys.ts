/**
 * The change of the key that signs a partition's trees: the key that goes signs each tree a last
 * time and names its successor, so the size of every tree at that moment is signed; then the new
 * key goes on. Runs after the state is restored and before the first command.
 */
import { Effect } from "effect"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  type Signer,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import { handOver } from "../../domain/chain/KeyLine.ts"
import { checkpointHeaders } from "../../domain/records/CloudEvent.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import type { NewRecord, TransactionalWriter } from "../../ports/EventLog.ts"
import { PartitionRefused } from "./Restoring.ts"
import type { CheckpointSigner } from "./SequencerCheckpoints.ts"
import {
  checkpointRecord,
  handOverName,
  handOverRecord,
  newStateRecord,
  type SequencerState,
  signerRecord
} from "./SequencerState.ts"

/** Who signs, and who did until now: the key before, while the change is under way. */
export interface KeyChange extends CheckpointSigner {
  readonly previous?: Signer
}

/** Trees that are handed over in one transaction at most: signing takes about 50 us each. */
const HANDED_OVER_MAX = 500

/** Last checkpoints of the trees that this key has not handed over yet. */
const handOvers = (
  state: SequencerState,
  { serviceName, signer }: KeyChange,
  previous: Signer
): ReadonlyArray<CheckpointRecord> => {
  const now = currentTime()
  const made: Array<CheckpointRecord> = []
  for (const [name, tree] of state.trees) {
    if (tree.size === 0 || state.handOvers.has(handOverName(previous.keyId, name))) continue
    const { chain, tenantId } = chainOfTree(name)
    made.push(handOver(previous, serviceName, tenantId, tree, now, signer.vkey, chain))
  }
  return made
}

const recordsOf = (
  { partition }: SequencerState,
  { serviceName, signer }: KeyChange,
  checkpoint: CheckpointRecord
): ReadonlyArray<NewRecord> => {
  const headers = checkpointHeaders(serviceName, checkpoint)
  return [
    {
      topic: "checkpoints",
      partition,
      key: checkpoint.tenant_id,
      value: JSON.stringify(checkpoint),
      // The same key may have signed the same size before.
      headers: { ...headers, ce_id: `${headers["ce_id"]}-${signer.keyId}` }
    },
    newStateRecord(partition, checkpointRecord(checkpoint)),
    newStateRecord(partition, handOverRecord(checkpoint))
  ]
}

const take = (state: SequencerState, checkpoint: CheckpointRecord): void => {
  const tree = treeOfCheckpoint(checkpoint)
  state.handOvers.set(handOverName(checkpoint.key_id, tree), checkpoint)
  state.checkpoints.set(tree, checkpoint)
}

const isRetired = (state: SequencerState, { signer }: KeyChange): boolean =>
  state.signer?.previous === signer.vkey
  || [...state.handOvers.values()].some(({ key_id }) => key_id === signer.keyId)

/** Hand every tree over to the key that signs now, once, and remember which one that is. */
export const changeKey = Effect.fnUntraced(function* (
  writer: TransactionalWriter,
  state: SequencerState,
  change: KeyChange
) {
  const { partition, signer: before } = state
  const { previous, signer } = change
  if (isRetired(state, change)) {
    return yield* new PartitionRefused({
      partition,
      message:
        `the signing key ${signer.keyId} has handed its trees over to another one, and what it signs `
        + "since is refused: start this process with the newest key"
    })
  }
  const isDone = previous === undefined || before?.previous === previous.vkey
  if (before?.vkey === signer.vkey && isDone) return
  const made = previous === undefined ? [] : handOvers(state, change, previous)
  for (let at = 0; at < made.length; at += HANDED_OVER_MAX) {
    const part = made.slice(at, at + HANDED_OVER_MAX)
    yield* writer.commit([], () => part.flatMap((one) => recordsOf(state, change, one)))
    for (const checkpoint of part) take(state, checkpoint)
  }
  const changed = { vkey: signer.vkey, previous: previous?.vkey ?? null }
  yield* writer.commit([], () => [newStateRecord(partition, signerRecord(changed))])
  state.signer = changed
  if (previous !== undefined) {
    const keys = { from: previous.keyId, to: signer.keyId }
    yield* Effect.logInfo("the trees are handed over to a new signing key", {
      partition,
      trees: made.length,
      ...keys
    })
  } else if (before !== undefined) {
    yield* Effect.logError(
      `the signing key has changed to ${signer.keyId} without an endorsement by the key before it: `
        + "what it signs is refused until that key endorses it (ALK_SIGNING_KEY_PREVIOUS_FILE) or "
        + "ALK_TRUSTED_KEYS lists it",
      { partition }
    )
  }
})

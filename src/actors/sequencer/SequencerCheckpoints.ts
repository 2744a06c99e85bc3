/**
 * Signed checkpoints as a step makes them: those that a command asks for, and those that are due by
 * the clock. Pure as the step is.
 */
import { type ChainKey, chainOfTree, treeNameOf } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  type Signer
} from "../../domain/chain/Checkpoint.ts"
import type { Command } from "../../domain/records/Command.ts"
import { formatMicros, microsOf } from "../../domain/Timestamp.ts"
import { Draft, type StateChanges } from "./SequencerDraft.ts"
import { addReceipt, committed, type Outcome } from "./SequencerReceipts.ts"
import type { SequencerState } from "./SequencerState.ts"

/** Who signs checkpoints, for which service. */
export interface CheckpointSigner {
  readonly serviceName: string
  readonly signer: Signer
}

/** The newest checkpoint of a chain, made now if the chain has grown since. */
const checkpointOf = (
  draft: Draft,
  key: ChainKey,
  { serviceName, signer }: CheckpointSigner,
  now: string
): CheckpointRecord | undefined => {
  const { chain, tenantId } = key
  const tree = draft.tree(key)
  if (tree === undefined || tree.size === 0) return undefined
  const newest = draft.checkpoint(treeNameOf(tenantId, chain))
  if (newest !== undefined && newest.tree_size === tree.size && newest.key_id === signer.keyId) {
    return newest
  }
  const made = makeCheckpoint(signer, serviceName, tenantId, tree, now, chain)
  draft.addCheckpoint(made)
  return made
}

/** Answer a command that asks for checkpoints of both chains. */
export const answerCheckpoint = (
  draft: Draft,
  offset: number,
  command: Command,
  signer: CheckpointSigner,
  now: string
): void => {
  const { tenantId } = command
  const nothing: Outcome = {
    appended: 0,
    head: draft.head(tenantId),
    ids: [],
    errors: [],
    conflicts: [],
    duplicates: [],
    dedup: []
  }
  const checkpoint = checkpointOf(draft, { tenantId, chain: "events" }, signer, now)
  const ofTraces = checkpointOf(draft, { tenantId, chain: "traces" }, signer, now)
  const receipt = {
    ...committed(command, offset, nothing, now),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(ofTraces === undefined ? {} : { trace_checkpoint: ofTraces })
  }
  addReceipt(draft, command.attempt, receipt, true)
}

/** Milliseconds between two checkpoints of a chain that grows. */
export const CHECKPOINT_INTERVAL_MS = 10_000
/** Checkpoints of one transaction at most: signing takes about 50 us each. */
const CHECKPOINTS_MAX = 500

/**
 * Checkpoints of the chains that have grown since their last one, if that is long enough ago;
 * undefined if none is due.
 */
export const stepCheckpoints = (
  state: SequencerState,
  signer: CheckpointSigner,
  now: string
): StateChanges | undefined => {
  const draft = new Draft(state, now)
  const due = formatMicros(microsOf(now) - CHECKPOINT_INTERVAL_MS * 1_000)
  // A checkpoint from the future (the clock was set back) does not delay the next one.
  const isRecent = (newest: CheckpointRecord | undefined): boolean =>
    newest !== undefined && newest.created_at > due && newest.created_at <= now
  for (const [name, tree] of state.trees) {
    const newest = state.checkpoints.get(name)
    if (newest?.tree_size === tree.size || isRecent(newest)) continue
    checkpointOf(draft, chainOfTree(name), signer, now)
    if (draft.checkpoints.length >= CHECKPOINTS_MAX) break
  }
  return draft.checkpoints.length === 0 ? undefined : draft
}

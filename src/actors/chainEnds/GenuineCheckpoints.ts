/**
 * Which checkpoints of `alk.checkpoints` are this service's: signed by a published key that may
 * sign this size of this tree, and saying what their notes say.
 */
import { Effect } from "effect"
import type { CheckpointRecord, OpenedCheckpoint } from "../../domain/chain/Checkpoint.ts"
import { openRecord } from "../../domain/chain/SignedRecord.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { PublishedKeys } from "../follower/PublishedKeys.ts"
import type { ChainEnds } from "./ChainEnds.ts"

/** Checkpoints by keys that may not sign them, that are passed over in one search at most. */
const REFUSED_MAX = 1_000

/** A checkpoint, and what its note says. */
export interface GenuineCheckpoint {
  readonly record: CheckpointRecord
  readonly opened: OpenedCheckpoint
}

/** The newest one of a tree on the topic; undefined if there is none. */
export const newestGenuine = Effect.fn("GenuineCheckpoints.newest")(function* (
  ends: ChainEnds["Service"],
  keys: PublishedKeys["Service"],
  serviceName: string,
  tree: string
): Effect.fn.Return<GenuineCheckpoint | undefined, LogUnavailable> {
  yield* keys.caughtUp
  const vkeys = (yield* keys.all).map(({ vkey }) => vkey)
  const refused = new Set<string>()
  while (refused.size < REFUSED_MAX) {
    const record = yield* ends.checkpoint(
      tree,
      (one) => !refused.has(one.note) && openRecord(serviceName, tree, one, vkeys) !== undefined
    )
    const opened = record && openRecord(serviceName, tree, record, vkeys)
    if (record === undefined || opened === undefined) return undefined
    const refusal = yield* keys.refusal(tree, opened)
    if (refusal === undefined) return { record, opened }
    yield* Effect.logError("a checkpoint on alk.checkpoints is passed over", {
      tree,
      treeSize: record.tree_size,
      refusal
    })
    refused.add(record.note)
  }
  return undefined
})

/**
 * What alk needs from the query store about signed checkpoints: keep what `alk.checkpoints` says,
 * and find one by the size of its tree. Believes none of them: signatures are checked where one is
 * used. `tree` is the name of a tree, see domain/Chains.
 */
import { Context } from "effect"
import type { CheckpointRecord } from "../domain/chain/Checkpoint.ts"
import type { StoreResult } from "./EventStore.ts"

/** One record of `alk.checkpoints`: its place in the topic and its bytes as they are. */
export interface CheckpointRow {
  readonly partition: number
  readonly offset: number
  readonly tenantId: string
  readonly treeSize: number
  /** JSON of the CheckpointRecord. */
  readonly body: Buffer
}

/** Checkpoints of one list at most. */
export const CHECKPOINTS_LIST_MAX = 1_000
/** Checkpoints of one size at most. */
export const CHECKPOINTS_OF_SIZE_MAX = 1_000

/**
 * Of several checkpoints with one size (after a key rotation, say) the newest counts, if it is
 * genuine. A record that is read back is what its row's bytes say, whatever that is.
 */
export class CheckpointStore extends Context.Service<
  CheckpointStore,
  {
    /** Insert in one block; rows that are there already change nothing. At most 50,000 rows. */
    insert(rows: ReadonlyArray<CheckpointRow>): StoreResult<void>

    /** The one with the largest tree. */
    latest(tree: string): StoreResult<CheckpointRecord | undefined>
    /** The one with the largest tree of at most this size. */
    atOrBelow(tree: string, treeSize: number): StoreResult<CheckpointRecord | undefined>
    /**
     * Of a partition the largest of each tree, some of them, whose offsets its topic does not have, or
     * that were set aside; of each tree the largest first.
     */
    outside(
      partition: number,
      bounds: { readonly start: number; readonly end: number }
    ): StoreResult<ReadonlyArray<CheckpointRecord>>
    /** All of one size, the newest first. */
    ofSize(tree: string, treeSize: number): StoreResult<ReadonlyArray<CheckpointRecord>>
    /** The newest of each size, largest tree first; `beforeSize` is exclusive. */
    list(
      tree: string,
      page: { readonly beforeSize?: number; readonly limit: number }
    ): StoreResult<ReadonlyArray<CheckpointRecord>>
  }
>()("alk/CheckpointStore") {}

/**
 * The last record of a tenant's chain on its own topic, and the newest genuine checkpoint of a tree
 * on `alk.checkpoints`: what verification expects. Read from the topics themselves, so that neither
 * the store nor `alk.state` can shorten a chain.
 */
import { Context, type Effect } from "effect"
import type { ChainKey, Head } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import type { Adopted } from "../../domain/records/StateRecords.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"

/** The first record that a topic still holds of a partition. */
export interface TopicStart {
  /** True if records were deleted although the topic is kept for ever. */
  readonly isCut: boolean
  readonly offset: number
  /** When the topics were taken for what a sequencer has written; absent if they never were. */
  readonly adopted?: Adopted
  /** Signed of this chain, which does not lead to it: an operator has accepted that. */
  readonly givenUp?: CheckpointRecord
}

export class ChainEnds extends Context.Service<
  ChainEnds,
  {
    /**
     * The end of the chain, at least as new as everything committed before the call; undefined if
     * there is no chain. Records that no sequencer has written are no part of it. Where `alk.state`
     * says more than the topic holds, the topic has lost its end, and the longer one is expected.
     */
    head(key: ChainKey): Effect.Effect<Head | undefined, LogUnavailable>
    /**
     * The newest checkpoint of a tree that `isGenuine` accepts; undefined if the topic holds none.
     * `tree` is the name of a tree, see domain/Chains.
     */
    checkpoint(
      tree: string,
      isGenuine: (record: CheckpointRecord) => boolean
    ): Effect.Effect<CheckpointRecord | undefined, LogUnavailable>
    /** Where the topic of a tenant's chain begins. */
    start(key: ChainKey): Effect.Effect<TopicStart, LogUnavailable>
  }
>()("alk/ChainEnds") {}

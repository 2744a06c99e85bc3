/**
 * What verification asks of a store that can hash where the bytes lie: the same recomputation as
 * the program's own, block by block, and the rows that the program needs to check the answer.
 * Whatever a block's answer is, the program believes only "perfect", and looks for itself
 * otherwise.
 */
import { Context } from "effect"
import type { StoredRow, StoreResult } from "./EventStore.ts"

/** Sequences of a block: 2^10 leaves, so that a whole block is a subtree of the hash tree. */
export const BLOCK_EVENTS = 1_024
/** Rows that one `sample` may ask for. */
export const SAMPLE_ROWS_MAX = 2_048

/** The block of a sequence number, from 0. */
export const blockOf = (sequenceNumber: number): number =>
  Math.floor((sequenceNumber - 1) / BLOCK_EVENTS)

/** An event whose details are gone, as its row says. */
export interface ErasedRow {
  readonly sequenceNumber: number
  readonly id: string
  readonly contentHash: string
  readonly erasedAt: string
}

/** Sequence numbers, both ends included. */
export interface SequenceRange {
  readonly first: number
  readonly last: number
}

/** What the store found in the part of one block that was asked for. */
export interface RecomputedBlock {
  readonly block: number
  /** Physical rows, replayed ones included. */
  readonly rows: number
  /**
   * True if the rows are one for each sequence from `first` to `last`, each recomputes, each links
   * to the one before it within the block, and all filter columns say what the bytes say. An event
   * without its details is right if it is in `erased` and its erasure is found.
   */
  readonly perfect: boolean
  readonly first: number
  readonly last: number
  /** `prev_hash` of `first` and `hash` of `last`. */
  readonly prevHash: string
  readonly lastHash: string
  /** Rows whose timestamp is within the bounds, and the first and the last of them. */
  readonly inBounds: number
  readonly span: SequenceRange | undefined
  readonly erased: ReadonlyArray<ErasedRow>
  /** Only if the tree was asked for and the block is perfect and whole: its RFC 9162 subtree. */
  readonly subtree: string | undefined
  /** Only if the tree was asked for and the block is perfect but not whole: its event hashes. */
  readonly hashes: ReadonlyArray<string>
}

export interface RecomputeQuery {
  readonly tenantId: string
  readonly fromSequence: number
  readonly toSequence: number
  /** Bounds by event time, canonical microsecond form, inclusive. */
  readonly from: string
  readonly to: string
  /** Ask for subtrees and hashes too. */
  readonly tree: boolean
}

export class ChainRecompute extends Context.Service<
  ChainRecompute,
  {
    /** The blocks of a range that hold any row, ascending. Memory grows with the range: 2^18. */
    blocks(query: RecomputeQuery): StoreResult<ReadonlyArray<RecomputedBlock>>
    /** The rows of these sequences as verification sees them, ascending. */
    sample(
      tenantId: string,
      sequenceNumbers: ReadonlyArray<number>
    ): StoreResult<ReadonlyArray<StoredRow>>
    /** The erasure events that name one of these sequences: the place of each row, and its JSON. */
    erasures(
      tenantId: string,
      sequenceNumbers: ReadonlyArray<number>
    ): StoreResult<ReadonlyArray<Pick<StoredRow, "body" | "sequenceNumber">>>
    /** Tenants that have events, by name. */
    readonly tenants: StoreResult<ReadonlyArray<string>>
  }
>()("alk/ChainRecompute") {}

/**
 * What the check of a chain asks for, the same for both chains of a tenant: its rows, what is wrong
 * with each by itself, what is outside of it. One source serves one check.
 */
import type { Effect, Stream } from "effect"
import type { Chain } from "../domain/chain/Chains.ts"
import type { CoveringSpan, RecomputedBlock } from "../ports/ChainRecompute.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { ChainExtent, ConflictRow, StoredRow, StoreUnavailable } from "../ports/EventStore.ts"
import type { Break, VerifyReport } from "./VerifyReport.ts"

/** What is wrong with one row, without its place. */
export type Fault = Pick<Break, "reason" | "expected" | "actual">

/** A stored row that was recomputed. */
export interface JudgedRow {
  readonly row: StoredRow
  /** Undefined if the bytes are no record of this chain. */
  readonly found: JudgedRecord | undefined
}

export interface JudgedRecord {
  /** What breaks call it, where it has an id of its own. */
  readonly id: string | null
  /** Hash and link as the bytes state them. */
  readonly hash: string
  readonly prevHash: string
  /** Hash as it was recomputed of them. */
  readonly recomputed: string
  /** What bounds by time compare, canonical form: event time, or when a fact was recorded. */
  readonly time: string
  /** Without details, and the chain says that they were erased. */
  readonly isErased: boolean
  /** What is wrong with it, wherever it is. */
  readonly faults: ReadonlyArray<Fault>
}

type Failure = LogUnavailable | StoreUnavailable

export interface TimeBounds {
  /** Canonical microsecond form, inclusive. */
  readonly from: string
  readonly to: string
}

export interface ChainSource {
  readonly chain: Chain
  readonly scheme: VerifyReport["scheme"]
  /** What the rows are, for words: "event", "trace fact". */
  readonly noun: string
  /** The rows of a range, by sequence, judged; bounded memory. */
  rows(first: number, last: number): Stream.Stream<ReadonlyArray<JudgedRow>, Failure>
  /**
   * The blocks of a range that the store has recomputed and that can be taken as they are, by
   * number; `tree`: with subtrees and hashes.
   */
  trusted(
    first: number,
    last: number,
    bounds: TimeBounds,
    tree: boolean
  ): Effect.Effect<ReadonlyMap<number, RecomputedBlock>, Failure>
  /** The sequences that cover everything within the bounds; undefined if there is nothing. */
  span(bounds: TimeBounds): Effect.Effect<CoveringSpan | undefined, StoreUnavailable>
  /** How far the tenant's rows reach, of all that are there. */
  readonly extent: Effect.Effect<ChainExtent, StoreUnavailable>
  /** Rows of one key that are there more than once, of [first, last]. */
  copies(first: number, last: number): Effect.Effect<ReadonlyArray<number>, Failure>
  /** Records of the topic that do not link. */
  readonly conflicts: Effect.Effect<ReadonlyArray<ConflictRow>, StoreUnavailable>
  /**
   * What can be said once all rows of a range were judged; `onlySpan` leaves out what is not about
   * its rows.
   */
  conclude(
    first: number,
    last: number,
    onlySpan: boolean
  ): Effect.Effect<ReadonlyArray<Break>, Failure>
}

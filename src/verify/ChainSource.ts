/**
 * What a check of a chain reads, the same for both chains of a tenant: the rows with what is wrong
 * with each by itself, and what is stored outside of the chain. One source per check.
 */
import type { Effect, Stream } from "effect"
import type { Chain } from "../domain/chain/Chains.ts"
import type { RecomputedBlock } from "../ports/ChainRecompute.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { ChainExtent, ConflictRow, StoredRow, StoreUnavailable } from "../ports/EventStore.ts"
import type { Break, VerifyReport } from "./VerifyReport.ts"

/** What is wrong with one row, without its place. */
export type Fault = Pick<Break, "reason" | "expected" | "actual">

export const contentFault = (expected: string, actual: string): Fault => ({
  reason: "content_mismatch",
  expected,
  actual
})

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
  /** The time that bounds apply to, canonical form: event time, or when a fact was recorded. */
  readonly time: string
  /** Without details, by an erasure that is in the chain. */
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
  /** What the rows are, in texts: "event", "trace fact". */
  readonly noun: string
  /** The rows of a range, by sequence, judged; bounded memory. */
  rows(first: number, last: number): Stream.Stream<ReadonlyArray<JudgedRow>, Failure>
  /**
   * The perfect blocks of a range, by number, as the store has recomputed them and the program has
   * checked by a sample; `tree`: with subtrees and hashes.
   */
  trusted(
    first: number,
    last: number,
    bounds: TimeBounds,
    tree: boolean
  ): Effect.Effect<ReadonlyMap<number, RecomputedBlock>, Failure>
  /** The lowest and the highest sequence of all rows of the tenant. */
  readonly extent: Effect.Effect<ChainExtent, StoreUnavailable>
  /** Sequences of [first, last] whose row is stored more than once. */
  copies(first: number, last: number): Effect.Effect<ReadonlyArray<number>, Failure>
  /** Records of the topic that do not link. */
  readonly conflicts: Effect.Effect<ReadonlyArray<ConflictRow>, StoreUnavailable>
  /**
   * Breaks that show once all rows of a range were judged; `onlyRange` leaves out those that are not
   * about its rows.
   */
  conclude(
    first: number,
    last: number,
    onlyRange: boolean
  ): Effect.Effect<ReadonlyArray<Break>, Failure>
}

/**
 * The rows of a partition that the store made of a topic's records, as the projection compares them
 * with the topic; and where those go that the topic denies. Nothing of them is ever thrown away:
 * the topic may not hold any more what it denies today.
 */
import { Context } from "effect"
import type { StoreResult } from "./EventStore.ts"

/** A stored row as it is compared with its record. */
export interface StoredRecord {
  readonly offset: number
  /** SHA-256 of the bytes, 64 hex digits. */
  readonly digest: string
  /** The bytes, if they may be what erasing has left of the record. */
  readonly body: string | undefined
}

/** The same, with what only a comparison of everything looks at. */
export interface ComparedRecord extends StoredRecord {
  /** A column says something else than the bytes. */
  readonly isDisagreeing: boolean
}

/** Which rows of a partition the topic denies. */
export interface Denied {
  /** They are at this offset or above. */
  readonly from: number
  /** They are below this offset; without it, whatever is above goes. */
  readonly below?: number
  /** Digests of the rows at `from` itself that the topic confirms. */
  readonly confirmed: ReadonlyArray<string>
  /** Offset after the topic's last record. */
  readonly end: number
}

/** `beyond_end`: the topic ends before them. `not_in_topic`: it holds another record, or none. */
export type DeniedReason = "beyond_end" | "not_in_topic"

/** How many rows of a table are denied, for one reason. */
export interface DeniedRows {
  readonly table: string
  readonly reason: DeniedReason
  readonly rows: number
  readonly firstOffset: number
  readonly lastOffset: number
}

/** The topics that are projected. */
export type StoredTopic = "events" | "traces" | "checkpoints" | "receipts"

/** The rows that came from one topic. */
export interface TopicRows {
  /** Name of the table that denied rows are moved to. */
  readonly asideTable: string
  /** The highest offset that is stored, of those below a bound if one is given. */
  highest(partition: number, below?: number): StoreResult<number | undefined>
  /**
   * All rows with offsets in [from, below), several of one offset included, in no order; with
   * `whole` each has its bytes.
   */
  rows(
    partition: number,
    from: number,
    below: number,
    whole?: boolean
  ): StoreResult<ReadonlyArray<StoredRecord>>
  /** The same with a look at their columns; of one tenant, if one is given. */
  compare(
    partition: number,
    from: number,
    below: number,
    tenantId: string | undefined
  ): StoreResult<ReadonlyArray<ComparedRecord>>
  /** Remove rows whose columns say something else than their bytes: they are stored again at once. */
  remove(partition: number, rows: ReadonlyArray<StoredRecord>): StoreResult<void>
  /**
   * Store again what is made of rows beside their table, where it is missing, of offsets in
   * [from, below), of one tenant if one is given. Answers how many that were.
   */
  index(
    partition: number,
    from: number,
    below: number,
    tenantId: string | undefined
  ): StoreResult<number>
  /** What is denied. */
  denied(partition: number, denied: Denied): StoreResult<ReadonlyArray<DeniedRows>>
  /**
   * Move what is denied aside: copied first, then removed, so that a move that was broken off can
   * be done again. A row that has replaced one of the confirmed chain keeps its place there.
   */
  setAside(partition: number, denied: Denied): StoreResult<void>
}

export class StoredTopics extends Context.Service<
  StoredTopics,
  {
    /** Of `events` those that did not link are part. */
    of(topic: StoredTopic): TopicRows
  }
>()("alk/StoredTopics") {}

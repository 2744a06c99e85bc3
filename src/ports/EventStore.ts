/**
 * What alk needs from the query store: insert what the topics say, and answer questions about it.
 * The store is a view that can be dropped and rebuilt; it never decides anything.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { CountedBy } from "../domain/events/EventFields.ts"
import type { EventFilter } from "../domain/events/EventFilter.ts"

/** The store can't be reached, refuses to work, or stored less than it was given. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  operation: Schema.String,
  cause: Schema.Defect()
}) {}

/** What the store answers, or that it does not. */
export type StoreResult<A> = Effect.Effect<A, StoreUnavailable>

/** The statistics have more buckets than one answer may hold: a coarser interval or fewer days. */
export class StatsTooLarge extends Schema.TaggedError<StatsTooLarge>()("StatsTooLarge", {
  bucketsMax: Schema.Int
}) {}

/** Which event's details go, and when that was decided. */
export interface EventErasure {
  readonly sequenceNumber: number
  /** `created_at` of the chained erasure event. */
  readonly erasedAt: string
}

/** Rows and bytes of one insert at most: one block of ClickHouse, one buffer of ours. */
export const INSERT_ROWS_MAX = 50_000
export const INSERT_BYTES_MAX = 64 * 1_048_576

/** One record of `alk.events`: its place in the topic and its bytes as they are. */
export interface EventRow {
  readonly partition: number
  readonly offset: number
  readonly body: Buffer
}

/** One final receipt of `alk.receipts`. */
export interface ReceiptRow {
  readonly partition: number
  readonly offset: number
  readonly tenantId: string
  readonly receiptId: string
  /** The receipt record's JSON, as it is in the topic. */
  readonly body: Buffer
}

/** Reason of a conflict: the record follows the chain, but no sequencer has written it. */
export const NOT_SEQUENCED = "not_sequenced"
/** Reason of a conflict: the record follows the chain, but has another form than alk writes. */
export const NOT_CANONICAL = "not_canonical"

/** A record of `alk.events` or `alk.traces` that is not part of its chain. */
export interface ConflictRow {
  readonly partition: number
  readonly offset: number
  readonly tenantId: string
  readonly sequenceNumber: number
  readonly reason: string
  readonly body: Buffer
}

/** What lists are sorted by; events of one time by their sequence numbers. */
export const eventSorts = ["sequence_number", "timestamp"] as const

/** Which events, in which order. */
export interface EventListQuery {
  readonly tenantId: string
  readonly filter: EventFilter
  readonly order: "asc" | "desc"
  /** By sequence number if missing. */
  readonly sort?: (typeof eventSorts)[number]
}

export interface EventPageQuery extends EventListQuery {
  /** Rows to skip; together with neither `after` nor `before`. */
  readonly offset: number
  readonly limit: number
  /** Exclusive bounds on the sequence number, for keyset paging. `total` does not count them. */
  readonly afterSequence?: number
  readonly beforeSequence?: number
}

export interface EventPage {
  /** The stored JSON of each event, byte for byte. */
  readonly bodies: ReadonlyArray<string>
  /** Rows that match the filter, exact, paging aside. */
  readonly total: number
}

/** Bounds, exclusive in the order of the list, from which other pages of a keyset list begin. */
export interface KeysetPages {
  /** The page before; undefined on the first one. */
  readonly previous: number | undefined
  /** The last page; undefined if there are no events. */
  readonly last: number | undefined
}

/** Widths of the buckets of statistics, in UTC; weeks begin on Mondays. */
export const statsIntervals = ["minute", "hour", "day", "week", "month"] as const

export interface StatsQuery {
  readonly tenantId: string
  readonly filter: EventFilter
  /** One or more, each once; an event with a list in metadata counts in the group of each value. */
  readonly groupBy: ReadonlyArray<CountedBy>
  readonly interval?: (typeof statsIntervals)[number]
  /** Path of metadata, without its prefix, whose numbers are summed up. */
  readonly measure?: string
  readonly limit: number
}

/**
 * What numbers amount to; one that is beyond a double is null. Percentiles lie between the two
 * nearest numbers in proportion, as those of PERCENTILE.INC.
 */
export interface Numbers {
  readonly count: number
  readonly sum: number | null
  readonly min: number | null
  readonly max: number | null
  readonly p50: number | null
  readonly p90: number | null
  readonly p95: number | null
  readonly p99: number | null
}

/** Events with the same keys, in the order of `groupBy`. */
export interface StatsGroup {
  readonly keys: ReadonlyArray<string>
  readonly count: number
  /** With a measure, if the group has numbers. */
  readonly numbers?: Numbers
}

export interface StatsBucket extends StatsGroup {
  readonly start: string
}

export interface Stats {
  readonly groups: ReadonlyArray<StatsGroup>
  /** Events counted in the groups that are not shown. */
  readonly other: number
  readonly buckets?: ReadonlyArray<StatsBucket>
  /** Events without a value that they could be grouped by. */
  readonly missing: number
  /** Of all matching events; with a measure, if there are any. */
  readonly numbers?: Numbers
  readonly total: number
}

/** What matching events are counted by, each for itself. */
export interface FacetsQuery {
  readonly tenantId: string
  readonly filter: EventFilter
  readonly fields: ReadonlyArray<CountedBy>
  /** Values of each at most. */
  readonly limit: number
}

/** The values of one field. */
export interface Facet {
  /** Name of the field, or `metadata.` and the path. */
  readonly field: string
  /** The values that most events have; an event with a list has each of its values once. */
  readonly groups: ReadonlyArray<{ readonly key: string; readonly count: number }>
  /** Different values. */
  readonly values: number
  /** Events without one. */
  readonly missing: number
}

export interface Facets {
  /** In the order of the query, fields first. */
  readonly facets: ReadonlyArray<Facet>
  readonly total: number
}

/** One event that was asked for. */
export interface FoundEvent {
  readonly sequenceNumber: number
  readonly body: string
  /** Where the row says that the event is on `alk.events`. */
  readonly offset: number
}

/** The last row of a tenant. */
export interface LastEvent {
  readonly tenantId: string
  /** Its stored JSON, which may be of any tenant if the row was forged. */
  readonly body: string
}

/** One stored row as verification sees it: the bytes, and the filter columns that disagree. */
export interface StoredRow {
  readonly sequenceNumber: number
  readonly version: number
  readonly body: string
  /** Names of the filter columns whose value differs from what the bytes say. */
  readonly wrongColumns: ReadonlyArray<string>
}

/** How far the rows of a tenant's chain reach, those that should not be there included. */
export interface ChainExtent {
  /** 0 without any rows. */
  readonly rows: number
  /** Sequences; numbers that no double holds exactly are shown as the largest that one does. */
  readonly lowest: number
  readonly highest: number
}

/**
 * Reads take `deduplicate`: true while rows of a partition may be in the store twice; the store then
 * merges them while reading (slower), so that no answer ever shows a duplicate.
 */
export class EventStore extends Context.Service<
  EventStore,
  {
    /** Create or upgrade the schema: numbered SQL files, each applied once, in order. */
    readonly migrate: StoreResult<void>
    /** Succeeds when a query would be answered. */
    readonly ping: StoreResult<void>

    /**
     * Insert in one block; fails if fewer rows were stored than given. At most 50,000 rows. Gives those
     * that are not stored because their bytes have another form than alk writes.
     */
    insertEvents(rows: ReadonlyArray<EventRow>): StoreResult<ReadonlyArray<EventRow>>
    insertReceipts(rows: ReadonlyArray<ReceiptRow>): StoreResult<void>
    insertConflicts(rows: ReadonlyArray<ConflictRow>): StoreResult<void>
    /** True if an offset at or above `fromOffset` is in the partition more than once. */
    hasDuplicates(partition: number, fromOffset: number): StoreResult<boolean>
    /** Merge physically what is in the store twice. Expensive; for rare repairs. */
    readonly mergeDuplicates: StoreResult<void>
    /**
     * Take the details out of the events at these sequences, in place: each is shown once at any
     * time, and no answer shows the details when this returns. What is erased already stays as it
     * is. Rows of these sequences that were set aside lose theirs too.
     */
    eraseDetails(tenantId: string, erasures: ReadonlyArray<EventErasure>): StoreResult<void>
    /**
     * Remove the details of erased events from the tables, which rewrites columns of the parts that
     * they are in. The number of events that still had them. ClickHouse removes the files of the
     * parts that were replaced some minutes later.
     */
    readonly purgeErased: StoreResult<number>
    /**
     * Do again what the stored events of a partition from an offset on ask for: an insert that came
     * to its end late may have brought details back, and its rows win where they are merged.
     */
    eraseAgain(partition: number, fromOffset: number): StoreResult<void>

    page(query: EventPageQuery, deduplicate: boolean): StoreResult<EventPage>
    /**
     * Where the pages around a page by sequence begin: the bound is `afterSequence` in ascending,
     * `beforeSequence` in descending order, the other one limits the list.
     */
    keysetPages(query: EventPageQuery, deduplicate: boolean): StoreResult<KeysetPages>
    /** Every match, in order, in chunks of stored JSON; bounded memory whatever the size. */
    scan(
      query: EventListQuery,
      deduplicate: boolean
    ): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /**
     * The row with this id (the lowest sequence unless one is named), or undefined: its stored
     * JSON, and the sequence of the row, which need not be that of the JSON if the row was forged.
     */
    byId(
      tenantId: string,
      id: string,
      sequenceNumber: number | undefined,
      deduplicate: boolean
    ): StoreResult<FoundEvent | undefined>
    /** The row with the highest sequence of each of these tenants that has any, in no order. */
    lastEvents(tenantIds: ReadonlyArray<string>): StoreResult<ReadonlyArray<LastEvent>>
    stats(
      query: StatsQuery,
      deduplicate: boolean
    ): Effect.Effect<Stats, StatsTooLarge | StoreUnavailable>
    facets(query: FacetsQuery, deduplicate: boolean): StoreResult<Facets>
    receipt(tenantId: string, receiptId: string): StoreResult<string | undefined>

    /**
     * The rows of a range, by sequence, every physical duplicate with another hash included (that
     * is what verification looks for), re-inserted identical rows once. Chunks, bounded memory.
     */
    rows(
      tenantId: string,
      fromSequence: number,
      toSequence: number
    ): Stream.Stream<ReadonlyArray<StoredRow>, StoreUnavailable>
    extent(tenantId: string): StoreResult<ChainExtent>
    /** Sequences of [first, last] that have physical copies of one row, the lowest `limit`. */
    copies(
      tenantId: string,
      first: number,
      last: number,
      limit: number
    ): StoreResult<ReadonlyArray<number>>
    /** Records that didn't link when they were projected. */
    conflicts(tenantId: string, limit: number): StoreResult<ReadonlyArray<ConflictRow>>
  }
>()("alk/EventStore") {}

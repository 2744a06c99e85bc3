/**
 * What alk needs from the query store for execution traces: insert what `alk.traces` says, and
 * answer questions about it. Facts come back as the bytes they came in; the caller folds them.
 */
import { Context, type Stream } from "effect"
import type { ValueText } from "../domain/events/ConditionText.ts"
import type { MarkedFact } from "../domain/records/FactPlace.ts"
import type { ExecutionSummary } from "../domain/traces/ExecutionSummary.ts"
import type { TraceStatus } from "../domain/traces/TraceFact.ts"
import type { Side } from "../domain/traces/TraceOperation.ts"
import type {
  ChainExtent,
  ConflictRow,
  StoredRow,
  StoreResult,
  StoreUnavailable
} from "./EventStore.ts"

/** One record of `alk.traces`: its place in the topic and its bytes as they are. */
export interface FactRow {
  readonly partition: number
  readonly offset: number
  /** That of `factMacOf`: kept with the row. */
  readonly mac: string
  readonly body: Buffer
}

/** What a text of an execution may be: it is one of these, or starts with one that is open. */
export type TextChoice = ReadonlyArray<ValueText>

export interface ExecutionPageQuery {
  readonly tenantId: string
  readonly status?: ReadonlyArray<TraceStatus>
  readonly agentId?: TextChoice
  readonly agentName?: TextChoice
  /** What the execution or one of its spans names. */
  readonly model?: TextChoice
  readonly sessionId?: TextChoice
  readonly userId?: TextChoice
  /** Inclusive bounds on `started_at`, canonical microsecond form. */
  readonly from?: string
  readonly to?: string
  /** Whether the execution has failed, or one of its spans. */
  readonly hasError?: boolean
  /** From start to end, inclusive; what has not ended has no duration. */
  readonly minDurationMicros?: number
  /** Tokens that its calls of models have read and written, inclusive. */
  readonly minTokens?: number
  /** By start unless told otherwise; of equal executions the lower id comes first, always. */
  readonly sort?: ExecutionSort
  /** Descending unless told otherwise. What has no duration, or no cost, comes last in either. */
  readonly order?: "asc" | "desc"
  readonly offset: number
  readonly limit: number
}

export const executionSorts = ["started_at", "duration", "errors", "tokens", "cost"] as const
/** What executions are sorted by, as their summaries say it. */
export type ExecutionSort = (typeof executionSorts)[number]

/** An execution of a page. */
export interface ListedExecution {
  /** Stored JSON of its own facts (type execution.*), by fact number. */
  readonly facts: ReadonlyArray<string>
  readonly summary: ExecutionSummary | undefined
}

export interface ExecutionPage {
  /** In chunks of bounded size, each read when it is asked for. */
  readonly executions: Stream.Stream<ReadonlyArray<ListedExecution>, StoreUnavailable>
  /** True if these are more than one chunk. */
  readonly isLarge: boolean
  /** Executions that match, exact, paging aside. */
  readonly total: number
}

/** How much a page holds at most: one item always, then as many as fit into both. */
export interface PageBounds {
  readonly itemsMax: number
  /** Bytes of stored JSON. */
  readonly bytesMax: number
  /** Chain sequence of the last fact that counts; without one there is no end. */
  readonly last?: number
}

/** Where an event is among those of its span. */
export interface EventPlace {
  readonly sequenceNumber: number
  readonly hash: string
}

/** Events of one span, by sequence number. */
export interface SpanEventPage {
  /** Stored JSON. */
  readonly facts: ReadonlyArray<string>
  /** Place of the last of them, if more follow. */
  readonly next: EventPlace | undefined
}

/** Where a span is among those of its execution: by start, then in the order of arrival. */
export interface SpanPlace {
  /** Microseconds since 1970. */
  readonly startedAt: number
  /** Number of the fact that started it. */
  readonly factNumber: number
}

/** Spans of one execution by their places. */
export interface SpanPage {
  readonly spans: ReadonlyArray<{
    readonly id: string
    readonly place: SpanPlace
    /** Stored JSON of the span's own facts (its events aside), by fact number. */
    readonly facts: ReadonlyArray<string>
  }>
  /** Place of the last of them, if more follow. */
  readonly next: SpanPlace | undefined
}

/** Of the details of a fact about a span what a graph looks at; each empty if the fact has none. */
export interface OutlineDetails {
  readonly name: string
  /** JSON text. */
  readonly error: string
  /**
   * JSON text of an object, of which `hintsOf` and the tokens of `summaryOf` are those of the
   * fact's metadata; empty too if it was not asked for.
   */
  readonly metadata: string
}

/** What a graph needs of a fact about a span: a few KB at most, and what it looks at in metadata. */
export interface SpanOutline {
  readonly factNumber: number
  /** Stored JSON: of a small fact all of it, of others without the details. */
  readonly fact: string
  /** Of a fact that is not small. */
  readonly details?: OutlineDetails
}

/** What a log record of a model tells of calls. */
export interface RecordedCalls {
  readonly spanId: string
  /** JSON text of an object. */
  readonly calls: string
}

/** Facts of a tenant's chain by their sequences, both ends included. */
export interface FactRange {
  readonly tenantId: string
  readonly first: number
  readonly last: number
}

export interface ChainQuery extends FactRange {
  /** Only of executions that ran within this time, inclusive; canonical microsecond form. */
  readonly overlapping?: { readonly from: string; readonly to: string }
  /** With `overlapping`: of these executions too. */
  readonly executions?: ReadonlyArray<string>
  /** Only the last bytes of each fact, from before its tenant_id on. */
  readonly isSuffix?: boolean
}

/** What ran within a time, and what of it is wanted. */
export interface OverlapQuery {
  readonly tenantId: string
  /** Inclusive, canonical microsecond form. */
  readonly from: string
  readonly to: string
  /** Facts of executions and spans, or of executions alone; never events. */
  readonly selection: "structure" | "execution"
  /** Chain sequence of the last fact that counts; without one there is no end. */
  readonly last?: number
}

/** A fact without its details. */
export interface LoadedFact {
  readonly body: string
  /** Of the text of its details, in UTF-8; 0 without. */
  readonly detailsBytes: number
  /** Of a span of OpenTelemetry whose details say that it is of one side of a call. */
  readonly side?: Side
  /** Of a span of OpenTelemetry whose details say that its parent is of another process. */
  readonly parentIsRemote?: true
}

/** What the sequencer has to know of an execution that it had forgotten. */
export interface LoadedExecution {
  readonly tenantId: string
  readonly executionId: string
  /** Every fact but values and span events, of these only those of `eventsCountBefore`; by number. */
  readonly facts: ReadonlyArray<LoadedFact>
  /** Every row that claims to be a fact of it, of all kinds. */
  readonly marked: ReadonlyArray<MarkedFact>
}

/** Events of an execution that the sequencer has to recognise and does not remember. */
export interface SoughtEvents {
  readonly tenantId: string
  readonly executionId: string
  readonly spanIds: ReadonlyArray<string>
  readonly eventIds: ReadonlyArray<string>
}

/** The fact of an event, without its details. */
export interface StoredEvent {
  readonly body: string
  readonly marked: MarkedFact
}

/** A fact that does not follow the one before it in its execution. */
export interface MisnumberedFact {
  readonly executionId: string
  /** In the chain. */
  readonly sequence: number
  readonly expected: number
  readonly actual: number
}

/** An execution whose facts before `beforeSequence` of the chain lose their details. */
export interface ExecutionErasure {
  readonly executionId: string
  readonly beforeSequence: number
  /** Canonical time. */
  readonly erasedAt: string
}

export interface TraceKey {
  readonly tenantId: string
  readonly id: string
}

/** A fact's place in the tenant's chain. */
export interface FactLink {
  readonly chainSequence: number
  readonly prevHash: string
  readonly hash: string
  readonly executionId: string
  readonly offset: number
}

/** Which facts of an execution are wanted: a handful each, of what was said again the last one. */
export type FactSelection =
  /** execution.* only: of its starts the first one, too. */
  | { readonly kind: "execution" }
  /** Those that record an erasure, of these times; at least one. */
  | { readonly kind: "erasures"; readonly times: ReadonlyArray<string> }
  /** The same, and what one span says of itself, its events aside; of its starts the first one, too. */
  | { readonly kind: "span"; readonly spanId: string }
  /** One event, by its place in the execution. */
  | { readonly kind: "event"; readonly sequenceNumber: number }

/** Facts of one execution, by fact number. */
export interface ExecutionFacts {
  readonly executionId: string
  readonly facts: ReadonlyArray<string>
  /** Then only its own facts are here: its spans come in pages, see `spans`. */
  readonly isLarge: boolean
}

/**
 * Reads take `deduplicate` as those of EventStore do. Answers about one execution never show a fact
 * twice, with or without it.
 */
export class TraceStore extends Context.Service<
  TraceStore,
  {
    /** Insert in one block; fails if fewer rows were stored than given. At most 50,000 rows. */
    insertFacts(rows: ReadonlyArray<FactRow>): StoreResult<void>
    insertConflicts(rows: ReadonlyArray<ConflictRow>): StoreResult<void>
    /** Records that didn't link when they were projected; `sequenceNumber` is that of the chain. */
    conflicts(tenantId: string, limit: number): StoreResult<ReadonlyArray<ConflictRow>>
    /** Highest offset of `alk.traces` that the store holds for the partition, with its bytes. */
    position(
      partition: number
    ): StoreResult<{ readonly offset: number; readonly body: string } | undefined>
    /** True if an offset at or above `fromOffset` is in the partition more than once. */
    hasDuplicates(partition: number, fromOffset: number): StoreResult<boolean>
    /** Merge physically what is in the store twice. */
    readonly mergeDuplicates: StoreResult<void>

    /** Stored JSON by fact number; empty if the tenant has no such execution. */
    facts(
      tenantId: string,
      executionId: string,
      selection: FactSelection,
      deduplicate: boolean
    ): StoreResult<ReadonlyArray<string>>
    /** Number of the execution's last fact; undefined if the tenant has no such execution. */
    reach(tenantId: string, executionId: string): StoreResult<number | undefined>
    /**
     * Stored JSON of every fact but the span events, by fact number up to one of them: in chunks,
     * bounded memory.
     */
    scan(
      tenantId: string,
      executionId: string,
      upTo: number
    ): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /** What follows a place among the events of a span; all of them from the start without one. */
    spanEvents(
      tenantId: string,
      of: { readonly executionId: string; readonly spanId: string },
      after: EventPlace | undefined,
      bounds: PageBounds
    ): StoreResult<SpanEventPage>
    /** What follows a place among the spans of an execution. */
    spans(
      tenantId: string,
      executionId: string,
      after: SpanPlace | undefined,
      bounds: PageBounds
    ): StoreResult<SpanPage>
    /** Number of spans that have facts of their own. */
    spanCount(tenantId: string, executionId: string): StoreResult<number>
    /**
     * Facts about spans, by fact number: in chunks, bounded memory. Whether with metadata is asked
     * before each chunk.
     */
    outlines(
      tenantId: string,
      executionId: string,
      withMetadata: () => boolean
    ): Stream.Stream<ReadonlyArray<SpanOutline>, StoreUnavailable>
    /**
     * What log records of models tell of calls, `tool_calls` and `tool_results` of their payloads, in
     * the order of their facts: some 8 Mi characters at most, of further ones nothing.
     */
    recordedCalls(tenantId: string, executionId: string): StoreResult<ReadonlyArray<RecordedCalls>>
    /** The execution that a span belongs to. */
    executionOfSpan(tenantId: string, spanId: string): StoreResult<string | undefined>
    /** Number of span events by span id, of all spans or of one; spans without any are absent. */
    eventCounts(
      tenantId: string,
      executionId: string,
      spanId?: string
    ): StoreResult<ReadonlyMap<string, number>>
    /**
     * Stored JSON of the facts that hold the pieces of a value, by its SHA-256, of one execution in
     * order: in chunks, bounded memory. Empty if no execution of the tenant has it (any more).
     */
    payload(tenantId: string, hash: string): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /** Those of executions that have facts; at most 1,000 executions. */
    summaries(
      tenantId: string,
      executionIds: ReadonlyArray<string>
    ): StoreResult<ReadonlyMap<string, ExecutionSummary>>
    /** In the order that is asked for, then by id (in the order of its bytes). */
    page(query: ExecutionPageQuery, deduplicate: boolean): StoreResult<ExecutionPage>
    /**
     * Executions named by id, and those that hold the named spans; what does not exist is left
     * out. Three statements for all of them, however many; more than 256 MiB of facts fail.
     */
    load(
      executions: ReadonlyArray<TraceKey>,
      spans: ReadonlyArray<TraceKey>
    ): StoreResult<ReadonlyArray<LoadedExecution>>
    /** Every row that claims to be one of the events. One statement for all of them. */
    storedEvents(sought: ReadonlyArray<SoughtEvents>): StoreResult<ReadonlyArray<StoredEvent>>

    /**
     * Take the details out of every fact of executions before a sequence of the chain: rows
     * of version 1 replace them, and no query finds the old ones when this returns. What is erased
     * already stays as it is; what is there but is no fact goes, and is missing from then on.
     * Facts of them that were set aside lose theirs too. Erasures come in the order of the chain; of
     * two of one execution the first after a fact counts. The statements are as many for one as for a
     * thousand.
     */
    eraseDetails(tenantId: string, erasures: ReadonlyArray<ExecutionErasure>): StoreResult<void>

    /**
     * All rows of an execution by chain sequence; of physical duplicates those with other bytes.
     */
    rows(
      tenantId: string,
      executionId: string
    ): Stream.Stream<ReadonlyArray<StoredRow>, StoreUnavailable>
    /** All rows of a range of the tenant's chain, by chain sequence, as those of EventStore. */
    chainRows(
      tenantId: string,
      first: number,
      last: number
    ): Stream.Stream<ReadonlyArray<StoredRow>, StoreUnavailable>
    extent(tenantId: string): StoreResult<ChainExtent>
    /**
     * Facts of a range of the tenant's chain whose number is not the one after that of the fact before
     * of their execution, the lowest `limit`.
     */
    misnumbered(
      tenantId: string,
      first: number,
      last: number,
      limit: number
    ): StoreResult<ReadonlyArray<MisnumberedFact>>
    /** Sequences of [first, last] that have physical copies of one row, the lowest `limit`. */
    copies(
      tenantId: string,
      first: number,
      last: number,
      limit: number
    ): StoreResult<ReadonlyArray<number>>
    /**
     * Sequences of facts in [first, last] that name a span which the index of span ids does not
     * lead to their execution, the lowest `limit`.
     */
    unindexed(
      tenantId: string,
      first: number,
      last: number,
      limit: number
    ): StoreResult<ReadonlyArray<number>>
    /** Entries of the index of span ids that no fact has made, at most `limit`. */
    strayIndex(
      tenantId: string,
      limit: number
    ): StoreResult<ReadonlyArray<{ readonly spanId: string }>>
    /** Links of the tenant's chain at the given sequences, as the stored bytes state them. */
    links(tenantId: string, sequences: ReadonlyArray<number>): StoreResult<ReadonlyArray<FactLink>>
    /** Sequences in [first, last] that the store does not hold, the lowest `limit` of them. */
    missing(
      tenantId: string,
      first: number,
      last: number,
      limit: number
    ): StoreResult<ReadonlyArray<number>>
    /**
     * Stored JSON of facts, ascending by chain sequence, of each the newest version: in chunks,
     * bounded memory.
     */
    chain(query: ChainQuery): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /**
     * Facts of executions that overlap [from, to] by their times, by start then id, for exports: in
     * chunks of whole executions, or of a large one without its spans; bounded memory.
     */
    overlapping(query: OverlapQuery): Stream.Stream<ReadonlyArray<ExecutionFacts>, StoreUnavailable>
  }
>()("alk/TraceStore") {}

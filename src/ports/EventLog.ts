/**
 * What alk needs from the log (Kafka): ordered partitions, exact offsets, one fenced transactional
 * writer per partition. The log knows bytes and offsets; it does not interpret them.
 */
import { Context, type Effect, Schema, type Scope, type Stream } from "effect"
import type { TopicKind } from "../domain/records/Topics.ts"
import type { Placement } from "../domain/registry/Placement.ts"

/** The log can't be reached or refuses the operation for now; nothing is known of its outcome. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  operation: Schema.String,
  cause: Schema.Defect()
}) {}

/** Another writer of the same name has been started since: this one is over. */
export class WriterFenced extends Schema.TaggedError<WriterFenced>()("WriterFenced", {
  transactionalId: Schema.String,
  cause: Schema.Defect()
}) {}

/** The offset asked for is not in the log any more, or not yet. The log never jumps by itself. */
export class OffsetOutOfRange extends Schema.TaggedError<OffsetOutOfRange>()("OffsetOutOfRange", {
  topic: Schema.String,
  partition: Schema.Int,
  offset: Schema.Int
}) {}

/** The topics are not as this program needs them, and starting would risk the data. */
export class TopicsInvalid extends Schema.TaggedError<TopicsInvalid>()("TopicsInvalid", {
  message: Schema.String
}) {}

export type Headers = Readonly<Record<string, Buffer | string>>

export interface LogRecord {
  readonly offset: number
  /** Milliseconds since the epoch, as the writer stamped it. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer>>
  /**
   * Why this service did not write it, or why it can't be read: then it is a whole batch.
   * Absent where it did, or where that is not checked.
   */
  readonly refused?: string
}

export interface NewRecord {
  readonly topic: TopicKind
  readonly partition: number
  readonly key: string | Buffer
  /** null is a tombstone on a compacted topic. */
  readonly value: string | Buffer | null
  readonly headers?: Headers
}

/**
 * Records of one partition that are bytes already, too many for an object each. They are one batch:
 * `records` holds `count` of them in the form of Kafka's record batches of format 2, offsets from 0,
 * times like the batch's. The bytes are the writer's until the commit has ended.
 */
export interface PackedRecords {
  readonly topic: TopicKind
  readonly partition: number
  readonly count: number
  readonly records: Buffer
}

export interface Position {
  readonly topic: TopicKind
  readonly partition: number
  readonly offset: number
}

/** What one fetch found at one position; committed records only, in order. */
export interface Fetched extends Position {
  readonly records: ReadonlyArray<LogRecord>
  /** Where to read next: after the last record seen, aborted and control records included. */
  readonly nextOffset: number
  /** After everything that is written, decided or not (the high watermark). */
  readonly writtenEnd: number
  /** Everything before this offset is decided (the last stable offset). */
  readonly stableEnd: number
  readonly logStart: number
}

export interface FetchLimits {
  /** Milliseconds to wait for data when there is none. */
  readonly waitMs: number
  readonly maxBytes: number
}

/** Reads committed records from exact offsets. One fetch at a time. */
export interface LogReader {
  fetch(
    positions: ReadonlyArray<Position>,
    limits: FetchLimits
  ): Effect.Effect<ReadonlyArray<Fetched>, LogUnavailable | OffsetOutOfRange>
}

/** Writes outside of transactions: idempotent, one send in flight, acknowledged by all replicas. */
export interface LogAppender {
  append(records: ReadonlyArray<NewRecord>): Effect.Effect<void, LogUnavailable>
}

/** Takes a record that was appended and its offset. */
export type AppendedListener = (record: NewRecord, offset: number) => void

/** Where the records are that a transaction wrote first. */
export interface Placed {
  /** Offset of the first of them by topic; the others of that topic follow without a gap. */
  readonly offsets: Readonly<Partial<Record<TopicKind, number>>>
}

/** Records that are signed with the offset at which they will be. */
export interface PlacedSigning {
  readonly topics: ReadonlySet<TopicKind>
  sign(record: NewRecord, offset: number): NewRecord
  /** Whether a record of one of the topics was signed for the place at which it is. */
  isGenuine(record: LogRecord, place: Pick<Position, "topic" | "partition">): boolean
}

/** The one writer of a name; starting another fences this one. */
export interface TransactionalWriter {
  /**
   * One transaction: `first` (of each topic all to one partition), then the records that depend
   * on where these are: `then` may be asked again, for other offsets, and to the same partitions each
   * time: which these are is asked before anything is written, for any offsets. Any failure leaves the
   * writer unusable: throw it away.
   *
   * Its end says that the transaction is decided: it will be read by all readers or by none. It
   * does not say that it can be read now: the broker answers before it marks the end in each
   * partition, and readers stop before what is not marked. Waiting for the marks would cost every
   * transaction a request, readers wait anyway, and the next writer of this name begins behind
   * them.
   */
  commit(
    first: ReadonlyArray<NewRecord | PackedRecords>,
    then: (placed: Placed) => ReadonlyArray<NewRecord>
  ): Effect.Effect<void, LogUnavailable | WriterFenced>
}

export interface Assignment {
  /** Grows with every assignment that this member receives. */
  readonly generation: number
  readonly partitions: ReadonlyArray<number>
  /**
   * False once the group may have given the partitions to another program without this member
   * having noticed: a process that was frozen asks before it writes what would not be refused
   * elsewhere.
   */
  isCurrent(): boolean
}

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Partition count of every topic but the registry; it may grow while the process runs. */
    readonly partitions: number
    readonly bootstrap: string
    /** Where a tenant's records are, as far as this process has read the registry. */
    partitionOf(tenantId: string): number
    /** What the two above answer from, for who reads the registry. */
    readonly placement: Effect.Effect<Placement>
    /** Partitions that each topic has on the brokers now. */
    readonly counts: Effect.Effect<ReadonlyMap<TopicKind, number>, LogUnavailable>
    /** Topic by topic more partitions, up to this number, where they are fewer. */
    addPartitions(to: number): Effect.Effect<void, LogUnavailable>
    /** First offset and last stable offset. */
    bounds(
      topic: TopicKind,
      partition: number
    ): Effect.Effect<{ readonly start: number; readonly end: number }, LogUnavailable>
    /** Last stable offsets of several partitions in one request. */
    ends(
      positions: ReadonlyArray<Pick<Position, "topic" | "partition">>
    ): Effect.Effect<ReadonlyArray<number>, LogUnavailable>
    /** Removes the records of a partition that are below an offset. */
    deleteBelow(
      topic: TopicKind,
      partition: number,
      offset: number
    ): Effect.Effect<void, LogUnavailable>
    readonly reader: Effect.Effect<LogReader, LogUnavailable, Scope.Scope>
    readonly appender: Effect.Effect<LogAppender, LogUnavailable, Scope.Scope>
    /**
     * While the scope is open, what the appenders of this process write to a topic, as soon as it is
     * acknowledged: sooner than a reader can fetch it. Of a record that had to be sent again nothing
     * may be heard here.
     */
    onAppended(
      topic: TopicKind,
      listener: AppendedListener
    ): Effect.Effect<void, never, Scope.Scope>
    /**
     * Fences every earlier writer of the same name: at the log, and if its transactional id got stuck
     * there, from the first record that this one writes to a topic of `placed`. Records of these topics
     * are never among the first of a transaction.
     */
    writer(
      name: string,
      placed?: PlacedSigning
    ): Effect.Effect<TransactionalWriter, LogUnavailable, Scope.Scope>
    /**
     * Membership of a group that shares out the partitions of `commands`: an assignment each time
     * the group is balanced anew, an empty one when this member has lost the group.
     */
    membership(group: string): Stream.Stream<Assignment, LogUnavailable>
  }
>()("alk/EventLog") {}

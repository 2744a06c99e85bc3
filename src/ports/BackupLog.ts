/**
 * What a backup and a restore need from the log beside `EventLog`: ends that count what is not
 * committed yet, and records written back at the offsets that they had.
 */
import type { Effect, Scope } from "effect"
import type { TopicKind } from "../domain/records/Topics.ts"
import type { EventLog, LogRecord, LogUnavailable, Position } from "./EventLog.ts"

type Place = Pick<Position, "topic" | "partition">

/** A log beside the service that writes it: nothing is created or changed. */
export interface BackupSource {
  readonly log: EventLog["Service"]
  /** Offsets after the last record that is written, committed or not, of several partitions. */
  writtenEnds(positions: ReadonlyArray<Place>): Effect.Effect<ReadonlyArray<number>, LogUnavailable>
}

/** Writes one partition from its first offset on. */
export interface PlacedWriter {
  /**
   * Records in the order of their offsets, at exactly these. Offsets between them are filled with
   * what no reader of committed records sees.
   */
  write(
    records: ReadonlyArray<Pick<LogRecord, "offset" | "timestamp" | "key" | "value" | "headers">>
  ): Effect.Effect<void, LogUnavailable>
  /** Fill up to an offset; what was written is decided then. */
  finish(to: number): Effect.Effect<void, LogUnavailable>
}

/** An empty log that a backup is written to. */
export interface RestoreTarget {
  readonly partitions: number
  /** Offsets after the last record of several partitions. */
  ends(positions: ReadonlyArray<Place>): Effect.Effect<ReadonlyArray<number>, LogUnavailable>
  writer(
    topic: TopicKind,
    partition: number
  ): Effect.Effect<PlacedWriter, LogUnavailable, Scope.Scope>
  /** Let a partition begin at an offset. */
  deleteBelow(
    topic: TopicKind,
    partition: number,
    offset: number
  ): Effect.Effect<void, LogUnavailable>
}

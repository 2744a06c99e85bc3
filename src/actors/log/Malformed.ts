/**
 * Records that break the rules of their topic: each is skipped, logged with its place and counted,
 * and never stops a reader. The record stays in its topic, where an operator can read it; a copy on
 * `alk.quarantine` would be made again at each start.
 */
import { Effect, Metric } from "effect"
import { RecordUnreadable, reasonOf } from "../../domain/json/RecordFields.ts"
import { counterOf } from "../../domain/metrics/Metrics.ts"
import type { TopicKind } from "../../domain/records/Topics.ts"
import type { EventLog, LogReader, LogRecord, Position } from "../../ports/EventLog.ts"
import { type Partition, scan } from "./PartitionScan.ts"

/** Lines for the records of one fetch, or transaction, at most: the rest is only counted. */
export const LINES_MAX = 20

export const malformedRecords = counterOf("alk_records_malformed_total")

export interface Malformed {
  readonly topic: TopicKind
  readonly partition: number
  readonly offset: number
  readonly reason: string
}

/** Take each record; those that it throws for, or that this service did not write, come back. */
export const takeEach = (
  { partition, topic }: Partition,
  records: ReadonlyArray<LogRecord>,
  take: (record: LogRecord) => void
): ReadonlyArray<Malformed> => {
  const malformed: Array<Malformed> = []
  for (const record of records) {
    try {
      if (record.refused !== undefined) throw new RecordUnreadable(record.refused)
      take(record)
    } catch (error) {
      malformed.push({ topic, partition, offset: record.offset, reason: reasonOf(error) })
    }
  }
  return malformed
}

/** Say and count them. */
export const reportMalformed = Effect.fnUntraced(function* (malformed: ReadonlyArray<Malformed>) {
  for (const { offset, partition, reason, topic } of malformed.slice(0, LINES_MAX)) {
    yield* Effect.logError(`a malformed record of alk.${topic} is passed over`, {
      topic,
      partition,
      offset,
      reason
    })
  }
  if (malformed.length > LINES_MAX) {
    yield* Effect.logError("more records are passed over", {
      records: malformed.length - LINES_MAX
    })
  }
  for (const [topic, own] of Map.groupBy(malformed, (one) => one.topic)) {
    yield* Metric.update(Metric.withAttributes(malformedRecords, { topic }), own.length)
  }
})

/** Take the committed records of [position.offset, end), in order. */
export const scanEach = Effect.fnUntraced(function* (
  reader: LogReader,
  position: Position,
  end: number,
  take: (record: LogRecord) => void
) {
  const malformed: Array<Malformed> = []
  yield* scan(reader, position, end, (records) => {
    malformed.push(...takeEach(position, records, take))
  })
  yield* reportMalformed(malformed)
})

/** Take every record that a partition holds now, in order. */
export const takeAll = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  reader: LogReader,
  place: Partition,
  take: (record: LogRecord) => void
) {
  const { end, start } = yield* log.bounds(place.topic, place.partition)
  yield* scanEach(reader, { ...place, offset: start }, end, take)
})

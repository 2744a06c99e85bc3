/**
 * Records that nobody could have written who follows the rules: each is passed over, said with its
 * place and counted, and never stops whoever reads. The record itself stays in its topic, where it
 * can be looked at; what is passed over at each start is no second record on `alk.quarantine`.
 */
import { Effect, Metric } from "effect"
import { reasonOf } from "../domain/RecordFields.ts"
import type { TopicKind } from "../domain/Topics.ts"
import type { LogReader, LogRecord, Position } from "../ports/EventLog.ts"
import { scan } from "./PartitionScan.ts"

/** Lines for the records of one fetch at most: the rest is only counted. */
const LINES_MAX = 20

export const malformedRecords = Metric.counter("alk_records_malformed_total", {
  description: "Records that could not be read and were passed over, per topic and process",
  incremental: true
})

export interface Malformed {
  readonly topic: TopicKind
  readonly partition: number
  readonly offset: number
  readonly reason: string
}

/** Take each record; those that it throws for come back. */
export const takeEach = (
  { partition, topic }: { readonly topic: TopicKind; readonly partition: number },
  records: ReadonlyArray<LogRecord>,
  take: (record: LogRecord) => void
): ReadonlyArray<Malformed> => {
  const malformed: Array<Malformed> = []
  for (const record of records) {
    try {
      take(record)
    } catch (error) {
      malformed.push({ topic, partition, offset: record.offset, reason: reasonOf(error) })
    }
  }
  return malformed
}

/** Say and count them. */
export const reportMalformed = Effect.fnUntraced(function*(malformed: ReadonlyArray<Malformed>) {
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
export const scanEach = Effect.fnUntraced(function*(
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

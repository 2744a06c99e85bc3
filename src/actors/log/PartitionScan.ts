/**
 * Reading a partition from one offset to a known end, a chunk at a time. Ends are last stable
 * offsets, so a tail of aborted transactions or an empty partition is an end like any other.
 */
import { Effect } from "effect"
import type {
  EventLog,
  LogReader,
  LogRecord,
  LogUnavailable,
  OffsetOutOfRange,
  Position
} from "../../ports/EventLog.ts"

/** Bytes of one fetch of a scan. */
const SCAN_BYTES = 8 * 1_048_576
const SCAN_WAIT_MS = 250

/** Call `each` with the committed records of [position.offset, end), in order. */
export const scan = (
  reader: LogReader,
  position: Position,
  end: number,
  each: (records: ReadonlyArray<LogRecord>) => void
): Effect.Effect<void, LogUnavailable | OffsetOutOfRange> =>
  Effect.gen(function* () {
    let offset = position.offset
    while (offset < end) {
      const [fetched] = yield* reader.fetch([{ ...position, offset }], {
        waitMs: SCAN_WAIT_MS,
        maxBytes: SCAN_BYTES
      })
      if (fetched === undefined) continue
      const records = fetched.records.filter((record) => record.offset < end)
      if (records.length > 0) each(records)
      offset = fetched.nextOffset
    }
  })

/** A partition of a topic. */
export type Partition = Pick<Position, "topic" | "partition">

/** The first offset of a partition, and its last stable one. */
export interface Bounds {
  readonly start: number
  readonly end: number
}

/** The same for all that a partition holds now; its bounds. */
export const scanAll = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  reader: LogReader,
  place: Partition,
  each: (records: ReadonlyArray<LogRecord>, bounds: Bounds) => void
) {
  const bounds = yield* log.bounds(place.topic, place.partition)
  const { end, start } = bounds
  yield* scan(reader, { ...place, offset: start }, end, (records) => each(records, bounds))
  return bounds
})

/** Read on from an offset until `done` is true; for a record that is known to come. */
export const scanUntil = (
  reader: LogReader,
  position: Position,
  each: (records: ReadonlyArray<LogRecord>) => void,
  done: () => boolean
): Effect.Effect<void, LogUnavailable | OffsetOutOfRange> =>
  Effect.gen(function* () {
    let offset = position.offset
    while (!done()) {
      const [fetched] = yield* reader.fetch([{ ...position, offset }], {
        waitMs: SCAN_WAIT_MS,
        maxBytes: SCAN_BYTES
      })
      if (fetched === undefined) continue
      each(fetched.records)
      offset = fetched.nextOffset
    }
  })

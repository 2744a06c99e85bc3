/**
 * Compares what the store holds of a partition with its topic and says from where to go on. What
 * the topic denies is set aside and logged as an error; what the topic no longer holds is never
 * touched, because it could not be built again.
 */
import { Effect, Metric } from "effect"
import { sha256Hex } from "../../domain/Identifiers.ts"
import { EventLog, type LogReader, type LogRecord, type Position } from "../../ports/EventLog.ts"
import type { Denied, DeniedRows, StoredRecord, TopicRows } from "../../ports/TopicRows.ts"
import { type Partition, scan } from "../log/PartitionScan.ts"

/** Offsets that are compared at a time: first one, then more, up to this many. */
const WINDOW_OFFSETS_MAX = 5_000
const WINDOW_GROWTH = 50

export const rowsSetAside = Metric.counter("alk_rows_set_aside_total", {
  description: "Rows of the store that the topic denied and that were set aside, per table",
  incremental: true
})

export interface Confirmed {
  /** Where to read on. */
  readonly next: number
  /**
   * What the view has shown before is there again once it is built up to this offset; at or below
   * `next` if nothing is missing.
   */
  readonly wholeAt: number
}

/** Whether a stored row is what a record has become. */
export type IsRecord = (record: string, stored: string) => boolean

/** The last offset of which the topic confirms a row. */
interface LastConfirmed {
  readonly offset: number
  /** Digests of the rows that it confirms there. */
  readonly confirmed: ReadonlyArray<string>
  /** False if there are rows at this offset that it denies. */
  readonly alone: boolean
}

/** Digests of the rows that are what the topic's records have become. */
const confirmedIn = Effect.fnUntraced(function* (
  reader: LogReader,
  position: Position,
  below: number,
  stored: ReadonlyMap<number, ReadonlyArray<StoredRecord>>,
  isOf: IsRecord
) {
  const found = new Map<number, ReadonlyArray<string>>()
  const take = ({ offset, value }: LogRecord) => {
    const rows = stored.get(offset)
    if (rows === undefined) return
    const text = value ?? Buffer.alloc(0)
    const digest = sha256Hex(text)
    const own = rows.filter(
      ({ body, digest: known }) =>
        known === digest || (body !== undefined && isOf(text.toString(), body))
    )
    if (own.length === 0) return
    const digests = own.map(({ digest: known }) => known)
    found.set(offset, digests)
  }
  yield* scan(reader, position, below, (records) => records.forEach(take))
  return found
})

/** Walk down from the topic's end, or the highest row, to the first row that the topic confirms. */
const lastConfirmed = Effect.fnUntraced(function* (
  reader: LogReader,
  partition: Partition,
  bounds: { readonly start: number; readonly end: number },
  top: number,
  rows: TopicRows,
  isOf: IsRecord
) {
  let highest: number | undefined =
    top < bounds.end ? top : yield* rows.highest(partition.partition, bounds.end)
  for (let window = 1; ; window = Math.min(WINDOW_OFFSETS_MAX, window * WINDOW_GROWTH)) {
    if (highest === undefined || highest < bounds.start) return undefined
    const from = Math.max(bounds.start, highest + 1 - window)
    const stored = Map.groupBy(
      yield* rows.rows(partition.partition, from, highest + 1),
      ({ offset }) => offset
    )
    const position = { ...partition, offset: from }
    const found = yield* confirmedIn(reader, position, highest + 1, stored, isOf)
    if (found.size > 0) {
      const offset = Math.max(...found.keys())
      const confirmed = found.get(offset)!
      const alone = stored.get(offset)!.length === confirmed.length
      return { offset, confirmed, alone } satisfies LastConfirmed
    }
    highest = yield* rows.highest(partition.partition, from)
  }
})

const report = Effect.fnUntraced(function* (
  { partition, topic }: Partition,
  rows: TopicRows,
  denied: ReadonlyArray<DeniedRows>
) {
  for (const { firstOffset, lastOffset, reason, rows: count, table } of denied) {
    yield* Effect.logError(
      reason === "beyond_end"
        ? "the store holds rows beyond the end of the topic: they are set aside"
        : "the store holds rows that the topic denies: they are set aside and built again from it",
      { topic, partition, table, rows: count, firstOffset, lastOffset, into: rows.asideTable }
    )
  }
})

/** The topic's end as far as rows below it are about to be missing. */
const wholeAgainAt = (denied: ReadonlyArray<DeniedRows>): number =>
  Math.max(
    0,
    ...denied.map(({ lastOffset, reason }) => (reason === "beyond_end" ? 0 : lastOffset + 1))
  )

/**
 * Where the rows of a partition end, as far as the topic confirms them; those above are set aside.
 * `announce` is run before anything goes.
 */
export const confirm = Effect.fnUntraced(function* <E, R>(
  reader: LogReader,
  partition: Partition,
  rows: TopicRows,
  announce: Effect.Effect<void, E, R>,
  isOf: IsRecord = () => false
) {
  const log = yield* EventLog
  const bounds = yield* log.bounds(partition.topic, partition.partition)
  const { end, start } = bounds
  const highest = yield* rows.highest(partition.partition)
  if (highest === undefined) return { next: start, wholeAt: end } satisfies Confirmed
  if (highest < start) return { next: start, wholeAt: start } satisfies Confirmed
  const last = yield* lastConfirmed(reader, partition, bounds, highest, rows, isOf)
  const next = last === undefined ? start : last.offset + 1
  if (last?.alone === true && highest === last.offset) {
    return { next, wholeAt: next } satisfies Confirmed
  }
  const what: Denied = { from: last?.offset ?? start, confirmed: last?.confirmed ?? [], end }
  const denied = yield* rows.denied(partition.partition, what)
  yield* report(partition, rows, denied)
  yield* announce
  yield* rows.setAside(partition.partition, what)
  for (const { rows: count, table } of denied) {
    yield* Metric.update(Metric.withAttributes(rowsSetAside, { table }), count)
  }
  return { next, wholeAt: wholeAgainAt(denied) } satisfies Confirmed
})

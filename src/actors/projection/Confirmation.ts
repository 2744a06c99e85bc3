/**
 * Compares what the store holds of a partition with its topic and says from where to go on. What
 * the topic denies is set aside and logged as an error; what the topic no longer holds is never
 * touched, because it could not be built again.
 */
import { Effect, Metric } from "effect"
import { sha256Hex } from "../../domain/Identifiers.ts"
import { counterOf } from "../../domain/metrics/Metrics.ts"
import { EventLog, type LogReader, type LogRecord, type Position } from "../../ports/EventLog.ts"
import type { Denied, DeniedRows, StoredRecord, TopicRows } from "../../ports/TopicRows.ts"
import { type Partition, scan } from "../log/PartitionScan.ts"

/** Offsets that are compared at a time: first one, then more, up to this many. */
const WINDOW_OFFSETS_MAX = 5_000
const WINDOW_GROWTH = 50

export const rowsSetAside = counterOf("alk_rows_set_aside_total")

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

/** In every record whose details the topic has forgotten; others may hold it too. */
const FORGOTTEN_MARK = Buffer.from('"erased_at":"')

/** True for a row that is what a record has become. */
export const isRowOf = (record: Buffer, { body, digest }: StoredRecord, isOf: IsRecord): boolean =>
  digest === sha256Hex(record) || (body !== undefined && isOf(record.toString(), body))

/** Which records of a window confirm a row. */
interface ConfirmedWindow {
  /** By offset the digests of the rows that are what the topic's records have become. */
  readonly found: Map<number, ReadonlyArray<string>>
  /** By offset the records that confirm no row, and may have forgotten what a row still has. */
  readonly forgotten: ReadonlyMap<number, Buffer>
}

const confirmedIn = Effect.fnUntraced(function* (
  reader: LogReader,
  position: Position,
  below: number,
  stored: ReadonlyMap<number, ReadonlyArray<StoredRecord>>,
  isOf: IsRecord
) {
  const found = new Map<number, ReadonlyArray<string>>()
  const forgotten = new Map<number, Buffer>()
  const take = ({ offset, value }: LogRecord) => {
    const rows = stored.get(offset)
    if (rows === undefined) return
    const record = value ?? Buffer.alloc(0)
    const own = rows.filter((row) => isRowOf(record, row, isOf))
    if (own.length > 0) {
      found.set(
        offset,
        own.map(({ digest }) => digest)
      )
    } else if (record.includes(FORGOTTEN_MARK)) forgotten.set(offset, Buffer.from(record))
  }
  yield* scan(reader, position, below, (records) => records.forEach(take))
  return { found, forgotten } satisfies ConfirmedWindow
})

/**
 * The highest offset of which the topic confirms a row, with the digests. A row whose record has
 * forgotten what the row still has is read whole: there are such only until the store has erased it.
 */
const highestConfirmed = Effect.fnUntraced(function* (
  { found, forgotten }: ConfirmedWindow,
  partition: number,
  rows: TopicRows,
  isOf: IsRecord
) {
  const highest = Math.max(-1, ...found.keys())
  const above = [...forgotten].filter(([offset]) => offset > highest)
  for (const [offset, record] of above.sort(([left], [right]) => right - left)) {
    const whole = yield* rows.rows(partition, offset, offset + 1, true)
    const own = whole.filter((row) => isRowOf(record, row, isOf))
    if (own.length > 0) return { offset, confirmed: own.map(({ digest }) => digest) }
  }
  return highest === -1 ? undefined : { offset: highest, confirmed: found.get(highest)! }
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
  for (let offsets = 1; ; offsets = Math.min(WINDOW_OFFSETS_MAX, offsets * WINDOW_GROWTH)) {
    if (highest === undefined || highest < bounds.start) return undefined
    const from = Math.max(bounds.start, highest + 1 - offsets)
    const stored = Map.groupBy(
      yield* rows.rows(partition.partition, from, highest + 1),
      ({ offset }) => offset
    )
    const position = { ...partition, offset: from }
    const window = yield* confirmedIn(reader, position, highest + 1, stored, isOf)
    const last = yield* highestConfirmed(window, partition.partition, rows, isOf)
    if (last !== undefined) {
      const alone = stored.get(last.offset)!.length === last.confirmed.length
      return { ...last, alone } satisfies LastConfirmed
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

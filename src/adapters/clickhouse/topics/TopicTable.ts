/**
 * A table whose rows are records of a topic, each with its partition and offset: inserting them,
 * where they end, whether any is there twice.
 */
import { Effect } from "effect"
import type { StoreUnavailable } from "../../../ports/EventStore.ts"
import { rawRows } from "../client/RawRows.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import type { StoreClient } from "../client/StoreClient.ts"

/** Offsets that are looked through for duplicates at a time: 16 bytes of memory for each. */
const DUPLICATES_WINDOW = 4_000_000

/** One record: its place in the topic and its bytes as they are, which are JSON. */
export interface TopicRow {
  readonly partition: number
  readonly offset: number
  readonly body: Buffer
}

/** `fields`: columns beside the place and the bytes, and what a row has there. */
export const insertRows = <Row extends TopicRow>(
  store: StoreClient,
  operation: string,
  table: string,
  rows: ReadonlyArray<Row>,
  fields: Readonly<Record<string, (row: Row) => string | number>> = {}
): Effect.Effect<void, StoreUnavailable> => {
  const values = Object.values(fields)
  return store.insert({
    operation,
    table,
    columns: ["kafka_partition", "kafka_offset", ...Object.keys(fields), "body"],
    format: "CSV",
    rows: rows.length,
    bytes: () =>
      rawRows(
        rows.map((row) => ({
          fields: [row.partition, row.offset, ...values.map((value) => value(row))],
          body: row.body
        }))
      )
  })
}

/** The row of the partition's highest offset. */
const highestRow = <A>(
  store: StoreClient,
  table: string,
  columns: string,
  partition: number,
  row: (reader: RowBinary) => A
): Effect.Effect<A | undefined, StoreUnavailable> =>
  store.readFirst(
    "position",
    (bind) =>
      `SELECT ${columns} FROM ${table} WHERE ${bind.partition(partition)} AND kafka_offset =`
      + ` (SELECT max(kafka_offset) FROM ${table} WHERE ${bind.partition(partition)}) LIMIT 1`,
    row
  )

/** The highest offset and its bytes. */
export const lastRecord = (store: StoreClient, table: string, partition: number) =>
  highestRow(store, table, "kafka_offset, body", partition, (row) => ({
    offset: row.uint64(),
    body: row.string()
  }))

/**
 * Whether rows at or above an offset are there twice. Only rows that FINAL and merges make one
 * count, those of equal `key`: of a forged second row they never do.
 */
export const hasRepeats = Effect.fnUntraced(function* (
  store: StoreClient,
  table: string,
  key: string,
  partition: number,
  fromOffset: number
) {
  const last = yield* highestRow(store, table, "kafka_offset", partition, (row) => row.uint64())
  for (let from = fromOffset; from <= (last ?? -1); from += DUPLICATES_WINDOW) {
    const repeats = (what: string) =>
      store.readOne(
        "hasDuplicates",
        (bind) =>
          `SELECT count() > uniqExact(${what}) FROM ${table}`
          + ` WHERE ${bind.partition(partition)} AND kafka_offset >= ${bind.integer(from)}`
          + ` AND kafka_offset < ${bind.integer(from + DUPLICATES_WINDOW)}`,
        (row) => row.uint8() === 1
      )
    if (!(yield* repeats("kafka_offset"))) continue
    if (yield* repeats(`(kafka_offset, ${key})`)) return true
  }
  return false
})

/** Make rows of equal key one, on disk. */
export const mergeRows = (
  store: StoreClient,
  table: string
): Effect.Effect<void, StoreUnavailable> =>
  store.change(
    "mergeDuplicates",
    () => `OPTIMIZE TABLE ${table} FINAL SETTINGS alter_sync = 2, optimize_throw_if_noop = 1`
  )

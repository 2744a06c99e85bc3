/**
 * The view of one topic partition: what comes in, where it ends, whether anything stands in it
 * twice, and its removal. Knows nothing of what the events say.
 */
import { Effect } from "effect"
import type { EventStore } from "../../ports/EventStore.ts"
import { Parameters } from "./EventFilterSql.ts"
import { escapedRows, rawRows } from "./RawRows.ts"
import type { RowBinary } from "./RowBinary.ts"
import type { StoreClient } from "./StoreClient.ts"

/** Offsets that are looked through for duplicates at a time: 16 bytes of memory for each. */
const DUPLICATES_WINDOW = 4_000_000

type Store = EventStore["Service"]

export const makeInsertEvents = (store: StoreClient): Store["insertEvents"] => (rows) =>
  store.insert({
    operation: "insertEvents",
    table: store.events,
    columns: ["kafka_partition", "kafka_offset", "body"],
    format: "CSV",
    rows: rows.length,
    bytes: () =>
      rawRows(rows.map(({ body, offset, partition }) => ({ fields: [partition, offset], body })))
  })

export const makeInsertReceipts = (store: StoreClient): Store["insertReceipts"] => (rows) =>
  store.insert({
    operation: "insertReceipts",
    table: store.receipts,
    columns: ["kafka_partition", "kafka_offset", "tenant_id", "receipt_id", "body"],
    format: "CSV",
    rows: rows.length,
    bytes: () =>
      rawRows(rows.map(({ body, offset, partition, receiptId, tenantId }) => ({
        fields: [partition, offset, tenantId, receiptId],
        body
      })))
  })

/** What did not link may be anything, so its bytes are escaped. */
export const makeInsertConflicts = (store: StoreClient): Store["insertConflicts"] => (rows) =>
  store.insert({
    operation: "insertConflicts",
    table: store.conflicts,
    columns: [
      "kafka_partition",
      "kafka_offset",
      "tenant_id",
      "sequence_number",
      "reason",
      "body"
    ],
    format: "TabSeparated",
    rows: rows.length,
    bytes: () =>
      escapedRows(rows.map((row) =>
        [row.partition, row.offset, row.tenantId, row.sequenceNumber, row.reason, row.body]))
  })

/** The row of the partition's highest offset in one of the tables. */
const highest = (partition: number, table: string, columns: string) => {
  const parameters = new Parameters()
  const inPartition = `kafka_partition = ${parameters.bind("UInt32", partition)}`
  return {
    operation: "position",
    parameters,
    sql: `SELECT ${columns} FROM ${table} WHERE ${inPartition} AND kafka_offset =`
      + ` (SELECT max(kafka_offset) FROM ${table} WHERE ${inPartition}) LIMIT 1`
  }
}

export const makePosition = (store: StoreClient): Store["position"] =>
  Effect.fn("EventStore.position")(function*(partition) {
    const bodyAt = (row: RowBinary) => ({ offset: row.uint64(), body: row.string() })
    const highestIn = (table: string) =>
      store.read(highest(partition, table, "kafka_offset, body"), bodyAt)
    const [event] = yield* highestIn(store.events)
    // Records of the same topic, only that they didn't link.
    const [conflict] = yield* highestIn(store.conflicts)
    const [receiptOffset] = yield* store.read(
      highest(partition, store.receipts, "kafka_offset"),
      (row) => row.uint64()
    )
    const last = (conflict?.offset ?? -1) > (event?.offset ?? -1) ? conflict : event
    return { event: last, receiptOffset }
  })

/** Only rows that FINAL and merges make one count: of a forged second row they never do. */
export const makeHasDuplicates = (store: StoreClient): Store["hasDuplicates"] =>
  Effect.fn("EventStore.hasDuplicates")(function*(partition, fromOffset) {
    const [last = -1] = yield* store.read(
      highest(partition, store.events, "kafka_offset"),
      (row) => row.uint64()
    )
    for (let from = fromOffset; from <= last; from += DUPLICATES_WINDOW) {
      const repeats = (what: string) => {
        const parameters = new Parameters()
        return store.readOne({
          operation: "hasDuplicates",
          parameters,
          sql: `SELECT count() > uniqExact(${what}) FROM ${store.events}`
            + ` WHERE kafka_partition = ${parameters.bind("UInt32", partition)}`
            + ` AND kafka_offset >= ${parameters.integer(from)}`
            + ` AND kafka_offset < ${parameters.integer(from + DUPLICATES_WINDOW)}`
        }, (row) => row.uint8() === 1)
      }
      if (!(yield* repeats("kafka_offset"))) continue
      if (yield* repeats("(kafka_offset, tenant_id, sequence_number, hash)")) return true
    }
    return false
  })

export const makeMergeDuplicates = (store: StoreClient): Store["mergeDuplicates"] =>
  store.change({
    operation: "mergeDuplicates",
    parameters: new Parameters(),
    sql: `OPTIMIZE TABLE ${store.events} FINAL SETTINGS alter_sync = 2, optimize_throw_if_noop = 1`
  })

export const makeDropPartition = (store: StoreClient): Store["dropPartition"] => (partition) =>
  Effect.forEach([store.events, store.receipts, store.conflicts], (table) => {
    const parameters = new Parameters()
    return store.change({
      operation: "dropPartition",
      parameters,
      sql: `ALTER TABLE ${table} DELETE`
        + ` WHERE kafka_partition = ${parameters.bind("UInt32", partition)}`
        + " SETTINGS mutations_sync = 2"
    })
  }, { discard: true })

/**
 * The view of one topic partition: what comes in, where it ends, whether anything stands in it
 * twice, and its removal. Knows nothing of what the events say.
 */
import { Effect } from "effect"
import type { EventStore } from "../../ports/EventStore.ts"
import { escapedRows, rawRows } from "./RawRows.ts"
import type { StoreClient } from "./StoreClient.ts"
import {
  dropRows,
  hasRepeats,
  highestRow,
  insertRows,
  lastRecord,
  mergeRows
} from "./TopicTable.ts"

type Store = EventStore["Service"]

export const makeInsertEvents = (store: StoreClient): Store["insertEvents"] => (rows) =>
  insertRows(store, "insertEvents", store.events, rows)

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

export const makePosition = (store: StoreClient): Store["position"] =>
  Effect.fn("EventStore.position")(function*(partition) {
    const event = yield* lastRecord(store, store.events, partition)
    // Records of the same topic, only that they didn't link.
    const conflict = yield* lastRecord(store, store.conflicts, partition)
    const receiptOffset = yield* highestRow(
      store,
      store.receipts,
      "kafka_offset",
      partition,
      (row) => row.uint64()
    )
    const last = (conflict?.offset ?? -1) > (event?.offset ?? -1) ? conflict : event
    return { event: last, receiptOffset }
  })

export const makeHasDuplicates = (store: StoreClient): Store["hasDuplicates"] =>
  Effect.fn("EventStore.hasDuplicates")(function*(partition, fromOffset) {
    const key = "tenant_id, sequence_number, hash"
    return yield* hasRepeats(store, store.events, key, partition, fromOffset)
  })

export const makeMergeDuplicates = (store: StoreClient): Store["mergeDuplicates"] =>
  mergeRows(store, store.events)

export const makeDropPartition = (store: StoreClient): Store["dropPartition"] => (partition) =>
  dropRows(store, [store.events, store.receipts, store.conflicts], partition)

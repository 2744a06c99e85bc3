/**
 * The view of one topic partition: what comes in, and whether anything is in it twice. Knows
 * nothing of what the events say.
 */
import { Effect } from "effect"
import type { EventStore } from "../../../ports/EventStore.ts"
import { escapedRows, rawRows } from "../client/RawRows.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { hasRepeats, insertRows, mergeRows } from "./TopicTable.ts"

type Store = EventStore["Service"]

export const makeInsertEvents =
  (store: StoreClient): Store["insertEvents"] =>
  (rows) =>
    insertRows(store, "insertEvents", store.events, rows)

export const makeInsertReceipts =
  (store: StoreClient): Store["insertReceipts"] =>
  (rows) =>
    store.insert({
      operation: "insertReceipts",
      table: store.receipts,
      columns: ["kafka_partition", "kafka_offset", "tenant_id", "receipt_id", "body"],
      format: "CSV",
      rows: rows.length,
      bytes: () =>
        rawRows(
          rows.map(({ body, offset, partition, receiptId, tenantId }) => ({
            fields: [partition, offset, tenantId, receiptId],
            body
          }))
        )
    })

/** What did not link may be anything, so its bytes are escaped. */
export const makeInsertConflicts =
  (store: StoreClient, table: string): Store["insertConflicts"] =>
  (rows) =>
    store.insert({
      operation: "insertConflicts",
      table,
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
        escapedRows(
          rows.map((row) => [
            row.partition,
            row.offset,
            row.tenantId,
            row.sequenceNumber,
            row.reason,
            row.body
          ])
        )
    })

export const makeHasDuplicates = (store: StoreClient): Store["hasDuplicates"] =>
  Effect.fn("EventStore.hasDuplicates")(function* (partition, fromOffset) {
    const key = "tenant_id, sequence_number, hash"
    return yield* hasRepeats(store, store.events, key, partition, fromOffset)
  })

export const makeMergeDuplicates = (store: StoreClient): Store["mergeDuplicates"] =>
  mergeRows(store, store.events)

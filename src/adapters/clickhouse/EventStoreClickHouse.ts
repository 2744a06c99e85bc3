/**
 * The query store on ClickHouse, a server's or the engine in this process: the port put together
 * from its parts. Decides nothing: what is stored comes from the topics.
 */
import { Effect, Layer, Stream } from "effect"
import { EventStore } from "../../ports/EventStore.ts"
import { componentRuns } from "../Components.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import { StoreClient } from "./client/StoreClient.ts"
import { CopyGuard } from "./events/CopyGuard.ts"
import { makeEraseAgain, makeEraseDetails, makePurgeErased } from "./events/EventErasure.ts"
import { makeFacets } from "./events/EventFacets.ts"
import { makeInsertEvents, UsesFastSplit } from "./events/EventInsert.ts"
import {
  makeById,
  makeKeysetPages,
  makeLastEvents,
  makePage,
  makeScan
} from "./events/EventPages.ts"
import { makeStats } from "./events/EventStatistics.ts"
import { fastSplit } from "./events/fast/FastSplit.ts"
import { makeRows } from "./events/StoredRows.ts"
import { migrate } from "./Migrations.ts"
import { makeConflicts, makeCopies, makeExtent, makeInsertConflicts } from "./topics/ChainTable.ts"
import { hasRepeats, insertRows, mergeRows } from "./topics/TopicTable.ts"

/** Rows that are equal in these are the same event. */
const KEY = "tenant_id, sequence_number, hash"

/** A question to the table that every list reads. */
const makePing = (store: StoreClient): EventStore["Service"]["ping"] =>
  store
    .readOne(
      "ping",
      () => `SELECT count() FROM ${store.events} WHERE tenant_id = ''`,
      (row) => row.uint64()
    )
    .pipe(Effect.asVoid)

const makeReceipt =
  (store: StoreClient): EventStore["Service"]["receipt"] =>
  (tenantId, receiptId) =>
    store.readFirst(
      "receipt",
      (bind) =>
        `SELECT body FROM ${store.receipts} WHERE ${bind.tenant(tenantId)}`
        + ` AND receipt_id = ${bind.string(receiptId)} ORDER BY kafka_offset LIMIT 1`,
      (row) => row.string()
    )

/** The store of the port. */
export const layerClickHouse: Layer.Layer<EventStore, never, ClickHouseConnection> = Layer.effect(
  EventStore,
  Effect.gen(function* () {
    const connection = yield* ClickHouseConnection
    const isFast = yield* UsesFastSplit
    const store = new StoreClient(connection)
    const copies = new CopyGuard(store)
    /** A read of the list, which merges rows where a tenant has copies. */
    const guarded =
      <Query extends { readonly tenantId: string }, A, E>(
        operation: string,
        read: (query: Query, merge: boolean) => Effect.Effect<A, E>
      ) =>
      (query: Query, deduplicate: boolean) =>
        Effect.flatMap(copies.merges(operation, query.tenantId, deduplicate), (merge) =>
          read(query, merge)
        )
    const scan = makeScan(store)
    return EventStore.of({
      migrate: Effect.flatMap(
        store.changeBy("migrate", () => migrate(connection.client, connection.place)),
        (version) => componentRuns("clickhouse", version)
      ),
      ping: makePing(store),
      insertEvents: makeInsertEvents(store, isFast ? fastSplit() : undefined),
      insertReceipts: (rows) =>
        insertRows(store, "insertReceipts", store.receipts, rows, {
          tenant_id: ({ tenantId }) => tenantId,
          receipt_id: ({ receiptId }) => receiptId
        }),
      insertConflicts: makeInsertConflicts(store, store.conflicts),
      hasDuplicates: (partition, fromOffset) =>
        hasRepeats(store, store.events, KEY, partition, fromOffset),
      mergeDuplicates: mergeRows(store, store.events),
      eraseDetails: makeEraseDetails(store),
      eraseAgain: makeEraseAgain(store),
      purgeErased: makePurgeErased(store),
      page: guarded("page", makePage(store)),
      keysetPages: guarded("keysetPages", makeKeysetPages(store)),
      scan: (query, deduplicate) =>
        Stream.unwrap(
          Effect.map(copies.merges("scan", query.tenantId, deduplicate), (merge) =>
            scan(query, merge)
          )
        ),
      byId: makeById(store),
      lastEvents: makeLastEvents(store),
      stats: guarded("stats", makeStats(store)),
      facets: guarded("facets", makeFacets(store)),
      receipt: makeReceipt(store),
      rows: makeRows(store),
      extent: makeExtent(store, store.events, "sequence_number"),
      copies: makeCopies(store, store.events, "sequence_number"),
      conflicts: makeConflicts(store, store.conflicts)
    })
  })
)

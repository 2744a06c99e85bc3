/**
 * The query store on ClickHouse, a server's or the engine in this process: the port put together
 * from its parts. Decides nothing: what is stored comes from the topics.
 */
import { Effect, Layer, Stream } from "effect"
import { EventStore } from "../../ports/EventStore.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import { Parameters } from "./client/Parameters.ts"
import { makeStoreClient, type StoreClient } from "./client/StoreClient.ts"
import { CopyGuard } from "./events/CopyGuard.ts"
import { makeEraseAgain, makeEraseDetails } from "./events/EventErasure.ts"
import { makeById, makeKeysetPages, makePage, makeScan } from "./events/EventPages.ts"
import { makeStats } from "./events/EventStatistics.ts"
import { makeRows, makeSequenceSpan } from "./events/StoredRows.ts"
import { migrate } from "./Migrations.ts"
import { makeConflicts, makeCopies, makeExtent } from "./topics/ChainTable.ts"
import {
  makeHasDuplicates,
  makeInsertConflicts,
  makeInsertEvents,
  makeInsertReceipts,
  makeMergeDuplicates
} from "./topics/PartitionViews.ts"

/** A question to the table that every list reads. */
const makePing = (store: StoreClient): EventStore["Service"]["ping"] =>
  store
    .readOne(
      {
        operation: "ping",
        parameters: new Parameters(),
        sql: `SELECT count() FROM ${store.events} WHERE tenant_id = ''`
      },
      (row) => row.uint64()
    )
    .pipe(Effect.asVoid)

const makeReceipt =
  (store: StoreClient): EventStore["Service"]["receipt"] =>
  (tenantId, receiptId) => {
    const parameters = new Parameters()
    return store
      .read(
        {
          operation: "receipt",
          parameters,
          sql:
            `SELECT body FROM ${store.receipts} WHERE tenant_id = ${parameters.string(tenantId)}`
            + ` AND receipt_id = ${parameters.string(receiptId)} ORDER BY kafka_offset LIMIT 1`
        },
        (row) => row.string()
      )
      .pipe(Effect.map(([body]) => body))
  }

/** The store behind the port. */
export const layerClickHouse: Layer.Layer<EventStore, never, ClickHouseConnection> = Layer.effect(
  EventStore,
  Effect.map(ClickHouseConnection, (connection) => {
    const store = makeStoreClient(connection)
    const copies = new CopyGuard(store)
    /** A read of the list, which merges rows where a tenant has copies. */
    const guarded =
      <Query extends { readonly tenantId: string }, A, E>(
        operation: string,
        read: (query: Query, merge: boolean) => Effect.Effect<A, E>
      ) =>
      (query: Query, final: boolean) =>
        Effect.flatMap(copies.merges(operation, query.tenantId, final), (merge) =>
          read(query, merge)
        )
    const scan = makeScan(store)
    return EventStore.of({
      migrate: store.changeBy("migrate", () => migrate(connection.client, connection.place)),
      ping: makePing(store),
      insertEvents: makeInsertEvents(store),
      insertReceipts: makeInsertReceipts(store),
      insertConflicts: makeInsertConflicts(store, store.conflicts),
      hasDuplicates: makeHasDuplicates(store),
      mergeDuplicates: makeMergeDuplicates(store),
      eraseDetails: makeEraseDetails(store),
      eraseAgain: makeEraseAgain(store),
      page: guarded("page", makePage(store)),
      keysetPages: guarded("keysetPages", makeKeysetPages(store)),
      scan: (query, final) =>
        Stream.unwrap(
          Effect.map(copies.merges("scan", query.tenantId, final), (merge) => scan(query, merge))
        ),
      byId: makeById(store),
      stats: guarded("stats", makeStats(store)),
      receipt: makeReceipt(store),
      sequenceSpan: makeSequenceSpan(store),
      rows: makeRows(store),
      extent: makeExtent(store, store.events, "sequence_number"),
      copies: makeCopies(store, store.events, "sequence_number"),
      conflicts: makeConflicts(store, store.conflicts)
    })
  })
)

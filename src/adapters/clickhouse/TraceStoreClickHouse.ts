/**
 * The port `TraceStore` on ClickHouse, a server, a cluster or the engine in this process: which
 * statement answers which question. The statements are in the files beside this one.
 */
import { Effect, Layer } from "effect"
import { TraceStore } from "../../ports/TraceStore.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import { StoreClient } from "./client/StoreClient.ts"
import { makeConflicts, makeCopies, makeExtent, makeInsertConflicts } from "./topics/ChainTable.ts"
import { hasRepeats, lastRecord, mergeRows } from "./topics/TopicTable.ts"
import { summariesOf } from "./traces/SummarySql.ts"
import { makeChain } from "./traces/TraceChain.ts"
import {
  makeChainRows,
  makeMisnumbered,
  makeStrayIndex,
  makeUnindexed
} from "./traces/TraceChainRows.ts"
import { makeEraseDetails } from "./traces/TraceErasure.ts"
import {
  makeEventCounts,
  makeExecutionOfSpan,
  makeFacts,
  makeInsertFacts,
  makeLoad,
  makeOutlines,
  makePayload,
  makeReach,
  makeRecordedCalls,
  makeScan,
  makeSpanCount,
  makeStoredEvents
} from "./traces/TraceFacts.ts"
import { makeOverlapping, makePage } from "./traces/TracePages.ts"
import { makeLinks, makeMissing, makeRows } from "./traces/TraceRows.ts"
import { makeSpanEvents, makeSpans } from "./traces/TraceSlices.ts"

/** Rows that are equal in these are the same fact. */
const KEY = "tenant_id, scope, execution_id, fact_number, hash"

/** The store of the port; its tables are made by the migrations of `EventStore`. */
export const layerTraceStore: Layer.Layer<TraceStore, never, ClickHouseConnection> = Layer.effect(
  TraceStore,
  Effect.map(ClickHouseConnection, (connection) => {
    const store = new StoreClient(connection)
    const { facts } = store
    return TraceStore.of({
      insertFacts: makeInsertFacts(store),
      insertConflicts: makeInsertConflicts(store, store.factConflicts),
      conflicts: makeConflicts(store, store.factConflicts),
      position: (partition) => lastRecord(store, facts, partition),
      hasDuplicates: (partition, fromOffset) =>
        hasRepeats(store, facts, KEY, partition, fromOffset),
      mergeDuplicates: mergeRows(store, facts),
      facts: makeFacts(store),
      reach: makeReach(store),
      scan: makeScan(store),
      spanEvents: makeSpanEvents(store),
      spans: makeSpans(store),
      spanCount: makeSpanCount(store),
      outlines: makeOutlines(store),
      executionOfSpan: makeExecutionOfSpan(store),
      eventCounts: makeEventCounts(store),
      recordedCalls: makeRecordedCalls(store),
      payload: makePayload(store),
      summaries: (tenantId, ids) => summariesOf(store, tenantId, ids),
      page: makePage(store),
      load: makeLoad(store),
      storedEvents: makeStoredEvents(store),
      eraseDetails: makeEraseDetails(store),
      rows: makeRows(store),
      chainRows: makeChainRows(store),
      extent: makeExtent(store, facts, "chain_sequence"),
      copies: makeCopies(store, facts, "chain_sequence"),
      misnumbered: makeMisnumbered(store),
      unindexed: makeUnindexed(store),
      strayIndex: makeStrayIndex(store),
      links: makeLinks(store),
      missing: makeMissing(store),
      chain: makeChain(store),
      overlapping: makeOverlapping(store)
    })
  })
)

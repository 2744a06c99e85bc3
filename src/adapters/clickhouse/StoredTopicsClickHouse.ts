/**
 * The table of each topic, for comparison with it, and what goes along when rows of them are set
 * aside: cached subtrees, the ids of spans, details that are erased in the view.
 */
import { Effect, Layer } from "effect"
import { isMarked } from "../../domain/records/FactPlace.ts"
import type { RecordMac } from "../../domain/records/RecordMac.ts"
import { FactMac } from "../../ports/FactMac.ts"
import {
  type Denied,
  type StoredTopic,
  StoredTopics,
  type TopicRows
} from "../../ports/TopicRows.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import type { Statement } from "./client/Parameters.ts"
import { StoreClient } from "./client/StoreClient.ts"
import { eventColumns, disagreement as ofEvents } from "./events/EventColumns.ts"
import { eraseCopies as eraseEventCopies } from "./events/EventErasure.ts"
import { confirmedRows, deniedRows, topicRows } from "./topics/SetAside.ts"
import { MARKED, markedFactOf } from "./traces/MarkedFacts.ts"
import { disagreement as ofFacts } from "./traces/TraceColumns.ts"
import { eraseCopies as eraseFactCopies } from "./traces/TraceErasure.ts"
import { NAMES_A_SPAN } from "./traces/TraceSql.ts"

const OPERATION = "setAside"
const SPAN_ID = "tenant_id, span_id, execution_id"

/**
 * The id of a span has one row, in the place of the fact that named it last: first those that a
 * confirmed fact names are stored again with its place, then the denied places are removed. A row
 * whose place was changed in the database is stored again, too.
 */
const settleSpanIds = Effect.fnUntraced(function* (
  store: StoreClient,
  partition: number,
  denied: Denied
) {
  const { below, confirmed } = denied
  const from = confirmed.length === 0 ? denied.from : denied.from + 1
  const removed: Statement = (bind) =>
    `${bind.partition(partition)} AND kafka_offset >= ${bind.integer(from)}`
    + (below === undefined ? "" : ` AND kafka_offset < ${bind.integer(below)}`)
  yield* store.copy(
    OPERATION,
    (bind) =>
      `INSERT INTO ${store.spanIds} (kafka_partition, kafka_offset, body)`
      + ` SELECT kafka_partition, kafka_offset, body FROM ${store.facts}`
      + ` WHERE ${confirmedRows(partition, denied, bind)}`
      + ` AND ${NAMES_A_SPAN}`
      + ` AND ((${SPAN_ID}) IN (SELECT ${SPAN_ID} FROM ${store.facts}`
      + ` WHERE ${deniedRows(partition, denied, bind)})`
      + ` OR (${SPAN_ID}) IN (SELECT ${SPAN_ID} FROM ${store.spanIds} WHERE ${removed(bind)}))`
  )
  yield* store.remove(OPERATION, store.spanIds, removed)
})

/** Ids of spans that facts name, and that have no row of their own. */
const restoreSpanIds = Effect.fnUntraced(function* (
  store: StoreClient,
  ...[partition, from, below, tenantId]: Parameters<TopicRows["index"]>
) {
  const missing: Statement = (bind) => {
    const facts =
      `FROM ${store.facts} WHERE ${bind.partition(partition)}`
      + ` AND kafka_offset >= ${bind.integer(from)} AND kafka_offset < ${bind.integer(below)}`
      + (tenantId === undefined ? "" : ` AND ${bind.tenant(tenantId)}`)
      + ` AND ${NAMES_A_SPAN}`
    return (
      `${facts} AND (${SPAN_ID}) NOT IN (SELECT ${SPAN_ID} FROM ${store.spanIds}`
      + ` WHERE (${SPAN_ID}) IN (SELECT ${SPAN_ID} ${facts}))`
    )
  }
  const count = yield* store.readOne(
    "index",
    (bind) => `SELECT count() ${missing(bind)}`,
    (row) => row.uint64()
  )
  if (count === 0) return 0
  yield* store.copy(
    "index",
    (bind) =>
      `INSERT INTO ${store.spanIds} (kafka_partition, kafka_offset, body)`
      + ` SELECT kafka_partition, kafka_offset, body ${missing(bind)}`
  )
  return count
})

/** Subtrees over rows that are gone: all of them are computed again when they are needed. */
const emptyTrees = (store: StoreClient) => store.remove(OPERATION, store.subtrees, () => "true")

const eventRows = (store: StoreClient): TopicRows => {
  const sequence = "sequence_number"
  return topicRows(
    store,
    [
      {
        table: store.events,
        source: "events",
        sequence,
        detail: "id",
        chained: sequence,
        text: "json",
        columns: eventColumns,
        disagreement: ofEvents
      },
      { table: store.conflicts, source: "conflicts", sequence, detail: "reason", text: "body" }
    ],
    {
      copied: (partition) => eraseEventCopies(store, partition),
      removing: () => emptyTrees(store),
      removed: emptyTrees(store)
    }
  )
}

const factRows = (store: StoreClient, mac: RecordMac): TopicRows => {
  const sequence = "chain_sequence"
  return topicRows(
    store,
    [
      {
        table: store.facts,
        source: "facts",
        sequence,
        detail: "execution_id",
        chained: sequence,
        text: "body",
        disagreement: ofFacts,
        marked: { columns: MARKED, isGenuine: (row) => isMarked(mac, markedFactOf(row)) }
      },
      {
        table: store.factConflicts,
        source: "fact_conflicts",
        sequence: "sequence_number",
        detail: "reason",
        text: "body"
      }
    ],
    {
      copied: (partition) => eraseFactCopies(store, partition),
      index: (...of) => restoreSpanIds(store, ...of),
      removing: (partition, denied) =>
        Effect.andThen(settleSpanIds(store, partition, denied), emptyTrees(store)),
      removed: emptyTrees(store)
    }
  )
}

/** The rows of each topic. */
export const layerStoredTopics: Layer.Layer<StoredTopics, never, ClickHouseConnection> =
  Layer.effect(
    StoredTopics,
    Effect.gen(function* () {
      const connection = yield* ClickHouseConnection
      const mac = yield* FactMac
      const store = new StoreClient(connection)
      const { checkpoints, receipts } = store
      const rows: Record<StoredTopic, TopicRows> = {
        events: eventRows(store),
        traces: factRows(store, mac),
        checkpoints: topicRows(store, [
          {
            table: checkpoints,
            source: "checkpoints",
            sequence: "tree_size",
            detail: "''",
            text: "body"
          }
        ]),
        receipts: topicRows(store, [
          { table: receipts, source: "receipts", sequence: "0", detail: "receipt_id", text: "body" }
        ])
      }
      return StoredTopics.of({ of: (topic) => rows[topic] })
    })
  )

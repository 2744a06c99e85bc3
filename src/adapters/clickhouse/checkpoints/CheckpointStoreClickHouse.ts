/**
 * Signed checkpoints in ClickHouse: the records of `alk.checkpoints`, byte for byte, found by the
 * size of their tree. Checks no signature.
 */
import { Effect, Layer } from "effect"
import { type ChainKey, chainOfTree } from "../../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../../domain/chain/Checkpoint.ts"
import { parseJson } from "../../../domain/json/Json.ts"
import {
  CHECKPOINTS_LIST_MAX,
  CHECKPOINTS_OF_SIZE_MAX,
  CheckpointStore
} from "../../../ports/CheckpointStore.ts"
import { ClickHouseConnection } from "../client/ClickHouseConnection.ts"
import type { Statement } from "../client/Parameters.ts"
import { StoreClient } from "../client/StoreClient.ts"
import { insertRows } from "../topics/TopicTable.ts"

const isRecord = (value: unknown): value is CheckpointRecord => {
  if (typeof value !== "object" || value === null) return false
  const { created_at, key_id, note, root_hash, tenant_id, tree_size } = value as Partial<
    Record<keyof CheckpointRecord, unknown>
  >
  const texts = [created_at, key_id, note, root_hash, tenant_id]
  return texts.every((text) => typeof text === "string") && typeof tree_size === "number"
}

/** Bytes of a record; what is longer was written by another program, and is not read. */
const RECORD_BYTES_MAX = 16_384
const BODY = `if(length(body) > ${RECORD_BYTES_MAX}, '', body)`

/** A row whose bytes are no checkpoint comes back without a note, which no key has signed. */
const recordOf = (
  { chain, tenantId }: ChainKey,
  treeSize: number,
  body: string
): CheckpointRecord => {
  try {
    const value: unknown = parseJson(body)
    if (isRecord(value)) return value
  } catch {
    // The table was written to by another program; treated as any other JSON.
  }
  const unreadable = { root_hash: "", created_at: "", key_id: "", note: "" }
  const ofTraces = chain === "events" ? {} : { chain }
  return { tenant_id: tenantId, ...ofTraces, tree_size: treeSize, ...unreadable }
}

/** Checkpoints of a tree that satisfy a condition, one for each size, or record, largest first. */
const makeFind =
  (store: StoreClient) =>
  (tree: string, limit: number, condition: Statement = () => "true", by = "tree_size") => {
    const key = chainOfTree(tree)
    return store.read(
      "checkpoints",
      (bind) =>
        `SELECT tree_size, ${BODY} FROM ${store.checkpoints}`
        + ` WHERE ${bind.tenant(key.tenantId)}`
        + ` AND chain = ${bind.string(key.chain)} AND ${condition(bind)}`
        + " ORDER BY tree_size DESC, kafka_offset DESC"
        + ` LIMIT 1 BY ${by}`
        + ` LIMIT ${bind.integer(limit)}`,
      (row) => recordOf(key, row.uint64(), row.string())
    )
  }

/** Checkpoints of one tree that a log does not have: others may be forged. */
const OUTSIDE_OF_TREE_MAX = 16
/** The same of all trees that one question answers. */
const OUTSIDE_PAGE = 10_000

const makeOutside = (store: StoreClient): CheckpointStore["Service"]["outside"] => {
  const page = (partition: number, { end, start }: { start: number; end: number }, after: string) =>
    store.read(
      "checkpoints",
      (bind) => {
        const place = bind.partition(partition)
        const isOutside = `(kafka_offset < ${bind.integer(start)} OR kafka_offset >= ${bind.integer(end)})`
        return (
          "SELECT tenant_id, JSONExtractString(body, 'chain') AS chain, tree_size, body FROM ("
          + `SELECT tenant_id, tree_size, ${BODY} AS body FROM ${store.checkpoints}`
          + ` WHERE ${place} AND ${isOutside} UNION ALL`
          + ` SELECT tenant_id, sequence_number AS tree_size, ${BODY} AS body FROM ${store.setAside}`
          + ` WHERE ${place} AND source = 'checkpoints') WHERE tenant_id >= ${bind.string(after)}`
          + ` ORDER BY tenant_id, chain, tree_size DESC`
          + ` LIMIT ${OUTSIDE_OF_TREE_MAX} BY tenant_id, chain LIMIT ${OUTSIDE_PAGE}`
        )
      },
      (row) => {
        const [tenantId, chain] = [row.string(), row.string()]
        const key: ChainKey = { tenantId, chain: chain === "traces" ? chain : "events" }
        return recordOf(key, row.uint64(), row.string())
      }
    )
  return Effect.fnUntraced(function* (partition, bounds) {
    const found: Array<CheckpointRecord> = []
    for (let after = ""; ; ) {
      const records = yield* page(partition, bounds, after)
      found.push(...records.filter(({ note }) => note !== ""))
      const last = records.at(-1)?.tenant_id ?? after
      // The last tenant of a full page may have more; its first ones come again.
      if (records.length < OUTSIDE_PAGE || last === after) return found
      after = last
    }
  })
}

/** The checkpoints of the port. */
export const layerCheckpointStore: Layer.Layer<CheckpointStore, never, ClickHouseConnection> =
  Layer.effect(
    CheckpointStore,
    Effect.map(ClickHouseConnection, (connection) => {
      const store = new StoreClient(connection)
      const find = makeFind(store)
      const first = (tree: string, condition?: Statement) =>
        Effect.map(find(tree, 1, condition), ([record]) => record)
      return CheckpointStore.of({
        insert: (rows) =>
          insertRows(store, "insertCheckpoints", store.checkpoints, rows, {
            tenant_id: ({ tenantId }) => tenantId,
            tree_size: ({ treeSize }) => treeSize
          }),
        latest: (tree) => first(tree),
        atOrBelow: (tree, treeSize) =>
          first(tree, (bind) => `tree_size <= ${bind.integer(treeSize)}`),
        outside: makeOutside(store),
        ofSize: (tree, treeSize) =>
          find(
            tree,
            CHECKPOINTS_OF_SIZE_MAX,
            (bind) => `tree_size = ${bind.integer(treeSize)}`,
            "kafka_partition, kafka_offset"
          ),
        list: (tree, { beforeSize, limit }) =>
          find(tree, Math.min(limit, CHECKPOINTS_LIST_MAX), (bind) =>
            beforeSize === undefined ? "true" : `tree_size < ${bind.integer(beforeSize)}`
          )
      })
    })
  )

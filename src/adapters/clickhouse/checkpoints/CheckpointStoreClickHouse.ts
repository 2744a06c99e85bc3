/**
 * Signed checkpoints in ClickHouse: the records of `alk.checkpoints`, byte for byte, found by the
 * size of their tree. Checks no signature.
 */
import { Effect, Layer } from "effect"
import { type ChainKey, chainOfTree } from "../../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../../domain/chain/Checkpoint.ts"
import { parseJson } from "../../../domain/json/Json.ts"
import { CHECKPOINTS_LIST_MAX, CheckpointStore } from "../../../ports/CheckpointStore.ts"
import { ClickHouseConnection } from "../client/ClickHouseConnection.ts"
import { Parameters } from "../client/Parameters.ts"
import { rawRows } from "../client/RawRows.ts"
import { makeStoreClient, type StoreClient } from "../client/StoreClient.ts"

type Store = CheckpointStore["Service"]

const isRecord = (value: unknown): value is CheckpointRecord => {
  if (typeof value !== "object" || value === null) return false
  const { created_at, key_id, note, root_hash, tenant_id, tree_size } = value as Partial<
    Record<keyof CheckpointRecord, unknown>
  >
  const texts = [created_at, key_id, note, root_hash, tenant_id]
  return texts.every((text) => typeof text === "string") && typeof tree_size === "number"
}

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

const makeInsert =
  (store: StoreClient, table: string): Store["insert"] =>
  (rows) =>
    store.insert({
      operation: "insertCheckpoints",
      table,
      columns: ["kafka_partition", "kafka_offset", "tenant_id", "tree_size", "body"],
      format: "CSV",
      rows: rows.length,
      bytes: () =>
        rawRows(
          rows.map(({ body, offset, partition, tenantId, treeSize }) => ({
            fields: [partition, offset, tenantId, treeSize],
            body
          }))
        )
    })

/** Checkpoints of a tree that satisfy a condition, one for each size, largest first. */
const makeFind =
  (store: StoreClient, table: string) =>
  (tree: string, limit: number, condition: (parameters: Parameters) => string) => {
    const parameters = new Parameters()
    const key = chainOfTree(tree)
    return store.read(
      {
        operation: "checkpoints",
        parameters,
        sql:
          `SELECT tree_size, body FROM ${table}`
          + ` WHERE tenant_id = ${parameters.string(key.tenantId)}`
          + ` AND chain = ${parameters.string(key.chain)} AND ${condition(parameters)}`
          + " ORDER BY tree_size DESC, kafka_offset DESC LIMIT 1 BY tree_size"
          + ` LIMIT ${parameters.integer(limit)}`
      },
      (row) => recordOf(key, row.uint64(), row.string())
    )
  }

/** The checkpoints behind the port. */
export const layerCheckpointStore: Layer.Layer<CheckpointStore, never, ClickHouseConnection> =
  Layer.effect(
    CheckpointStore,
    Effect.map(ClickHouseConnection, (connection) => {
      const store = makeStoreClient(connection)
      const table = store.checkpoints
      const find = makeFind(store, table)
      const first = (tree: string, condition: (parameters: Parameters) => string) =>
        find(tree, 1, condition).pipe(Effect.map(([record]) => record))
      return CheckpointStore.of({
        insert: makeInsert(store, table),
        latest: (tree) => first(tree, () => "true"),
        atOrBelow: (tree, treeSize) =>
          first(tree, (parameters) => `tree_size <= ${parameters.integer(treeSize)}`),
        ofSize: (tree, treeSize) =>
          first(tree, (parameters) => `tree_size = ${parameters.integer(treeSize)}`),
        list: (tree, { beforeSize, limit }) =>
          find(tree, Math.min(limit, CHECKPOINTS_LIST_MAX), (parameters) =>
            beforeSize === undefined ? "true" : `tree_size < ${parameters.integer(beforeSize)}`
          )
      })
    })
  )

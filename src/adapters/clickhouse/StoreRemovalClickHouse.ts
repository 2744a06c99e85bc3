/**
 * Removes rows for good: those of the beginning of a chain, and all of a tenant. Each statement can
 * be given again, so what a kill has broken off the next call ends.
 */
import { Effect, Layer } from "effect"
import { type Chain, treeNameOf } from "../../domain/chain/Chains.ts"
import { StoreRemoval } from "../../ports/StoreRemoval.ts"
import { ClickHouseConnection } from "./client/ClickHouseConnection.ts"
import type { Statement } from "./client/Parameters.ts"
import { StoreClient } from "./client/StoreClient.ts"

const PRUNE = "prune"
const FORGET = "forgetTenant"

/** The tables and columns of a chain. */
const placesOf = (store: StoreClient, chain: Chain) =>
  chain === "events"
    ? {
        rows: store.events,
        sequence: "sequence_number",
        conflicts: store.conflicts,
        sources: "'events', 'conflicts'"
      }
    : {
        rows: store.facts,
        sequence: "chain_sequence",
        conflicts: store.factConflicts,
        sources: "'facts', 'fact_conflicts'"
      }

/** Removes rows while inserts go on, if there are any. */
const removeFrom = (store: StoreClient, operation: string, table: string, condition: Statement) =>
  store
    .readOne(
      operation,
      (bind) => `SELECT count() FROM ${table} WHERE ${condition(bind)}`,
      (row) => row.uint64()
    )
    .pipe(
      Effect.flatMap((rows) =>
        rows === 0
          ? Effect.void
          : store.mutate(operation, table, (bind) => `DELETE WHERE ${condition(bind)}`)
      )
    )

const makeRecordedBefore =
  (store: StoreClient): StoreRemoval["Service"]["recordedBefore"] =>
  ({ chain, tenantId }, time) => {
    const { rows, sequence } = placesOf(store, chain)
    return store
      .readOne(
        "recordedBefore",
        (bind) => {
          const isLater = `created_at >= ${bind.time(time)}`
          return (
            `SELECT max(${sequence}), countIf(${isLater}), minIf(${sequence}, ${isLater})`
            + ` FROM ${rows} WHERE ${bind.tenant(tenantId)}`
          )
        },
        (row) => ({ last: row.uint64(), later: row.uint64(), firstLater: row.uint64() })
      )
      .pipe(
        Effect.map(({ firstLater, last, later }) =>
          later === 0 ? last : Math.max(0, firstLater - 1)
        )
      )
  }

const makePrune =
  (store: StoreClient): StoreRemoval["Service"]["prune"] =>
  ({ chain, tenantId }, size) => {
    const { conflicts, rows, sequence, sources } = placesOf(store, chain)
    const upTo =
      (column: string): Statement =>
      (bind) =>
        `${bind.tenant(tenantId)} AND ${bind.between(column, 1, size)}`
    return Effect.gen(function* () {
      yield* removeFrom(store, PRUNE, rows, upTo(sequence))
      yield* removeFrom(store, PRUNE, conflicts, upTo("sequence_number"))
      yield* removeFrom(
        store,
        PRUNE,
        store.setAside,
        (bind) => `source IN (${sources}) AND ${upTo("sequence_number")(bind)}`
      )
    })
  }

const tenantTables = (store: StoreClient): ReadonlyArray<string> => [
  store.events,
  store.conflicts,
  store.facts,
  store.factConflicts,
  store.spanIds,
  store.receipts,
  store.setAside
]

const ofTenant =
  (tenantId: string): Statement =>
  (bind) =>
    bind.tenant(tenantId)

/** The removal of the port. */
export const layerStoreRemoval: Layer.Layer<StoreRemoval, never, ClickHouseConnection> =
  Layer.effect(
    StoreRemoval,
    Effect.map(ClickHouseConnection, (connection) => {
      const store = new StoreClient(connection)
      return StoreRemoval.of({
        recordedBefore: makeRecordedBefore(store),
        prune: makePrune(store),
        forget: (tenantId) =>
          Effect.gen(function* () {
            for (const table of tenantTables(store)) {
              yield* removeFrom(store, FORGET, table, ofTenant(tenantId))
            }
            const trees = [treeNameOf(tenantId, "events"), treeNameOf(tenantId, "traces")]
            yield* removeFrom(
              store,
              FORGET,
              store.subtrees,
              (bind) => `tree IN (${bind.strings(trees)})`
            )
          }),
        left: (tenantId) =>
          Effect.map(
            Effect.forEach(tenantTables(store), (table) =>
              store.readOne(
                FORGET,
                (bind) => `SELECT count() FROM ${table} WHERE ${bind.tenant(tenantId)}`,
                (row) => row.uint64()
              )
            ),
            (counts) => counts.reduce((sum, count) => sum + count, 0)
          )
      })
    })
  )

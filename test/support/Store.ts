/** A database of the test's own in the store of the test machine, and a plain client beside it. */

import { type ClickHouseClient, createClient } from "@clickhouse/client"
import { Effect, Layer } from "effect"
import { inject } from "vitest"
import { ClickHouseConnection } from "../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerStores } from "../../src/adapters/clickhouse/Stores.ts"
import { EventStore } from "../../src/ports/EventStore.ts"

const layerMigrated = Layer.effectDiscard(EventStore.use((store) => store.migrate))

export const storeConnection = (database: string) =>
  ClickHouseConnection.layerServer({ url: inject("storeUrl"), database })

/** Everything that is kept in the store, with its schema, in a new database. */
export const storeLayer = (database: string) =>
  layerMigrated.pipe(Layer.provideMerge(layerStores), Layer.provide(storeConnection(database)))

/** What `storeLayer` provides. */
export type Stores = Layer.Success<ReturnType<typeof storeLayer>>

/** Somebody with access to the database, behind the service's back. */
export const intruder = (): ClickHouseClient => createClient({ url: inject("storeUrl") })

/** Run statements as the intruder; mutations are waited for. */
export const tamper = (...statements: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.promise(async () => {
    const client = intruder()
    for (const query of statements) {
      await client.command({ query, clickhouse_settings: { mutations_sync: "1" } })
    }
    await client.close()
  })

/** Rows that were set aside, with the table that they stood in, the reason and their bytes. */
export const setAsideIn = (database: string) =>
  Effect.promise(async () => {
    const client = intruder()
    const answer = await client.query({
      query:
        `SELECT source, kafka_offset, reason, body FROM ${database}.set_aside FINAL`
        + " ORDER BY source, kafka_offset, reason, body",
      format: "JSONCompactEachRow"
    })
    const rows = await answer.json<readonly [string, string, string, string]>()
    await client.close()
    return rows.map(([source, offset, reason, body]) => ({
      source,
      offset: Number(offset),
      reason,
      body
    }))
  })

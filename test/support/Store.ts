/** A database of the test's own in the store of the test machine, and a plain client beside it. */
import { createClient, type ClickHouseClient } from "@clickhouse/client"
import { Effect, Layer } from "effect"
import { inject } from "vitest"
import { ClickHouseConnection } from "../../src/adapters/clickhouse/ClickHouseConnection.ts"
import { layerClickHouse } from "../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { EventStore } from "../../src/ports/EventStore.ts"

/** The store with its schema, in a new database. */
export const storeLayer = (database: string) =>
  Layer.effect(
    EventStore,
    Effect.gen(function*() {
      const store = yield* EventStore
      yield* store.migrate
      return store
    })
  ).pipe(
    Layer.provide(layerClickHouse),
    Layer.provide(ClickHouseConnection.layerServer({ url: inject("storeUrl"), database }))
  )

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

/**
 * The store on the engine in this very process.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { layerStoredTopics } from "../../../src/adapters/clickhouse/StoredTopicsClickHouse.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { StoredTopics } from "../../../src/ports/TopicRows.ts"
import { storeContract } from "./support/EventStoreContract.ts"
import { chainOf, rowsOf } from "./support/StoredBodies.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

storeContract("a store in this process", 200, (database) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))
)

const store = Layer.mergeAll(layerClickHouse, layerStoredTopics).pipe(
  Layer.provide(ClickHouseConnection.layerEmbedded({ database: "alk" })),
  Layer.provide(engine)
)

layer(store, { excludeTestServices: true })("an insert in this process", (it) => {
  it.effect("is never given up: its end can't be known otherwise", () =>
    Effect.gen(function* () {
      const { insertEvents, migrate } = yield* EventStore
      const { of } = yield* StoredTopics
      yield* migrate
      const rows = rowsOf(chainOf("given-up", 20_000))
      const inserting = yield* Effect.forkChild(insertEvents(rows))
      yield* Effect.sleep("5 millis")
      yield* Fiber.interrupt(inserting)
      assert.strictEqual(yield* of("events").highest(0), rows.length - 1)
    })
  )
})

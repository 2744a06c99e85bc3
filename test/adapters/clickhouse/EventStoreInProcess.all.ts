/**
 * The store on the engine in this very process.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import {
  ChdbEngine,
  type InsertStatement
} from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { layerStoredTopics } from "../../../src/adapters/clickhouse/StoredTopicsClickHouse.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { StoredTopics } from "../../../src/ports/TopicRows.ts"
import { longStoreContract, storeContract } from "./support/EventStoreContract.ts"
import { chainOf, rowsOf } from "./support/StoredBodies.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

const embedded = (database: string) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))

storeContract("a store in this process", 200, embedded)
longStoreContract("a store in this process", 200, embedded)

/** Called when the engine is given rows. */
let inserting = (): void => undefined

const watched = Layer.effect(
  ChdbEngine,
  Effect.map(ChdbEngine, (own) => ({
    ...own,
    insert: (statement: InsertStatement) => {
      const inserted = own.insert(statement)
      inserting()
      return inserted
    }
  }))
).pipe(Layer.provide(engine))

const store = Layer.mergeAll(layerClickHouse, layerStoredTopics).pipe(
  Layer.provide(ClickHouseConnection.layerEmbedded({ database: "alk" })),
  Layer.provide(watched)
)

layer(store, { excludeTestServices: true })("an insert in this process", (it) => {
  it.effect("is never given up: its end can't be known otherwise", () =>
    Effect.gen(function* () {
      const { insertEvents, migrate } = yield* EventStore
      const { of } = yield* StoredTopics
      yield* migrate
      const rows = rowsOf(chainOf("given-up", 20_000))
      const isBegun = Promise.withResolvers<void>()
      inserting = isBegun.resolve
      const insert = yield* Effect.forkChild(insertEvents(rows))
      yield* Effect.promise(() => isBegun.promise)
      yield* Fiber.interrupt(insert)
      assert.strictEqual(yield* of("events").highest(0), rows.length - 1)
    })
  )
})

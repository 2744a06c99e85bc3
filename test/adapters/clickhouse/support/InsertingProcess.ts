/**
 * Opens chDB on the folder in its first argument with whatever stands on its standard input, stores
 * one event, and says on one line what the tables then hold.
 */
import { fstatSync } from "node:fs"
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { chainOf, rowsOf } from "./StoredBodies.ts"

const [folder = ""] = process.argv.slice(2)

const store = layerClickHouse.pipe(
  Layer.provideMerge(ClickHouseConnection.layerEmbedded({ database: "alk" })),
  Layer.provide(ChdbEngine.layer(folder))
)

const program = Effect.gen(function* () {
  const { insertConflicts, insertEvents, migrate } = yield* EventStore
  const { client } = yield* ClickHouseConnection
  yield* migrate
  yield* insertEvents(rowsOf(chainOf("piped", 1)))
  yield* insertConflicts([
    {
      partition: 0,
      offset: 0,
      tenantId: "piped",
      sequenceNumber: 1,
      reason: "test",
      body: Buffer.from("{}")
    }
  ])
  const counts = yield* Effect.promise(() =>
    client
      .query({
        query:
          "SELECT (SELECT count() FROM alk.events), (SELECT count() FROM alk.conflicts),"
          + " (SELECT count() FROM alk.schema_migrations)",
        format: "JSONCompactEachRow"
      })
      .then((answer) => answer.json())
  )
  console.log(JSON.stringify({ counts, null: fstatSync(0).isCharacterDevice() }))
}).pipe(Effect.provide(store))

await Effect.runPromise(program)

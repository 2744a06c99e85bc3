/**
 * What takes seconds of the store's contract, on an engine in another process.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { longStoreContract } from "./support/EventStoreContract.ts"
import { runningStore } from "./support/StoreProcesses.ts"

longStoreContract("a store behind HTTP", 60, (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

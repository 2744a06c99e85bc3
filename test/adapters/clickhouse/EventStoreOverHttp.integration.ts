/**
 * The store on an engine in another process, through the unmodified client and HTTP.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { storeContract } from "./support/EventStoreContract.ts"
import { runningStore } from "./support/StoreProcesses.ts"

storeContract("a store behind HTTP", 60, (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

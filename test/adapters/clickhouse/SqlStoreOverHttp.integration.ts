/**
 * Read-only SQL on an engine in another process, through the unmodified client and HTTP.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { sqlContract } from "./support/SqlContract.ts"
import { runningStore } from "./support/StoreProcesses.ts"

sqlContract("SQL behind HTTP", (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

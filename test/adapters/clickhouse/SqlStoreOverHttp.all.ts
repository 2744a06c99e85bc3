/**
 * The limits of SQL on an engine in another process.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { sqlLimitsContract } from "./support/SqlContract.ts"
import { runningStore } from "./support/StoreProcesses.ts"

sqlLimitsContract("SQL behind HTTP", (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

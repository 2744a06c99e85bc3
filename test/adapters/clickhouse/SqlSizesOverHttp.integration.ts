/**
 * How large what a statement makes can get, on an engine in another process.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { sqlSizesContract } from "./support/SqlSizesContract.ts"
import { runningStore } from "./support/StoreProcesses.ts"

sqlSizesContract("sizes of SQL behind HTTP", (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

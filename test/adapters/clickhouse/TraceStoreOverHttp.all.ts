/**
 * The store of traces on an engine in another process, through the unmodified client and HTTP.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { runningStore } from "./support/StoreProcesses.ts"
import { traceStoreContract } from "./support/TraceStoreContract.ts"

traceStoreContract("a store of traces behind HTTP", 60, (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

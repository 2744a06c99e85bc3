/**
 * The store of traces on the engine in this very process.
 */
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"
import { traceStoreContract } from "./support/TraceStoreContract.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

traceStoreContract("a store of traces in this process", 200, (database) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))
)

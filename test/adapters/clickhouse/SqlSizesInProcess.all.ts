/**
 * How large what a statement makes can get, on the engine in this very process.
 */
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { sqlSizesContract } from "./support/SqlSizesContract.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

sqlSizesContract("sizes of SQL in this process", (database) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))
)

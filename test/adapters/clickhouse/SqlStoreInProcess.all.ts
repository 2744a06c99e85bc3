/**
 * Read-only SQL on the engine in this very process.
 */
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { sqlContract, sqlLimitsContract, sqlReadingContract } from "./support/SqlContract.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

const embedded = (database: string) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))

sqlContract("SQL in this process", embedded)
sqlLimitsContract("SQL in this process", embedded)
sqlReadingContract("reading SQL in this process", embedded)

/**
 * The store on the engine in this very process.
 */
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/ClickHouseConnection.ts"
import { storeContract } from "./support/EventStoreContract.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

storeContract("a store in this process", 200, (database) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine)))

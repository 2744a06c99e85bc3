/**
 * Checkpoints and trees on the engine in this very process.
 */
import { Effect, Layer } from "effect"
import { ChdbEngine } from "../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { checkpointContract } from "./support/CheckpointContract.ts"
import { temporaryFolder } from "./support/StoreProcesses.ts"

const engine = Layer.unwrap(Effect.map(temporaryFolder, ChdbEngine.layer))

checkpointContract("checkpoints in this process", 200_000, (database) =>
  ClickHouseConnection.layerEmbedded({ database }).pipe(Layer.provide(engine))
)

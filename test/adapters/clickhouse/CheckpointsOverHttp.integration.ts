/**
 * Checkpoints and trees on an engine in another process, through the unmodified client and HTTP.
 */
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { checkpointContract } from "./support/CheckpointContract.ts"
import { runningStore } from "./support/StoreProcesses.ts"

checkpointContract("checkpoints behind HTTP", 70_000, (database) =>
  Layer.unwrap(
    Effect.map(runningStore(), ({ url }) => ClickHouseConnection.layerServer({ database, url }))
  )
)

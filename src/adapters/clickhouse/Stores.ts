/** Everything that is asked of the query store, on one connection. */
import { Layer } from "effect"
import { layerCheckpointStore } from "./checkpoints/CheckpointStoreClickHouse.ts"
import { layerHashTree } from "./checkpoints/HashTreeClickHouse.ts"
import { layerClickHouse } from "./EventStoreClickHouse.ts"
import { layerRecompute } from "./events/Recompute.ts"
import { layerSqlStore } from "./SqlStoreClickHouse.ts"
import { layerStoredTopics } from "./StoredTopicsClickHouse.ts"
import { layerStoreRemoval } from "./StoreRemovalClickHouse.ts"
import { layerTraceStore } from "./TraceStoreClickHouse.ts"

export const layerStores = Layer.mergeAll(
  layerClickHouse,
  layerTraceStore,
  layerCheckpointStore,
  layerStoredTopics,
  layerHashTree,
  layerRecompute,
  layerSqlStore,
  layerStoreRemoval
)

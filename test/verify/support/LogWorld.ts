/**
 * A log for tests of verification: the heads are what the test says they are, and everything is
 * visible at once.
 */
import { Effect, Layer } from "effect"
import { ChainEnds } from "../../../src/actors/chainEnds/ChainEnds.ts"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import type { Head } from "../../../src/domain/chain/Chains.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import { EventLog } from "../../../src/ports/EventLog.ts"

/** What the log says, as the test sees it. */
export class LogWorld {
  readonly heads = new Map<string, Head>()
  /** The projection says that rows may be there twice. */
  final = false
}

/** The log's word on heads, and a store that has caught up with it. */
export const layerLog = (world: LogWorld) =>
  Layer.mergeAll(
    Layer.mock(EventLog, {
      partitions: 1,
      bootstrap: "127.0.0.1:9092",
      partitionOf: () => 0,
      ends: (positions) => Effect.succeed(positions.map(() => 0))
    }),
    Layer.succeed(ProjectionProgress, {
      of: () => ({ ...noProgress(0), final: world.final }),
      partition: (partition) => ({ ...noProgress(partition), final: world.final }),
      awaitOffset: () => Effect.void
    }),
    Layer.succeed(ChainEnds, {
      head: ({ tenantId }) => Effect.sync(() => world.heads.get(tenantId)),
      checkpoint: () => Effect.succeed(undefined),
      start: () => Effect.succeed({ isCut: false, offset: 0 })
    }),
    Layer.mock(Heads, {
      head: (tenantId) => Effect.sync(() => world.heads.get(tenantId)),
      traceHead: () => Effect.succeed(undefined),
      trees: Effect.sync(() => [...world.heads.keys()])
    })
  )

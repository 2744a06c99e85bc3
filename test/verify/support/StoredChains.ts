/**
 * Chains in a database of the test's own, without a log: the heads are what the test says they are,
 * and everything is visible at once.
 */
import { Effect, Layer } from "effect"
import { inject } from "vitest"
import { Heads } from "../../../src/actors/Heads.ts"
import type { Head } from "../../../src/actors/SequencerState.ts"
import { noProgress, Visibility } from "../../../src/actors/Visibility.ts"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/ClickHouseConnection.ts"
import { layerRecompute } from "../../../src/adapters/clickhouse/Recompute.ts"
import { EventLog } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { SignedCheckpoints } from "../../../src/verify/SignedCheckpoints.ts"
import {
  layerVerifier,
  Verifier,
  type VerifyReport,
  type VerifyRequest
} from "../../../src/verify/Verifier.ts"
import { storeLayer } from "../../support/Store.ts"
import type { Chain } from "./Chains.ts"

/** What the log says, as the test sees it. */
export class LogWorld {
  readonly heads = new Map<string, Head>()
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
    Layer.succeed(Visibility, {
      of: () => noProgress(0),
      partition: noProgress,
      reached: () => Effect.void
    }),
    Layer.succeed(Heads, {
      head: (tenantId) => Effect.sync(() => world.heads.get(tenantId)),
      traceHead: () => Effect.succeed(undefined),
      tenants: Effect.sync(() => [...world.heads.keys()])
    })
  )

const recomputeLayer = (database: string) =>
  layerRecompute.pipe(
    Layer.provide(ClickHouseConnection.layerServer({ url: inject("storeUrl"), database }))
  )

/** A database with its verifier. */
export const verifierLayer = (
  database: string,
  world: LogWorld,
  checkpoints: SignedCheckpoints["Service"] = SignedCheckpoints.none
) =>
  layerVerifier.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        storeLayer(database),
        recomputeLayer(database),
        layerLog(world),
        Layer.succeed(SignedCheckpoints, checkpoints)
      )
    )
  )

/** What the projection would have stored, some thousands of rows at a time. */
export const store = Effect.fnUntraced(function*(bodies: ReadonlyArray<string>) {
  const events = yield* EventStore
  for (let at = 0; at < bodies.length; at += 20_000) {
    yield* events.insertEvents(
      bodies
        .slice(at, at + 20_000)
        .map((body, index) => ({ partition: 0, offset: at + index, body: Buffer.from(body) }))
    )
  }
})

/** Store a chain whose head the log knows. */
export const storeChain = Effect.fnUntraced(function*(world: LogWorld, chain: Chain) {
  yield* store(chain.bodies)
  if (chain.head !== undefined) world.heads.set(chain.tenantId, chain.head)
})

export const verify = (
  request: Partial<VerifyRequest> & Pick<VerifyRequest, "tenantId">
) => Verifier.use((verifier) => verifier.verify({ requireHead: true, ...request }))

/** The report of the store's way and that of the program's own, which have to agree. */
export const verifyBothWays = Effect.fnUntraced(function*(
  request: Partial<VerifyRequest> & Pick<VerifyRequest, "tenantId">
) {
  const byStore = yield* verify(request)
  const byProgram = yield* verify({ ...request, recompute: "program" })
  return [byStore, byProgram] as const
})

/** The parts of a report that don't tell the time. */
export const lasting = ({ duration_ms: _d, verified_at: _v, ...rest }: VerifyReport) => rest

export const found = ({ breaks }: VerifyReport) =>
  breaks.map(({ reason, sequence_number }) => [sequence_number, reason] as const)

/**
 * Chains in a database of the test's own, and the verifier over it, without a log.
 */
import { Effect, Layer } from "effect"
import { inject } from "vitest"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerRecompute } from "../../../src/adapters/clickhouse/events/Recompute.ts"
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
import { type LogWorld, layerLog } from "./LogWorld.ts"

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
export const store = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
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
export const storeChain = Effect.fnUntraced(function* (world: LogWorld, chain: Chain) {
  yield* store(chain.bodies)
  if (chain.head !== undefined) world.heads.set(chain.tenantId, chain.head)
})

export const verify = (request: Partial<VerifyRequest> & Pick<VerifyRequest, "tenantId">) =>
  Verifier.use((verifier) => verifier.verify({ requireHead: true, ...request }))

/** The report of the store's way and that of the program's own, which have to agree. */
export const verifyBothWays = Effect.fnUntraced(function* (
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

import { Effect, Layer, type Scope } from "effect"
import { layerChainEnds } from "../../../src/actors/chainEnds/ChainEndsOfLog.ts"
import { layerLogFollower } from "../../../src/actors/follower/LogFollower.ts"
import { runProjection } from "../../../src/actors/projection/Projection.ts"
import { runSequencer } from "../../../src/actors/sequencer/Sequencer.ts"
import type { EventLog } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { layerVerifier, Verifier } from "../../../src/verify/Verifier.ts"
import { commandRecord, ingestCommand } from "../../support/Events.ts"
import { eventually } from "../../support/Eventually.ts"
import { append, decidedEnd, freshPrefix, logLayer, readAtLeast } from "../../support/Log.ts"
import { checkpointSigner } from "../../support/Signer.ts"
import { type Stores, storeLayer } from "../../support/Store.ts"
import { progress } from "../../support/TracePartition.ts"

const settings = { ...checkpointSigner, windows: { dedup: 100, idempotency: 100 } }
const everything = { metadata: [] }

/** Run a test on topics and a database of its own. */
export const withView = <A, E>(
  test: (database: string) => Effect.Effect<A, E, EventLog | Stores | Scope.Scope>
) => {
  const name = freshPrefix()
  return test(name).pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(logLayer(name), storeLayer(name)))
  )
}

export const sequence = (events: number) =>
  Effect.raceFirst(
    runSequencer(0, settings, () => Effect.void),
    readAtLeast("events", events)
  )

export const total = Effect.fnUntraced(function* (tenantId: string) {
  const store = yield* EventStore
  const query = { tenantId, filter: everything, order: "asc" as const, offset: 0, limit: 1_000 }
  return yield* store.page(query, true)
})

/** Project until a tenant's list has so many events and the readers are told of the topic's end. */
export const project = Effect.fnUntraced(function* (tenantId: string, events: number) {
  yield* runProjection({ settleMs: 0 })
  yield* eventually(
    `${events} events in the list of ${tenantId}`,
    total(tenantId),
    (page) => page.total === events
  )
  const end = yield* decidedEnd("events")
  yield* eventually(
    "the readers are told of the end of the topic",
    progress,
    ({ events_next }) => events_next >= end
  )
  return yield* total(tenantId)
}, Effect.scoped)

export const verify = (tenantId: string) =>
  Effect.gen(function* () {
    const verifier = yield* Verifier
    return yield* verifier.verify({ tenantId, requireHead: true })
  }).pipe(
    Effect.provide(
      layerVerifier.pipe(Layer.provide(layerChainEnds(true)), Layer.provide(layerLogFollower))
    )
  )

export const write = (tenantId: string, ...counts: ReadonlyArray<number>) =>
  append(counts.map((count) => commandRecord(ingestCommand(tenantId, count))))

export const bodiesOf = (records: ReadonlyArray<{ readonly value: Buffer | null }>) =>
  records.map(({ value }) => value!.toString())

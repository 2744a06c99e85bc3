/** The view against the topic: byte for byte, whatever is delivered twice, denied or forged. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { layerChainEnds } from "../../src/actors/chainEnds/ChainEndsOfLog.ts"
import { layerLogFollower } from "../../src/actors/follower/LogFollower.ts"
import { runProjection } from "../../src/actors/projection/Projection.ts"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import type { EventLog } from "../../src/ports/EventLog.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { layerVerifier, Verifier } from "../../src/verify/Verifier.ts"
import { commandRecord, ingestCommand } from "../support/Events.ts"
import { eventually } from "../support/Eventually.ts"
import { append, decidedEnd, freshPrefix, logLayer, readAtLeast } from "../support/Log.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { type Stores, storeLayer, tamper } from "../support/Store.ts"
import { progress } from "../support/TracePartition.ts"

const settings = { ...checkpointSigner, windows: { dedup: 100, idempotency: 100 } }
const everything = { metadata: [] }

/** Run a test on topics and a database of its own. */
const withView = <A, E>(
  test: (database: string) => Effect.Effect<A, E, EventLog | Stores | Scope.Scope>
) => {
  const name = freshPrefix()
  return test(name).pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(logLayer(name), storeLayer(name)))
  )
}

const sequence = (events: number) =>
  Effect.raceFirst(
    runSequencer(0, settings, () => Effect.void),
    readAtLeast("events", events)
  )

const total = Effect.fnUntraced(function* (tenantId: string) {
  const store = yield* EventStore
  const query = { tenantId, filter: everything, order: "asc" as const, offset: 0, limit: 1_000 }
  return yield* store.page(query, true)
})

/** Project until a tenant's list has so many events and the readers are told of the topic's end. */
const project = Effect.fnUntraced(function* (tenantId: string, events: number) {
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

const verify = (tenantId: string) =>
  Effect.gen(function* () {
    const verifier = yield* Verifier
    return yield* verifier.verify({ tenantId, requireHead: true })
  }).pipe(
    Effect.provide(
      layerVerifier.pipe(Layer.provide(layerChainEnds(true)), Layer.provide(layerLogFollower))
    )
  )

const write = (tenantId: string, ...counts: ReadonlyArray<number>) =>
  append(counts.map((count) => commandRecord(ingestCommand(tenantId, count))))

const bodiesOf = (records: ReadonlyArray<{ readonly value: Buffer | null }>) =>
  records.map(({ value }) => value!.toString())

describe("the projection", () => {
  it.live("stores the topic's bytes, in order, and goes on where it stopped", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* write("acme", 30, 20)
        const first = yield* sequence(50)
        assert.deepStrictEqual((yield* project("acme", 50)).bodies, bodiesOf(first))
        yield* write("acme", 10)
        const all = yield* sequence(60)
        assert.deepStrictEqual((yield* project("acme", 60)).bodies, bodiesOf(all))
      })
    )
  )

  it.live("shows nothing twice when two of them work on the same partition", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* write("acme", 40)
        const records = yield* sequence(40)
        yield* project("acme", 40)
        // A zombie that starts from an older position inserts everything again.
        const store = yield* EventStore
        yield* store.insertEvents(
          records.map(({ offset, value }) => ({ partition: 0, offset, body: value! }))
        )
        assert.isTrue(yield* store.hasDuplicates(0, 0))
        const page = yield* total("acme")
        assert.strictEqual(page.total, 40)
        assert.deepStrictEqual(page.bodies, bodiesOf(records))
        yield* tamper(`OPTIMIZE TABLE ${database}.events FINAL`)
        assert.isFalse(yield* store.hasDuplicates(0, 0))
      })
    )
  )

  it.live("keeps a record that does not link out of the lists, and verification names it", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* write("acme", 10)
        const records = yield* sequence(10)
        const forged = bodiesOf(records)[4]!.replace("success", "failure")
        yield* append([{ topic: "events", partition: 0, key: "acme", value: forged }])
        const page = yield* project("acme", 10)
        assert.deepStrictEqual(page.bodies, bodiesOf(records))
        const report = yield* verify("acme")
        assert.isFalse(report.valid)
        assert.deepStrictEqual(
          report.breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
          [[5, "duplicate_sequence"]]
        )
      })
    )
  )
})

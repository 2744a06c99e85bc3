/** What becomes of records of `alk.events` and `alk.traces` on their way into the store. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { projectedEvents } from "../../../src/actors/projection/ProjectedEvents.ts"
import { projectedFacts } from "../../../src/actors/projection/ProjectedFacts.ts"
import type { ProjectedTopic } from "../../../src/actors/projection/ProjectedTopic.ts"
import { makeLinks } from "../../../src/actors/projection/ProjectionLinks.ts"
import { nothingRemoved } from "../../../src/actors/projection/RemovedChains.ts"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { eraseEvent } from "../../../src/domain/events/HashChain.ts"
import { everythingOwn } from "../../../src/domain/records/OwnOffsets.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../../src/domain/Timestamp.ts"
import { parseFact } from "../../../src/domain/traces/FactText.ts"
import { CheckpointStore } from "../../../src/ports/CheckpointStore.ts"
import { type ConflictRow, EventStore } from "../../../src/ports/EventStore.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { ChainCheck } from "../../../src/verify/ChainCheck.ts"
import { FactChain } from "../../adapters/clickhouse/support/StoredFacts.ts"
import { Chain } from "../../verify/support/Chains.ts"

it.effect("P3: what the store has no form for is a conflict, and the chain goes on behind it", () =>
  Effect.gen(function* () {
    const { bodies } = new Chain("acme").extend(3)
    const conflicts: Array<ConflictRow> = []
    const [events, traces] = [makeLinks(), makeLinks()]
    const own = () => everythingOwn
    const batch = projectedEvents.begin({ events, traces, removed: nothingRemoved, own })
    for (const [offset, body] of bodies.entries()) {
      const [key, value] = [Buffer.from("acme"), Buffer.from(body)]
      batch.take(0, { offset, timestamp: 0, key, value, headers: {} })
    }
    const store = Layer.mock(EventStore, {
      insertEvents: (rows) => Effect.succeed(rows.filter(({ offset }) => offset === 1)),
      insertConflicts: (rows) => Effect.sync(() => void conflicts.push(...rows))
    })
    const others = [Layer.mock(TraceStore, {}), Layer.mock(CheckpointStore, {})] as const
    yield* Effect.provide(batch.store, [store, ...others])
    assert.deepStrictEqual(
      conflicts.map(({ offset, reason, sequenceNumber, tenantId }) => [
        tenantId,
        offset,
        sequenceNumber,
        reason
      ]),
      [["acme", 1, 2, "not_canonical"]]
    )
    assert.strictEqual(events.get("acme")?.sequenceNumber, 3)
    const bounds = { from: HISTORY_FROM, to: HISTORY_TO }
    const check = new ChainCheck({ noun: "event", topic: "alk.events", firstWanted: 1, bounds })
    for (const one of conflicts) check.conflict(one)
    assert.deepInclude(check.verdict().breaks[0], {
      sequence_number: 2,
      reason: "content_mismatch",
      actual: "not_canonical"
    })
  })
)

const record = (body: string, offset: number) => ({
  offset,
  timestamp: 0,
  key: Buffer.from("acme"),
  value: Buffer.from(body),
  headers: {}
})

const begin = (topic: ProjectedTopic) =>
  topic.begin({
    events: makeLinks(),
    traces: makeLinks(),
    removed: nothingRemoved,
    own: () => everythingOwn
  })

it.effect(
  "erasures are one, whatever is between them, and what follows them keeps its details",
  () =>
    Effect.gen(function* () {
      const chain = new Chain("acme")
      const metadata = { secret: true }
      chain.append({ metadata })
      chain.erase(1)
      for (const n of [3, 5, 7]) {
        chain.append({ metadata })
        chain.erase(n)
      }
      chain.append({ metadata })
      const said: Array<string> = []
      const bodies: Array<string> = []
      const store = Layer.mock(EventStore, {
        insertEvents: (rows) =>
          Effect.sync(() => {
            said.push(`insert ${rows.length}`)
            bodies.push(...rows.map(({ body }) => body.toString()))
            return []
          }),
        eraseDetails: (tenantId, all) =>
          Effect.sync(() => {
            said.push(`${tenantId} ${all.map(({ sequenceNumber }) => sequenceNumber).join()}`)
          }),
        insertConflicts: () => Effect.void
      })
      const batch = begin(projectedEvents)
      for (const [offset, body] of chain.bodies.entries()) batch.take(0, record(body, offset))
      const others = [Layer.mock(TraceStore, {}), Layer.mock(CheckpointStore, {})] as const
      yield* Effect.provide(batch.store, [store, ...others])
      assert.deepStrictEqual(said, ["acme 1,3,5,7", "insert 9"])
      const events = bodies.map((body) => JSON.parse(body) as AuditEvent)
      assert.deepStrictEqual(
        events
          .filter(({ metadata }) => metadata?.["secret"] === true)
          .map((one) => one.sequence_number),
        [9]
      )
      for (const n of [1, 3, 5, 7]) {
        const { created_at } = events[n]!
        assert.strictEqual(bodies[n - 1], eraseEvent(JSON.parse(chain.bodies[n - 1]!), created_at))
      }
    })
)

it.effect("erasures of executions are one, and each fact goes with the first after it", () =>
  Effect.gen(function* () {
    const facts = new FactChain("acme")
    facts.start("x")
    facts.erase("x")
    facts.span("x", "s")
    facts.start("y")
    facts.erase("x")
    facts.erase("y")
    facts.event("x", "s", 1, { prompt: "stays" })
    const said: Array<string> = []
    const bodies: Array<string> = []
    const store = Layer.mock(TraceStore, {
      insertFacts: (rows) =>
        Effect.sync(() => {
          said.push(`insert ${rows.length}`)
          bodies.push(...rows.map(({ body }) => body.toString()))
        }),
      eraseDetails: (tenantId, all) =>
        Effect.sync(() => {
          const named = all.map((one) => `${one.executionId}<${one.beforeSequence}`)
          said.push(`${tenantId} ${named.join()}`)
        }),
      insertConflicts: () => Effect.void
    })
    const batch = begin(projectedFacts)
    for (const { body, offset } of facts.all) batch.take(0, record(body, offset))
    const others = [Layer.mock(EventStore, {}), Layer.mock(CheckpointStore, {})] as const
    yield* Effect.provide(batch.store, [store, ...others])
    assert.deepStrictEqual(said, ["acme x<2,x<5,y<6", "insert 7"])
    const read = bodies.map((body) => parseFact(body)!)
    assert.deepStrictEqual(
      read.map(({ details }) => details !== undefined),
      [false, false, false, false, false, false, true]
    )
    assert.deepStrictEqual(
      read.map(({ erased_at }) => erased_at),
      [read[1], undefined, read[4], read[5], undefined, undefined, undefined].map(
        (by) => by?.created_at
      )
    )
  })
)

/** What becomes of records of `alk.events` on their way into the store. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { projectedEvents } from "../../../src/actors/projection/ProjectedEvents.ts"
import { makeLinks } from "../../../src/actors/projection/ProjectionLinks.ts"
import { nothingRemoved } from "../../../src/actors/projection/RemovedChains.ts"
import { everythingOwn } from "../../../src/domain/records/OwnOffsets.ts"
import { CheckpointStore } from "../../../src/ports/CheckpointStore.ts"
import { type ConflictRow, EventStore } from "../../../src/ports/EventStore.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { ChainCheck } from "../../../src/verify/ChainCheck.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../../src/verify/VerifyReport.ts"
import { Chain } from "../../verify/support/Chains.ts"

it.effect("what the store has no form for is a conflict, and the chain goes on behind it", () =>
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

/** What a look at readiness leaves behind when the log does not answer: nothing. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Following } from "../../../src/actors/follower/LogFollower.ts"
import { type Decision, Receipts } from "../../../src/actors/follower/Receipts.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { Readiness } from "../../../src/http/operations/Readiness.ts"
import { layerReadiness } from "../../../src/http/operations/ReadinessProbe.ts"
import { EventLog } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { CommandLog } from "../../../src/services/commands/CommandLog.ts"

const noProgress = (): never => {
  throw new Error("nothing was decided")
}

it.effect("a probe whose command was not written is waited for no longer", () => {
  const waiting = new Set<string>()
  const receipts = Layer.mock(Receipts, {
    expect: (attempt) =>
      Effect.sync(() => {
        waiting.add(attempt)
        return Deferred.await(Deferred.makeUnsafe<Decision>()).pipe(
          Effect.ensuring(Effect.sync(() => waiting.delete(attempt)))
        )
      })
  })
  return Effect.gen(function* () {
    const readiness = yield* Readiness
    const looking = yield* Effect.forkChild(readiness.check)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(waiting.size, 3)
    yield* TestClock.adjust("10 seconds")
    const report = yield* Fiber.join(looking)
    assert.isFalse(report.ready)
    assert.strictEqual(waiting.size, 0)
  }).pipe(
    Effect.provide(
      layerReadiness(["api"]).pipe(
        Layer.provide([
          receipts,
          Layer.mock(EventLog, { partitions: 3, bootstrap: "nowhere", partitionOf: () => 0 }),
          Layer.mock(CommandLog, { submit: () => Effect.never }),
          Layer.mock(ProjectionProgress, { of: noProgress, partition: noProgress }),
          Layer.mock(Following, { interrupted: () => undefined, isAwaited: () => false }),
          Layer.mock(EventStore, { ping: Effect.void })
        ])
      )
    )
  )
})

/** Messages that don't come hold up nobody: their own tenant for seconds, others not at all. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { receivingOf } from "../../../src/http/otlp/Receiving.ts"

const AT_ONCE = 4

it.effect("leaves half of the turns to other tenants", () =>
  Effect.gen(function* () {
    const { inTurn } = receivingOf(AT_ONCE)
    const begun: Array<string> = []
    const call = (tenant: string) => {
      const receive = Effect.andThen(
        Effect.sync(() => {
          begun.push(tenant)
        }),
        Effect.never
      )
      return Effect.forkChild(inTurn(tenant, receive))
    }
    const stuck = yield* Effect.all(Array.from({ length: 100 }, () => call("slow")))
    const other = yield* call("other")
    yield* TestClock.adjust(1)
    assert.deepStrictEqual(begun, ["slow", "slow", "other"])
    yield* Fiber.interruptAll([...stuck, other])
    // Nothing of them is left.
    const after = Array.from({ length: AT_ONCE }, (_, n) => inTurn(`tenant-${n}`, Effect.void))
    yield* Effect.all(after, { concurrency: "unbounded" })
  })
)

it.effect("takes the turn of a slow message for one that waits, and only then", () =>
  Effect.gen(function* () {
    const { inTurn } = receivingOf(1)
    const alone = yield* Effect.forkChild(inTurn("acme", Effect.never))
    yield* TestClock.adjust("20 seconds")
    assert.isUndefined(alone.pollUnsafe())
    const done = yield* Deferred.make<void>()
    const waits = yield* Effect.forkChild(inTurn("other", Deferred.await(done)))
    yield* TestClock.adjust("1 second")
    const gave = yield* Fiber.await(alone)
    assert.isTrue(Exit.isFailure(gave))
    // Its own calls take it as well, when it is slow.
    const next = yield* Effect.forkChild(inTurn("other", Effect.void))
    yield* TestClock.adjust("4 seconds")
    assert.isUndefined(waits.pollUnsafe())
    yield* Deferred.done(done, Exit.void)
    yield* Fiber.join(next)
  })
)

import { assert, describe, it } from "@effect/vitest"
import { Effect, type Fiber } from "effect"
import { TestClock } from "effect/testing"
import { parentGone } from "../../../src/adapters/embedded/ParentWatch.ts"

const isDone = (fiber: Fiber.Fiber<unknown>) => fiber.pollUnsafe() !== undefined

describe("parentGone", () => {
  it.effect("ends when a program that npm started has another parent", () =>
    Effect.gen(function* () {
      let parent = 4_711
      const fiber = yield* Effect.forkChild(
        parentGone({
          environment: { npm_lifecycle_event: "start" },
          parentId: () => parent
        })
      )
      yield* TestClock.adjust("1 minute")
      assert.isFalse(isDone(fiber))
      parent = 1
      yield* TestClock.adjust("1 second")
      assert.isTrue(isDone(fiber))
    })
  )

  it.effect("never ends for a program that npm did not start", () =>
    Effect.gen(function* () {
      let parent = 4_711
      const fiber = yield* Effect.forkChild(
        parentGone({
          environment: {},
          parentId: () => parent
        })
      )
      yield* TestClock.adjust("1 second")
      parent = 1
      yield* TestClock.adjust("1 hour")
      assert.isFalse(isDone(fiber))
    })
  )
})

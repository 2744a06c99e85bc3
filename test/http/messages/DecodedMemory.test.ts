/** What requests take together once their bodies are read: in turns, by their size and by tenant. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type BodyAccount, BodyBudget } from "../../../src/http/messages/BodyBudget.ts"
import { DecodedMemory } from "../../../src/http/messages/DecodedMemory.ts"

const protobuf = (bytes: number) => ({
  mediaType: "application/x-protobuf",
  bytes: Buffer.alloc(bytes)
})

describe("the memory of requests that are read", () => {
  const bodies = new BodyBudget(1_000_000)
  /** Of 4,000 bytes, half of them a tenant's; a byte of protobuf counts as 20. */
  const world = (bytesMax = 4_000) => {
    const memory = new DecodedMemory(bytesMax)
    const begun: Array<string> = []
    const begin = (name: string, tenantId: string, bytes: number) =>
      Effect.gen(function* () {
        const account = bodies.open()
        yield* memory.turn(tenantId, protobuf(bytes), account)
        begun.push(name)
        return account
      })
    return { memory, begun, begin }
  }
  const over = (account: BodyAccount) => Effect.sync(() => account.close())

  it.effect("is given in order, a tenant's among themselves, and given back", () =>
    Effect.gen(function* () {
      const { begin, begun, memory } = world()
      const first = yield* begin("first", "acme", 60)
      const second = yield* Effect.forkChild(begin("second", "acme", 60))
      const third = yield* Effect.forkChild(begin("third", "acme", 40))
      yield* Effect.yieldNow
      const other = yield* begin("other", "globex", 90)
      assert.deepStrictEqual(begun, ["first", "third", "other"])
      yield* over(first)
      const rest = [yield* Fiber.join(second), yield* Fiber.join(third), other]
      assert.deepStrictEqual(begun, ["first", "third", "other", "second"])
      yield* Effect.forEach(rest, over)
      assert.strictEqual(memory.bytes, 0)
    })
  )

  it.effect("lets one that is larger than all of it come alone", () =>
    Effect.gen(function* () {
      const { begin, memory } = world()
      const large = yield* begin("large", "acme", 100_000)
      assert.strictEqual(memory.bytes, 2_000)
      yield* over(large)
    })
  )

  it.effect("is left for small bodies of others, who are next where they have to wait", () =>
    Effect.gen(function* () {
      const { begin, begun, memory } = world(40_000_000)
      const half = 1_000_000
      const first = yield* begin("first", "acme", half)
      const second = yield* begin("second", "globex", 750_000)
      const waiting = [
        yield* Effect.forkChild(begin("acme again", "acme", half)),
        yield* Effect.forkChild(begin("globex again", "globex", 300_000)),
        yield* Effect.forkChild(begin("large", "initech", 300_000))
      ]
      yield* Effect.yieldNow
      const small = yield* begin("small", "initech", 1_000)
      assert.deepStrictEqual(begun, ["first", "second", "small"])
      yield* over(second)
      assert.deepStrictEqual(begun, ["first", "second", "small", "globex again", "large"])
      yield* over(first)
      const rest = yield* Effect.forEach(waiting, (fiber) => Fiber.join(fiber))
      assert.strictEqual(begun.at(-1), "acme again")
      yield* Effect.forEach([small, ...rest], over)
      assert.strictEqual(memory.bytes, 0)
    })
  )

  it.effect("is not waited for longer than ten seconds, and not kept for who has gone", () =>
    Effect.gen(function* () {
      const { begin, begun, memory } = world()
      const first = yield* begin("first", "acme", 100)
      const late = yield* Effect.forkChild(Effect.flip(begin("late", "acme", 100)))
      const gone = yield* Effect.forkChild(begin("gone", "acme", 100))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(gone)
      yield* TestClock.adjust("11 seconds")
      assert.strictEqual((yield* Fiber.join(late)).code, "unavailable")
      yield* over(first)
      assert.deepStrictEqual(begun, ["first"])
      assert.strictEqual(memory.bytes, 0)
    })
  )
})

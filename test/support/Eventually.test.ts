import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, eventuallyAsync } from "./Eventually.ts"

describe("eventually", () => {
  it("gives what was found once it holds", async () => {
    let looks = 0
    const found = await eventuallyAsync(
      "three looks",
      () => ++looks,
      (count) => count === 3
    )
    assert.strictEqual(found, 3)
  })

  it("fails with what it last saw", async () => {
    const looked = await eventuallyAsync(
      "a receipt",
      () => ({ status: "pending" }),
      () => false,
      50
    ).catch(String)
    assert.strictEqual(
      looked,
      "Error: not within 0.05 s: a receipt; last seen: { status: 'pending' }"
    )
  })

  it("says so when a look does not end", async () => {
    const looked = await eventuallyAsync(
      "an answer",
      () => new Promise<boolean>(() => undefined),
      Boolean,
      50
    ).catch(String)
    assert.match(
      looked as unknown as string,
      /an answer; last seen: nothing: the first look did not end/
    )
  })

  it("throws what a look throws", async () => {
    const refused = async (): Promise<boolean> => {
      throw new RangeError("no such topic")
    }
    assert.strictEqual(
      await eventuallyAsync("a topic", refused).catch(String),
      "RangeError: no such topic"
    )
  })

  it.effect("fails with the error of a look, and waits on the test clock too", () =>
    Effect.gen(function* () {
      let looks = 0
      const look = Effect.suspend(() => (++looks < 3 ? Effect.succeed(looks) : Effect.fail("gone")))
      assert.strictEqual(
        yield* Effect.flip(eventually("five looks", look, (count) => count === 5)),
        "gone"
      )
      assert.strictEqual(looks, 3)
    })
  )
})

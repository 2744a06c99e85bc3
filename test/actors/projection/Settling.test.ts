/** That readers merge rows only for as long as these may be there twice. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { newWorld, projecting, seconds, type World } from "./World.ts"

/** Where the topic of events begins and ends: what was on it has expired. */
const EXPIRED = 20

const finals = ({ published }: World) => published.map(({ final }) => final)

describe("the projection", () => {
  it.effect("says again that nothing is there twice if the log did not take it", () => {
    const world = newWorld({ refusals: 1, start: EXPIRED })
    const then = Effect.map(seconds(120), () =>
      assert.deepStrictEqual(finals(world), [true, false])
    )
    return projecting(world, then)
  })

  it.effect("P2: merges what another process may have stored twice meanwhile", () => {
    const assigned = Stream.make([0]).pipe(
      Stream.concat(Stream.fromEffect(Effect.delay(Effect.succeed([]), "60 seconds"))),
      Stream.concat(Stream.fromEffect(Effect.delay(Effect.succeed([0]), "60 seconds")))
    )
    const world = newWorld({ assigned, start: EXPIRED })
    const then = Effect.gen(function* () {
      yield* seconds(90)
      assert.deepStrictEqual(finals(world), [true, false])
      // Another process has had the partition, and was killed before its inserts had settled.
      world.published.push({ ...world.published.at(-1)!, final: true, duplicates_from: 5 })
      yield* seconds(60)
      const [again] = world.published.slice(3)
      assert.isTrue(again?.final)
      assert.strictEqual(again?.duplicates_from, 5)
    })
    return projecting(world, then)
  })
})

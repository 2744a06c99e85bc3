/**
 * The rounds of self-verification: what is checked when, at which rate, what is said once, and that
 * nothing is skipped when the store is away.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import {
  afterSlice,
  newCursor,
  planSlice,
  restMs,
  runSelfVerification,
  type Slice,
  type SliceReport,
  type VerificationCursor
} from "../../../src/actors/selfVerification/SelfVerification.ts"
import { StoreUnavailable } from "../../../src/ports/EventStore.ts"

const fine = ({ events, fromSequence }: Slice): SliceReport => ({
  status: "valid",
  events_checked: events,
  last_sequence_number: fromSequence + events - 1,
  breaks: [],
  breaks_total: 0
})

const broken = (slice: Slice, at: number): SliceReport => ({
  ...fine(slice),
  status: "broken",
  breaks: [{ sequence_number: at, reason: "content_mismatch" }],
  breaks_total: 1
})

const ranges = (slices: ReadonlyArray<Slice>) =>
  slices.map(({ fromSequence, toSequence }) => [fromSequence, toSequence])

describe("the rest after a slice", () => {
  const limits = { eventsMax: 1_000, eventsPerSecond: 1_000 }

  it("is what the rate leaves of its time, and never less than a moment", () => {
    assert.strictEqual(restMs(1_000, 300, limits), 700)
    assert.strictEqual(restMs(1_000, 1_500, limits), 100)
    assert.strictEqual(restMs(1, 0, limits), 100)
  })

  it("is a multiple of what a small one took, within limits", () => {
    assert.strictEqual(restMs(1, 60, limits), 1_800)
    assert.strictEqual(restMs(499, 100, limits), 3_000)
    assert.strictEqual(restMs(500, 100, limits), 400)
    assert.strictEqual(restMs(1, 10_000, limits), 10_000)
  })
})

describe("the rounds on one chain", () => {
  /** The slices of so many steps, all of them fine. */
  const walk = (from: VerificationCursor, head: number, steps: number) => {
    const slices: Array<Slice> = []
    let cursor = from
    for (let now = 0; slices.length < steps; now += 1_000) {
      const slice = planSlice(cursor, head, now, 3_000)
      if (slice === undefined) break
      slices.push(slice)
      cursor = afterSlice(cursor, slice, head, fine(slice), now)
    }
    return { slices, cursor }
  }

  it("go from the first event to the head in whole blocks, then pause", () => {
    const { cursor, slices } = walk(newCursor("acme", 7_000), 7_000, 10)
    assert.deepStrictEqual(ranges(slices), [
      [1, 2_048],
      [2_049, 4_096],
      [4_097, undefined]
    ])
    assert.deepStrictEqual([cursor.next, cursor.lastPassAt], [1, 2_000])
    assert.isUndefined(planSlice(cursor, 7_000, 600_000, 3_000))
    assert.strictEqual(planSlice(cursor, 7_000, 700_000, 3_000)?.fromSequence, 1)
  })

  it("look at new events first, up to the head", () => {
    const cursor = newCursor("acme", 100)
    const fresh = planSlice(cursor, 130, 0, 3_000)!
    assert.deepStrictEqual([fresh.lane, fresh.events], ["new", 30])
    assert.deepStrictEqual(ranges([fresh]), [[101, undefined]])
    const after = afterSlice(cursor, fresh, 130, fine(fresh), 0)
    assert.deepStrictEqual(ranges([planSlice(after, 130, 0, 3_000)!]), [[1, undefined]])
    const many = planSlice(cursor, 10_000, 0, 3_000)!
    assert.deepStrictEqual([many.fromSequence, many.toSequence], [101, 3_072])
  })

  it("have nothing to do on an empty chain", () => {
    assert.isUndefined(planSlice(newCursor("acme", 0), 0, 0, 3_000))
  })

  it("go on where a check was not finished", () => {
    const cursor = newCursor("acme", 5_000)
    const slice = planSlice(cursor, 5_000, 0, 3_000)!
    const half = { ...fine(slice), status: "incomplete" as const, last_sequence_number: 700 }
    assert.strictEqual(afterSlice(cursor, slice, 5_000, half, 0).next, 701)
    const none = { ...half, last_sequence_number: null }
    assert.strictEqual(afterSlice(cursor, slice, 5_000, none, 0).next, 1)
    // What was pruned is passed over at once.
    const pruned = { ...fine(slice), pruned: { up_to_sequence: 4_500 } }
    assert.strictEqual(afterSlice(cursor, slice, 5_000, pruned, 0).next, 4_501)
  })

  it("remember a break until a whole pass was clean", () => {
    let cursor = newCursor("acme", 5_000)
    const states: Array<boolean> = []
    for (const isBroken of [false, true, false, false, false, false]) {
      const slice = planSlice(cursor, 5_000, states.length * 1_000_000, 3_000)!
      const report = isBroken ? broken(slice, 2_050) : fine(slice)
      cursor = afterSlice(cursor, slice, 5_000, report, states.length * 1_000_000)
      states.push(cursor.broken)
    }
    assert.deepStrictEqual(states, [false, true, true, false, false, false])
  })
})

/**
 * Self-verification over chains that only have a length, and everything that it logs as an error.
 */
const verifying = <A, E, R>(
  lengths: Map<string, number>,
  check: (slice: Slice) => Effect.Effect<SliceReport, StoreUnavailable>,
  eventsPerSecond: number,
  test: (errors: ReadonlyArray<string>) => Effect.Effect<A, E, R>,
  isAwaited = () => false
) => {
  const errors: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Error") errors.push(JSON.stringify(message))
  })
  const head = (tenantId: string) => {
    const length = lengths.get(tenantId) ?? 0
    return { sequence_number: length, hash: "f".repeat(64), created_at: "" }
  }
  return Effect.gen(function* () {
    yield* runSelfVerification({ eventsPerSecond, isAwaited }, check)
    return yield* test(errors)
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.mergeAll(
        Logger.layer([logger]),
        Layer.mock(Heads, {
          head: (tenantId) => Effect.sync(() => head(tenantId)),
          trees: Effect.sync(() => [...lengths.keys()])
        })
      )
    )
  )
}

describe("self-verification", () => {
  it.effect("goes over all tenants, at the rate it is given", () => {
    const slices: Array<Slice> = []
    const check = (slice: Slice) =>
      Effect.sync(() => {
        slices.push(slice)
        return fine(slice)
      })
    const lengths = new Map([
      ["acme", 200_000],
      ["globex", 60_000]
    ])
    return verifying(lengths, check, 2_048, () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("50 seconds")
        const events = slices.reduce((sum, slice) => sum + slice.events, 0)
        assert.isAtMost(events, 50 * 2_048 + 16_384)
        assert.isAtLeast(events, 50 * 2_048)
        yield* TestClock.adjust("200 seconds")
        for (const [tenantId, length] of lengths) {
          const own = slices.filter((slice) => slice.tree === tenantId)
          assert.strictEqual(
            own.reduce((sum, slice) => sum + slice.events, 0),
            length,
            tenantId
          )
          own.reduce((next, slice) => {
            assert.strictEqual(slice.fromSequence, next, tenantId)
            return next + slice.events
          }, 1)
        }
        const done = slices.length
        lengths.set("acme", 200_010)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(ranges(slices.slice(done)), [[200_001, undefined]])
      })
    )
  })

  it.effect("takes slices of some seconds where the rate is low", () => {
    const slices: Array<Slice> = []
    const check = (slice: Slice) =>
      Effect.sync(() => {
        slices.push(slice)
        return fine(slice)
      })
    return verifying(new Map([["acme", 1_000]]), check, 10, () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("30 seconds")
        assert.deepStrictEqual(ranges(slices), [
          [1, 200],
          [201, 400]
        ])
      })
    )
  })

  it.effect("waits while a request does, and not for ever", () => {
    let awaited = true
    const slices: Array<Slice> = []
    const check = (slice: Slice) =>
      Effect.sync(() => {
        slices.push(slice)
        return fine(slice)
      })
    return verifying(
      new Map([["acme", 1_000_000]]),
      check,
      1_024,
      () =>
        Effect.gen(function* () {
          yield* TestClock.adjust("400 millis")
          assert.lengthOf(slices, 0)
          awaited = false
          yield* TestClock.adjust("50 millis")
          assert.lengthOf(slices, 1)
          awaited = true
          // The wait is part of a slice's time: the rate stays what it is.
          yield* TestClock.adjust("10 minutes")
          assert.isAtLeast(slices.length, 36)
          assert.isAtMost(slices.length, 39)
        }),
      () => awaited
    )
  })

  it.effect("is off at a rate of 0", () => {
    let asked = 0
    const check = (slice: Slice) =>
      Effect.sync(() => {
        asked++
        return fine(slice)
      })
    return verifying(new Map([["acme", 100]]), check, 0, () =>
      Effect.map(TestClock.adjust("1 minute"), () => assert.strictEqual(asked, 0))
    )
  })

  it.effect("says the first break of a tenant aloud, and no other", () => {
    const check = (slice: Slice) =>
      Effect.sync(() => (slice.tree === "acme" ? broken(slice, slice.fromSequence) : fine(slice)))
    return verifying(
      new Map([
        ["acme", 90_000],
        ["globex", 90_000]
      ]),
      check,
      3_000,
      (errors) =>
        TestClock.adjust("60 seconds").pipe(
          Effect.map(() => {
            assert.strictEqual(errors.length, 1)
            assert.include(errors[0], "acme")
            assert.include(errors[0], "content_mismatch")
          })
        )
    )
  })

  it.effect("goes on where it stood when the store is back", () => {
    const slices: Array<Slice> = []
    let down = false
    const check = (slice: Slice) =>
      Effect.suspend(() => {
        if (down) return Effect.fail(new StoreUnavailable({ operation: "rows", cause: "down" }))
        slices.push(slice)
        return Effect.succeed(fine(slice))
      })
    return verifying(new Map([["acme", 10 * 16_384]]), check, 1_024, () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("40 seconds")
        const before = slices.length
        assert.isAbove(before, 1)
        down = true
        yield* TestClock.adjust("10 minutes")
        assert.isAtMost(slices.length, before + 1)
        down = false
        yield* TestClock.adjust("4 minutes")
        assert.deepStrictEqual(
          slices.map(({ fromSequence }) => fromSequence),
          Array.from({ length: 10 }, (_, index) => 1 + 16_384 * index)
        )
      })
    )
  })

  it.effect("survives a defect of the check", () => {
    let times = 0
    const check = (slice: Slice) =>
      Effect.sync(() => {
        times += 1
        if (times === 1) throw new Error("unexpected")
        return fine(slice)
      })
    return verifying(new Map([["acme", 10]]), check, 1_024, (errors) =>
      TestClock.adjust("10 seconds").pipe(
        Effect.map(() => {
          assert.strictEqual(times, 2)
          assert.strictEqual(errors.length, 1)
        })
      )
    )
  })
})

/**
 * That rows are stored together while much comes in and nobody waits for them, and at once where
 * somebody does.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ShownWaits } from "../../../src/actors/log/ShownWaits.ts"
import {
  appliedRecord,
  emptyState,
  windowEnds
} from "../../../src/actors/sequencer/SequencerState.ts"
import { Chain } from "../../verify/support/Chains.ts"
import { newWorld, projecting, recordOf, type World } from "./World.ts"

/** A log that grows by events of one tenant. */
const growing = () => {
  const world = newWorld()
  const chain = new Chain("acme")
  const state = emptyState(0, 1, { dedup: 1, idempotency: 1 })
  const append = (count: number): void => {
    for (let left = count; left > 0; left--) {
      world.events.push(recordOf(world.events.length, "acme", chain.append()))
    }
  }
  /** As a sequencer says it of all events until now. */
  const apply = (isAwaited: boolean): void => {
    const progress = { ...state, eventsNext: world.events.length, isAwaited }
    const { key, value } = appliedRecord(progress, windowEnds(state))
    world.state.push(recordOf(world.state.length, key, value as string))
  }
  return { world, append, apply }
}

const rowsOf = ({ inserts }: World): ReadonlyArray<number> => inserts.map((rows) => rows.length)

/** Events that come in every 100 ms for so many seconds, once the projection runs. */
const load = (append: (count: number) => void, count: number, seconds: number) =>
  Effect.gen(function* () {
    yield* TestClock.adjust("1 second")
    for (let tenth = 0; tenth < 10 * seconds; tenth++) {
      append(count)
      yield* TestClock.adjust("100 millis")
    }
  })

const stored = (world: World): number => rowsOf(world).reduce((sum, rows) => sum + rows, 0)

describe("rows that come in", () => {
  it.effect("are stored at once while there are few", () => {
    const { append, world } = growing()
    return projecting(
      world,
      Effect.gen(function* () {
        yield* load(append, 50, 3)
        assert.deepStrictEqual(
          rowsOf(world),
          Array.from({ length: 30 }, () => 50)
        )
      })
    )
  })

  it.effect("are stored once a second while there are many, the first at once", () => {
    const { append, world } = growing()
    return projecting(
      world,
      Effect.gen(function* () {
        yield* load(append, 1_000, 5)
        const [first, ...others] = rowsOf(world)
        assert.strictEqual(first, 1_000)
        assert.isAtMost(others.length, 6)
        // The load ends, and what was gathered is shown in time.
        yield* TestClock.adjust("1500 millis")
        assert.strictEqual(stored(world), 50_000)
        append(10)
        yield* TestClock.adjust("3 seconds")
        append(10)
        yield* TestClock.adjust("100 millis")
        assert.strictEqual(stored(world), 50_020)
      })
    )
  })

  it.effect("are stored before they are too many", () => {
    const { append, world } = growing()
    return projecting(
      world,
      Effect.gen(function* () {
        yield* load(append, 4_000, 2)
        assert.isAtMost(Math.max(...rowsOf(world)), 20_000)
        assert.isAtLeast(stored(world), 60_000)
      })
    )
  })

  it.effect("P4: are stored at once for who begins to wait while others are gathered", () => {
    const { append, world } = growing()
    return projecting(
      world,
      Effect.gen(function* () {
        const waits = yield* ShownWaits
        yield* load(append, 1_000, 2.5)
        append(500)
        yield* TestClock.adjust("10 millis")
        const before = stored(world)
        assert.isBelow(before, world.events.length)
        const waiting = yield* Effect.forkChild(waits.counted(Effect.never))
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(stored(world), world.events.length)
        // And for as long as it waits.
        append(500)
        yield* TestClock.adjust("10 millis")
        assert.strictEqual(stored(world), world.events.length)
        waiting.interruptUnsafe()
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(waits.count, 0)
      })
    )
  })

  it.effect(
    "are stored at once where the sequencer says that a request of any process waits",
    () => {
      const { append, apply, world } = growing()
      return projecting(
        world,
        Effect.gen(function* () {
          apply(false)
          yield* load(
            (count) => {
              append(count)
              apply(false)
            },
            1_000,
            2.5
          )
          append(500)
          apply(false)
          yield* TestClock.adjust("10 millis")
          assert.isBelow(stored(world), world.events.length)
          append(1)
          apply(true)
          yield* TestClock.adjust("10 millis")
          assert.strictEqual(stored(world), world.events.length)
          append(500)
          apply(false)
          yield* TestClock.adjust("10 millis")
          assert.isBelow(stored(world), world.events.length)
        })
      )
    }
  )
})

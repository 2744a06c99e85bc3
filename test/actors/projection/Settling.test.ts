/** That readers merge rows only for as long as these may be there twice. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { runProjection } from "../../../src/actors/projection/Projection.ts"
import type { Progress } from "../../../src/domain/records/Progress.ts"
import { CheckpointStore } from "../../../src/ports/CheckpointStore.ts"
import {
  EventLog,
  LogUnavailable,
  type NewRecord,
  type Position
} from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { StoredTopics } from "../../../src/ports/TopicRows.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"

const SETTLE_MS = 1_000

/** Where the topic of events begins and ends: what was on it has expired. */
const EXPIRED = 20

interface World {
  readonly published: Array<Progress>
  /** How often progress is refused that says that nothing is there twice. */
  refusals: number
  /** The partitions of this process, one generation after the other. */
  readonly assigned: Stream.Stream<ReadonlyArray<number>>
}

/** A log without events. */
const layerLog = (world: World) => {
  const append = (records: ReadonlyArray<NewRecord>) =>
    Effect.suspend(() => {
      const progress = records.map(({ value }) => JSON.parse(String(value)))
      if (!progress.every(({ final }) => final) && world.refusals-- > 0) {
        return Effect.fail(new LogUnavailable({ operation: "append", cause: "refused" }))
      }
      world.published.push(...progress)
      return Effect.void
    })
  return Layer.mock(EventLog, {
    partitions: 1,
    bootstrap: "nowhere",
    partitionOf: () => 0,
    bounds: (topic) =>
      Effect.sync(() => {
        if (topic === "progress") return { start: 0, end: world.published.length }
        return topic === "events" ? { start: EXPIRED, end: EXPIRED } : { start: 0, end: 0 }
      }),
    reader: Effect.succeed({
      fetch: (positions: ReadonlyArray<Position>) =>
        Effect.delay(
          Effect.sync(() =>
            positions.map((position) => {
              const isProgress = position.topic === "progress"
              const found = isProgress ? world.published.slice(position.offset) : []
              const nextOffset = position.offset + found.length
              return {
                ...position,
                records: found.map((progress, at) => ({
                  offset: position.offset + at,
                  timestamp: 0,
                  key: Buffer.from("0"),
                  value: Buffer.from(JSON.stringify(progress)),
                  headers: {}
                })),
                nextOffset,
                writtenEnd: nextOffset,
                stableEnd: nextOffset,
                logStart: 0
              }
            })
          ),
          250
        )
    }),
    appender: Effect.succeed({ append }),
    membership: () =>
      world.assigned.pipe(
        Stream.zipWithIndex,
        Stream.map(([partitions, index]) => ({
          generation: index + 1,
          partitions,
          isCurrent: () => true
        })),
        Stream.concat(Stream.never)
      )
  })
}

const layerStore = Layer.mergeAll(
  Layer.mock(EventStore, {
    upgrade: Effect.void,
    purgeErased: Effect.succeed(0),
    eraseAgain: () => Effect.void,
    hasDuplicates: () => Effect.succeed(false)
  }),
  Layer.mock(TraceStore, { hasDuplicates: () => Effect.succeed(false) }),
  Layer.mock(CheckpointStore, {}),
  Layer.succeed(StoredTopics, {
    of: () => ({
      asideTable: "aside",
      highest: () => Effect.succeed(undefined),
      rows: () => Effect.succeed([]),
      compare: () => Effect.succeed([]),
      denied: () => Effect.succeed([]),
      setAside: () => Effect.void
    })
  })
)

const finals = ({ published }: World) => published.map(({ final }) => final)

const run = (world: World, then: Effect.Effect<void>) =>
  Effect.gen(function* () {
    yield* runProjection({ settleMs: SETTLE_MS })
    yield* then
  }).pipe(Effect.scoped, Effect.provide([layerLog(world), layerStore]))

const seconds = (count: number) =>
  Effect.gen(function* () {
    for (let second = 0; second < count; second++) yield* TestClock.adjust("1 second")
  })

describe("the projection", () => {
  it.effect("says again that nothing is there twice if the log did not take it", () => {
    const world: World = { published: [], refusals: 1, assigned: Stream.make([0]) }
    const then = Effect.map(seconds(120), () =>
      assert.deepStrictEqual(finals(world), [true, false])
    )
    return run(world, then)
  })

  it.effect("merges what another process may have stored twice meanwhile", () => {
    const assigned = Stream.make([0]).pipe(
      Stream.concat(Stream.fromEffect(Effect.delay(Effect.succeed([]), "60 seconds"))),
      Stream.concat(Stream.fromEffect(Effect.delay(Effect.succeed([0]), "60 seconds")))
    )
    const world: World = { published: [], refusals: 0, assigned }
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
    return run(world, then)
  })
})

/** Who follows the log begins again whatever ends it, and says meanwhile that it does not follow. */

import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Queue } from "effect"
import { TestClock } from "effect/testing"
import { catchingUpToHeads } from "../../../src/actors/follower/CaughtUp.ts"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import {
  Following,
  layerLogFollower,
  RegistryView
} from "../../../src/actors/follower/LogFollower.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import { Placement } from "../../../src/domain/registry/Placement.ts"
import { registryKey, registryValue } from "../../../src/domain/registry/RegistryEntry.ts"
import {
  type AppendedListener,
  EventLog,
  type Fetched,
  type LogReader,
  type LogRecord,
  LogUnavailable,
  type Position
} from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { storedProgress } from "../../support/StoredProgress.ts"
import { emptyLog } from "../support/EmptyLog.ts"
import { whileTimePasses } from "../support/PassingTime.ts"

const entry = {
  kind: "tenant",
  tenant: { id: "acme", created_at: "2026-11-21T00:00:00.000000Z" }
} as const

/** What the registry holds, once it can be read. */
const registry: Fetched = {
  topic: "registry",
  partition: 0,
  offset: 0,
  nextOffset: 1,
  writtenEnd: 1,
  stableEnd: 1,
  logStart: 0,
  records: [
    {
      offset: 0,
      timestamp: 0,
      key: Buffer.from(registryKey(entry)),
      value: Buffer.from(registryValue(entry)),
      headers: {}
    }
  ]
}

it.effect("a follower survives errors and defects of its reader", () =>
  Effect.gen(function* () {
    const seen: Array<string | undefined> = []
    let interrupted: () => string | undefined = () => undefined
    const answers: Array<ReturnType<LogReader["fetch"]>> = [
      Effect.fail(new LogUnavailable({ operation: "fetch", cause: new Error("away") })),
      Effect.die(new Error("a mistake of ours")),
      Effect.sync((): never => {
        throw new TypeError("another one")
      }),
      Effect.succeed([registry])
    ]
    const log = emptyLog(() =>
      Effect.suspend(() => {
        seen.push(interrupted())
        return answers.shift() ?? Effect.never
      })
    )
    const following = yield* Layer.build(
      layerLogFollower.pipe(
        Layer.provide([
          log,
          Layer.mock(EventStore, {
            migrate: Effect.void,
            ping: Effect.void,
            mergeDuplicates: Effect.void
          })
        ])
      )
    )
    interrupted = Context.get(following, Following).interrupted
    const view = Context.get(following, RegistryView)
    yield* view.until(({ tenants }) => tenants.has("acme"))
    assert.isUndefined(interrupted())
    // What it says before each fetch but the first, and before the one that never ends.
    assert.match(String(seen[1]), /away|LogUnavailable/)
    assert.match(String(seen[2]), /a mistake of ours/)
    assert.match(String(seen[3]), /another one/)
    assert.isUndefined(seen[4])
  }).pipe(Effect.scoped, whileTimePasses)
)

const T = "2026-11-21T00:00:00.000000Z"

const stateRecord = (offset: number, key: string, sequence: number | null): LogRecord => ({
  offset,
  timestamp: 0,
  key: Buffer.from(key),
  value:
    sequence === null
      ? null
      : Buffer.from(
          JSON.stringify({
            sequence_number: sequence,
            hash: "ab".repeat(32),
            created_at: T,
            tree: null
          })
        ),
  headers: {}
})

it.effect("heads are what the last record of each says", () =>
  Effect.gen(function* () {
    const written = [
      stateRecord(0, "head/acme", 7),
      stateRecord(1, "trace-head/acme", 4),
      stateRecord(2, "head/acme", 8),
      stateRecord(3, "trace-head/acme", 5),
      stateRecord(4, "head/other", 9),
      stateRecord(5, "head/other", null),
      stateRecord(6, "head/other", 2)
    ]
    const end = written.length
    const log = Layer.mock(EventLog, {
      partitions: 1,
      bootstrap: "nowhere",
      partitionOf: () => 0,
      placement: Effect.sync(() => new Placement(1)),
      bounds: (topic) => Effect.succeed({ start: 0, end: topic === "state" ? end : 0 }),
      ends: (positions) =>
        Effect.succeed(positions.map(({ topic }) => (topic === "state" ? end : 0))),
      appender: Effect.never,
      onAppended: () => Effect.void,
      reader: Effect.succeed({
        fetch: ([position]: ReadonlyArray<Position>) =>
          position!.topic === "state" && position!.offset === 0
            ? Effect.succeed([
                {
                  ...position!,
                  records: written,
                  nextOffset: end,
                  writtenEnd: end,
                  stableEnd: end,
                  logStart: 0
                }
              ])
            : Effect.never
      })
    })
    const following = yield* Layer.build(
      layerLogFollower.pipe(
        Layer.provide([
          log,
          Layer.mock(EventStore, {
            migrate: Effect.void,
            ping: Effect.void,
            mergeDuplicates: Effect.void
          })
        ])
      )
    )
    const heads = Context.get(following, Heads)
    assert.strictEqual((yield* heads.head("acme"))?.sequence_number, 8)
    assert.strictEqual((yield* heads.traceHead("acme"))?.sequence_number, 5)
    assert.strictEqual((yield* heads.head("other"))?.sequence_number, 2)
  }).pipe(Effect.scoped, whileTimePasses)
)

const noApplied = storedProgress()
const head = { hash: "0".repeat(64), created_at: "2026-11-21T00:00:00.000000Z", tree: null }

const progressValue = (eventsNext: number, number = 1): Buffer =>
  Buffer.from(JSON.stringify({ ...noProgress(0), number, events_next: eventsNext }))

const progressRecord = (offset: number, eventsNext: number, number?: number): LogRecord => ({
  offset,
  timestamp: 0,
  key: Buffer.from("0"),
  value: progressValue(eventsNext, number),
  headers: {}
})

it.effect("progress that this process publishes is known at once, and an older record is not", () =>
  Effect.gen(function* () {
    let appended: AppendedListener | undefined
    const asks = yield* Queue.unbounded<void>()
    const fetches = yield* Queue.unbounded<ReadonlyArray<LogRecord>>()
    const log = emptyLog(
      (positions) =>
        Effect.gen(function* () {
          yield* Queue.offer(asks, undefined)
          const position = positions.find(({ topic }) => topic === "progress")!
          const records = yield* Queue.take(fetches)
          const nextOffset = records.at(-1)!.offset + 1
          return [{ ...position, records, nextOffset, writtenEnd: 0, stableEnd: 0, logStart: 0 }]
        }),
      (_, listener) =>
        Effect.sync(() => {
          appended = listener
        })
    )
    const following = yield* Layer.build(
      layerLogFollower.pipe(Layer.provide([log, Layer.mock(EventStore, { ping: Effect.void })]))
    )
    const progress = Context.get(following, ProjectionProgress)
    const publish = (offset: number, eventsNext: number) =>
      appended!(
        { topic: "progress", partition: 0, key: "0", value: progressValue(eventsNext) },
        offset
      )
    publish(1, 20)
    yield* progress.awaitOffset(0, { events: 20 })
    // What was fetched before it was published, what another process published after it.
    yield* Queue.offer(fetches, [progressRecord(0, 10)])
    // It asks again when it has taken what it asked for.
    yield* Queue.takeN(asks, 2)
    assert.strictEqual(progress.partition(0).events_next, 20)
    yield* Queue.offer(fetches, [progressRecord(1, 20), progressRecord(2, 30)])
    yield* progress.awaitOffset(0, { events: 30 })
    publish(2, 15)
    assert.strictEqual(progress.partition(0).events_next, 30)
    publish(3, 5)
    assert.strictEqual(progress.partition(0).events_next, 5)
    // A copy of a record of before says less, whatever its place; one of this process as well.
    yield* Queue.offer(fetches, [progressRecord(4, 40, 3), progressRecord(5, 30, 2)])
    yield* progress.awaitOffset(0, { events: 40 })
    publish(6, 50)
    assert.strictEqual(progress.partition(0).events_next, 40)
  }).pipe(Effect.scoped, whileTimePasses)
)

it.effect("what a known head stands for is waited for, before the end of its topic shows it", () =>
  Effect.gen(function* () {
    let appended: AppendedListener | undefined
    const state = [
      ["applied", { ...noApplied, events_next: 12, traces_next: 0 }],
      ["head/acme", { ...head, sequence_number: 7 }]
    ] as const
    const records = state.map(
      ([key, value], offset): LogRecord => ({
        offset,
        timestamp: 0,
        key: Buffer.from(key),
        value: Buffer.from(JSON.stringify(value)),
        headers: {}
      })
    )
    const endOf = ({ topic }: Pick<Position, "topic">) => (topic === "state" ? records.length : 0)
    const log = Layer.mock(EventLog, {
      partitions: 1,
      placement: Effect.sync(() => new Placement(1)),
      bootstrap: "nowhere",
      partitionOf: () => 0,
      bounds: (topic) => Effect.succeed({ start: 0, end: endOf({ topic }) }),
      ends: (positions) => Effect.succeed(positions.map(endOf)),
      appender: Effect.never,
      onAppended: (_, listener) =>
        Effect.sync(() => {
          appended = listener
        }),
      reader: Effect.succeed({
        fetch: (positions: ReadonlyArray<Position>) => {
          const [position] = positions
          if (position?.topic !== "state" || position.offset > 0) return Effect.never
          const nextOffset = records.length
          return Effect.succeed([
            {
              ...position,
              records,
              nextOffset,
              writtenEnd: nextOffset,
              stableEnd: nextOffset,
              logStart: 0
            }
          ])
        }
      })
    })
    const following = yield* Layer.build(
      layerLogFollower.pipe(Layer.provide([log, Layer.mock(EventStore, { ping: Effect.void })]))
    )
    const heads = Context.get(following, Heads)
    const key = { chain: "events", tenantId: "acme" } as const
    assert.strictEqual(yield* heads.written("events", 0), 12)
    assert.strictEqual((yield* heads.reached(key, 12, 7))?.sequence_number, 7)
    const late = Effect.timeoutOption(heads.reached(key, 13, 7), "1 second")
    assert.isTrue(Option.isNone(yield* late), "a record was delivered that no head stands for")
    const shown = yield* Effect.forkChild(
      Effect.flatten(catchingUpToHeads("acme", "events")).pipe(
        Effect.provide([log, Layer.succeedContext(following)])
      )
    )
    const publish = (offset: number, eventsNext: number) =>
      appended!(
        { topic: "progress", partition: 0, key: "0", value: progressValue(eventsNext) },
        offset
      )
    publish(1, 11)
    yield* TestClock.adjust("1 second")
    assert.isUndefined(shown.pollUnsafe(), "shown before the event of the head was")
    publish(2, 12)
    yield* Fiber.join(shown)
  }).pipe(Effect.scoped, whileTimePasses)
)

it.effect("records are a sequencer's once it says so, or others' once it can't any more", () =>
  Effect.gen(function* () {
    const fetches = yield* Queue.unbounded<Partial<Fetched>>()
    const asks = yield* Queue.unbounded<void>()
    const log = emptyLog((positions: ReadonlyArray<Position>) =>
      Effect.gen(function* () {
        yield* Queue.offer(asks, undefined)
        const position = positions.find(({ topic }) => topic === "state")!
        const nextOffset = position.offset
        const found = yield* Queue.take(fetches)
        const ends = { writtenEnd: nextOffset, stableEnd: nextOffset, logStart: 0 }
        return [{ ...position, ...ends, nextOffset, records: [], ...found }]
      })
    )
    const following = yield* Layer.build(
      layerLogFollower.pipe(Layer.provide([log, Layer.mock(EventStore, { ping: Effect.void })]))
    )
    const heads = Context.get(following, Heads)
    yield* Queue.take(asks)
    const answer = (found: Partial<Fetched>) =>
      Effect.andThen(Queue.offer(fetches, found), Queue.take(asks))
    const applied = (offset: number, events_next: number): Partial<Fetched> => {
      const value = Buffer.from(JSON.stringify({ ...noApplied, events_next, traces_next: 0 }))
      const record = { offset, timestamp: 0, key: Buffer.from("applied"), value, headers: {} }
      return { records: [record], nextOffset: offset + 1, writtenEnd: offset + 1 }
    }
    const recordAt = (offset: number) => stateRecord(offset, "acme", 1)
    const [first, second, third] = [recordAt(1), recordAt(4), recordAt(5)] as const
    const decided = (some: ReadonlyArray<LogRecord>) => heads.decided("events", 0, some)
    yield* answer(applied(0, 2))
    assert.deepStrictEqual(yield* decided([first, second, third]), {
      own: [first],
      rest: [second, third]
    })
    const later = yield* Effect.forkChild(decided([second, third]), { startImmediately: true })
    // What is written of the changelog up to 5 may say more of them.
    for (let time = 0; time < 3; time++) yield* answer({ writtenEnd: 5 })
    yield* TestClock.adjust("1 second")
    assert.isUndefined(later.pollUnsafe(), "decided before the changelog was read")
    yield* answer(applied(3, 5))
    assert.deepStrictEqual(yield* Fiber.join(later), { own: [second], rest: [third] })
    const never = yield* Effect.forkChild(decided([third]), { startImmediately: true })
    yield* answer({})
    yield* TestClock.adjust("1 second")
    assert.isUndefined(never.pollUnsafe(), "the answer may have been asked for before")
    yield* answer({})
    assert.deepStrictEqual(yield* Fiber.join(never), { own: [], rest: [] })
  }).pipe(Effect.scoped, whileTimePasses)
)

/** A projection over a log and a store of which a test says what they hold. */
import { Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { runProjection } from "../../../src/actors/projection/Projection.ts"
import type { Progress } from "../../../src/domain/records/Progress.ts"
import { CheckpointStore } from "../../../src/ports/CheckpointStore.ts"
import {
  EventLog,
  type LogRecord,
  LogUnavailable,
  type NewRecord,
  type Position
} from "../../../src/ports/EventLog.ts"
import { type EventRow, EventStore } from "../../../src/ports/EventStore.ts"
import { StoredTopics } from "../../../src/ports/TopicRows.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"

export const SETTLE_MS = 1_000
/** Milliseconds that a fetch takes where there is nothing. */
const FETCH_MS = 250
const FETCH_POLL_MS = 5

export interface World {
  readonly published: Array<Progress>
  /** How often progress is refused that says that nothing is there twice. */
  refusals: number
  /** The partitions of this process, one generation after the other. */
  readonly assigned: Stream.Stream<ReadonlyArray<number>>
  /** Where `alk.events` begins: what was before has expired. */
  readonly start: number
  readonly events: Array<LogRecord>
  readonly state: Array<LogRecord>
  /** Rows of each insert. */
  readonly inserts: Array<ReadonlyArray<EventRow>>
}

export const newWorld = (world: Partial<World> = {}): World => ({
  published: [],
  refusals: 0,
  assigned: Stream.make([0]),
  start: 0,
  events: [],
  state: [],
  inserts: [],
  ...world
})

export const recordOf = (
  offset: number,
  key: string,
  value: Buffer | string | null
): LogRecord => ({
  offset,
  timestamp: 0,
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
  headers: {}
})

const recordsOf = (
  { events, published, state }: World,
  topic: string
): ReadonlyArray<LogRecord> => {
  if (topic === "events") return events
  if (topic === "state") return state
  if (topic !== "progress") return []
  return published.map((progress, at) => recordOf(at, "0", JSON.stringify(progress)))
}

const fetchFrom = (world: World, positions: ReadonlyArray<Position>) =>
  positions.map((position) => {
    const all = recordsOf(world, position.topic)
    const records = all.filter(({ offset }) => offset >= position.offset)
    const nextOffset = (records.at(-1)?.offset ?? position.offset - 1) + 1
    return {
      ...position,
      records,
      nextOffset,
      writtenEnd: nextOffset,
      stableEnd: nextOffset,
      logStart: 0
    }
  })

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
  const fetch = (positions: ReadonlyArray<Position>) =>
    Effect.gen(function* () {
      for (let waited = 0; ; waited += FETCH_POLL_MS) {
        const fetched = fetchFrom(world, positions)
        if (waited >= FETCH_MS || fetched.some(({ records }) => records.length > 0)) return fetched
        yield* Effect.sleep(FETCH_POLL_MS)
      }
    })
  return Layer.mock(EventLog, {
    partitions: 1,
    bootstrap: "nowhere",
    partitionOf: () => 0,
    bounds: (topic) =>
      Effect.sync(() => {
        const { start } = world
        const end = (recordsOf(world, topic).at(-1)?.offset ?? -1) + 1
        return topic === "events" ? { start, end: Math.max(start, end) } : { start: 0, end }
      }),
    reader: Effect.succeed({ fetch }),
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

const layerStore = (world: World) =>
  Layer.mergeAll(
    Layer.mock(EventStore, {
      purgeErased: Effect.succeed(0),
      eraseAgain: () => Effect.void,
      hasDuplicates: () => Effect.succeed(false),
      lastEvents: () => Effect.succeed([]),
      insertConflicts: () => Effect.void,
      insertEvents: (rows) =>
        Effect.sync(() => {
          world.inserts.push(rows)
          return []
        })
    }),
    Layer.mock(TraceStore, { hasDuplicates: () => Effect.succeed(false) }),
    Layer.mock(CheckpointStore, {}),
    Layer.succeed(StoredTopics, {
      of: () => ({
        asideTable: "aside",
        highest: () => Effect.succeed(undefined),
        rows: () => Effect.succeed([]),
        compare: () => Effect.succeed([]),
        remove: () => Effect.void,
        index: () => Effect.succeed(0),
        denied: () => Effect.succeed([]),
        setAside: () => Effect.void
      })
    })
  )

export const projecting = <A>(world: World, then: Effect.Effect<A>) =>
  Effect.gen(function* () {
    yield* runProjection({ settleMs: SETTLE_MS })
    return yield* then
  }).pipe(Effect.scoped, Effect.provide([layerLog(world), layerStore(world)]))

export const seconds = (count: number) =>
  Effect.gen(function* () {
    for (let second = 0; second < count; second++) yield* TestClock.adjust("1 second")
  })

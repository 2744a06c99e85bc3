/** The live stream of events over a log and a store in memory: each event once, in its order. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, type Duration, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { LiveFeed, layerLiveFeed, type Subscription } from "../../../src/actors/feeds/LiveFeed.ts"
import type { ResumePointInvalid } from "../../../src/actors/feeds/LiveStream.ts"
import { Heads } from "../../../src/actors/follower/Heads.ts"
import { Keys } from "../../../src/actors/follower/Keys.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import { EventLog, type LogRecord, type Position } from "../../../src/ports/EventLog.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { eventually } from "../../support/Eventually.ts"
import { Chain, type Fields } from "../../verify/support/Chains.ts"
import { FollowedState } from "../support/FollowedState.ts"
import { whileTimePasses } from "../support/PassingTime.ts"

/** One tenant's chain: all of it is committed, and in the store as well. */
class World {
  readonly chain = new Chain("acme")
  readonly state = new FollowedState("events")
  readonly revoked = Deferred.makeUnsafe<void>()
  readonly #records: Array<LogRecord> = []

  /** Records before this offset have expired. */
  start = 0
  /** Offset after the last event that the heads stand for; markers of transactions follow it. */
  written = Number.MAX_SAFE_INTEGER

  /** How long the store takes. */
  searches: Duration.Input = 0

  commit(...actions: ReadonlyArray<string>): void {
    this.commitAll(...actions.map((action) => ({ action })))
  }

  commitAll(...events: ReadonlyArray<Fields>): void {
    const first = this.end
    for (const event of events) this.#write(this.chain.append(event))
    this.state.cover(first, this.end)
  }

  /** The first event of another tenant in the same partition. */
  commitOther(tenantId: string): void {
    const first = this.end
    this.#write(new Chain(tenantId).append(), tenantId)
    this.state.cover(first, this.end)
  }

  /** Another producer writes what would come next in the chain. */
  forge(action: string): void {
    const other = new Chain("acme")
    other.head = this.chain.head
    this.#write(other.append({ action }))
  }

  #write(body: string, tenantId = "acme"): void {
    const [offset, value] = [this.end, Buffer.from(body)]
    this.#records.push({ offset, timestamp: 0, key: Buffer.from(tenantId), value, headers: {} })
  }

  /** A record of whose JSON only the link at its end is left. */
  damage(offset: number): void {
    const record = this.#records[offset]!
    const value = Buffer.concat([Buffer.from("{{"), record.value!])
    this.#records[offset] = { ...record, value }
  }

  get bytes(): number {
    return this.#records.reduce((sum, { value }) => sum + value!.length, 0)
  }

  get end(): number {
    return this.#records.length
  }

  from(offset: number): ReadonlyArray<LogRecord> {
    return this.#records.slice(offset)
  }
}

const logOf = (world: World) =>
  Layer.mock(EventLog, {
    partitions: 1,
    bootstrap: "nowhere",
    partitionOf: () => 0,
    bounds: () => Effect.sync(() => ({ start: world.start, end: world.end })),
    ends: () => Effect.sync(() => [world.end]),
    reader: Effect.succeed({
      fetch: ([position]: ReadonlyArray<Position>) =>
        Effect.suspend(() => {
          const records = world.from(position!.offset)
          const { end } = world
          const fetched = {
            ...position!,
            records,
            nextOffset: end,
            writtenEnd: end,
            stableEnd: end,
            logStart: 0
          }
          return Effect.delay(Effect.succeed([fetched]), 1)
        })
    })
  })

const storeOf = (world: World) =>
  Layer.mock(EventStore, {
    scan: ({ filter: { fromSequence = 1, toSequence } }) =>
      Stream.fromEffect(Effect.sleep(world.searches)).pipe(
        Stream.map(() => world.chain.bodies.slice(fromSequence - 1, toSequence))
      )
  })

const layerFeed = (world: World, streamsMax = 10) =>
  layerLiveFeed(streamsMax).pipe(
    Layer.provide([
      logOf(world),
      storeOf(world),
      Layer.succeed(ProjectionProgress, {
        of: () => noProgress(0),
        partition: noProgress,
        awaitOffset: () => Effect.void
      }),
      Layer.mock(Heads, {
        head: () => Effect.sync(() => world.chain.head),
        written: () => Effect.sync(() => world.written),
        decided: world.state.decided,
        reached: (_, offset) =>
          world.written >= offset ? Effect.sync(() => world.chain.head) : Effect.never
      }),
      Layer.mock(Keys, {
        isAdmin: () => false,
        known: () => undefined,
        ended: () => Deferred.await(world.revoked)
      })
    ])
  )

const subscription = (changed: Partial<Subscription> = {}): Subscription => ({
  tenantId: "acme",
  keyId: "key",
  filter: { metadata: [] },
  after: undefined,
  ...changed
})

const subscribe = (changed?: Partial<Subscription>) =>
  LiveFeed.use((feed) => feed.subscribe(subscription(changed)))

const idsIn = (bytes: Uint8Array): ReadonlyArray<number> => {
  const ids = Buffer.from(bytes)
    .toString()
    .matchAll(/^id: (\d+)$/gm)
  return [...ids].map(([, id]) => Number(id))
}

/** The ids of the first so many events of a stream. */
const idsOf = (stream: Stream.Stream<Uint8Array>, count: number) =>
  stream.pipe(
    Stream.flatMap((bytes) => Stream.fromIterable(idsIn(bytes))),
    Stream.take(count),
    Stream.runCollect
  )

/** The ids and actions of the first so many events of a stream. */
const actionsOf = (stream: Stream.Stream<Uint8Array>, count: number) =>
  stream.pipe(
    Stream.flatMap((bytes) => {
      const events = Buffer.from(bytes)
        .toString()
        .matchAll(/^id: (\d+)\ndata: (.*)$/gm)
      return Stream.fromIterable(
        [...events].map(([, id, data]) => [Number(id), JSON.parse(data!).action] as const)
      )
    }),
    Stream.take(count),
    Stream.runCollect
  )

describe("the live stream of events", () => {
  it.effect("begins with what is committed after it was opened", () => {
    const world = new World()
    world.commit("a.one", "a.two")
    return Effect.gen(function* () {
      const stream = yield* subscribe()
      const ids = yield* Effect.forkChild(idsOf(stream, 2))
      world.commit("a.three", "a.four")
      assert.deepStrictEqual(yield* Fiber.join(ids), [3, 4])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("is open where everything has expired, the marker behind the last event too", () => {
    const world = new World()
    world.commit("a.one", "a.two", "a.three")
    world.written = 2
    world.start = 3
    return Effect.gen(function* () {
      const stream = yield* subscribe()
      const ids = yield* Effect.forkChild(idsOf(stream, 1))
      world.commit("a.four")
      assert.deepStrictEqual(yield* Fiber.join(ids), [4])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("goes on after an id, from the store into what is live, each event once", () => {
    const world = new World()
    world.commit("a.one", "a.two", "a.three")
    return Effect.gen(function* () {
      const stream = yield* subscribe({ after: 1 })
      world.commit("a.four")
      const goingOn = Stream.tap(stream, (bytes) =>
        Effect.sync(() => {
          if (idsIn(bytes).includes(4)) world.commit("a.five")
        })
      )
      assert.deepStrictEqual(yield* idsOf(goingOn, 4), [2, 3, 4, 5])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("keeps the connection while the store searches, however long that takes", () => {
    const world = new World()
    world.commit("a.one", "a.two")
    world.searches = "50 seconds"
    return Effect.gen(function* () {
      const stream = yield* subscribe({ after: 0 })
      const messages = yield* stream.pipe(
        Stream.map((bytes) => Buffer.from(bytes).toString().split("\n", 1)[0]),
        Stream.take(6),
        Stream.runCollect,
        Effect.forkChild
      )
      yield* TestClock.adjust("2 minutes")
      const comment = ": keep-alive"
      assert.deepStrictEqual([...(yield* Fiber.join(messages))].slice(1), [
        comment,
        comment,
        comment,
        "event: audit.event",
        "event: audit.event"
      ])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)))
  })

  it.effect("leaves out what the filter does not match", () => {
    const world = new World()
    return Effect.gen(function* () {
      const stream = yield* subscribe({ filter: { metadata: [], action: "b.wanted" } })
      world.commit("b.wanted", "a.other", "b.wanted")
      assert.deepStrictEqual(yield* idsOf(stream, 2), [1, 3])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("lets no tenant wait for the filters of another one", () => {
    const world = new World()
    const costly = Array.from({ length: 60 }, (_, n) => `-metadata.l>${1e6 + n}`).join(" ")
    const metadata = { l: Array.from({ length: 8_000 }, (_, n) => n) }
    return Effect.gen(function* () {
      const filtered = yield* Effect.forEach(Array.from({ length: 10 }), (_, n) =>
        subscribe({ filter: { metadata: [], where: `${costly} -metadata.l>${2e6 + n}` } })
      )
      const other = yield* subscribe({ tenantId: "umbrella" })
      let passed = 0
      const reading = yield* Effect.forEach(
        filtered,
        (stream) =>
          Stream.runForEach(stream, (bytes) =>
            Effect.sync(() => {
              passed += idsIn(bytes).length
            })
          ),
        { concurrency: "unbounded" }
      ).pipe(Effect.forkScoped)
      world.commitAll(...Array.from({ length: 8 }, () => ({ metadata })))
      world.commitOther("umbrella")
      assert.deepStrictEqual(yield* idsOf(other, 1), [1])
      assert.isBelow(passed, 80)
      yield* eventually(
        "every filter has passed every event",
        Effect.sync(() => passed === 80)
      )
      yield* Fiber.interrupt(reading)
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world, 20)), whileTimePasses)
  })

  it.effect("has a burst once in memory, however many wait for it", () => {
    const world = new World()
    return Effect.gen(function* () {
      const { readers } = yield* LiveFeed
      const streams = yield* Effect.all(Array.from({ length: 100 }, () => subscribe()))
      const burst = Array.from({ length: 200 }, () => "a.burst")
      world.commit(...burst)
      yield* TestClock.adjust("10 millis")
      assert.isAtLeast(readers.bytes, world.bytes)
      assert.isBelow(readers.bytes, 2 * world.bytes)
      const seen = yield* Effect.forEach(streams, (stream) => idsOf(stream, burst.length))
      for (const ids of seen) {
        assert.deepStrictEqual(
          ids,
          burst.map((_, n) => n + 1)
        )
      }
      assert.isBelow(readers.bytes, 2 * world.bytes)
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world, 100)), whileTimePasses)
  })

  it.effect("passes over what is no event, for those who filter too", () => {
    const world = new World()
    return Effect.gen(function* () {
      const stream = yield* subscribe({ filter: { metadata: [], action: "b.wanted" } })
      world.commit("b.wanted", "a.broken", "b.wanted")
      world.damage(1)
      assert.deepStrictEqual(yield* idsOf(stream, 2), [1, 3])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("has nothing that another producer has written, before, between or after", () => {
    const world = new World()
    return Effect.gen(function* () {
      const stream = yield* subscribe()
      const seen = yield* Effect.forkChild(actionsOf(stream, 3))
      world.forge("a.forged")
      world.commit("a.one")
      world.forge("a.forged")
      // So long that it is known to be nothing of the sequencer's before anything follows.
      yield* TestClock.adjust("1 second")
      world.forge("a.forged")
      world.commit("a.two", "a.three")
      assert.deepStrictEqual(yield* Fiber.join(seen), [
        [1, "a.one"],
        [2, "a.two"],
        [3, "a.three"]
      ])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("opens while the last record of the topic is another producer's", () => {
    const world = new World()
    return Effect.gen(function* () {
      yield* subscribe()
      world.commit("a.one")
      world.forge("a.forged")
      world.written = 1
      yield* TestClock.adjust("1 second")
      const stream = yield* subscribe()
      world.commit("a.two")
      assert.deepStrictEqual(yield* actionsOf(stream, 1), [[2, "a.two"]])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("has each event once, in order, however late the sequencer's word on it is", () => {
    const world = new World()
    return Effect.gen(function* () {
      const stream = yield* subscribe()
      const seen: Array<number> = []
      const ended = yield* stream.pipe(
        Stream.takeUntil((bytes) => {
          seen.push(...idsIn(bytes))
          return seen.length >= 4
        }),
        Stream.runDrain,
        Effect.forkChild
      )
      world.commit("a.one")
      yield* TestClock.adjust("1 second")
      world.state.isLate = true
      world.commit("a.two")
      world.forge("a.forged")
      world.commit("a.three")
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(seen, [1])
      world.state.isLate = false
      yield* TestClock.adjust("1 second")
      world.commit("a.four")
      yield* Fiber.join(ended)
      assert.deepStrictEqual(seen, [1, 2, 3, 4])
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("refuses a resume point beyond the head, and counts the stream no longer", () => {
    const world = new World()
    world.commit("a.one")
    return Effect.gen(function* () {
      const { subscribers } = yield* LiveFeed
      const failure = yield* Effect.flip(Effect.scoped(subscribe({ after: 2 })))
      assert.strictEqual(failure._tag, "ResumePointInvalid")
      assert.include((failure as ResumePointInvalid).message, "beyond the head of the chain, 1")
      assert.strictEqual(yield* subscribers, 0)
    }).pipe(Effect.provide(layerFeed(world)), whileTimePasses)
  })

  it.effect("is refused beyond the limit of a tenant, until another one ends", () => {
    const world = new World()
    return Effect.gen(function* () {
      const refused = yield* Effect.scoped(
        Effect.andThen(subscribe(), Effect.flip(Effect.scoped(subscribe())))
      )
      assert.strictEqual(refused._tag, "TooManyStreams")
      yield* Effect.scoped(subscribe())
    }).pipe(Effect.provide(layerFeed(world, 1)), whileTimePasses)
  })

  it.effect("ends when its key is revoked", () => {
    const world = new World()
    return Effect.gen(function* () {
      const stream = yield* subscribe()
      const ended = yield* Effect.forkChild(Stream.runDrain(stream))
      yield* Deferred.succeed(world.revoked, undefined)
      yield* Fiber.join(ended)
    }).pipe(Effect.scoped, Effect.provide(layerFeed(world)), whileTimePasses)
  })
})

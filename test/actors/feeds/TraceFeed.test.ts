/**
 * The live view of an execution: every change once, whatever log, store and clients do meanwhile;
 * what a change says; and how a stream ends.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { FollowedBytes } from "../../../src/actors/feeds/FollowedBytes.ts"
import { LiveFeed } from "../../../src/actors/feeds/LiveFeed.ts"
import { READER_LIMITS } from "../../../src/actors/feeds/Subscriber.ts"
import { TraceFeed, type TraceSubscription } from "../../../src/actors/feeds/TraceFeed.ts"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import { factDetailsHash, parseFact, storeFact } from "../../../src/domain/traces/FactText.ts"
import type { FactCore, FactDetails, TraceFact } from "../../../src/domain/traces/TraceFact.ts"
import { TraceView } from "../../../src/domain/traces/TraceView.ts"
import { eventually } from "../../support/Eventually.ts"
import { FeedWorld, layerFeeds } from "../support/FeedDoubles.ts"
import { whileTimePasses } from "../support/PassingTime.ts"

const TENANT = "acme"
const RUN = 'run "1" é'

/** Without what the chain of facts gives them. */
type Bare<C = FactCore> = C extends FactCore
  ? Omit<C, "fact_number" | "execution_id"> & { readonly details?: FactDetails }
  : never

/** Chains facts of several executions of one tenant, as the sequencer would. */
class Writer {
  readonly facts: Array<TraceFact> = []
  readonly #counts = new Map<string, number>()

  write({ details, ...bare }: Bare, executionId = RUN): TraceFact {
    const fact_number = (this.#counts.get(executionId) ?? 0) + 1
    this.#counts.set(executionId, fact_number)
    const text = details === undefined ? undefined : JSON.stringify(details)
    const salt = "0".repeat(32)
    const stored = storeFact(
      { ...bare, execution_id: executionId, fact_number } as FactCore,
      text === undefined ? undefined : { text, salt, hash: factDetailsHash(salt, text) },
      {
        tenantId: TENANT,
        chainSequence: this.facts.length + 1,
        createdAt: "2026-11-21T10:00:00.000000Z",
        prevHash: this.facts.at(-1)?.hash ?? GENESIS_HASH
      }
    )
    const fact = parseFact(stored.body)!
    this.facts.push(fact)
    return fact
  }

  start(executionId = RUN): void {
    const times = { started_at: "2026-11-21T10:00:00.000000Z", started_at_given: false }
    this.write(
      {
        type: "execution.started",
        agent_id: `"execution_id":"x"`,
        root_span_id: `root of ${executionId}`,
        source: "api",
        ...times,
        details: { agent_name: "secret", metadata: { a: "secret" } }
      },
      executionId
    )
    this.span(`root of ${executionId}`, executionId)
  }

  span(id: string, executionId = RUN, metadata?: FactDetails["metadata"]): void {
    this.write(
      {
        type: "span.started",
        span_id: id,
        caused_by_span_ids: [],
        span_type: "A",
        started_at: "2026-11-21T10:00:00.000000Z",
        started_at_given: false,
        details: { name: `secret ${id}`, ...(metadata === undefined ? {} : { metadata }) }
      },
      executionId
    )
  }

  endSpan(span_id: string): void {
    const ended_at = "2026-11-21T10:00:08.000000Z"
    this.write({ type: "span.ended", span_id, status: "COMPLETED", ended_at })
  }

  event(n: number, payload: FactDetails["payload"] = { n }, executionId = RUN): void {
    this.write(
      {
        type: "span.event",
        span_id: "s",
        event_id: `e${n}`,
        event_type: "tick",
        sequence_number: n,
        timestamp: "2026-11-21T10:00:00.000000Z",
        details: { payload }
      },
      executionId
    )
  }

  end(executionId = RUN): void {
    const ended_at = "2026-11-21T10:00:09.000000Z"
    this.write({ type: "execution.ended", status: "COMPLETED", ended_at }, executionId)
  }
}

interface Message {
  readonly event: string
  readonly id: number | undefined
  readonly data: any
}

const messagesOf = (text: string): ReadonlyArray<Message> =>
  text
    .split("\n\n")
    .map((block) => block.split("\n"))
    .flatMap((lines) => {
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
      const data = field("data")
      const id = field("id")
      return data === undefined
        ? []
        : [
            {
              event: field("event")!,
              id: id === undefined ? undefined : Number(id),
              data: JSON.parse(data)
            }
          ]
    })

const text = (bytes: Iterable<Uint8Array>): string =>
  [...bytes].map((piece) => Buffer.from(piece).toString()).join("")

const subscription: TraceSubscription = {
  tenantId: TENANT,
  keyId: "key_1",
  executionId: RUN,
  after: undefined
}

/** What a client has to be told of a fact, by folding everything up to it. */
const expectedOf = (facts: ReadonlyArray<TraceFact>, at: number): ReadonlyArray<Message> => {
  const view = new TraceView()
  const target = facts[at]!
  for (const fact of facts.slice(0, at)) {
    if (fact.execution_id === target.execution_id) view.take(fact)
  }
  const change = view.take(target)
  const parts: Array<readonly [string, unknown]> = [
    ...change.spans.map((id) => ["span.updated", view.span(id)] as const),
    ...(change.event === undefined ? [] : [["trace.event", change.event] as const]),
    ...(change.execution ? [["execution.updated", view.execution] as const] : [])
  ]
  return parts.map(([event, data], place) => ({
    event,
    id: place === parts.length - 1 ? target.chain_sequence : undefined,
    data: JSON.parse(JSON.stringify(data))
  }))
}

/** A trace with two executions that take turns. */
const twoRuns = (events: number): ReadonlyArray<TraceFact> => {
  const writer = new Writer()
  writer.start()
  writer.start("other")
  writer.span("s")
  for (let n = 1; n <= events; n++) {
    writer.event(n)
    if (n % 3 === 0) writer.event(n / 3, { other: true }, "other")
    if (n % 4 === 0) writer.span(`s${n}`)
    if (n % 8 === 0) {
      const ended_at = "2026-11-21T10:00:01.000000Z"
      writer.write({ type: "span.ended", span_id: `s${n}`, status: "FAILED", ended_at })
    }
  }
  writer.end()
  return writer.facts
}

const own = (facts: ReadonlyArray<TraceFact>) =>
  facts.filter(({ execution_id }) => execution_id === RUN)

/** Small numbers that look random and are the same each time. */
const dice = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

/** Commit and project at a pace of their own. */
const produce = (world: FeedWorld, facts: ReadonlyArray<TraceFact>, random: () => number) =>
  Effect.gen(function* () {
    for (const fact of facts) {
      world.commit(fact)
      if (random() < 0.5) world.project(Math.ceil(random() * 4))
      if (random() < 0.4) yield* Effect.sleep(Math.floor(random() * 4))
    }
    yield* Effect.sleep(5)
    world.project()
  })

/** Follow from a resume point, breaking off and resuming by the last id, until `last` is seen. */
const follow = (after: number, last: number, random: () => number) =>
  Effect.gen(function* () {
    const feed = yield* TraceFeed
    const seen: Array<Message> = []
    let position = after
    while (position < last) {
      const connection = Effect.gen(function* () {
        const bytes = yield* feed.subscribe({ ...subscription, after: position })
        const chunks = 2 + Math.floor(random() * 12)
        yield* bytes.pipe(
          Stream.take(chunks),
          Stream.runForEach((piece) =>
            Effect.gen(function* () {
              for (const message of messagesOf(text([piece]))) {
                seen.push(message)
                position = message.id ?? position
              }
              if (position >= last) return yield* Effect.fail("done" as const)
              if (random() < 0.3) yield* Effect.sleep(1)
            })
          ),
          Effect.catch((reason) => (reason === "done" ? Effect.void : Effect.fail(reason)))
        )
      })
      yield* Effect.scoped(connection)
    }
    return seen
  })

/** An execution with one span beside its root. */
const begun = (): Writer => {
  const writer = new Writer()
  writer.start()
  writer.span("s")
  return writer
}

/** The ids and payloads of the events of spans. */
const payloadsOf = (pieces: Iterable<Uint8Array>) =>
  messagesOf(text(pieces)).map(({ data, id }) => [id, data.payload] as const)

describe("following an execution", () => {
  for (let seed = 1; seed <= 12; seed++) {
    it.effect(`tells every change once, however clients come and go (${seed})`, () => {
      const random = dice(seed)
      const world = new FeedWorld()
      world.fetchMax = 1 + (seed % 5)
      const facts = twoRuns(40)
      const mine = own(facts)
      const last = mine.at(-1)!.chain_sequence
      for (const fact of facts.slice(0, 4)) world.commit(fact)
      world.project()
      return Effect.gen(function* () {
        const clients = yield* Effect.forEach([0, 0, 1, 2], (after) =>
          Effect.forkChild(follow(after, last, random))
        )
        yield* produce(world, facts.slice(4), random)
        for (const [at, client] of clients.entries()) {
          const after = [0, 0, 1, 2][at]!
          const expected = facts.flatMap((fact, place) =>
            fact.execution_id === RUN && fact.chain_sequence > after ? expectedOf(facts, place) : []
          )
          assert.deepStrictEqual(yield* Fiber.join(client), expected)
        }
      }).pipe(Effect.provide(layerFeeds(world)), whileTimePasses)
    })
  }

  for (let seed = 20; seed <= 27; seed++) {
    it.effect(`live only, tells everything that is committed after the headers (${seed})`, () => {
      const random = dice(seed)
      const world = new FeedWorld()
      const facts = twoRuns(40)
      const last = own(facts).at(-1)!.chain_sequence
      for (const fact of facts.slice(0, 6)) world.commit(fact)
      world.project()
      const client = Effect.fnUntraced(function* (opened: Deferred.Deferred<void>) {
        const feed = yield* TraceFeed
        yield* Effect.sleep(Math.floor(random() * 20))
        const bytes = yield* feed.subscribe(subscription)
        const committed = world.committed.length
        yield* Deferred.succeed(opened, undefined)
        const seen: Array<Message> = []
        yield* bytes.pipe(
          Stream.takeUntil((piece) => {
            seen.push(...messagesOf(text([piece])))
            return seen.at(-1)?.id === last
          }),
          Stream.runDrain
        )
        const first = seen[0]!.id ?? last
        const expected = facts.flatMap((fact, place) =>
          fact.execution_id === RUN && fact.chain_sequence >= first ? expectedOf(facts, place) : []
        )
        assert.deepStrictEqual(seen, expected)
        const after = own(facts.slice(committed))
        assert.isAtMost(first, after[0]?.chain_sequence ?? last)
      }, Effect.scoped)
      return Effect.gen(function* () {
        const opened = yield* Effect.forEach([1, 2, 3], () => Deferred.make<void>())
        const clients = yield* Effect.forEach(opened, (one) =>
          Effect.forkChild(Effect.ensuring(client(one), Deferred.succeed(one, undefined)))
        )
        const rest = facts.slice(6)
        yield* produce(world, rest.slice(0, -1), random)
        // Whoever comes late finds something to end with.
        yield* Effect.forEach(opened, Deferred.await)
        yield* produce(world, rest.slice(-1), random)
        for (const fiber of clients) yield* Fiber.join(fiber)
      }).pipe(Effect.provide(layerFeeds(world)), whileTimePasses)
    })
  }

  it.effect("begins with retry, and gives only the last message of a fact an id", () => {
    const world = new FeedWorld()
    const writer = new Writer()
    writer.start()
    writer.span("s")
    writer.end()
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe({ ...subscription, after: 3 })
      const pieces = yield* bytes.pipe(Stream.take(2), Stream.runCollect)
      assert.strictEqual(text(pieces.slice(0, 1)), "retry: 3000\n")
      const messages = messagesOf(text(pieces.slice(1)))
      assert.deepStrictEqual(
        messages.map(({ data, event, id }) => [event, id, data.id, data.status]),
        [
          ["span.updated", undefined, `root of ${RUN}`, "COMPLETED"],
          ["span.updated", undefined, "s", "COMPLETED"],
          ["execution.updated", 4, RUN, "COMPLETED"]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(layerFeeds(world)), whileTimePasses)
  })

  it.effect("tells nothing that another producer has written", () => {
    const world = new FeedWorld()
    const [writer, other] = [begun(), begun()]
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe(subscription)
      const live = yield* Effect.forkChild(bytes.pipe(Stream.take(3), Stream.runCollect))
      other.event(1, { forged: true })
      const forged = other.facts.at(-1)!
      world.forge(forged)
      // So long that it is known to be nothing of the sequencer's before anything follows.
      yield* TestClock.adjust("1 second")
      world.forge(forged)
      for (let n = 1; n <= 2; n++) writer.event(n)
      for (const fact of writer.facts.slice(3)) world.commit(fact)
      assert.deepStrictEqual(payloadsOf(yield* Fiber.join(live)), [
        [4, { n: 1 }],
        [5, { n: 2 }]
      ])
    }).pipe(Effect.scoped, Effect.provide(layerFeeds(world)), whileTimePasses)
  })

  it.effect("tells each change once, however late the sequencer's word on it is", () => {
    const world = new FeedWorld()
    const writer = begun()
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe(subscription)
      const live = yield* Effect.forkChild(bytes.pipe(Stream.take(3), Stream.runCollect))
      for (let n = 1; n <= 2; n++) writer.event(n)
      world.state.isLate = true
      for (const fact of writer.facts.slice(3)) world.commit(fact)
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(live.pollUnsafe() === undefined, "told before it was known whose it is")
      world.state.isLate = false
      assert.deepStrictEqual(payloadsOf(yield* Fiber.join(live)), [
        [4, { n: 1 }],
        [5, { n: 2 }]
      ])
    }).pipe(Effect.scoped, Effect.provide(layerFeeds(world)), whileTimePasses)
  })

  for (const after of [undefined, 0]) {
    const name = after === undefined ? "as it happens" : "to who resumes"
    it.effect(
      `tells in small pieces, and in order, what a fact says of many spans: ${name}`,
      () => {
        const world = new FeedWorld()
        world.fetchMax = 1_000
        const writer = begun()
        for (let n = 0; n < 2_000; n++) writer.span(`s${n}`, RUN, { text: "x".repeat(100) })
        const before = writer.facts.length
        for (let n = 0; n < 3; n++) {
          writer.end()
          writer.write({ type: "execution.resumed" })
          writer.event(n)
        }
        writer.endSpan("s1")
        const commit = (from: number, to?: number) => {
          for (const fact of writer.facts.slice(from, to)) world.commit(fact)
          world.project()
        }
        commit(0, after === undefined ? before : undefined)
        return Effect.gen(function* () {
          const feed = yield* TraceFeed
          const bytes = yield* feed.subscribe({ ...subscription, after })
          const last = writer.facts.length
          const reading = yield* Effect.forkChild(
            bytes.pipe(
              Stream.takeUntil((piece) => messagesOf(text([piece])).at(-1)?.id === last),
              Stream.runCollect
            )
          )
          yield* Effect.sleep(20)
          if (after === undefined) commit(before)
          const pieces = yield* Fiber.join(reading)
          const from = after ?? before
          const expected = writer.facts
            .slice(from)
            .flatMap((_, place) => expectedOf(writer.facts, from + place))
          assert.deepStrictEqual(messagesOf(text(pieces)), expected)
          for (const piece of pieces) assert.isBelow(piece.length, 100_000)
        }).pipe(Effect.scoped, Effect.provide(layerFeeds(world)), whileTimePasses)
      }
    )
  }

  it.effect("says nothing of the details any more once they are erased", () => {
    const world = new FeedWorld()
    const writer = new Writer()
    writer.start()
    writer.span("s")
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe(subscription)
      const live = yield* Effect.forkChild(bytes.pipe(Stream.take(5), Stream.runCollect))
      const before = writer.facts.length
      writer.event(1, { a: "secret" })
      writer.write({ type: "execution.erased", reason: "r", erased_by: "key_1" })
      writer.endSpan("s")
      writer.end()
      for (const fact of writer.facts.slice(before)) world.commit(fact)
      world.project()
      const [, event, erased, span, ended] = yield* Fiber.join(live)
      assert.include(text([event!]), "secret")
      for (const piece of [erased!, ended!]) assert.notInclude(text([piece]), "secret")
      const { erased_at: spanErasedAt, name } = messagesOf(text([span!]))[0]!.data
      assert.strictEqual(name, "")
      assert.isString(spanErasedAt)
      assert.isString(messagesOf(text([erased!]))[0]!.data.erased_at)
      const replay = yield* feed.subscribe({ ...subscription, after: 0 })
      const pieces = yield* replay.pipe(Stream.take(8), Stream.runCollect)
      assert.notInclude(text(pieces), "secret")
      assert.strictEqual(messagesOf(text(pieces)).at(-1)!.id, 7)
    }).pipe(Effect.scoped, Effect.provide(layerFeeds(world)), whileTimePasses)
  })
})

describe("the end of a stream", () => {
  it.effect("comes for a reader that is too slow, which resumes by its last id", () => {
    const world = new FeedWorld()
    world.fetchMax = 50
    const writer = new Writer()
    writer.start()
    writer.span("s")
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    // Half of what is sent: the one who reads never has so much waiting.
    const limits = { ...READER_LIMITS, bytesMax: 3 * 1_048_576 }
    const big = { text: "x".repeat(60_000) }
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const slow = yield* feed.subscribe(subscription)
      const fast = yield* feed.subscribe(subscription)
      const began = yield* Deferred.make<void>()
      // It takes the first piece and then nothing until everything has been sent.
      const reading = yield* Effect.forkChild(
        slow.pipe(
          Stream.tap((piece) =>
            text([piece]).startsWith("retry") ? Effect.void : Deferred.await(began)
          ),
          Stream.runCollect
        )
      )
      const all = yield* Effect.forkChild(fast.pipe(Stream.take(101), Stream.runCollect))
      for (let n = 1; n <= 100; n++) writer.event(n, big)
      for (const fact of writer.facts.slice(3)) world.commit(fact)
      world.project()
      assert.strictEqual(messagesOf(text(yield* Fiber.join(all))).length, 100)
      yield* Deferred.succeed(began, undefined)
      const seen = messagesOf(text(yield* Fiber.join(reading)))
      assert.isBelow(seen.length, 100)
      const after = seen.at(-1)?.id ?? 3
      assert.deepStrictEqual(
        seen.map(({ id }) => id),
        Array.from(seen, (_, n) => n + 4)
      )
      const resumed = yield* feed.subscribe({ ...subscription, after })
      const rest = yield* resumed.pipe(Stream.take(101 - seen.length), Stream.runCollect)
      assert.deepStrictEqual(
        messagesOf(text(rest)).map(({ id }) => id),
        Array.from({ length: 100 - seen.length }, (_, n) => after + 1 + n)
      )
    }).pipe(Effect.scoped, Effect.provide(layerFeeds(world, 100, limits)), whileTimePasses)
  })

  it.effect("comes with the revocation of the key", () => {
    const world = new FeedWorld()
    const writer = new Writer()
    writer.start()
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe(subscription)
      yield* Deferred.succeed(world.revoked, undefined)
      assert.strictEqual(text(yield* Stream.runCollect(bytes)), "retry: 3000\n")
    }).pipe(Effect.scoped, Effect.provide(layerFeeds(world)), whileTimePasses)
  })
})

describe("a feed that makes room for others", () => {
  it.effect("counts of what is said anew what it holds", () => {
    const world = new FeedWorld()
    const followed = new FollowedBytes(100_000)
    const writer = begun()
    const details = { metadata: { text: "x".repeat(5_000) } }
    for (let n = 0; n < 50; n++) {
      const ended_at = "2026-11-21T10:00:09.000000Z"
      writer.write({ type: "execution.ended", status: "COMPLETED", ended_at, details })
      writer.write({ type: "execution.resumed" })
      const { details_hash: _, ...again } = writer.facts[0]!
      writer.write({ ...again, details } as Bare)
    }
    writer.event(1)
    for (const fact of writer.facts.slice(0, 3)) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe(subscription)
      const read = yield* Effect.forkChild(
        bytes.pipe(
          Stream.takeUntil((piece) => messagesOf(text([piece])).at(-1)?.id === 154),
          Stream.runCollect
        )
      )
      for (const fact of writer.facts.slice(3)) world.commit(fact)
      world.project()
      const seen = messagesOf(text(yield* Fiber.join(read)))
      assert.strictEqual(seen.at(-1)?.id, 154)
      assert.isBelow(followed.of(TENANT), 10_000)
      assert.isAbove(followed.of(TENANT), 5_000)
    }).pipe(
      Effect.scoped,
      Effect.provide(layerFeeds(world, 100, READER_LIMITS, followed)),
      whileTimePasses
    )
  })

  it.effect("holds nothing, and is another one for who comes, while its readers are there", () => {
    const world = new FeedWorld()
    world.fetchMax = 100
    const followed = new FollowedBytes(100_000)
    const other = followed.begin("globex", () => {})
    const writer = begun()
    const commit = (from: number) => {
      for (const fact of writer.facts.slice(from)) world.commit(fact)
      world.project()
    }
    commit(0)
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const bytes = yield* feed.subscribe(subscription)
      const read = yield* Effect.forkChild(Stream.runCollect(bytes))
      yield* Effect.sleep(20)
      for (let n = 0; n < 40; n++) writer.span(`s${n}`, RUN, { text: "x".repeat(1_000) })
      commit(3)
      const held = Effect.sync(() => followed.of(TENANT))
      yield* eventually("its spans are held", held, (bytes) => bytes > 40_000)
      other.add(40_000)
      assert.strictEqual(followed.of(TENANT), 0)
      other.release()
      const next = yield* feed.subscribe(subscription)
      const live = yield* Effect.forkChild(next.pipe(Stream.take(2), Stream.runCollect))
      writer.event(1)
      commit(43)
      assert.deepStrictEqual(payloadsOf(yield* Fiber.join(live)), [[44, { n: 1 }]])
      // What was delivered before is read all the same.
      const seen = messagesOf(text(yield* Fiber.join(read)))
      assert.deepStrictEqual(
        seen.map(({ id }) => id),
        Array.from({ length: 40 }, (_, n) => n + 4)
      )
    }).pipe(
      Effect.scoped,
      Effect.provide(layerFeeds(world, 100, READER_LIMITS, followed)),
      whileTimePasses
    )
  })
})

describe("what is refused", () => {
  const failure = (wanted: Partial<TraceSubscription>) =>
    Effect.gen(function* () {
      const feed = yield* TraceFeed
      const { _tag } = yield* feed.subscribe({ ...subscription, ...wanted }).pipe(Effect.flip)
      return _tag
    }).pipe(Effect.scoped)
  const started = () => {
    const world = new FeedWorld()
    const writer = new Writer()
    writer.start()
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return world
  }

  it.effect(
    "is an execution that is not there, another tenant's, and a place beyond the head",
    () => {
      const world = started()
      return Effect.gen(function* () {
        assert.strictEqual(yield* failure({ executionId: "nobody" }), "ExecutionUnknown")
        assert.strictEqual(yield* failure({ tenantId: "globex" }), "ExecutionUnknown")
        assert.strictEqual(yield* failure({ after: 3 }), "ResumePointInvalid")
        assert.strictEqual(world.fetches.get(0), undefined)
      }).pipe(Effect.provide(layerFeeds(world)), whileTimePasses)
    }
  )

  for (const isEnded of [false, true]) {
    const name = isEnded
      ? "is no execution whose many large spans have ended"
      : "is an execution whose running spans say more than may be kept"
    it.effect(name, () => {
      const writer = new Writer()
      writer.start()
      const metadata = { text: "x".repeat(32_000) }
      for (let n = 0; n < 2_200; n++) {
        writer.span(`s${n}`, RUN, metadata)
        if (isEnded) writer.endSpan(`s${n}`)
      }
      const world = new FeedWorld()
      for (const fact of writer.facts) world.commit(fact)
      world.project()
      return Effect.gen(function* () {
        if (!isEnded) return assert.strictEqual(yield* failure({}), "ExecutionTooLarge")
        const feed = yield* TraceFeed
        yield* Effect.scoped(feed.subscribe(subscription))
      }).pipe(Effect.provide(layerFeeds(world)), whileTimePasses)
    })
  }

  it.effect("is an execution of many small values, which take more memory than their text", () => {
    const writer = new Writer()
    writer.start()
    const metadata = { list: Array.from({ length: 10_000 }, () => ({})) }
    for (let n = 0; n < 110; n++) writer.span(`s${n}`, RUN, metadata)
    const world = new FeedWorld()
    for (const fact of writer.facts) world.commit(fact)
    world.project()
    return Effect.gen(function* () {
      assert.strictEqual(yield* failure({}), "ExecutionTooLarge")
    }).pipe(Effect.provide(layerFeeds(world)), whileTimePasses)
  })

  it.effect(
    "is an execution of a tenant that follows as much as it may, until it follows less",
    () => {
      const world = new FeedWorld()
      const metadata = { text: "x".repeat(32_000) }
      // Three of 48 MiB: two are less than the tenant may follow, three are more.
      for (const id of ["one", "two", "three"]) {
        const writer = new Writer()
        writer.start(id)
        for (let n = 0; n < 1_500; n++) writer.span(`${id}-${n}`, id, metadata)
        for (const fact of writer.facts) world.commit(fact)
      }
      world.project()
      return Effect.gen(function* () {
        const feed = yield* TraceFeed
        const first = yield* Scope.make()
        const others = yield* Scope.make()
        yield* feed.subscribe({ ...subscription, executionId: "one" }).pipe(Scope.provide(first))
        yield* feed.subscribe({ ...subscription, executionId: "two" }).pipe(Scope.provide(others))
        assert.strictEqual(yield* failure({ executionId: "three" }), "TooMuchFollowed")
        yield* Scope.close(first, Exit.void)
        yield* feed.subscribe({ ...subscription, executionId: "three" }).pipe(Scope.provide(others))
        yield* Scope.close(others, Exit.void)
      }).pipe(Effect.provide(layerFeeds(world)), whileTimePasses)
    }
  )

  it.effect("is one stream too many, those of events counted too", () => {
    const world = started()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      const live = yield* LiveFeed
      const events = yield* Scope.make()
      const filter = { metadata: [] }
      yield* live
        .subscribe({ tenantId: TENANT, keyId: "key_1", filter, after: undefined })
        .pipe(Scope.provide(events))
      const traces = yield* Scope.make()
      yield* feed.subscribe(subscription).pipe(Scope.provide(traces))
      assert.strictEqual(yield* live.subscribers, 2)
      assert.strictEqual(yield* failure({}), "TooManyStreams")
      yield* Scope.close(events, Exit.void)
      yield* Effect.scoped(feed.subscribe(subscription))
      yield* Scope.close(traces, Exit.void)
      assert.strictEqual(yield* live.subscribers, 0)
    }).pipe(Effect.provide(layerFeeds(world, 2)), whileTimePasses)
  })

  it.effect("is a stream whose start the store does not reach in time", () => {
    const world = started()
    const writer = new Writer()
    writer.start("other")
    for (const fact of writer.facts) world.commit(fact)
    return Effect.gen(function* () {
      const refused = yield* Effect.forkChild(failure({}))
      yield* TestClock.adjust("11 seconds")
      assert.strictEqual(yield* Fiber.join(refused), "LogUnavailable")
    }).pipe(Effect.provide(layerFeeds(world)))
  })

  it.effect("leaves partitions alone that nobody follows", () => {
    const world = started()
    return Effect.gen(function* () {
      const feed = yield* TraceFeed
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(world.fetches.size, 0)
      yield* feed
        .subscribe(subscription)
        .pipe(Effect.andThen(TestClock.adjust("1 second")), Effect.scoped)
      assert.deepStrictEqual([...world.fetches.keys()], [1])
    }).pipe(Effect.provide(layerFeeds(world)))
  })
})

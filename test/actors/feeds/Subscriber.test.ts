/**
 * Readers of live streams: bursts wait for those who read, and those who don't are closed, counted
 * and logged before they cost more memory than is named. Their clock stands still until the test
 * moves it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, References, Scope, Stream } from "effect"
import { PrometheusMetrics } from "effect/observability"
import {
  type CloseReason,
  LiveBlock,
  type LiveMessage,
  MARK_EVENTS,
  openReader,
  READER_LIMITS,
  Readers,
  type Subscriber
} from "../../../src/actors/feeds/Subscriber.ts"
import { finish } from "../../../src/domain/Slices.ts"

const limits = { bytesMax: 1_000, lateBytes: 100, lateMs: 50, totalBytesMax: 1_500 }

/** A clock that moves when it is told to. */
class TestTime {
  #now = 0
  readonly now = (): number => this.#now

  pass(milliseconds: number): void {
    this.#now += milliseconds
  }
}

const details = { tenant: "acme", stream: "events" }
const message = (sequenceNumber: number, bytes = 100): LiveMessage => ({
  sequenceNumber,
  message: Buffer.alloc(bytes, String(sequenceNumber % 10))
})

const block = (sequenceNumber: number, bytes?: number) =>
  new LiveBlock([message(sequenceNumber, bytes)])

const began = (readers: Readers, wanted?: (event: LiveMessage) => boolean) =>
  Effect.map(openReader<LiveMessage>(readers, { details, wanted }), (reader) => {
    finish(reader.begin(0))
    return reader
  })

const collected = (reader: Subscriber<LiveMessage>, count = Infinity) =>
  Effect.map(Stream.runCollect(Stream.take(reader.messages(), count)), (pieces) =>
    pieces.map((piece) => Buffer.from(piece).toString())
  )

/** How often readers were closed for this, by `/metrics`. */
const closedFor = (reason: CloseReason) =>
  Effect.map(PrometheusMetrics.format(), (text) => {
    const series = new RegExp(`^alk_live_readers_closed_total\\{reason="${reason}"\\} (\\d+)`, "m")
    return Number(series.exec(text)?.[1] ?? 0)
  })

describe("a reader that reads", () => {
  it.live("gets a burst of many times what may wait for long", () =>
    Effect.gen(function* () {
      const readers = new Readers(READER_LIMITS, new TestTime().now)
      const reader = yield* began(readers)
      const reading = yield* Effect.forkChild(collected(reader, 8_000))
      // Eight batches of 1,000 large events, as fast as they can be handed on.
      for (let n = 1; n <= 8_000; n++) finish(reader.deliver(block(n, 8_192)))
      assert.isAbove(readers.bytes, 10 * READER_LIMITS.lateBytes)
      assert.strictEqual((yield* Fiber.join(reading)).length, 8_000)
      assert.isUndefined(reader.closedFor)
      assert.isBelow(readers.bytes, READER_LIMITS.lateBytes)
    }).pipe(Effect.scoped)
  )

  it.live("gets everything in order, what came before the start point was fixed too", () =>
    Effect.gen(function* () {
      const readers = new Readers(limits, new TestTime().now)
      const reader = yield* openReader<LiveMessage>(readers, { details })
      for (let n = 1; n <= 4; n++) finish(reader.deliver(block(n, 10)))
      finish(reader.begin(2))
      for (let n = 5; n <= 9; n++) finish(reader.deliver(block(n, 10)))
      const seen = yield* collected(reader, 7)
      assert.deepStrictEqual(
        seen.map(([digit]) => digit),
        ["3", "4", "5", "6", "7", "8", "9"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("is not late because it has waited for its start point", () =>
    Effect.gen(function* () {
      const time = new TestTime()
      const reader = yield* openReader<LiveMessage>(new Readers(limits, time.now), { details })
      for (let n = 1; n <= 4; n++) finish(reader.deliver(block(n)))
      time.pass(limits.lateMs * 2)
      finish(reader.deliver(block(5)))
      finish(reader.begin(0))
      finish(reader.deliver(block(6)))
      assert.isUndefined(reader.closedFor)
      assert.strictEqual((yield* collected(reader, 6)).length, 6)
    }).pipe(Effect.scoped)
  )

  it.live("has comments without an empty line, and marks where much was passed over", () =>
    Effect.gen(function* () {
      const reader = yield* began(new Readers(READER_LIMITS, new TestTime().now), () => false)
      reader.keepAlive()
      for (let n = 1; n < MARK_EVENTS; n++) finish(reader.deliver(block(n, 1)))
      reader.keepAlive()
      finish(reader.deliver(block(MARK_EVENTS, 1)))
      reader.keepAlive()
      reader.keepAlive()
      const comment = ": keep-alive\n"
      assert.deepStrictEqual(yield* collected(reader, 4), [
        comment,
        comment,
        `id: ${MARK_EVENTS}\n\n`,
        comment
      ])
    }).pipe(Effect.scoped)
  )
})

describe("a reader that filters", () => {
  const many = (first: number, count: number) => {
    const [head, ...rest] = Array.from({ length: count }, (_, n) => message(first + n, 1))
    return new LiveBlock([head!, ...rest])
  }
  const isEven = ({ sequenceNumber }: LiveMessage) => sequenceNumber % 2 === 0

  it.live("looks at one event in a step", () =>
    Effect.gen(function* () {
      let asked = 0
      const reader = yield* began(new Readers(READER_LIMITS, new TestTime().now), (event) => {
        asked += 1
        return isEven(event)
      })
      const work = reader.deliver(many(1, 9))
      for (let steps = 1; work.next().done !== true; steps++) assert.strictEqual(asked, steps)
      assert.strictEqual(asked, 9)
      assert.deepStrictEqual(yield* collected(reader, 1), ["2468"])
    }).pipe(Effect.scoped)
  )

  it.live("gets all in order, what comes between the steps of its beginning too", () =>
    Effect.gen(function* () {
      const readers = new Readers(READER_LIMITS, new TestTime().now)
      const reader = yield* openReader<LiveMessage>(readers, { details, wanted: isEven })
      finish(reader.deliver(many(1, 3)))
      const beginning = reader.begin(1)
      beginning.next()
      finish(reader.deliver(many(4, 3)))
      finish(beginning)
      finish(reader.deliver(many(7, 2)))
      assert.deepStrictEqual(yield* collected(reader, 3), ["2", "46", "8"])
    }).pipe(Effect.scoped)
  )

  it.live("resumes after nothing that has not gone out, and gets nothing once it is closed", () =>
    Effect.gen(function* () {
      const readers = new Readers(READER_LIMITS, new TestTime().now)
      const reader = yield* began(readers, ({ sequenceNumber }) => sequenceNumber === 1)
      const work = reader.deliver(many(1, MARK_EVENTS + 2))
      for (let steps = 0; steps <= MARK_EVENTS; steps++) work.next()
      reader.keepAlive()
      finish(work)
      reader.keepAlive()
      const seen = yield* collected(reader, 3)
      assert.deepStrictEqual(seen, [": keep-alive\n", "1", `id: ${MARK_EVENTS + 2}\n\n`])
      const more = reader.deliver(many(MARK_EVENTS + 3, 2))
      more.next()
      reader.close()
      finish(more)
      assert.strictEqual(readers.bytes, 0)
      assert.deepStrictEqual(yield* collected(reader), [])
    }).pipe(Effect.scoped)
  )
})

describe("a reader that does not read", () => {
  const lines: Array<Record<string, unknown>> = []
  const logger = Logger.make(({ fiber, logLevel }) => {
    lines.push({ level: logLevel, ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  /** What is left of it, in bytes, once it is closed for this. */
  const closed = (
    reason: CloseReason,
    fill: (
      readers: Readers,
      reader: Subscriber<LiveMessage>,
      time: TestTime
    ) => Effect.Effect<void, never, Scope.Scope>
  ) =>
    Effect.gen(function* () {
      const before = yield* closedFor(reason)
      lines.length = 0
      const time = new TestTime()
      const readers = new Readers(limits, time.now)
      const scope = yield* Scope.make()
      const reader = yield* Scope.provide(began(readers), scope)
      yield* Scope.provide(fill(readers, reader, time), scope)
      assert.strictEqual(reader.closedFor, reason)
      // Its memory is free before its connection has gone, and its stream has come to its end.
      assert.deepStrictEqual(yield* collected(reader), [])
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(readers.bytes, 0)
      assert.strictEqual(yield* closedFor(reason), before + 1)
      assert.deepInclude(lines, { level: "Warn", reason, ...details })
    }).pipe(Effect.provide(Logger.layer([logger])), Effect.scoped)

  it.live("is closed when it is too far behind", () =>
    closed("behind", (_, reader) =>
      Effect.sync(() => {
        for (let n = 1; n <= 11; n++) finish(reader.deliver(block(n)))
      })
    )
  )

  it.live("is closed when it is behind for too long", () =>
    closed("late", (_, reader, time) =>
      Effect.sync(() => {
        finish(reader.deliver(block(1)))
        finish(reader.deliver(block(2)))
        time.pass(limits.lateMs)
        finish(reader.deliver(block(3, 1)))
        assert.isUndefined(reader.closedFor)
        time.pass(1)
        assert.isUndefined(reader.closedFor)
        finish(reader.deliver(block(4, 1)))
      })
    )
  )

  it.live("is closed when it is the furthest behind and all of them take too much", () =>
    closed("memory", (readers, reader) =>
      Effect.gen(function* () {
        const other = yield* began(readers)
        for (let n = 1; n <= 8; n++) finish(reader.deliver(block(n)))
        for (let n = 1; n <= 7; n++) finish(other.deliver(block(n)))
        assert.isUndefined(reader.closedFor)
        finish(other.deliver(block(8, 50)))
        assert.isUndefined(other.closedFor)
        assert.strictEqual(readers.bytes, 750)
      })
    )
  )

  it.live("is closed when its connection stalls", () =>
    Effect.gen(function* () {
      let stall = (): void => {}
      const reader = yield* openReader<LiveMessage>(new Readers(limits, new TestTime().now), {
        details,
        onStalled: (stalled) => (stall = stalled)
      })
      finish(reader.begin(0))
      finish(reader.deliver(block(1)))
      stall()
      assert.strictEqual(reader.closedFor, "stalled")
      reader.close("late")
      assert.strictEqual(reader.closedFor, "stalled")
    }).pipe(Effect.scoped)
  )

  it.live("counts what waits when its stream has ended, until it has been read or is closed", () =>
    Effect.gen(function* () {
      const readers = new Readers(limits, new TestTime().now)
      const [reader, other] = [yield* began(readers), yield* began(readers)]
      for (let n = 1; n <= 8; n++) finish(reader.deliver(block(n)))
      reader.end()
      finish(reader.deliver(block(9)))
      assert.strictEqual(readers.bytes, 800)
      for (let n = 1; n <= 8; n++) finish(other.deliver(block(n, 90)))
      assert.strictEqual(reader.closedFor, "memory")
      assert.strictEqual(readers.bytes, 720)
      other.end()
      assert.strictEqual((yield* collected(other)).length, 8)
      assert.strictEqual(readers.bytes, 0)
    }).pipe(Effect.scoped)
  )

  it.live("gives nothing to the log when it just goes", () =>
    Effect.gen(function* () {
      lines.length = 0
      const readers = new Readers(limits, new TestTime().now)
      yield* Effect.scoped(Effect.map(began(readers), (reader) => finish(reader.deliver(block(1)))))
      assert.deepStrictEqual([lines.length, readers.bytes], [0, 0])
    }).pipe(Effect.provide(Logger.layer([logger])))
  )
})

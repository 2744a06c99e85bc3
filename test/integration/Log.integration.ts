/** The log adapter against a real broker: exact offsets, no aborted record, fencing, no silence. */
import { randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Clock, type Duration, Effect, Exit } from "effect"
import { EventLog, type NewRecord } from "../../src/ports/EventLog.ts"
import { eventually } from "../support/Eventually.ts"
import {
  append,
  deleteBelow,
  leaveTransaction,
  loseTopic,
  produceOnce,
  readAll,
  readNow,
  settled,
  withLog
} from "../support/Log.ts"

const event = (value: string): NewRecord => ({ topic: "events", partition: 0, key: "acme", value })
const texts = (records: ReadonlyArray<{ readonly value: Buffer | null }>) =>
  records.map(({ value }) => value?.toString())

describe("the topics", () => {
  it.live("take no records of the future where the broker compacts", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const write = (minutes: number) => {
          const timestamp = String(Date.now() + minutes * 60_000)
          return produceOnce(prefix, "state", { key: "k", value: "x", timestamp })
        }
        yield* eventually(
          "the partition has a leader",
          Effect.suspend(() => write(1)),
          (said) => said === "written"
        )
        assert.match(yield* write(11), /INVALID_TIMESTAMP|timestamp/i)
      })
    )
  )
})

describe("the reader", () => {
  it.live("reaches the end of an empty partition", () =>
    withLog(() =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* readAll("events"), [])
      })
    )
  )

  it.live("passes over aborted transactions of every shape and says where to go on", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* leaveTransaction(prefix, "events", ["head of the log, aborted"], "abort")
        const writer = yield* log.writer("w")
        yield* writer.commit([event("one"), event("two")], () => [])
        yield* leaveTransaction(prefix, "events", ["between", "between"], "abort")
        yield* writer.commit([event("three")], () => [])
        for (let n = 0; n < 5; n++) {
          yield* leaveTransaction(prefix, "events", Array(20).fill("tail"), "abort")
        }
        assert.deepStrictEqual(texts(yield* readAll("events")), ["one", "two", "three"])
      })
    )
  )

  it.live("does not read past a transaction that is still open", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        yield* writer.commit([event("one")], () => [])
        yield* leaveTransaction(prefix, "events", ["open"], "open")
        yield* append([{ ...event("behind the open one") }])
        yield* settled("w")
        assert.deepStrictEqual(texts(yield* readNow("events")), ["one"])
      })
    )
  )

  it.live("delivers what was written around an aborted transaction without one", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        yield* append([event("before")])
        yield* leaveTransaction(prefix, "events", ["aborted"], "abort")
        yield* append([event("after")])
        assert.deepStrictEqual(texts(yield* readAll("events")), ["before", "after"])
      })
    )
  )

  it.live("says so when an offset has left the log, and when it is not there yet", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* append(Array.from({ length: 10 }, (_, n) => event(`e${n}`)))
        yield* deleteBelow(prefix, "events", 5)
        const reader = yield* log.reader
        for (const offset of [2, 11]) {
          const result = yield* Effect.flip(
            reader.fetch([{ topic: "events", partition: 0, offset }], {
              waitMs: 100,
              maxBytes: 1_000_000
            })
          )
          assert.strictEqual(result._tag, "OffsetOutOfRange")
        }
        assert.deepStrictEqual(texts(yield* readAll("events")), ["e5", "e6", "e7", "e8", "e9"])
      })
    )
  )

  it.live("waits for the leader of a partition that is being made", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const reader = yield* log.reader
        const clock = yield* Clock.Clock
        // While the reader pauses after its first look, the partition is made.
        const made = Effect.andThen(
          log.addPartitions(2),
          eventually(
            "the new partition has a leader",
            Effect.exit(log.ends([{ topic: "events", partition: 1 }])),
            Exit.isSuccess
          )
        ).pipe(Effect.provideService(Clock.Clock, clock), Effect.orDie)
        let pauses = 0
        const pausing: Clock.Clock = Object.assign(Object.create(clock), {
          sleep: (duration: Duration.Duration) => {
            pauses += 1
            return pauses === 1 ? made : clock.sleep(duration)
          }
        })
        const [fetched] = yield* reader
          .fetch([{ topic: "events", partition: 1, offset: 0 }], {
            waitMs: 100,
            maxBytes: 1_000_000
          })
          .pipe(Effect.provideService(Clock.Clock, pausing))
        assert.isAtLeast(pauses, 1)
        assert.deepInclude(fetched, { partition: 1, nextOffset: 0, stableEnd: 0 })
      })
    )
  )
})

describe("a reader of several positions", () => {
  it.live(
    "comes to a batch that is larger than its limit while another one always has records",
    () =>
      withLog(() =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const large = randomBytes(2_000_000).toString("base64")
          yield* append([{ topic: "traces", partition: 0, key: "acme", value: large }])
          const reader = yield* log.reader
          const next = { events: 0, traces: 0 }
          for (let turn = 0; turn < 4 && next.traces === 0; turn++) {
            yield* append([event(`e${turn}`)])
            const fetched = yield* reader.fetch(
              [
                { topic: "events", partition: 0, offset: next.events },
                { topic: "traces", partition: 0, offset: next.traces }
              ],
              { waitMs: 100, maxBytes: 500_000 }
            )
            for (const { nextOffset, topic } of fetched) {
              if (topic === "events" || topic === "traces") next[topic] = nextOffset
            }
          }
          assert.deepStrictEqual(next.traces, 1)
        })
      )
  )
})

describe("the writers", () => {
  it.live("keep order and count over sends larger than one request", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        const values = Array.from({ length: 2_500 }, (_, n) => `v${n}`)
        let first: number | undefined
        yield* writer.commit(values.map(event), (placed) => {
          first = placed.offsets.events
          return [{ topic: "state", partition: 0, key: "k", value: "v" }]
        })
        assert.strictEqual(first, 0)
        assert.deepStrictEqual(texts(yield* readAll("events")), values)
        yield* append(values.map((value) => ({ ...event(value), topic: "commands" as const })))
        const commands = yield* readAll("commands")
        assert.deepStrictEqual(texts(commands), values)
        assert.deepStrictEqual(
          commands.map(({ offset }) => offset),
          values.map((_, n) => n)
        )
      })
    )
  )

  it.live("are read a moment after their commit, by everybody, each transaction whole", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        const [transactions, size] = [20, 50]
        const values = Array.from({ length: transactions * size }, (_, n) => `v${n}`)
        const seen: Array<number> = []
        for (let n = 0; n < transactions; n++) {
          yield* writer.commit(values.slice(n * size, (n + 1) * size).map(event), () => [
            { topic: "state", partition: 0, key: `${n}`, value: "v" }
          ])
          // Who looks at once may be too early for the newest one.
          seen.push((yield* readNow("events")).length)
        }
        assert.deepStrictEqual(texts(yield* readAll("events")), values)
        assert.strictEqual((yield* readAll("state")).length, transactions)
        assert.deepStrictEqual(
          seen.filter((length) => length % size !== 0),
          []
        )
      })
    )
  )

  it.live("fence an older writer of the same name, whose records nobody sees", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const zombie = yield* log.writer("w")
        yield* zombie.commit([event("one")], () => [])
        const successor = yield* log.writer("w")
        const refused = yield* Effect.flip(zombie.commit([event("zombie")], () => []))
        assert.strictEqual(refused._tag, "WriterFenced")
        yield* successor.commit([event("two")], () => [])
        assert.deepStrictEqual(texts(yield* readAll("events")), ["one", "two"])
      })
    )
  )

  it.live("write nothing if the second half of a transaction fails", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        const failed = yield* Effect.flip(
          writer.commit([event("lost")], () => {
            throw new Error("the step behind it fails")
          })
        )
        assert.strictEqual(failed._tag, "LogUnavailable")
        const next = yield* log.writer("w")
        yield* next.commit([event("kept")], () => [])
        assert.deepStrictEqual(texts(yield* readAll("events")), ["kept"])
      })
    )
  )

  it.live("go on after a topic was lost and made anew", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        yield* writer.commit([], () => [{ topic: "state", partition: 0, key: "k", value: "v" }])
        yield* loseTopic(prefix, "state")
        const next = yield* log.writer("w")
        yield* next.commit([], () => [{ topic: "state", partition: 0, key: "k", value: "w" }])
        assert.deepStrictEqual(texts(yield* readAll("state")), ["w"])
      })
    )
  )
})

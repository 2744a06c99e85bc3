/** The writers on a network that loses requests and answers: once, in order, or not at all. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { BatchSender } from "../../src/adapters/kafka/protocol/BatchSender.ts"
import { NO_TIME } from "../../src/adapters/kafka/protocol/ProduceRequest.ts"
import { initProducerId } from "../../src/adapters/kafka/protocol/ProducerRequests.ts"
import { makeAppender, makeTransactionalWriter } from "../../src/adapters/kafka/Writers.ts"
import { MESSAGE_BYTES_MAX, type TopicKind, topicName } from "../../src/domain/records/Topics.ts"
import { EventLog, type NewRecord } from "../../src/ports/EventLog.ts"
import {
  ADD_PARTITIONS_TO_TXN,
  END_TXN,
  type Fate,
  FETCH,
  type FlakyProxy,
  PRODUCE
} from "../support/FlakyProxy.ts"
import { append, produceRaw, readAll, setTopic, settled, withLog } from "../support/Log.ts"
import {
  acquireCluster,
  assertTexts,
  beforeOnce,
  event,
  flakyProxy,
  type Intrusion,
  intrude,
  record,
  signingOf,
  soonStuck,
  state,
  through,
  writerAt
} from "./support/Writers.ts"

/** Numbers between 0 and 1 that look like chance and are the same in every run. */
const chance = (seed: number) => (): number => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 0x1_0000_0000
}

const misfortunes: ReadonlyArray<Fate> = ["lose request", "lose answer", "halve answer"]

/** Two of five requests that produce go wrong, and one of twenty others. */
const misfortune = (seed: number): FlakyProxy["decide"] => {
  const random = chance(seed)
  return (apiKey) =>
    random() < (apiKey === PRODUCE ? 0.4 : 0.05)
      ? misfortunes[Math.floor(random() * misfortunes.length)]!
      : "forward"
}

/** The fate of the first request of a kind; the others are forwarded. */
const once = (wanted: number, fate: Fate): FlakyProxy["decide"] => {
  let left = 1
  return (apiKey) => (apiKey === wanted && left-- > 0 ? fate : "forward")
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `v${n}`)

describe("the appender", () => {
  it.live("writes every record once and in order, whatever the network loses", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const appender = yield* makeAppender(through(proxy), prefix)
        proxy.decide = misfortune(1)
        for (const value of numbered(200)) yield* appender.append([record(value)])
        yield* assertTexts("commands", numbered(200))
      })
    )
  )

  it.live("does so for several topics and partitions in one call", () =>
    withLog(
      (prefix) =>
        Effect.gen(function* () {
          const proxy = yield* flakyProxy
          const appender = yield* makeAppender(through(proxy), prefix)
          proxy.decide = misfortune(2)
          const places = [
            ["commands", 0],
            ["commands", 1],
            ["commands", 2],
            ["progress", 1]
          ] as const
          for (let n = 0; n < 40; n++) {
            yield* appender.append(
              places.flatMap(([topic, partition]) => [
                record(`${n}a`, topic, partition),
                record(`${n}b`, topic, partition)
              ])
            )
          }
          const wanted = Array.from({ length: 40 }, (_, n) => [`${n}a`, `${n}b`]).flat()
          for (const [topic, partition] of places) {
            yield* assertTexts(topic, wanted, partition)
          }
        }),
      3
    )
  )

  it.live("fails the call that the broker refuses, and goes on with the next", () =>
    withLog(() =>
      Effect.gen(function* () {
        const appender = yield* (yield* EventLog).appender
        yield* appender.append([record("before")])
        const large = Buffer.alloc(MESSAGE_BYTES_MAX + 1_000_000)
        // What does not compress: a different number in every four bytes.
        const random = chance(3)
        for (let at = 0; at + 4 <= large.length; at += 4) {
          large.writeUInt32BE(random() * 2 ** 32, at)
        }
        const tooLarge: NewRecord = { ...record(""), value: large }
        const [refused] = yield* Effect.all(
          [
            Effect.flip(appender.append([tooLarge])),
            appender.append([record("behind it")]),
            appender.append([record("after")])
          ],
          { concurrency: "unbounded" }
        )
        assert.strictEqual(refused._tag, "LogUnavailable")
        yield* assertTexts("commands", ["before", "behind it", "after"])
      })
    )
  )

  it.live("drops a call whose caller is gone before its turn, and no other", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const appender = yield* makeAppender(through(proxy), prefix)
        const stuck = yield* Deferred.make<void>()
        proxy.decide = (apiKey) => {
          if (apiKey === PRODUCE) Deferred.doneUnsafe(stuck, Effect.void)
          return "lose answer"
        }
        const first = yield* Effect.forkChild(appender.append([record("first")]))
        yield* Deferred.await(stuck)
        const second = yield* Effect.forkChild(appender.append([record("second")]), {
          startImmediately: true
        })
        const third = yield* Effect.forkChild(appender.append([record("third")]), {
          startImmediately: true
        })
        yield* Fiber.interrupt(second)
        proxy.decide = () => "forward"
        yield* Fiber.join(first)
        yield* Fiber.join(third)
        yield* assertTexts("commands", ["first", "third"])
      })
    )
  )

  it.live("stops trying when its scope closes", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const scope = yield* Scope.make()
        const appender = yield* makeAppender(through(proxy), prefix).pipe(Scope.provide(scope))
        const stuck = yield* Deferred.make<void>()
        proxy.decide = (apiKey) => {
          if (apiKey === PRODUCE) Deferred.doneUnsafe(stuck, Effect.void)
          return "lose request"
        }
        const lost = yield* Effect.forkChild(Effect.flip(appender.append([record("lost")])))
        yield* Deferred.await(stuck)
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Fiber.join(lost))._tag, "LogUnavailable")
        proxy.decide = () => "forward"
        const later = yield* Effect.flip(appender.append([record("too late")]))
        assert.strictEqual(later._tag, "LogUnavailable")
        yield* append([record("of another")])
        yield* assertTexts("commands", ["of another"])
      })
    )
  )
})

describe("the transactional writer", () => {
  it.live("commits every transaction once, whatever is lost before its end", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const writer = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
        const misfortunate = misfortune(4)
        proxy.decide = (apiKey) =>
          apiKey === PRODUCE || apiKey === ADD_PARTITIONS_TO_TXN ? misfortunate(PRODUCE) : "forward"
        const offsets: Array<number> = []
        for (let n = 0; n < 30; n++) {
          yield* writer.commit([event(`${n}a`), event(`${n}b`)], (placed) => {
            offsets[n] = placed.offsets.events!
            return [state(`${n}`)]
          })
        }
        const events = yield* readAll("events")
        assert.deepStrictEqual(
          events.map(({ value }) => value?.toString()),
          Array.from({ length: 30 }, (_, n) => [`${n}a`, `${n}b`]).flat()
        )
        assert.deepStrictEqual(
          offsets,
          events.filter((_, index) => index % 2 === 0).map(({ offset }) => offset)
        )
        yield* assertTexts(
          "state",
          Array.from({ length: 30 }, (_, n) => `${n}`)
        )
      })
    )
  )

  const ends: ReadonlyArray<{ readonly fate: Fate; readonly kept: Array<string> }> = [
    { fate: "lose answer", kept: ["one", "two", "three"] },
    { fate: "halve answer", kept: ["one", "two", "three"] },
    { fate: "lose request", kept: ["one", "three"] }
  ]
  it.live.each(ends)("is over when the end is uncertain: $fate", ({ fate, kept }) =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const writer = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
        yield* writer.commit([event("one")], () => [state("one")])
        proxy.decide = once(END_TXN, fate)
        const uncertain = yield* Effect.flip(writer.commit([event("two")], () => [state("two")]))
        assert.strictEqual(uncertain._tag, "LogUnavailable")
        const over = yield* Effect.flip(writer.commit([event("never")], () => [state("never")]))
        assert.strictEqual(over._tag, "LogUnavailable")
        const next = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
        yield* next.commit([event("three")], () => [state("three")])
        yield* assertTexts("events", kept)
        yield* assertTexts("state", kept)
      })
    )
  )

  it.live("starts although the first answers are lost", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        proxy.decide = misfortune(5)
        const writer = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
        proxy.decide = () => "forward"
        yield* writer.commit([event("one")], () => [state("one")])
        yield* assertTexts("events", ["one"])
      })
    )
  )

  it.live("writes all in one request where it knows what offsets the first records will have", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const writer = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
        const produced = (): number => proxy.seen.filter((apiKey) => apiKey === PRODUCE).length
        const offsets: Array<number> = []
        const commit = (values: ReadonlyArray<string>) => {
          const { length } = offsets
          return writer.commit(values.map(event), (placed) => {
            offsets[length] = placed.offsets.events!
            return [state(values.join())]
          })
        }
        yield* commit(["one"])
        // The leaders of the new topics are known from here on.
        const before = produced()
        yield* commit(["two", "three"])
        yield* writer.commit([], () => [state("without events")])
        yield* commit(["four"])
        assert.strictEqual(produced() - before, 3)
        const events = yield* readAll("events")
        assert.deepStrictEqual(offsets, [events[0]!.offset, events[1]!.offset, events[3]!.offset])
        yield* assertTexts("state", ["one", "two,three", "without events", "four"])
      })
    )
  )

  it.live("writes once, elsewhere, when another writer has taken the offset that it expects", () =>
    withLog((_prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        yield* writer.commit([event("one")], () => [state("one")])
        yield* append([event("of another")])
        for (const value of ["two", "three"]) {
          yield* writer.commit([event(value)], ({ offsets }) => [state(`${offsets.events}`)])
        }
        const events = yield* readAll("events")
        assert.deepStrictEqual(
          events.map(({ value }) => value?.toString()),
          ["one", "of another", "two", "three"]
        )
        const [, , two, three] = events.map(({ offset }) => `${offset}`)
        yield* assertTexts("state", ["one", two, three])
      })
    )
  )

  it.live("ends a transaction in the partitions to which it has written, and in no other", () =>
    withLog((_prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        yield* writer.commit([event("one")], () => [state("one"), record("bad", "quarantine")])
        // The place of the first fact is not known.
        yield* writer.commit([record("fact", "traces")], () => [state("two")])
        yield* writer.commit([event("three")], () => [state("three")])
        yield* writer.commit([], () => [state("four")])
        yield* writer.commit([], () => [])
        yield* settled("w")
        const ends = yield* log.ends(
          (["events", "traces", "state", "quarantine"] as const).map((topic) => ({
            topic,
            partition: 0
          }))
        )
        // Each record and a marker after it.
        assert.deepStrictEqual(ends, [4, 2, 8, 2])
        yield* assertTexts("quarantine", ["bad"])
        yield* assertTexts("events", ["one", "three"])
      })
    )
  )

  it.live("refuses a first part of more than one partition", () =>
    withLog(
      (prefix) =>
        Effect.gen(function* () {
          const proxy = yield* flakyProxy
          const writer = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
          const records = [record("zero", "events", 0), record("one", "events", 1)]
          const refused = yield* Effect.flip(writer.commit(records, () => []))
          assert.strictEqual(refused._tag, "LogUnavailable")
        }),
      2
    )
  )
})

describe("a writer that nobody disturbs", () => {
  it.live("reads nothing back", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const proxy = yield* flakyProxy
        const appender = yield* makeAppender(through(proxy), prefix)
        const writer = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`)
        for (const value of numbered(20)) {
          yield* appender.append([record(value)])
          yield* writer.commit([event(value)], () => [state(value)])
        }
        assert.notInclude(proxy.seen, FETCH)
      })
    )
  )
})

describe("a batch of another program in the place of alk's own", () => {
  const times = [
    { what: "with a time", time: undefined },
    { what: "without a time, as whose repetition it can't be told", time: NO_TIME }
  ]
  const intrusion = (time: number | undefined): Intrusion => ({
    firstSequence: 1,
    ...(time === undefined ? {} : { time })
  })

  for (const topic of ["events", "state"] as const) {
    it.live.each(times)(
      `on alk.${topic}, $what, ends the transaction: nothing of it counts`,
      ({ time }) =>
        withLog((prefix) =>
          Effect.gen(function* () {
            const log = yield* EventLog
            const writer = yield* log.writer("w")
            yield* writer.commit([event("one")], () => [state("one")])
            yield* intrude(prefix, topic, intrusion(time))
            const refused = yield* Effect.flip(writer.commit([event("two")], () => [state("two")]))
            assert.strictEqual(refused._tag, "LogUnavailable")
            assert.include(String(refused.cause), `in the place of records of ${prefix}.${topic}/0`)
            const next = yield* log.writer("w")
            yield* next.commit([event("three")], () => [state("three")])
            const kept = (kind: TopicKind) =>
              kind === topic ? ["one", "of an intruder", "three"] : ["one", "three"]
            yield* assertTexts("events", kept("events"))
            yield* assertTexts("state", kept("state"))
          })
        )
    )
  }

  it.live.each(times)("on alk.commands, $what, stands beside what is acknowledged", ({ time }) =>
    withLog(
      (prefix) =>
        Effect.gen(function* () {
          const appender = yield* (yield* EventLog).appender
          yield* appender.append([record("one")])
          yield* intrude(prefix, "commands", intrusion(time))
          yield* appender.append([record("two"), record("two", "commands", 1)])
          yield* appender.append([record("three")])
          yield* assertTexts("commands", ["one", "of an intruder", "two", "three"])
          yield* assertTexts("commands", ["two"], 1)
        }),
      2
    )
  )

  it.live.each([
    { what: "sequence numbers", sent: { firstSequence: 1 }, records: 2 },
    { what: "a higher epoch", sent: { firstSequence: 0, producerEpoch: 32_767 }, records: 1 }
  ])("takes $what, and the appender goes on with another producer id", ({ records, sent }) =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const appender = yield* (yield* EventLog).appender
        yield* appender.append([record("one")])
        yield* intrude(prefix, "commands", sent)
        yield* appender.append(Array.from({ length: records }, () => record("two")))
        const two = Array.from({ length: records }, () => "two")
        yield* assertTexts("commands", ["one", "of an intruder", ...two])
      })
    )
  )

  for (const topic of ["events", "state"] as const) {
    it.live(
      `on alk.${topic} with a higher epoch stops no writer, and saves none that is fenced`,
      () =>
        withLog((prefix) =>
          Effect.gen(function* () {
            const log = yield* EventLog
            const writer = yield* log.writer("w")
            yield* writer.commit([event("one")], () => [state("one")])
            const higher = { firstSequence: 0, producerEpoch: 32_767 }
            const { producerId } = yield* intrude(prefix, topic, higher)
            yield* writer.commit([event("two")], () => [state("two")])
            yield* writer.commit([event("three")], () => [state("three")])
            const next = yield* log.writer("w")
            const fenced = yield* Effect.flip(writer.commit([event("late")], () => [state("late")]))
            assert.strictEqual(fenced._tag, "WriterFenced")
            yield* next.commit([event("four")], () => [state("four")])
            const kept = (kind: TopicKind) => [
              "one",
              ...(kind === topic ? ["of an intruder"] : []),
              "two",
              "three",
              "four"
            ]
            yield* assertTexts("events", kept("events"))
            yield* assertTexts("state", kept("state"))
            const last = (yield* readAll(topic)).at(-1)!.offset
            const cluster = yield* acquireCluster
            const owner = yield* Effect.promise(() =>
              writerAt(cluster, topicName(prefix, topic), last)
            )
            assert.notStrictEqual(owner.producerId, producerId)
          })
        )
    )
  }

  it.live("with a higher epoch does not keep a writer from being fenced", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const writer = yield* log.writer("w")
        yield* writer.commit([event("one")], () => [state("one")])
        const next = yield* log.writer("w")
        yield* intrude(prefix, "events", { firstSequence: 0, producerEpoch: 32_767 })
        const fenced = yield* Effect.flip(writer.commit([event("late")], () => [state("late")]))
        assert.strictEqual(fenced._tag, "WriterFenced")
        yield* next.commit([event("two")], () => [state("two")])
        yield* assertTexts("state", ["one", "two"])
      })
    )
  )

  it.live.each([
    { settings: {} },
    { settings: { "message.timestamp.type": "LogAppendTime" } },
    { settings: { "compression.type": "gzip" } },
    { settings: { "compression.type": "gzip", "message.timestamp.type": "LogAppendTime" } }
  ])("is no repetition of our own, on a topic with $settings", ({ settings }) =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const cluster = yield* acquireCluster
        const topic = topicName(prefix, "commands")
        yield* setTopic(prefix, "commands", settings)
        const [first, second, third] = yield* Effect.promise(async () => {
          await cluster.addMultipleTargetTopics([topic])
          const broker = await cluster.findControllerBroker()
          const { identity } = await initProducerId(broker, null, 1_000)
          const sender = new BatchSender(cluster, null, identity)
          const part = (value: string) => ({ topic, partition: 0, records: [record(value)] })
          const one = await sender.sequence([part("one")])
          const large = await sender.sequence([part("large".repeat(1_000))])
          const send = async () => [
            await sender.send(one, () => true),
            await sender.send(large, () => true)
          ]
          return [await send(), await send(), await send()]
        })
        assert.deepStrictEqual(first, [[0], [1]])
        assert.deepStrictEqual([second, third], [first, first])
        yield* assertTexts("commands", ["one", "large".repeat(1_000)])
      })
    )
  )
})

describe("a writer with another transactional id on the same partition", () => {
  const both = Effect.fnUntraced(function* (prefix: string) {
    const proxy = yield* flakyProxy
    const placed = signingOf(prefix)
    const older = yield* makeTransactionalWriter(through(proxy), prefix, `${prefix}-w`, { placed })
    const direct = { ...through(proxy), route: (broker: { host: string; port: number }) => broker }
    const newer = yield* makeTransactionalWriter(direct, prefix, `${prefix}-w-2`, { placed })
    const commit = (value: string) => older.commit([event(value)], () => [state(value)])
    const junk = produceRaw(prefix, "state", [{ key: "owner", value: "junk" }])
    return {
      proxy,
      older,
      commit,
      newer,
      junk,
      takeOver: Effect.orDie(newer.commit([], () => [state("owner")]))
    }
  })

  const assertFencedBy = Effect.fnUntraced(function* (
    { commit, newer }: Pick<Effect.Success<ReturnType<typeof both>>, "commit" | "newer">,
    events: ReadonlyArray<string>,
    states: ReadonlyArray<string>
  ) {
    const fenced = yield* Effect.flip(commit("late"))
    assert.strictEqual(fenced._tag, "WriterFenced")
    assert.include(String(fenced.cause), "another owner of the partition has written at offset")
    yield* newer.commit([event("of the newer")], () => [state("of the newer")])
    yield* assertTexts("events", [...events, "of the newer"])
    yield* assertTexts("state", [...states, "of the newer"])
  })

  it.live("fences the older one between two of its transactions", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const writers = yield* both(prefix)
        yield* writers.commit("one")
        yield* writers.takeOver
        yield* assertFencedBy(writers, ["one"], ["one", "owner"])
      })
    )
  )

  it.live("does so before the mark at the end of a transaction, which counts", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const writers = yield* both(prefix)
        writers.proxy.decide = beforeOnce(END_TXN, writers.takeOver)
        yield* writers.commit("one")
        yield* assertFencedBy(writers, ["one"], ["one", "owner"])
      })
    )
  )

  it.live("does so once the older one has asked for the place of its first record", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const writers = yield* both(prefix)
        writers.proxy.decide = beforeOnce(PRODUCE, writers.takeOver)
        const commit = (value: string) => writers.older.commit([], () => [state(value)])
        yield* assertFencedBy({ ...writers, commit }, [], ["owner"])
      })
    )
  )

  it.live("does so while the older one ends what junk has displaced", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const writers = yield* both(prefix)
        yield* writers.commit("one")
        yield* writers.junk
        writers.proxy.decide = beforeOnce(END_TXN, writers.takeOver)
        yield* assertFencedBy(writers, ["one"], ["one", "junk", "owner"])
      })
    )
  )

  it.live("is none where another program writes, copies of genuine records too", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const { commit, junk } = yield* both(prefix)
        yield* commit("one")
        yield* junk
        yield* commit("two")
        const [{ headers, key, value } = assert.fail("no record")] = yield* readAll("state")
        const texts = Object.entries(headers).map(([name, text]) => [name, text.toString()])
        yield* produceRaw(prefix, "state", [{ key, value, headers: Object.fromEntries(texts) }])
        yield* commit("three")
        yield* commit("four")
        yield* assertTexts("events", ["one", "two", "three", "four"])
        yield* assertTexts("state", ["one", "junk", "two", "one", "three", "four"])
      })
    )
  )
})

describe("a transactional id that is stuck", () => {
  it.live("is left for the next one, and the writer that has it commits nothing more", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const { context, proxy, start } = yield* soonStuck(prefix)
        const writer = yield* start
        yield* writer.commit([event("one")], () => [state("one")])
        // The partitions are part of the transaction by then.
        const higher = intrude(prefix, "events", { firstSequence: 0, producerEpoch: 32_767 })
        proxy.decide = beforeOnce(PRODUCE, Effect.provide(higher, context))
        const failed = yield* Effect.flip(writer.commit([event("two")], () => [state("two")]))
        assert.include(String(failed.cause), "refuses the epoch that the coordinator takes")
        const next = yield* start
        yield* next.commit([event("three")], () => [state("three")])
        const late = yield* Effect.flip(writer.commit([event("late")], () => [state("late")]))
        assert.strictEqual(late._tag, "LogUnavailable")
        // The owner after that meets this one, at the same id.
        const last = yield* start
        const fenced = yield* Effect.flip(next.commit([event("late")], () => [state("late")]))
        assert.strictEqual(
          fenced._tag === "WriterFenced" && fenced.transactionalId,
          `${prefix}-w-2`
        )
        yield* last.commit([event("four")], () => [state("four")])
        yield* assertTexts("events", ["one", "of an intruder", "three", "four"])
        yield* assertTexts("state", ["one", "three", "four"])
      })
    )
  )
})

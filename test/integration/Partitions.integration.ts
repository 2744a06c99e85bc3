/**
 * Topics that get more partitions, on a real broker: what a process that was there before does with
 * them, and what it refuses.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Kafka, logLevel } from "kafkajs"
import { inject } from "vitest"
import { readPlacement } from "../../src/actors/log/PlacementOfLog.ts"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import { partitionedTopics, topicName } from "../../src/domain/records/Topics.ts"
import { partitionAmong } from "../../src/domain/registry/Placement.ts"
import {
  type Partitions,
  type RegistryEntry,
  registryRecord
} from "../../src/domain/registry/RegistryEntry.ts"
import { EventLog, type NewRecord, type TopicsInvalid } from "../../src/ports/EventLog.ts"
import { checkPartitions } from "../../src/services/administration/PartitionCounts.ts"
import { commandRecord, ingestCommand } from "../support/Events.ts"
import { eventually } from "../support/Eventually.ts"
import { append, freshPrefix, logLayer, readAll, readAtLeast, withLog } from "../support/Log.ts"
import { checkpointSigner } from "../support/Signer.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const settings = { ...checkpointSigner, windows: { dedup: 100, idempotency: 100 } }

const partitions = (counts: ReadonlyArray<number>, topics: number, growing_to?: number) => ({
  kind: "partitions" as const,
  partitions: {
    id: "topics",
    counts,
    topics,
    ...(growing_to === undefined ? {} : { growing_to }),
    changed_at: NOW
  } satisfies Partitions
})

const written = (entry: RegistryEntry): NewRecord => ({
  topic: "registry",
  partition: 0,
  ...registryRecord(entry)
})

/** Somebody gives one topic so many partitions, with Kafka's tools. */
const growByHand = (prefix: string, topic: "events" | "state", count: number) =>
  Effect.promise(async () => {
    const kafka = new Kafka({ brokers: [inject("bootstrap")], logLevel: logLevel.NOTHING })
    const admin = kafka.admin()
    await admin.connect()
    await admin.createPartitions({ topicPartitions: [{ topic: topicName(prefix, topic), count }] })
    await admin.disconnect()
  })

/** A tenant that is in this partition of so many, and in another one of `before`. */
const tenantIn = (partition: number, among: number, before: number): string => {
  for (let number = 0; ; number++) {
    const id = `tenant-${number}`
    const isThere = partitionAmong(id, among) === partition
    if (isThere && partitionAmong(id, before) !== partition) return id
  }
}

describe("topics that get more partitions", () => {
  it.live("have as many each after a growth that was interrupted and is repeated", () =>
    withLog(
      (prefix) =>
        Effect.gen(function* () {
          const log = yield* EventLog
          yield* growByHand(prefix, "state", 5)
          yield* log.addPartitions(5)
          yield* log.addPartitions(5)
          const counts = yield* log.counts
          for (const topic of partitionedTopics) assert.strictEqual(counts.get(topic), 5)
          assert.strictEqual(counts.get("registry"), 1)
        }),
      2
    )
  )

  it.live("are written and read at once by who has opened them before", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const reader = yield* log.reader
        const appender = yield* log.appender
        const limits = { waitMs: 100, maxBytes: 1_000_000 }
        const record = (partition: number): NewRecord => ({
          topic: "receipts",
          partition,
          key: "acme",
          value: `in ${partition}`
        })
        yield* appender.append([record(0)])
        yield* reader.fetch([{ topic: "receipts", partition: 0, offset: 0 }], limits)
        yield* log.addPartitions(3)
        yield* log.ends([{ topic: "receipts", partition: 2 }])
        yield* appender.append([record(2)])
        const [fetched] = yield* reader.fetch(
          [{ topic: "receipts", partition: 2, offset: 0 }],
          limits
        )
        assert.strictEqual(fetched?.records[0]?.value?.toString(), "in 2")
      })
    )
  )

  it.live("are shared out anew among the members of a group that is there", () =>
    withLog(
      () =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const assigned: Array<ReadonlyArray<number>> = []
          yield* log.membership("sequencer").pipe(
            Stream.runForEach((one) => Effect.sync(() => assigned.push(one.partitions))),
            Effect.forkScoped
          )
          // A member has none for a moment while the group is balanced.
          const shared = (count: number) =>
            eventually(
              `${count} partitions are assigned`,
              Effect.sync(() => assigned.at(-1) ?? []),
              ({ length }) => length === count
            )
          assert.deepStrictEqual(yield* shared(2), [0, 1])
          yield* log.addPartitions(4)
          assert.deepStrictEqual(yield* shared(4), [0, 1, 2, 3])
        }),
      2
    )
  )
})

describe("a start", () => {
  const check = (prefix: string, configured: number) =>
    Effect.gen(function* () {
      yield* checkPartitions(yield* EventLog, { partitions: configured, prefix })
      return (yield* EventLog).partitions
    }).pipe(Effect.provide(logLayer(prefix, configured)))
  const refusal = (prefix: string, configured: number) =>
    Effect.map(Effect.flip(check(prefix, configured)), (error) => (error as TopicsInvalid).message)

  it.live("goes by the configuration until the topics have grown, then by the registry", () => {
    const prefix = freshPrefix()
    const growing = Effect.gen(function* () {
      assert.strictEqual(yield* check(prefix, 2), 2)
      assert.include(yield* refusal(prefix, 3), "differs from ALK_PARTITIONS")
      yield* append([written(partitions([2], 2, 4))])
      // Some topics have grown, some have not.
      yield* growByHand(prefix, "state", 4)
      assert.strictEqual(yield* check(prefix, 3), 2)
      yield* (yield* EventLog).addPartitions(4)
      yield* append([written(partitions([2], 4)), written(partitions([2, 4], 4))])
      for (const configured of [1, 2, 4]) assert.strictEqual(yield* check(prefix, configured), 4)
      yield* growByHand(prefix, "events", 5)
      const message = yield* refusal(prefix, 4)
      assert.include(message, `${prefix}.events has 5, not 4`)
    })
    return growing.pipe(Effect.provide(logLayer(prefix, 2)), Effect.scoped)
  })
})

describe("a sequencer that was there before", () => {
  const late = tenantIn(1, 2, 1)

  /** A growth from one partition to two, and a tenant in the second one. */
  const grown = Effect.gen(function* () {
    yield* (yield* EventLog).addPartitions(2)
    yield* append([
      written(partitions([1], 2)),
      written(partitions([1, 2], 2)),
      written({ kind: "tenant", tenant: { id: late, created_at: NOW, partitions: 2 } })
    ])
  })

  it.live("sequences a new partition as soon as it is given it", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* grown
        // Nobody has told this process: it follows no registry.
        assert.strictEqual(log.partitions, 1)
        yield* Effect.forkScoped(runSequencer(1, settings, () => Effect.void))
        yield* append([commandRecord(ingestCommand(late, 3), 1)])
        yield* readAtLeast("receipts", 1, 1)
        assert.strictEqual((yield* readAll("events", 1)).length, 3)
        assert.deepStrictEqual([log.partitions, log.partitionOf(late)], [2, 1])
      })
    )
  )

  it.live("puts into quarantine what a process without the news has sent to the wrong place", () =>
    withLog(() =>
      Effect.gen(function* () {
        yield* Effect.forkScoped(runSequencer(0, settings, () => Effect.void))
        yield* append([commandRecord(ingestCommand("acme", 1))])
        yield* readAtLeast("receipts", 1)
        yield* grown
        const misplaced = ingestCommand(late, 3)
        yield* append([
          commandRecord(ingestCommand("acme", 1)),
          commandRecord(misplaced),
          commandRecord(ingestCommand("acme", 1))
        ])
        const receipts = yield* readAtLeast("receipts", 4)
        const statuses = receipts.map(({ value }) => JSON.parse(value!.toString()).status)
        assert.deepStrictEqual(statuses, ["committed", "committed", "failed", "committed"])
        const [aside] = yield* readAtLeast("quarantine", 1)
        assert.include(aside!.headers["alk-reason"]!.toString(), "are in partition 1, not 0")
        const events = yield* readAll("events", 0)
        assert.deepStrictEqual(
          events.map(({ key }) => key!.toString()),
          ["acme", "acme", "acme"]
        )
      })
    )
  )
})

describe("a sequencer whose changelog is lost", () => {
  it.live.each([
    ["checkpoints", ["checkpoints"]],
    ["events and checkpoints", ["events", "checkpoints"]]
  ] as const)("takes no %s that others have copied from another partition", ([, topics]) =>
    withLog(
      () =>
        Effect.gen(function* () {
          const [own, other] = [tenantIn(1, 2, 1), tenantIn(0, 2, 3)]
          const wantCheckpoint = { ...ingestCommand(other, 0), kind: "checkpoint" as const }
          yield* Effect.forkScoped(runSequencer(0, settings, () => Effect.void))
          yield* append([ingestCommand(other, 3), wantCheckpoint].map((one) => commandRecord(one)))
          yield* readAtLeast("checkpoints", 1)
          for (const topic of topics) {
            const copies = (yield* readAll(topic)).map(
              ({ headers, key, value }): NewRecord => ({
                ...{ topic, partition: 1, key: key!.toString(), value, headers }
              })
            )
            yield* append(copies)
          }
          const running = yield* Effect.forkScoped(runSequencer(1, settings, () => Effect.void))
          yield* append([commandRecord(ingestCommand(own, 2), 1)])
          const [receipt] = yield* Effect.raceFirst(
            readAtLeast("receipts", 1, 1),
            Effect.flatMap(Fiber.join(running), () => Effect.never)
          )
          assert.strictEqual(JSON.parse(receipt!.value!.toString()).status, "committed")
          const keys = (yield* readAll("state", 1)).map(({ key }) => String(key))
          assert.include(keys, `head/${own}`)
          assert.deepStrictEqual(
            keys.filter((key) => key.includes(other)),
            []
          )
        }),
      2
    )
  )
})

describe("a process that has read the registry", () => {
  it.live("knows where tenants are", () =>
    withLog(() =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const id = tenantIn(3, 4, 1)
        yield* append([
          written({ kind: "tenant", tenant: { id, created_at: NOW, partitions: 4 } }),
          written(partitions([1, 4], 4))
        ])
        assert.strictEqual(log.partitionOf(id), 0)
        yield* readPlacement(log)
        assert.deepStrictEqual([log.partitionOf(id), log.partitionOf("nobody")], [3, 0])
      })
    )
  )
})

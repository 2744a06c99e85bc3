/**
 * The log of the test machine under topics of the test's own, and the few moves that tests make on
 * it by hand: write, read everything, leave a transaction open or aborted behind.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { ConfigResourceTypes, Kafka, logLevel } from "kafkajs"
import { inject } from "vitest"
import { layerKafka, offsetsReader } from "../../src/adapters/kafka/KafkaEventLog.ts"
import { makeCluster, READ_UNCOMMITTED } from "../../src/adapters/kafka/protocol/KafkaClient.ts"
import { type TopicKind, topicName } from "../../src/domain/records/Topics.ts"
import {
  EventLog,
  type LogRecord,
  type LogUnavailable,
  type NewRecord,
  type Position
} from "../../src/ports/EventLog.ts"
import { eventually, eventuallyAsync } from "./Eventually.ts"

let count = 0
/** A topic prefix that no other test uses. */
export const freshPrefix = (): string => `t${process.pid}x${Date.now().toString(36)}x${count++}`

type Place = Pick<Position, "partition" | "topic">

/** Where partitions end with what is not decided yet; nothing is known of it by default. */
const WrittenEnds = Context.Reference<(place: Place) => Effect.Effect<number, LogUnavailable>>(
  "test/WrittenEnds",
  { defaultValue: () => () => Effect.succeed(0) }
)

const kafka = () => ({
  brokers: [inject("bootstrap")],
  clientId: "test",
  log: () => undefined
})

const layerWrittenEnds = (prefix: string) =>
  Layer.effect(
    WrittenEnds,
    Effect.gen(function* () {
      const cluster = yield* Effect.acquireRelease(
        Effect.sync(() => makeCluster(kafka(), { isolationLevel: READ_UNCOMMITTED })),
        (acquired) => Effect.promise(() => acquired.disconnect().catch(() => undefined))
      )
      const offsets = offsetsReader(cluster, prefix)
      return (place: Place) => Effect.map(offsets([place], false), ([end = 0]) => end)
    })
  )

export const logLayer = (prefix: string, partitions = 1) =>
  Layer.merge(
    layerKafka(kafka(), {
      prefix,
      partitions,
      replication: 1,
      minInSyncReplicas: 1,
      eventsRetentionMs: "forever"
    }),
    layerWrittenEnds(prefix)
  )

/** Run a test on topics of its own. */
export const withLog = <A, E>(
  test: (prefix: string) => Effect.Effect<A, E, EventLog | Scope.Scope>,
  partitions = 1
) => {
  const prefix = freshPrefix()
  return test(prefix).pipe(Effect.scoped, Effect.provide(logLayer(prefix, partitions)))
}

export const append = Effect.fnUntraced(function* (records: ReadonlyArray<NewRecord>) {
  const log = yield* EventLog
  const appender = yield* log.appender
  yield* appender.append(records)
}, Effect.scoped)

/**
 * The end of a partition once everything is decided that was written there until now. The broker
 * answers a commit before it marks its end in each partition, and readers stop before what is not
 * marked: who reads at once would be too early.
 */
export const decidedEnd = Effect.fnUntraced(function* (topic: TopicKind, partition = 0) {
  const log = yield* EventLog
  const written = yield* (yield* WrittenEnds)({ topic, partition })
  const what = `partition ${partition} of alk.${topic} is decided up to ${written}`
  const { end } = yield* eventually(what, log.bounds(topic, partition), ({ end }) => end >= written)
  return end
})

/** Every record of a partition that can be read now, however soon. */
export const readNow = Effect.fnUntraced(function* (topic: TopicKind, partition = 0) {
  const log = yield* EventLog
  const reader = yield* log.reader
  const { end, start } = yield* log.bounds(topic, partition)
  const records: Array<LogRecord> = []
  let offset = start
  while (offset < end) {
    const [fetched] = yield* reader.fetch([{ topic, partition, offset }], {
      waitMs: 100,
      maxBytes: 4_194_304
    })
    records.push(...(fetched?.records ?? []))
    offset = fetched?.nextOffset ?? offset
  }
  return records
}, Effect.scoped)

/** Every committed record of a partition that was written until now. */
export const readAll = (topic: TopicKind, partition = 0) =>
  Effect.andThen(decidedEnd(topic, partition), readNow(topic, partition))

const told = ({ headers, key, offset, value }: LogRecord) => ({
  offset,
  key: key?.toString(),
  value: value?.toString(),
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [name, text.toString()])
  )
})

/** Every record of a partition, once there are so many. */
export const readAtLeast = Effect.fnUntraced(function* (
  topic: TopicKind,
  count: number,
  partition = 0
) {
  let records: ReadonlyArray<LogRecord> = []
  const look = Effect.map(readAll(topic, partition), (found) => {
    records = found
    return found.map(told)
  })
  const what = `${count} records in partition ${partition} of alk.${topic}`
  yield* eventually(what, look, ({ length }) => length >= count)
  return records
})

/**
 * Ends when everything can be read that writers of this name have committed, in all topics: the next
 * writer begins behind it. It fences the writers before it.
 */
export const settled = (writer: string) =>
  EventLog.use((log) => log.writer(writer)).pipe(Effect.asVoid, Effect.scoped)

const plainKafka = (): Kafka =>
  new Kafka({
    brokers: [inject("bootstrap")],
    clientId: "by-hand",
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 10, retries: 20 }
  })

/** Milliseconds after which the broker aborts by itself: the most that the embedded one allows. */
const OPEN_MS = 20_000

/**
 * Write records in a transaction, and abort it or leave it open. An abort is over at the end: its
 * marks are there, and nobody waits for them.
 */
export const leaveTransaction = (
  prefix: string,
  topic: TopicKind,
  values: ReadonlyArray<string>,
  end: "abort" | "open"
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const kafka = plainKafka()
    const transactionalId = `by-hand-${prefix}-${Math.random()}`
    const begin = async () => {
      const producer = kafka.producer({
        transactionalId,
        transactionTimeout: OPEN_MS,
        maxInFlightRequests: 1,
        createPartitioner: () => () => 0
      })
      await producer.connect()
      return { producer, transaction: await producer.transaction() }
    }
    const { producer, transaction } = await begin()
    await transaction.send({
      topic: topicName(prefix, topic),
      messages: values.map((value) => ({ key: "aborted", value, partition: 0 }))
    })
    if (end === "abort") {
      await transaction.abort()
      // The next producer of the same id begins behind the marks.
      const next = await begin()
      await next.producer.disconnect()
    }
    await producer.disconnect()
  })

/** Remove everything below an offset, as retention would. */
export const deleteBelow = (
  prefix: string,
  topic: TopicKind,
  offset: number
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const admin = plainKafka().admin()
    await admin.connect()
    // kafkajs knows the leaders of a topic only once it has asked for its offsets.
    await admin.fetchTopicOffsets(topicName(prefix, topic))
    await admin.deleteTopicRecords({
      topic: topicName(prefix, topic),
      partitions: [{ partition: 0, offset: String(offset) }]
    })
    await admin.disconnect()
  })

/** Lose a topic and get it back empty; retention can shorten it only where the policy deletes. */
export const loseTopic = (
  prefix: string,
  topic: TopicKind,
  policy: "compact" | "delete" = "compact"
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const admin = plainKafka().admin()
    await admin.connect()
    const name = topicName(prefix, topic)
    await admin.deleteTopics({ topics: [name] })
    await eventuallyAsync(
      `${name} is gone`,
      () => admin.listTopics(),
      (names) => !names.includes(name)
    )
    await admin.createTopics({
      topics: [
        {
          topic: name,
          numPartitions: 1,
          replicationFactor: 1,
          configEntries: [{ name: "cleanup.policy", value: policy }]
        }
      ],
      waitForLeaders: false
    })
    // kafkajs retries while there is no leader, but not while the broker does not know the topic.
    await eventuallyAsync(
      `${name} is there again`,
      () => admin.fetchTopicOffsets(name).catch(String),
      (found) => typeof found !== "string"
    )
    await admin.disconnect()
  })

/** Change settings of a topic; those that are not named are the broker's from then on. */
export const setTopic = (
  prefix: string,
  topic: TopicKind,
  settings: Readonly<Record<string, string>>
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const admin = plainKafka().admin()
    await admin.connect()
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
    const name = topicName(prefix, topic)
    const resources = [{ type: ConfigResourceTypes.TOPIC, name, configEntries }]
    await admin.alterConfigs({ validateOnly: false, resources })
    await admin.disconnect()
  })

/** One record of a time; what the broker has said if it has refused it. */
export const produceOnce = (
  prefix: string,
  topic: TopicKind,
  record: { readonly key: string; readonly value: string; readonly timestamp: string }
): Effect.Effect<string> =>
  Effect.promise(async () => {
    const producer = plainKafka().producer({ retry: { retries: 0 } })
    await producer.connect()
    const messages = [{ ...record, partition: 0 }]
    const sent = producer.send({ topic: topicName(prefix, topic), acks: -1, messages })
    const said = await sent.then(() => "written", String)
    await producer.disconnect()
    return said
  })

/** A record as anybody who may produce could write it. */
export interface RawRecord {
  readonly key: string | Buffer | null
  readonly value: string | Buffer | null
  readonly headers?: Record<string, string>
}

/**
 * Write records past the service. A compacted topic takes none without a key, so for those its policy
 * is another one for a moment.
 */
export const produceRaw = (
  prefix: string,
  topic: TopicKind,
  records: ReadonlyArray<RawRecord>
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const kafka = plainKafka()
    const [admin, producer] = [kafka.admin(), kafka.producer()]
    await Promise.all([admin.connect(), producer.connect()])
    const name = topicName(prefix, topic)
    const setPolicy = (value: string) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: ConfigResourceTypes.TOPIC,
            name,
            configEntries: [{ name: "cleanup.policy", value }]
          }
        ]
      })
    const isCompacted = ["state", "progress"].includes(topic)
    if (isCompacted) await setPolicy("delete")
    const send = () =>
      producer.send({
        topic: name,
        acks: -1,
        messages: records.map((record) => ({ ...record, partition: 0 }))
      })
    // The broker hears of the policy a moment later; what it refuses it has stored nothing of.
    await eventuallyAsync(
      `${name} takes what is written past the service`,
      () => send().catch(String),
      (sent) => typeof sent !== "string"
    )
    if (isCompacted) await setPolicy("compact")
    await Promise.all([admin.disconnect(), producer.disconnect()])
  })

/** What the broker removes from a topic. */
export const cleanupPolicy = (
  prefix: string,
  topic: TopicKind
): Effect.Effect<string | undefined> =>
  Effect.promise(async () => {
    const admin = plainKafka().admin()
    await admin.connect()
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: topicName(prefix, topic),
          configNames: ["cleanup.policy"]
        }
      ]
    })
    await admin.disconnect()
    return resources[0]?.configEntries[0]?.configValue
  })

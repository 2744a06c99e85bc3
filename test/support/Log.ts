/**
 * The log of the test machine under topics of the test's own, and the few moves that tests make on
 * it by hand: write, read everything, leave a transaction open or aborted behind.
 */
import { Effect, type Scope } from "effect"
import { ConfigResourceTypes, Kafka, logLevel } from "kafkajs"
import { inject } from "vitest"
import { layerKafka } from "../../src/adapters/kafka/KafkaEventLog.ts"
import { type TopicKind, topicName } from "../../src/domain/records/Topics.ts"
import { EventLog, type LogRecord, type NewRecord } from "../../src/ports/EventLog.ts"

let count = 0
/** A topic prefix that no other test uses. */
export const freshPrefix = (): string => `t${process.pid}x${Date.now().toString(36)}x${count++}`

export const logLayer = (prefix: string, partitions = 1) =>
  layerKafka(
    { brokers: [inject("bootstrap")], clientId: "test", log: () => undefined },
    {
      prefix,
      partitions,
      replication: 1,
      minInSyncReplicas: 1,
      eventsRetentionMs: "forever"
    }
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

/** Every committed record of a partition. */
export const readAll = Effect.fnUntraced(function* (topic: TopicKind, partition = 0) {
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

const plainKafka = (): Kafka =>
  new Kafka({
    brokers: [inject("bootstrap")],
    clientId: "by-hand",
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 10, retries: 20 }
  })

/** Write records in a transaction and abort it; `close` false leaves it open. */
export const leaveTransaction = (
  prefix: string,
  topic: TopicKind,
  values: ReadonlyArray<string>,
  end: "abort" | "open"
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const producer = plainKafka().producer({
      transactionalId: `by-hand-${prefix}-${Math.random()}`,
      transactionTimeout: 5_000,
      maxInFlightRequests: 1,
      createPartitioner: () => () => 0
    })
    await producer.connect()
    const transaction = await producer.transaction()
    await transaction.send({
      topic: topicName(prefix, topic),
      messages: values.map((value) => ({ key: "aborted", value, partition: 0 }))
    })
    if (end === "abort") await transaction.abort()
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
    for (let left = 50; left > 0; left--) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      if (!(await admin.listTopics()).includes(name)) break
    }
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
    for (let left = 100; left > 0; left--) {
      const known = await admin.fetchTopicOffsets(name).catch(() => undefined)
      if (known !== undefined) break
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    await admin.disconnect()
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
    const isCompacted = ["state", "progress", "registry"].includes(topic)
    if (isCompacted) await setPolicy("delete")
    const send = () =>
      producer.send({
        topic: name,
        acks: -1,
        messages: records.map((record) => ({ ...record, partition: 0 }))
      })
    // The broker hears of the policy a moment later; what it refuses it has stored nothing of.
    for (let left = 50; ; left--) {
      try {
        await send()
        break
      } catch (error) {
        if (left === 0) throw error
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    if (isCompacted) await setPolicy("compact")
    await Promise.all([admin.disconnect(), producer.disconnect()])
  })

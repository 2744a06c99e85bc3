/**
 * The log on a Kafka cluster: `EventLog` put together from readers, writers, topics and membership.
 */
import { Effect, Layer, Schedule, type Scope } from "effect"
import { type TopicKind, topicName } from "../../domain/records/Topics.ts"
import { EventLog, LogUnavailable, type TopicsInvalid } from "../../ports/EventLog.ts"
import { AppendedRecords } from "./AppendedRecords.ts"
import { membership } from "./Membership.ts"
import { makeReader } from "./PartitionReader.ts"
import {
  type KafkaSettings,
  makeCluster,
  makeKafka,
  murmur2,
  type RawCluster
} from "./protocol/KafkaClient.ts"
import { ensureTopics, type TopicSettings } from "./Topics.ts"
import { makeAppender, makeTransactionalWriter } from "./Writers.ts"

/** A topic made a moment ago, or a broker that went away: leaders are elected within a second. */
const whileLeadersMove = Schedule.exponential("25 millis").pipe(Schedule.upTo({ times: 6 }))

type Offsets = ReadonlyArray<number>

/** First or last stable offsets of positions that may belong to several topics. */
const offsetsOf = async (
  cluster: RawCluster,
  prefix: string,
  positions: ReadonlyArray<{ readonly topic: TopicKind; readonly partition: number }>,
  fromBeginning: boolean
): Promise<Offsets> => {
  if (!cluster.isConnected()) await cluster.connect()
  const byTopic = new Map<string, Set<number>>()
  for (const { partition, topic } of positions) {
    const name = topicName(prefix, topic)
    const partitions = byTopic.get(name) ?? new Set()
    byTopic.set(name, partitions.add(partition))
  }
  await cluster.addMultipleTargetTopics([...byTopic.keys()])
  await cluster.refreshMetadataIfNecessary()
  const found = await cluster.fetchTopicsOffset(
    [...byTopic].map(([topic, partitions]) => ({
      topic,
      partitions: [...partitions].map((partition) => ({ partition })),
      fromBeginning
    }))
  )
  return positions.map(({ partition, topic }) => {
    const name = topicName(prefix, topic)
    const offset = found
      .find((entry) => entry.topic === name)
      ?.partitions.find((entry) => entry.partition === partition)?.offset
    if (offset === undefined) throw new Error(`no offset for ${name}/${partition}`)
    return Number(offset)
  })
}

const make = (
  settings: KafkaSettings,
  topics: TopicSettings
): Effect.Effect<EventLog["Service"], LogUnavailable | TopicsInvalid, Scope.Scope> =>
  Effect.gen(function* () {
    const kafka = makeKafka(settings)
    const appended = new AppendedRecords()
    yield* ensureTopics(kafka, topics)
    const cluster = yield* Effect.acquireRelease(
      Effect.sync(() => makeCluster(settings)),
      (acquired) => Effect.promise(() => acquired.disconnect().catch(() => undefined))
    )
    const offsets = (
      positions: Parameters<typeof offsetsOf>[2],
      fromBeginning: boolean
    ): Effect.Effect<Offsets, LogUnavailable> =>
      Effect.tryPromise({
        try: () => offsetsOf(cluster, topics.prefix, positions, fromBeginning),
        catch: (cause) => new LogUnavailable({ operation: "list offsets", cause })
      }).pipe(
        Effect.tapError(() =>
          Effect.promise(() => cluster.refreshMetadata().catch(() => undefined))
        ),
        Effect.retry(whileLeadersMove)
      )
    return EventLog.of({
      partitions: topics.partitions,
      bootstrap: settings.brokers.join(","),
      partitionOf: (tenantId) => (murmur2(tenantId) & 0x7fffffff) % topics.partitions,
      bounds: (topic, partition) =>
        Effect.gen(function* () {
          const [start = 0] = yield* offsets([{ topic, partition }], true)
          const [end = 0] = yield* offsets([{ topic, partition }], false)
          return { start, end }
        }),
      ends: (positions) => offsets(positions, false),
      reader: makeReader(settings, topics.prefix),
      appender: makeAppender(settings, topics.prefix, appended),
      onAppended: (topic, listener) => appended.listen(topic, listener),
      writer: (name) =>
        makeTransactionalWriter(settings, topics.prefix, `${topics.prefix}-${name}`),
      membership: (group) => membership(settings, topics.prefix, group)
    })
  })

/** Connects, creates missing topics, and fails on topics that would tear the chains. */
export const layerKafka = (
  settings: KafkaSettings,
  topics: TopicSettings
): Layer.Layer<EventLog, LogUnavailable | TopicsInvalid> =>
  Layer.effect(EventLog, make(settings, topics))

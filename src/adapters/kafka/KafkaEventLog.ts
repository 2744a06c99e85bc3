/**
 * The log on a Kafka cluster: `EventLog` put together from readers, writers, topics and membership.
 */
import { Effect, Layer, type Scope } from "effect"
import { type TopicKind, topicName } from "../../domain/records/Topics.ts"
import { Placement } from "../../domain/registry/Placement.ts"
import { EventLog, LogUnavailable, type TopicsInvalid } from "../../ports/EventLog.ts"
import { AppendedRecords } from "./AppendedRecords.ts"
import { membership } from "./Membership.ts"
import { makeReader } from "./PartitionReader.ts"
import {
  type KafkaSettings,
  makeCluster,
  makeKafka,
  type RawCluster
} from "./protocol/KafkaClient.ts"
import { WHILE_LEADERS_MOVE } from "./protocol/Retry.ts"
import { makeStalledEnds } from "./StalledEnds.ts"
import {
  commonCount,
  deleteBelow,
  ensureTopics,
  growTopics,
  type TopicSettings,
  topicCounts
} from "./Topics.ts"
import { makeAppender, makeTransactionalWriter } from "./Writers.ts"

type Offsets = ReadonlyArray<number>

/** First or last offsets of positions that may belong to several topics. */
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

/** The same, tried again while leaders move; what an end counts is for the cluster to say. */
export const offsetsReader =
  (cluster: RawCluster, prefix: string) =>
  (
    positions: Parameters<typeof offsetsOf>[2],
    fromBeginning: boolean
  ): Effect.Effect<Offsets, LogUnavailable> =>
    Effect.tryPromise({
      try: () => offsetsOf(cluster, prefix, positions, fromBeginning),
      catch: (cause) => new LogUnavailable({ operation: "list offsets", cause })
    }).pipe(
      Effect.tapError(() => Effect.promise(() => cluster.refreshMetadata().catch(() => undefined))),
      Effect.retry(WHILE_LEADERS_MOVE)
    )

/** The log on topics that are there. */
export const logOn = (
  settings: KafkaSettings,
  topics: Pick<TopicSettings, "partitions" | "prefix" | "publicCompression">
): Effect.Effect<EventLog["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const appended = new AppendedRecords()
    const stalled = yield* makeStalledEnds
    const placement = new Placement(topics.partitions)
    const kafka = makeKafka(settings)
    const cluster = yield* Effect.acquireRelease(
      Effect.sync(() => makeCluster(settings)),
      (acquired) => Effect.promise(() => acquired.disconnect().catch(() => undefined))
    )
    const offsets = offsetsReader(cluster, topics.prefix)
    return EventLog.of({
      get partitions() {
        return placement.partitions
      },
      bootstrap: settings.brokers.join(","),
      partitionOf: (tenantId) => placement.partitionOf(tenantId),
      placement: Effect.succeed(placement),
      counts: topicCounts(kafka, topics.prefix),
      addPartitions: (to) => growTopics(kafka, topics.prefix, to),
      bounds: (topic, partition) =>
        Effect.gen(function* () {
          const [start = 0] = yield* offsets([{ topic, partition }], true)
          const [end = 0] = yield* offsets([{ topic, partition }], false)
          return { start, end }
        }),
      ends: (positions) => offsets(positions, false),
      deleteBelow: deleteBelow(kafka, topics.prefix),
      reader: makeReader(settings, topics.prefix, stalled),
      appender: makeAppender(settings, topics.prefix, appended),
      onAppended: (topic, listener) => appended.listen(topic, listener),
      writer: (name, placed) =>
        makeTransactionalWriter(settings, topics.prefix, `${topics.prefix}-${name}`, {
          publicCompression: topics.publicCompression,
          placed
        }),
      membership: (group) => membership(settings, topics.prefix, group)
    })
  })

const make = (
  settings: KafkaSettings,
  topics: TopicSettings
): Effect.Effect<EventLog["Service"], LogUnavailable | TopicsInvalid, Scope.Scope> =>
  Effect.flatMap(ensureTopics(makeKafka(settings), topics), (counts) =>
    logOn(settings, { ...topics, partitions: commonCount(counts) })
  )

/**
 * Connects and creates missing topics. Before it is used, `checkPartitions` compares the topics with
 * what the registry says.
 */
export const layerKafka = (
  settings: KafkaSettings,
  topics: TopicSettings
): Layer.Layer<EventLog, LogUnavailable | TopicsInvalid> =>
  Layer.effect(EventLog, make(settings, topics))

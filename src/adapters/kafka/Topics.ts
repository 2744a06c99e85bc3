/**
 * Creates the topics, counts their partitions, and gives them more. Whether a count is right, the
 * registry says.
 */
import { Effect, Schedule } from "effect"
import type { Admin, IResourceConfigEntry, Kafka } from "kafkajs"
import {
  COMMANDS_RETENTION_DAYS,
  type Compression,
  MESSAGE_BYTES_MAX,
  partitionedTopics,
  RECEIPTS_RETENTION_DAYS,
  type TopicKind,
  topicKinds,
  topicName
} from "../../domain/records/Topics.ts"
import { LogUnavailable, TopicsInvalid } from "../../ports/EventLog.ts"
import { isLeaderMoving, protocolErrorOf } from "./protocol/KafkaClient.ts"

export interface TopicSettings {
  readonly prefix: string
  readonly partitions: number
  readonly replication: number
  readonly minInSyncReplicas: number
  /** Milliseconds that `events` and `traces` are kept. */
  readonly eventsRetentionMs: number | "forever"
  /** Of the batches that are written to the public topics from now on; zstd unless it is said. */
  readonly publicCompression?: Compression
}

/**
 * What a broker says for a moment of topics that were made, or have grown, by us or by others, or
 * when it has just been started itself.
 */
const SPREADING = new Set([
  "INVALID_PARTITIONS",
  "NOT_CONTROLLER",
  "REQUEST_TIMED_OUT",
  "TOPIC_ALREADY_EXISTS",
  "UNKNOWN_SERVER_ERROR"
])

const isSpreading = (cause: unknown): boolean =>
  isLeaderMoving(cause) || SPREADING.has(protocolErrorOf(cause) ?? "")

/** Kafka's number for a topic as a configuration resource. */
const CONFIG_RESOURCE_TOPIC = 2
const DAY_MS = 86_400_000

const SEGMENT_BYTES = "16777216"

/** Clocks of the processes and the brokers differ by less. */
const AHEAD_MS = 300_000

const compacted = {
  "cleanup.policy": "compact",
  "segment.bytes": SEGMENT_BYTES,
  // Times of the future would end segments at once, and then the broker compacts them.
  "segment.ms": String(2 * AHEAD_MS),
  "message.timestamp.after.max.ms": String(AHEAD_MS),
  "min.cleanable.dirty.ratio": "0.1"
}

/** Configuration of one topic, beside what all have in common. */
const topicConfig = (kind: TopicKind, settings: TopicSettings): Record<string, string> => {
  switch (kind) {
    case "commands":
      return { "retention.ms": String(COMMANDS_RETENTION_DAYS * DAY_MS) }
    case "receipts":
      return { "retention.ms": String(RECEIPTS_RETENTION_DAYS * DAY_MS) }
    case "events":
    case "traces":
      return {
        "retention.ms": String(
          settings.eventsRetentionMs === "forever" ? -1 : settings.eventsRetentionMs
        )
      }
    case "checkpoints":
    case "quarantine":
      return { "retention.ms": "-1" }
    case "registry":
      // The broker removes records by their keys, whichever client wrote them: the sequencer does
      // instead.
      return { "retention.ms": "-1", "segment.bytes": SEGMENT_BYTES }
    case "state":
    case "progress":
      return compacted
  }
}

const entries = (config: Record<string, string>): Array<IResourceConfigEntry> =>
  Object.entries(config).map(([name, value]) => ({ name, value }))

const wholeConfig = (kind: TopicKind, settings: TopicSettings): Array<IResourceConfigEntry> =>
  entries({
    "compression.type": "producer",
    // With the times of the broker every batch would have to be read back, see BatchSender.
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": String(MESSAGE_BYTES_MAX),
    "min.insync.replicas": String(settings.minInSyncReplicas),
    ...topicConfig(kind, settings)
  })

/** Partitions by topic, of those that are there. */
const countsOf = async (
  admin: Admin,
  prefix: string,
  kinds: ReadonlyArray<TopicKind>
): Promise<ReadonlyMap<TopicKind, number>> => {
  if (kinds.length === 0) return new Map()
  const { topics } = await admin.fetchTopicMetadata({
    topics: kinds.map((kind) => topicName(prefix, kind))
  })
  const found = kinds.map((kind) => {
    const topic = topics.find(({ name }) => name === topicName(prefix, kind))
    return [kind, topic?.partitions.length ?? 0] as const
  })
  return new Map(found)
}

/** A topic that is new gets as many partitions as the others have. */
const createMissing = async (admin: Admin, settings: TopicSettings): Promise<void> => {
  const existing = new Set(await admin.listTopics())
  const isThere = (kind: TopicKind) => existing.has(topicName(settings.prefix, kind))
  const missing = topicKinds.filter((kind) => !isThere(kind))
  if (missing.length === 0) return
  const counts = await countsOf(admin, settings.prefix, partitionedTopics.filter(isThere))
  const partitions = counts.size === 0 ? settings.partitions : Math.max(...counts.values())
  await admin.createTopics({
    waitForLeaders: false,
    topics: missing.map((kind) => ({
      topic: topicName(settings.prefix, kind),
      numPartitions: kind === "registry" ? 1 : partitions,
      replicationFactor: settings.replication,
      configEntries: wholeConfig(kind, settings)
    }))
  })
}

/** The retention of the public topics follows the configuration, also after the first start. */
const alignRetention = async (admin: Admin, settings: TopicSettings): Promise<void> => {
  await admin.alterConfigs({
    validateOnly: false,
    resources: (["events", "traces"] as const).map((kind) => ({
      type: CONFIG_RESOURCE_TOPIC,
      name: topicName(settings.prefix, kind),
      configEntries: wholeConfig(kind, settings)
    }))
  })
}

const toFailure = (cause: unknown, settings: TopicSettings): LogUnavailable | TopicsInvalid =>
  protocolErrorOf(cause) === "INVALID_REPLICATION_FACTOR"
    ? new TopicsInvalid({
        message:
          `the Kafka cluster has fewer brokers than the ${settings.replication} copies that `
          + `ALK_REPLICATION asks for: start more brokers, or set ALK_REPLICATION lower`
      })
    : new LogUnavailable({ operation: "create topics", cause })

/** Again while the brokers hear of topics one after the other. */
const asAdmin = <A, E extends LogUnavailable | TopicsInvalid>(
  kafka: Kafka,
  run: (admin: Admin) => Promise<A>,
  toError: (cause: unknown) => E
): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => kafka.admin()),
    (admin) =>
      Effect.tryPromise({
        try: async () => {
          await admin.connect()
          return await run(admin)
        },
        catch: toError
      }).pipe(
        Effect.retry({
          schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ times: 100 })),
          while: (failure) => failure._tag === "LogUnavailable" && isSpreading(failure.cause)
        })
      ),
    (admin) => Effect.promise(() => admin.disconnect().catch(() => undefined))
  )

const unavailable = (operation: string) => (cause: unknown) =>
  new LogUnavailable({ operation, cause })

/** Create what is missing; partitions by topic. */
export const ensureTopics = (
  kafka: Kafka,
  settings: TopicSettings
): Effect.Effect<ReadonlyMap<TopicKind, number>, LogUnavailable | TopicsInvalid> =>
  asAdmin(
    kafka,
    async (admin) => {
      await createMissing(admin, settings)
      await alignRetention(admin, settings)
      return await countsOf(admin, settings.prefix, topicKinds)
    },
    (cause) => toFailure(cause, settings)
  )

/** Partitions by topic, none created. */
export const topicCounts = (
  kafka: Kafka,
  prefix: string
): Effect.Effect<ReadonlyMap<TopicKind, number>, LogUnavailable> =>
  asAdmin(kafka, (admin) => countsOf(admin, prefix, topicKinds), unavailable("count partitions"))

/**
 * What reads is there before what it reads from, and the commands, which wake the sequencers, come
 * last.
 */
const GROWN_IN_ORDER = partitionedTopics.toSorted(
  (left, right) => Number(left === "commands") - Number(right === "commands")
)

/** One topic after the other up to this number of partitions; those that have it are left alone. */
export const growTopics = (
  kafka: Kafka,
  prefix: string,
  to: number
): Effect.Effect<void, LogUnavailable> =>
  asAdmin(
    kafka,
    async (admin) => {
      const counts = await countsOf(admin, prefix, partitionedTopics)
      for (const kind of GROWN_IN_ORDER) {
        if ((counts.get(kind) ?? 0) >= to) continue
        const topic = topicName(prefix, kind)
        await admin.createPartitions({ topicPartitions: [{ topic, count: to }] })
      }
    },
    unavailable("add partitions")
  )

/** Removes the records of a partition that are below an offset. */
export const deleteBelow =
  (kafka: Kafka, prefix: string) =>
  (kind: TopicKind, partition: number, offset: number): Effect.Effect<void, LogUnavailable> =>
    asAdmin(
      kafka,
      async (admin) => {
        const topic = topicName(prefix, kind)
        // kafkajs knows the leaders of a topic only once it has asked for its offsets.
        await admin.fetchTopicOffsets(topic)
        await admin.deleteTopicRecords({
          topic,
          partitions: [{ partition, offset: String(offset) }]
        })
      },
      unavailable("delete records")
    )

/** The least that each of the partitioned topics has. */
export const commonCount = (counts: ReadonlyMap<TopicKind, number>): number =>
  Math.min(...partitionedTopics.map((kind) => counts.get(kind) ?? 0))

/**
 * Creates the topics and refuses to start on topics that don't fit: a changed partition count would
 * move tenants between partitions and tear their chains.
 */
import { Effect, Schedule } from "effect"
import type { Admin, IResourceConfigEntry, Kafka } from "kafkajs"
import {
  COMMANDS_RETENTION_DAYS,
  MESSAGE_BYTES_MAX,
  RECEIPTS_RETENTION_DAYS,
  type TopicKind,
  topicKinds,
  topicName
} from "../../domain/records/Topics.ts"
import { LogUnavailable, TopicsInvalid } from "../../ports/EventLog.ts"
import { protocolErrorOf } from "./protocol/KafkaClient.ts"

export interface TopicSettings {
  readonly prefix: string
  readonly partitions: number
  readonly replication: number
  readonly minInSyncReplicas: number
  /** Milliseconds that `events` and `traces` are kept. */
  readonly eventsRetentionMs: number | "forever"
}

/** What a broker says of a topic that was made a moment ago, by us or by another process. */
const SPREADING = new Set([
  "UNKNOWN_TOPIC_OR_PARTITION",
  "LEADER_NOT_AVAILABLE",
  "TOPIC_ALREADY_EXISTS"
])

/** Kafka's number for a topic as a configuration resource. */
const CONFIG_RESOURCE_TOPIC = 2
const DAY_MS = 86_400_000

const compacted = {
  "cleanup.policy": "compact",
  "segment.bytes": "16777216",
  "segment.ms": "600000",
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
    case "state":
    case "progress":
    case "registry":
      return compacted
  }
}

const partitionsOf = (kind: TopicKind, settings: TopicSettings): number =>
  kind === "registry" ? 1 : settings.partitions

const entries = (config: Record<string, string>): Array<IResourceConfigEntry> =>
  Object.entries(config).map(([name, value]) => ({ name, value }))

const wholeConfig = (kind: TopicKind, settings: TopicSettings): Array<IResourceConfigEntry> =>
  entries({
    "compression.type": "producer",
    "max.message.bytes": String(MESSAGE_BYTES_MAX),
    "min.insync.replicas": String(settings.minInSyncReplicas),
    ...topicConfig(kind, settings)
  })

const createMissing = async (admin: Admin, settings: TopicSettings): Promise<void> => {
  const existing = new Set(await admin.listTopics())
  const missing = topicKinds.filter((kind) => !existing.has(topicName(settings.prefix, kind)))
  if (missing.length === 0) return
  await admin.createTopics({
    waitForLeaders: false,
    topics: missing.map((kind) => ({
      topic: topicName(settings.prefix, kind),
      numPartitions: partitionsOf(kind, settings),
      replicationFactor: settings.replication,
      configEntries: wholeConfig(kind, settings)
    }))
  })
}

const wrongCounts = async (admin: Admin, settings: TopicSettings): Promise<Array<string>> => {
  const { topics } = await admin.fetchTopicMetadata({
    topics: topicKinds.map((kind) => topicName(settings.prefix, kind))
  })
  return topicKinds.flatMap((kind) => {
    const name = topicName(settings.prefix, kind)
    const found = topics.find((topic) => topic.name === name)?.partitions.length ?? 0
    const wanted = partitionsOf(kind, settings)
    return found === wanted ? [] : [`${name} has ${found}, not ${wanted}`]
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

/** Create what is missing, then check every partition count. */
export const ensureTopics = (
  kafka: Kafka,
  settings: TopicSettings
): Effect.Effect<void, LogUnavailable | TopicsInvalid> =>
  Effect.acquireUseRelease(
    Effect.sync(() => kafka.admin()),
    (admin) =>
      Effect.tryPromise({
        try: async () => {
          await admin.connect()
          await createMissing(admin, settings)
          await alignRetention(admin, settings)
          return await wrongCounts(admin, settings)
        },
        catch: (cause) => toFailure(cause, settings)
      }).pipe(
        Effect.retry({
          schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ times: 100 })),
          while: (failure) =>
            failure._tag === "LogUnavailable" && SPREADING.has(protocolErrorOf(failure.cause) ?? "")
        }),
        Effect.flatMap((wrong) =>
          wrong.length === 0
            ? Effect.void
            : Effect.fail(
                new TopicsInvalid({
                  message:
                    `the partition count of existing topics differs from ALK_PARTITIONS: `
                    + `${wrong.join("; ")}. A chain lives in one partition, so the count can't `
                    + `change: set ALK_PARTITIONS to the count that the topics have, or use `
                    + `another ALK_TOPIC_PREFIX`
                })
              )
        )
      ),
    (admin) => Effect.promise(() => admin.disconnect().catch(() => undefined))
  )

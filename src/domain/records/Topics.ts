/**
 * The names of the Kafka topics and the marks on their records. The adapters turn these names into
 * connections, schemas/asyncapi.yaml describes the public ones.
 */

/** Topics that hold one partition per sequencer actor, all with the same partition count. */
export const partitionedTopics = [
  "commands",
  "events",
  "traces",
  "checkpoints",
  "receipts",
  "state",
  "progress",
  "quarantine"
] as const

export type PartitionedTopic = (typeof partitionedTopics)[number]
export type TopicKind = PartitionedTopic | "registry"

export const topicKinds: ReadonlyArray<TopicKind> = [...partitionedTopics, "registry"]

/** Topics that others read as well: what is on them is a contract. */
export const publicTopics = ["events", "traces", "checkpoints"] as const

/** What the batches of a topic can be compressed with. */
export const compressions = ["zstd", "gzip", "none"] as const
export type Compression = (typeof compressions)[number]

/** The full name of a topic, `alk.events` with the default prefix. */
export const topicName = (prefix: string, kind: TopicKind): string => `${prefix}.${kind}`

/** Days that an accepted command waits for a sequencer at most: the longest outage without loss. */
export const COMMANDS_RETENTION_DAYS = 14
/** Days that receipts and idempotency entries are kept. */
export const RECEIPTS_RETENTION_DAYS = 7

/** Version of the records on the internal topics, in the header `alk-format`. */
export const FORMAT_VERSION = 1
export const FORMAT_HEADER = "alk-format"
/** Records of one Kafka send at most: a kafkajs send is quadratic in its records. */
export const SEND_RECORDS_MAX = 1_000
/** Bytes of one Kafka send at most, before compression. */
export const SEND_BYTES_MAX = 1_048_576
/** Records, and their bytes before compression, in one batch of a transaction's events at most. */
export const PACKED_RECORDS_MAX = 10_000
export const PACKED_BYTES_MAX = 16 * 1_048_576
/** `message.max.bytes` of every topic: one command of 1,000 events of 64 KiB compresses below it. */
export const MESSAGE_BYTES_MAX = 32 * 1_048_576

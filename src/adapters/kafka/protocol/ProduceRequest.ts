/**
 * The Produce request and its answer (version 7: every broker since Kafka 2.1), encoded into one
 * buffer. Says what the broker said of each partition, and judges none of it.
 * Source: Kafka's protocol guide, Produce API (key 0).
 */
import type { RawRequest } from "./KafkaClient.ts"

const API_KEY = 0
const API_VERSION = 7
/** Acknowledged by every replica in sync. */
const ACKS_ALL = -1
/** Milliseconds that the leader waits for its followers before it answers that they are late. */
const REPLICATION_TIMEOUT_MS = 10_000

/** One record batch on its way to a partition. A request carries at most one per partition. */
export interface PartitionBatch {
  readonly topic: string
  readonly partition: number
  /** The encoded record batch. */
  readonly bytes: Buffer
}

/** What became of a partition's batch. */
export interface Produced {
  readonly topic: string
  readonly partition: number
  /** Zero if the batch is written. */
  readonly errorCode: number
  /** Offset of its first record. */
  readonly baseOffset: number
  /**
   * Milliseconds since the epoch; NO_TIME where a batch was appended to a topic whose times are those
   * of its writers. For a repetition it is the latest time in the batch that was found.
   */
  readonly appendTime: number
}

/** No time is told. */
export const NO_TIME = -1

/** Bytes of the numbers before a topic's, and of a partition's, content. */
const TOPIC_FRAME_BYTES = 2 + 4
const PARTITION_FRAME_BYTES = 4 + 4
const REQUEST_FRAME_BYTES = 2 + 2 + 4 + 4

/**
 * Hot path: measured in test/bench/Bench.ts (ingest, sequencing). The body of the request, after the
 * header that kafkajs writes.
 */
export const encodeProduceRequest = (
  transactionalId: string | null,
  batches: ReadonlyArray<PartitionBatch>
): Buffer => {
  const topics = Map.groupBy(batches, ({ topic }) => topic)
  let size = REQUEST_FRAME_BYTES + Buffer.byteLength(transactionalId ?? "")
  for (const topic of topics.keys()) size += TOPIC_FRAME_BYTES + Buffer.byteLength(topic)
  for (const { bytes } of batches) size += PARTITION_FRAME_BYTES + bytes.length
  const body = Buffer.allocUnsafe(size)
  let at = 0
  const string = (text: string): void => {
    const length = body.write(text, at + 2)
    body.writeInt16BE(length, at)
    at += 2 + length
  }
  if (transactionalId === null) at = body.writeInt16BE(-1, at)
  else string(transactionalId)
  at = body.writeInt16BE(ACKS_ALL, at)
  at = body.writeInt32BE(REPLICATION_TIMEOUT_MS, at)
  at = body.writeInt32BE(topics.size, at)
  for (const [topic, partitions] of topics) {
    string(topic)
    at = body.writeInt32BE(partitions.length, at)
    for (const { bytes, partition } of partitions) {
      at = body.writeInt32BE(partition, at)
      at = body.writeInt32BE(bytes.length, at)
      at += bytes.copy(body, at)
    }
  }
  return body
}

/** Every partition of the answer. */
export const decodeProduceResponse = (payload: Buffer): ReadonlyArray<Produced> => {
  const produced: Array<Produced> = []
  let at = 4
  for (let topics = payload.readInt32BE(0); topics > 0; topics--) {
    const length = payload.readInt16BE(at)
    const topic = payload.toString("utf8", at + 2, at + 2 + length)
    at += 2 + length
    let partitions = payload.readInt32BE(at)
    at += 4
    for (; partitions > 0; partitions--) {
      produced.push({
        topic,
        partition: payload.readInt32BE(at),
        errorCode: payload.readInt16BE(at + 4),
        baseOffset: Number(payload.readBigInt64BE(at + 6)),
        appendTime: Number(payload.readBigInt64BE(at + 14))
      })
      // After the append time: the start of the log.
      at += 30
    }
  }
  return produced
}

/** The request for kafkajs's connection. A partition that is refused is not an exception. */
export const produceRequest = (
  transactionalId: string | null,
  batches: ReadonlyArray<PartitionBatch>
): RawRequest<ReadonlyArray<Produced>> => ({
  request: {
    apiKey: API_KEY,
    apiVersion: API_VERSION,
    apiName: "Produce",
    encode: () => {
      const body = encodeProduceRequest(transactionalId, batches)
      return Promise.resolve({ buf: body, buffer: body })
    }
  },
  response: {
    decode: (payload) => Promise.resolve(decodeProduceResponse(payload)),
    parse: (produced) => Promise.resolve(produced)
  }
})

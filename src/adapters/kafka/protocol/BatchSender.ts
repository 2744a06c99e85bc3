/**
 * Sends record batches to the leaders of their partitions until each is written once. A batch whose
 * outcome is unknown is sent again as it is, with its sequence number, which no other batch may
 * take: the broker would drop the other as a repetition. Knows nothing of the ends of transactions.
 */
import {
  type Compression,
  SEND_BYTES_MAX,
  SEND_RECORDS_MAX,
  topicName
} from "../../../domain/records/Topics.ts"
import type { NewRecord, PackedRecords } from "../../../ports/EventLog.ts"
import { errorOfCode, isRetriable, type RawCluster } from "./KafkaClient.ts"
import { type PartitionBatch, type Produced, produceRequest } from "./ProduceRequest.ts"
import { keyOf, type ProducerIdentity, type TopicPartition } from "./ProducerRequests.ts"
import { encodeRecordBatch, toRecordBatch } from "./RecordBatch.ts"
import { retryWhile } from "./Retry.ts"

/** Bytes of one request at most, before compression, if it carries more than one batch. */
const REQUEST_BYTES_MAX = 16 * 1_048_576
/** Sequence numbers are 32 bits wide and start over at 0. */
const SEQUENCES = 0x8000_0000

const LEADER_NOT_AVAILABLE = 5
/** The batch is in the log already; that is all that a repetition could have wished for. */
const DUPLICATE_SEQUENCE_NUMBER = 46

/** Records that make one batch of their partition: so many objects, or bytes instead of them. */
export interface PartitionRecords extends TopicPartition {
  readonly records: ReadonlyArray<NewRecord>
  readonly packed?: PackedRecords
  /** Milliseconds since the epoch of the first and the latest of them; now unless it is said. */
  readonly times?: { readonly first: number; readonly last: number }
}

export const countOf = ({ packed, records }: PartitionRecords): number =>
  packed === undefined ? records.length : packed.count

/** A batch that has its place in the sequence of its partition. */
export interface Sequenced extends PartitionBatch {
  readonly count: number
}

const sizeOf = (value: string | Buffer | null): number =>
  value === null ? 0 : typeof value === "string" ? Buffer.byteLength(value) : value.length

interface Cut {
  readonly part: PartitionRecords & { readonly records: Array<NewRecord> }
  bytes: number
}

/**
 * Hot path: measured in test/bench/Bench.ts (ingest, sequencing). Cuts records into batches by
 * partition, each of at most SEND_RECORDS_MAX and SEND_BYTES_MAX; packed ones stay as they are.
 */
const toBatches = (
  prefix: string,
  records: ReadonlyArray<NewRecord | PackedRecords>
): Array<Array<Cut>> => {
  const byPartition = new Map<string, Array<Cut>>()
  for (const record of records) {
    const key = `${record.topic}/${record.partition}`
    let cuts = byPartition.get(key)
    if (cuts === undefined) byPartition.set(key, (cuts = []))
    if ("records" in record) {
      const { partition } = record
      const topic = topicName(prefix, record.topic)
      const part = { topic, partition, records: [], packed: record }
      cuts.push({ part, bytes: record.records.length })
      continue
    }
    const bytes = sizeOf(record.value)
    let cut = cuts.at(-1)
    if (
      cut === undefined
      || cut.part.packed !== undefined
      || cut.part.records.length >= SEND_RECORDS_MAX
      || cut.bytes + bytes > SEND_BYTES_MAX
    ) {
      const topic = topicName(prefix, record.topic)
      cut = { part: { topic, partition: record.partition, records: [] }, bytes: 0 }
      cuts.push(cut)
    }
    cut.part.records.push(record)
    cut.bytes += bytes
  }
  return [...byPartition.values()]
}

/** What to send one after the other: at most one batch per partition at a time. */
export const toRequests = (
  prefix: string,
  records: ReadonlyArray<NewRecord | PackedRecords>
): ReadonlyArray<ReadonlyArray<PartitionRecords>> => {
  const partitions = toBatches(prefix, records)
  const requests: Array<Array<PartitionRecords>> = []
  const rounds = Math.max(0, ...partitions.map((cuts) => cuts.length))
  for (let round = 0; round < rounds; round++) {
    let request: Array<PartitionRecords> = []
    let bytes = 0
    for (const { [round]: cut } of partitions) {
      if (cut === undefined) continue
      if (request.length > 0 && bytes + cut.bytes > REQUEST_BYTES_MAX) {
        requests.push(request)
        request = []
        bytes = 0
      }
      request.push(cut.part)
      bytes += cut.bytes
    }
    requests.push(request)
  }
  return requests
}

/** What the last attempt made of a batch. */
type Attempt = { readonly baseOffset: number } | { readonly error: unknown }

export interface SenderOptions {
  /** Of the first batch to each partition; 0 unless it is said. */
  readonly firstSequence?: number
  /** By the name of a topic; zstd unless it is said. */
  readonly compressionOf?: (topic: string) => Compression
}

export class BatchSender {
  readonly #cluster: RawCluster
  readonly #transactionalId: string | null
  readonly #identity: ProducerIdentity
  readonly #sequences = new Map<string, number>()
  readonly #firstSequence: number
  readonly #compressionOf: (topic: string) => Compression
  readonly #known = new Set<string>()

  constructor(
    cluster: RawCluster,
    transactionalId: string | null,
    identity: ProducerIdentity,
    { compressionOf = () => "zstd", firstSequence = 0 }: SenderOptions = {}
  ) {
    this.#cluster = cluster
    this.#transactionalId = transactionalId
    this.#identity = identity
    this.#firstSequence = firstSequence
    this.#compressionOf = compressionOf
  }

  /** Give each batch the next sequence numbers of its partition. What is sequenced must be sent. */
  async sequence(parts: ReadonlyArray<PartitionRecords>): Promise<ReadonlyArray<Sequenced>> {
    const now = Date.now()
    return Promise.all(
      parts.map(async (part) => {
        const { packed, partition, records, times = { first: now, last: now }, topic } = part
        const count = countOf(part)
        const key = keyOf(part)
        const sequence = this.#sequences.get(key) ?? this.#firstSequence
        this.#sequences.set(key, (sequence + count) % SEQUENCES)
        const frame = {
          ...this.#identity,
          sequence,
          transactional: this.#transactionalId !== null,
          timestamp: times.first,
          lastTimestamp: times.last,
          compression: this.#compressionOf(topic)
        }
        const bytes =
          packed === undefined
            ? await encodeRecordBatch(records, frame)
            : await toRecordBatch(packed.records, count, frame)
        return { topic, partition, bytes, count }
      })
    )
  }

  /**
   * The offsets of the batches' first records, once all are written. Fails when a batch is refused,
   * or when `shouldContinue` says to give up; then the outcome of the others is unknown, and the
   * sender's sequence numbers are worth nothing any more.
   */
  async send(
    batches: ReadonlyArray<Sequenced>,
    shouldContinue: () => boolean
  ): Promise<ReadonlyArray<number>> {
    const offsets = new Map<Sequenced, number>()
    let refused: unknown
    let left = batches
    await retryWhile(this.#cluster, shouldContinue, async () => {
      const attempts = await this.#attempt(left)
      let unknown: unknown
      left = left.filter((batch, index) => {
        const attempt = attempts[index]!
        if ("baseOffset" in attempt) offsets.set(batch, attempt.baseOffset)
        else if (isRetriable(attempt.error)) unknown = attempt.error
        else refused ??= attempt.error
        return "error" in attempt && isRetriable(attempt.error)
      })
      if (left.length > 0) throw unknown
    }).catch((unknown: unknown) => {
      throw refused ?? unknown
    })
    if (refused !== undefined) throw refused
    return batches.map((batch) => offsets.get(batch)!)
  }

  async #learn(batches: ReadonlyArray<Sequenced>): Promise<void> {
    if (batches.every(({ topic }) => this.#known.has(topic))) return
    const topics = [...new Set(batches.map(({ topic }) => topic))]
    await this.#cluster.addMultipleTargetTopics(topics)
    for (const topic of topics) this.#known.add(topic)
  }

  /** One request to each leader. */
  async #attempt(batches: ReadonlyArray<Sequenced>): Promise<ReadonlyArray<Attempt>> {
    const attempts = new Map<Sequenced, Attempt>()
    const byLeader = new Map<string, Array<Sequenced>>()
    try {
      await this.#learn(batches)
    } catch (error) {
      return batches.map(() => ({ error }))
    }
    for (const batch of batches) {
      try {
        const nodeId = this.#leaderOf(batch)
        const led = byLeader.get(nodeId)
        if (led === undefined) byLeader.set(nodeId, [batch])
        else led.push(batch)
      } catch (error) {
        attempts.set(batch, { error })
      }
    }
    await Promise.all(
      [...byLeader].map(async ([nodeId, led]) => {
        try {
          const produced = await this.#produce(nodeId, led)
          for (const batch of led) attempts.set(batch, outcomeOf(batch, produced))
        } catch (error) {
          for (const batch of led) attempts.set(batch, { error })
        }
      })
    )
    return batches.map((batch) => attempts.get(batch)!)
  }

  #leaderOf({ partition, topic }: TopicPartition): string {
    const [nodeId] = Object.keys(this.#cluster.findLeaderForPartitions(topic, [partition]))
    if (nodeId === undefined) throw errorOfCode(LEADER_NOT_AVAILABLE)
    return nodeId
  }

  async #produce(
    nodeId: string,
    batches: ReadonlyArray<Sequenced>
  ): Promise<ReadonlyArray<Produced>> {
    const broker = await this.#cluster.findBroker({ nodeId })
    return broker.connectionPool.send(produceRequest(this.#transactionalId, batches))
  }
}

const outcomeOf = (batch: Sequenced, produced: ReadonlyArray<Produced>): Attempt => {
  const found = produced.find(
    ({ partition, topic }) => partition === batch.partition && topic === batch.topic
  )
  if (found === undefined) {
    return { error: new Error(`the broker's answer does not name ${keyOf(batch)}`) }
  }
  const { baseOffset, errorCode } = found
  return errorCode === 0 || errorCode === DUPLICATE_SEQUENCE_NUMBER
    ? { baseOffset }
    : { error: errorOfCode(errorCode) }
}

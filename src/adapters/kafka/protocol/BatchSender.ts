/**
 * Sends record batches to the leaders of their partitions until each is written once. A batch whose
 * outcome is unknown is sent again as it is, with its sequence number, which no other batch may
 * take: the broker would drop the other as a repetition. For that reason a client that may produce
 * to a topic can send a batch of its own in the place of one of ours; so an answer counts only
 * where the leader's last batch of this producer can be no other, and what stands there is read
 * back where it can.
 */
import {
  type Compression,
  SEND_BYTES_MAX,
  SEND_RECORDS_MAX,
  topicName
} from "../../../domain/records/Topics.ts"
import type { NewRecord, PackedRecords } from "../../../ports/EventLog.ts"
import { COUNT_AT, SEQUENCE_AT } from "./BatchLayout.ts"
import {
  errorOfCode,
  isRetriable,
  protocolErrorOf,
  type RawBroker,
  type RawCluster
} from "./KafkaClient.ts"
import { NO_TIME, type PartitionBatch, type Produced, produceRequest } from "./ProduceRequest.ts"
import { keyOf, type ProducerIdentity, type TopicPartition } from "./ProducerRequests.ts"
import { describeProducers, type ProducerState } from "./ProducerStates.ts"
import { encodeRecordBatch, toRecordBatch } from "./RecordBatch.ts"
import { retryWhile } from "./Retry.ts"
import { fetchStored, isStoredAs, lastTimestampOf } from "./StoredBatch.ts"

/** Bytes of one request at most, before compression, if it carries more than one batch. */
const REQUEST_BYTES_MAX = 16 * 1_048_576
/** Sequence numbers are 32 bits wide and start over at 0. */
const SEQUENCES = 0x8000_0000

const LEADER_NOT_AVAILABLE = 5
/** A batch with these sequence numbers is in the log already. */
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

/** Another program has written where a batch of ours belongs, which is not stored. */
export class BatchReplaced extends Error {
  override readonly name = "BatchReplaced"
  readonly place: TopicPartition
  readonly offset: number

  constructor(place: TopicPartition, offset: number) {
    super(
      `another program has written in the place of records of ${keyOf(place)} at offset ${offset}, `
        + "with the producer id and sequence number of alk"
    )
    this.place = { topic: place.topic, partition: place.partition }
    this.offset = offset
  }
}

/** A batch is written, but what stands there can't be read yet. */
class NotReadYet extends Error {
  override readonly name = "NotReadYet"
  readonly retriable = true
}

/** What became of a batch. */
export type Attempt = { readonly baseOffset: number } | { readonly error: unknown }

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
  /** Requests with batches, and what the leader knew behind the last that was answered. */
  #requests = 0
  #behindLast: ReadonlyMap<string, ProducerState> = new Map()

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
    const attempts = await this.sendEach(batches, shouldContinue)
    const failed = attempts.filter((attempt) => "error" in attempt)
    const [unknown] = failed
    if (unknown !== undefined) throw (failed.find(isDefinite) ?? unknown).error
    return attempts.map((attempt) => ("error" in attempt ? NaN : attempt.baseOffset))
  }

  /** What became of each batch: an error that is retriable says that it is unknown. */
  async sendEach(
    batches: ReadonlyArray<Sequenced>,
    shouldContinue: () => boolean
  ): Promise<ReadonlyArray<Attempt>> {
    const attempts = new Map<Sequenced, Attempt>()
    let left = batches
    await retryWhile(this.#cluster, shouldContinue, async () => {
      const made = await this.#attempt(left)
      for (const [index, batch] of left.entries()) attempts.set(batch, made[index]!)
      let unknown: unknown
      left = left.filter((_, index) => {
        const attempt = made[index]!
        if (!("error" in attempt) || isDefinite(attempt)) return false
        unknown = attempt.error
        return true
      })
      if (left.length > 0) throw unknown
    }).catch(() => undefined)
    return batches.map((batch) => attempts.get(batch)!)
  }

  /** What the leaders of partitions know of this producer; a leader that does not say is left out. */
  async states(partitions: ReadonlyArray<TopicPartition>): Promise<ReadonlyArray<ProducerState>> {
    await this.#learn(partitions)
    const byLeader = Map.groupBy(partitions, (partition) => this.#leaderOf(partition))
    const states = await Promise.all(
      [...byLeader].map(async ([nodeId, led]) => {
        const broker = await this.#cluster.findBroker({ nodeId })
        return [...(await this.#statesAt(broker, led)).values()]
      })
    )
    return states.flat()
  }

  /** Requests with batches count from here on. */
  startCounting(): void {
    this.#requests = 0
  }

  /**
   * The same once all batches are written. Where one request was enough, its leader has said it
   * already: behind several, one of them may have changed before the next.
   */
  async statesNow(
    partitions: ReadonlyArray<TopicPartition>
  ): Promise<ReadonlyArray<ProducerState>> {
    const isSaid =
      this.#requests === 1 && partitions.every((place) => this.#behindLast.has(keyOf(place)))
    if (isSaid) return [...this.#behindLast.values()]
    return this.states(partitions).catch(() => [])
  }

  async #learn(partitions: ReadonlyArray<TopicPartition>): Promise<void> {
    if (partitions.every(({ topic }) => this.#known.has(topic))) return
    const topics = [...new Set(partitions.map(({ topic }) => topic))]
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
          const made = await this.#produce(nodeId, led)
          for (const [index, batch] of led.entries()) attempts.set(batch, made[index]!)
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

  /**
   * The question for the states follows the batches on the same connection, whose requests a broker
   * serves in their order: no request waits for it.
   */
  async #produce(
    nodeId: string,
    batches: ReadonlyArray<Sequenced>
  ): Promise<ReadonlyArray<Attempt>> {
    const broker = await this.#cluster.findBroker({ nodeId })
    this.#requests++
    const [produced, states] = await Promise.all([
      broker.connectionPool.send(produceRequest(this.#transactionalId, batches)),
      this.#statesAt(broker, batches)
    ])
    this.#behindLast = states
    return Promise.all(batches.map((batch) => this.#outcomeOf(broker, batch, produced, states)))
  }

  /** This producer's states in partitions that the broker leads; what it doesn't tell is left out. */
  async #statesAt(
    broker: RawBroker,
    partitions: ReadonlyArray<TopicPartition>
  ): Promise<ReadonlyMap<string, ProducerState>> {
    const { producerId } = this.#identity
    const described = await broker.connectionPool
      .send(describeProducers(partitions, producerId))
      .catch(() => [])
    return new Map(described.map((state) => [keyOf(state), state]))
  }

  async #outcomeOf(
    broker: RawBroker,
    batch: Sequenced,
    produced: ReadonlyArray<Produced>,
    states: ReadonlyMap<string, ProducerState>
  ): Promise<Attempt> {
    const found = produced.find(
      ({ partition, topic }) => partition === batch.partition && topic === batch.topic
    )
    if (found === undefined) {
      return { error: new Error(`the broker's answer does not name ${keyOf(batch)}`) }
    }
    const { appendTime, baseOffset, errorCode } = found
    const isThere = errorCode === 0 || errorCode === DUPLICATE_SEQUENCE_NUMBER
    if (!isThere) return { error: errorOfCode(errorCode) }
    const isAppended = errorCode === 0 && appendTime === NO_TIME
    if (isAppended && this.#isLast(batch, states.get(keyOf(batch)))) return { baseOffset }
    return this.#readBack(broker, batch, baseOffset)
  }

  /**
   * Whether the last batch of this producer has the numbers and the time of this one. A repetition
   * of what another program wrote without times has no append time either, but it differs here.
   */
  #isLast({ bytes }: Sequenced, state: ProducerState | undefined): boolean {
    if (state === undefined) return false
    const last = bytes.readInt32BE(SEQUENCE_AT) + bytes.readInt32BE(COUNT_AT) - 1
    return (
      state.producerEpoch === this.#identity.producerEpoch
      && state.lastSequence === last % SEQUENCES
      && state.lastTimestamp === lastTimestampOf(bytes)
    )
  }

  async #readBack(broker: RawBroker, batch: Sequenced, baseOffset: number): Promise<Attempt> {
    if (baseOffset < 0) return { error: new BatchReplaced(batch, baseOffset) }
    const { bytes, errorCode } = await broker.connectionPool.send(fetchStored(batch, baseOffset))
    if (errorCode !== 0) {
      const error = errorOfCode(errorCode)
      const isGone = protocolErrorOf(error) === "OFFSET_OUT_OF_RANGE"
      return { error: isGone ? new BatchReplaced(batch, baseOffset) : error }
    }
    if (bytes === undefined) return { error: new NotReadYet(`${keyOf(batch)} at ${baseOffset}`) }
    return (await isStoredAs(batch.bytes, bytes, baseOffset))
      ? { baseOffset }
      : { error: new BatchReplaced(batch, baseOffset) }
  }
}

const isDefinite = (attempt: Attempt): boolean => "error" in attempt && !isRetriable(attempt.error)

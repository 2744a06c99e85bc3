/**
 * Writes records of one partition at the offsets that they had. What is between them (markers of
 * transactions, records that compaction has removed) becomes records of transactions that are aborted:
 * readers of committed records never see those. A transaction stays open over many gaps, because its
 * end costs a wait; its marker takes the last offset of a gap.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, type Scope } from "effect"
import {
  type Compression,
  publicTopics,
  type TopicKind,
  topicName
} from "../../domain/records/Topics.ts"
import type { PlacedWriter } from "../../ports/BackupLog.ts"
import { LogUnavailable } from "../../ports/EventLog.ts"
import { BatchSender } from "./protocol/BatchSender.ts"
import { errorOfCode, type KafkaSettings } from "./protocol/KafkaClient.ts"
import {
  fillerBatch,
  type PlacedBatch,
  type PlacedRecord,
  placedBatch
} from "./protocol/PlacedBatch.ts"
import {
  addPartitionsToTransaction,
  endTransaction,
  initProducerId,
  type ProducerIdentity
} from "./protocol/ProducerRequests.ts"
import { retryWhile } from "./protocol/Retry.ts"
import {
  acquireConnections,
  beforeDeadline,
  CONCURRENT_TRANSACTIONS,
  type Connections,
  fence,
  findCoordinator,
  TRANSACTION_TIMEOUT_MS,
  throwOnErrorCode
} from "./Writers.ts"

/** Records, and their bytes, of one batch at most. */
const BATCH_RECORDS_MAX = 5_000
const BATCH_BYTES_MAX = 4 * 1_048_576
/** Records that only take up offsets, in one batch. */
const FILLERS_MAX = 50_000
/** Milliseconds after which a transaction is ended: far below those after which the broker ends it. */
const OPEN_MS = 3_000
/** Milliseconds until the broker is asked again whether a marker is written. */
const MARKER_PAUSE_MS = 2

/** Where the last offset of the partition is, with what is not committed. */
type WrittenEnd = () => Promise<number>

/** Offsets that the end of a transaction takes. */
const MARKER_OFFSETS = 1

interface Parts {
  readonly connections: Connections
  readonly topic: string
  readonly partition: number
  readonly kind: TopicKind
  readonly transactionalId: string
  readonly identity: ProducerIdentity
  /** Outside of transactions. */
  readonly records: BatchSender
  /** Within transactions that are aborted. */
  readonly fillers: BatchSender
  readonly writtenEnd: WrittenEnd
}

class PartitionPlacer {
  readonly #parts: Parts
  #next = 0
  #time = Date.now()
  #openSince: number | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async write(records: ReadonlyArray<PlacedRecord>): Promise<void> {
    const runs = runsOf(records)
    for (const [index, run] of runs.entries()) {
      const [first] = run as [PlacedRecord]
      this.#time = first.timestamp
      const batches = batchesOf(run)
      // What is open while the next file is read, or much is written, could be ended by the broker.
      await this.#fill(first.offset, index === runs.length - 1 || batches.length > 1)
      for (const batch of batches) await this.#send(this.#parts.records, placedBatch(batch))
    }
  }

  async finish(to: number): Promise<void> {
    await this.#fill(to, true)
    if (this.#openSince !== undefined) await this.#abort()
  }

  /** `isLast`: a transaction does not stay open over this gap. */
  async #fill(to: number, isLast: boolean): Promise<void> {
    if (to < this.#next) throw new Error(`offset ${to} is taken: the records are not in order`)
    if (to === this.#next) return
    const isDue = isLast || this.#isOld
    const until = isDue ? to - MARKER_OFFSETS : to
    while (this.#next < until) {
      await this.#begin()
      const count = Math.min(FILLERS_MAX, until - this.#next)
      await this.#send(this.#parts.fillers, fillerBatch(count, this.#time))
      if (this.#isOld && this.#next < until) await this.#abort()
    }
    if (!isDue) return
    await this.#begin()
    await this.#abort()
  }

  get #isOld(): boolean {
    return this.#openSince !== undefined && performance.now() - this.#openSince > OPEN_MS
  }

  async #send(sender: BatchSender, { count, records, times }: PlacedBatch): Promise<void> {
    const { connections, kind, partition, topic } = this.#parts
    const packed = { topic: kind, partition, count, records }
    const batches = await sender.sequence([{ topic, partition, records: [], packed, times }])
    const [base] = await sender.send(batches, beforeDeadline(connections))
    if (base !== this.#next) {
      throw new Error(`records of ${topic} are at ${base}, not at ${this.#next}: another writer?`)
    }
    this.#next += count
  }

  async #begin(): Promise<void> {
    if (this.#openSince !== undefined) return
    const { connections, identity, partition, topic, transactionalId } = this.#parts
    const shouldContinue = beforeDeadline(connections)
    await retryWhile(connections.cluster, shouldContinue, async () => {
      for (;;) {
        const broker = await findCoordinator(connections, transactionalId)
        const added = [{ topic, partition }]
        const answer = await addPartitionsToTransaction(broker, transactionalId, identity, added)
        if (answer.errorCode === 0) return
        if (answer.errorCode !== CONCURRENT_TRANSACTIONS || !shouldContinue()) {
          throw errorOfCode(answer.errorCode)
        }
        await sleep(MARKER_PAUSE_MS)
      }
    })
    this.#openSince = performance.now()
  }

  /** The marker is written a moment after the answer: nothing may come before it. */
  async #abort(): Promise<void> {
    const { connections, identity, transactionalId, writtenEnd } = this.#parts
    const shouldContinue = beforeDeadline(connections)
    await retryWhile(connections.cluster, shouldContinue, async () => {
      const broker = await findCoordinator(connections, transactionalId)
      throwOnErrorCode(await endTransaction(broker, transactionalId, identity, "abort"))
    })
    this.#openSince = undefined
    this.#next += MARKER_OFFSETS
    while ((await writtenEnd()) < this.#next) {
      if (!shouldContinue()) throw new Error("the end of a transaction took too long")
      await sleep(MARKER_PAUSE_MS)
    }
  }
}

/** Records in pieces whose offsets follow each other without a gap. */
const runsOf = (
  records: ReadonlyArray<PlacedRecord>
): ReadonlyArray<ReadonlyArray<PlacedRecord>> => {
  const runs: Array<Array<PlacedRecord>> = []
  let next: number | undefined
  for (const record of records) {
    if (record.offset === next) runs.at(-1)!.push(record)
    else runs.push([record])
    next = record.offset + 1
  }
  return runs
}

const batchesOf = (
  run: ReadonlyArray<PlacedRecord>
): ReadonlyArray<ReadonlyArray<PlacedRecord>> => {
  const batches: Array<Array<PlacedRecord>> = []
  let bytes = 0
  for (const record of run) {
    const size = (record.key?.length ?? 0) + (record.value?.length ?? 0)
    const last = batches.at(-1)
    if (last === undefined || last.length >= BATCH_RECORDS_MAX || bytes + size > BATCH_BYTES_MAX) {
      batches.push([record])
      bytes = size
    } else {
      last.push(record)
      bytes += size
    }
  }
  return batches
}

export interface PlacedSettings {
  readonly kafka: KafkaSettings
  readonly prefix: string
  readonly publicCompression: Compression
  readonly writtenEnd: (topic: TopicKind, partition: number) => Promise<number>
}

const connect = async (
  { prefix, publicCompression, writtenEnd }: PlacedSettings,
  connections: Connections,
  kind: TopicKind,
  partition: number
): Promise<PartitionPlacer> => {
  const topic = topicName(prefix, kind)
  const { cluster } = connections
  const transactionalId = `${prefix}-restore-${kind}-${partition}`
  const identity = await fence(connections, transactionalId)
  const own = await retryWhile(cluster, beforeDeadline(connections), async () => {
    const broker = await cluster.findControllerBroker()
    return throwOnErrorCode(await initProducerId(broker, null, TRANSACTION_TIMEOUT_MS)).identity
  })
  const isPublic = publicTopics.some((name) => name === kind)
  const compressionOf = () => (isPublic ? publicCompression : "zstd")
  return new PartitionPlacer({
    connections,
    topic,
    partition,
    kind,
    transactionalId,
    identity,
    records: new BatchSender(cluster, null, own, { compressionOf }),
    fillers: new BatchSender(cluster, transactionalId, identity),
    writtenEnd: () => writtenEnd(kind, partition)
  })
}

/** The writer of an empty partition. */
export const makePlacedWriter = (
  settings: PlacedSettings,
  topic: TopicKind,
  partition: number
): Effect.Effect<PlacedWriter, LogUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* acquireConnections(settings.kafka, settings.prefix)
    const attempt = <A>(operation: string, run: () => Promise<A>) =>
      Effect.tryPromise({ try: run, catch: (cause) => new LogUnavailable({ operation, cause }) })
    const placer = yield* attempt("connect", () => connect(settings, connections, topic, partition))
    return {
      write: (records) => attempt("restore records", () => placer.write(records)),
      finish: (to) => attempt("restore records", () => placer.finish(to))
    }
  })

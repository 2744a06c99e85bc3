/**
 * The two ways in which alk writes to Kafka: appending outside of transactions (commands, progress)
 * and the fenced transactions of a sequencer. Both have one send in flight. BatchSender takes a
 * batch to its leader; this file has identities, transactions and their failures.
 */
import type net from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Metric, type Scope } from "effect"
import { counterOf } from "../../domain/metrics/Metrics.ts"
import {
  type Compression,
  publicTopics,
  type TopicKind,
  topicKinds,
  topicName
} from "../../domain/records/Topics.ts"
import {
  type LogAppender,
  LogUnavailable,
  type NewRecord,
  type PackedRecords,
  type Placed,
  type PlacedSigning,
  type TransactionalWriter,
  WriterFenced
} from "../../ports/EventLog.ts"
import { AppendedRecords } from "./AppendedRecords.ts"
import {
  checkOffsets,
  endOfBegun,
  OffsetConflict,
  SeenOffsets,
  TakenOver
} from "./ExpectedOffsets.ts"
import {
  BatchReplaced,
  BatchSender,
  countOf,
  type PartitionRecords,
  type Sequenced,
  toRequests
} from "./protocol/BatchSender.ts"
import {
  errorOfCode,
  isFenced,
  type KafkaSettings,
  makeCluster,
  protocolErrorOf,
  type RawBroker,
  type RawCluster,
  READ_UNCOMMITTED
} from "./protocol/KafkaClient.ts"
import {
  addPartitionsToTransaction,
  endTransaction,
  initProducerId,
  keyOf,
  type ProducerIdentity,
  type TopicPartition,
  type TransactionEnd
} from "./protocol/ProducerRequests.ts"
import { retryWhile } from "./protocol/Retry.ts"

/** Milliseconds after which the broker aborts a transaction that its writer left open. */
export const TRANSACTION_TIMEOUT_MS = 15_000
/** Milliseconds after which a commit, or a writer that cannot start, is given up. */
const GIVE_UP_MS = 20_000
/**
 * Milliseconds of nothing but CONCURRENT_TRANSACTIONS after which a transactional id is stuck: the
 * broker has ended what was left open by then, with what it waits between two looks (10 s).
 */
const STUCK_MS = TRANSACTION_TIMEOUT_MS + 10_000
/** Transactional ids that a writer tries, one after the other. */
const IDS_MAX = 10
/** Milliseconds for one request; longer than a leader waits for its followers. */
const REQUEST_TIMEOUT_MS = 14_000
/** Milliseconds that a request in flight has left to finish when the scope closes. */
const CLOSE_GRACE_MS = 2_000
/** Producer ids that one request of an appender is sent with, one after the other. */
const ATTEMPTS_MAX = 8
/** Milliseconds until the previous transaction of the same writer is looked at again. */
const CONCURRENT_MS = 1

const TRANSACTION_COORDINATOR = 1
/** The previous transaction is decided, but its markers are still being written. */
export const CONCURRENT_TRANSACTIONS = 51

/** kafkajs requests the metadata of every topic unless it has one to ask for. */
const FIRST_TOPIC = "commands"

/** A cluster whose connections end with the scope, at the latest when the grace is over. */
export class Connections {
  readonly cluster: RawCluster
  readonly #sockets = new Set<net.Socket>()
  #closed = false
  readonly #firstTopic: string

  constructor(settings: KafkaSettings, prefix: string) {
    this.cluster = makeCluster(settings, {
      requestTimeout: REQUEST_TIMEOUT_MS,
      sockets: this.#sockets,
      // Where the next record will be is after what is not committed, too.
      isolationLevel: READ_UNCOMMITTED
    })
    this.#firstTopic = topicName(prefix, FIRST_TOPIC)
  }

  get isClosed(): boolean {
    return this.#closed
  }

  async connect(): Promise<void> {
    if (!this.cluster.isConnected()) await this.cluster.connect()
    await this.cluster.addMultipleTargetTopics([this.#firstTopic])
  }

  async close(): Promise<void> {
    this.#closed = true
    const closed = this.cluster.disconnect().catch(() => undefined)
    await Promise.race([closed, sleep(CLOSE_GRACE_MS)])
    for (const socket of this.#sockets) socket.destroy(new Error("the writer was closed"))
  }
}

/** Whether it is not too late yet. */
export const beforeDeadline = (connections: Connections): (() => boolean) => {
  const late = performance.now() + GIVE_UP_MS
  return () => !connections.isClosed && performance.now() < late
}

/** What takes too long is left alone; it stops by itself at the next `shouldContinue`. */
const within = async <A>(work: Promise<A>, what: string, ms = GIVE_UP_MS): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took too long`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

export const throwOnErrorCode = <Answer extends { readonly errorCode: number }>(
  answer: Answer
): Answer => {
  if (answer.errorCode !== 0) throw errorOfCode(answer.errorCode)
  return answer
}

export const acquireConnections = (
  settings: KafkaSettings,
  prefix: string
): Effect.Effect<Connections, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Connections(settings, prefix)),
    (connections) => Effect.promise(() => connections.close())
  )

/** Whether another program writes with the producer id of the appender: a new one helps. */
const isIdTaken = (error: unknown): boolean =>
  error instanceof BatchReplaced
  || isFenced(error)
  || protocolErrorOf(error) === "OUT_OF_ORDER_SEQUENCE_NUMBER"

/** Takes what a writer failed with; what another program has written in its place is told. */
type Report = (error: unknown) => void

const replacedRecords = counterOf("alk_records_malformed_total")

const sayReplaced = (prefix: string, { message, offset, place }: BatchReplaced) => {
  const topic = topicKinds.find((kind) => topicName(prefix, kind) === place.topic) ?? place.topic
  return Effect.andThen(
    Effect.logError(message, { topic, partition: place.partition, offset }),
    Metric.update(Metric.withAttributes(replacedRecords, { topic }), 1)
  )
}

const makeReport = (prefix: string): Effect.Effect<Report> =>
  Effect.map(Effect.context(), (context) => (error) => {
    if (error instanceof BatchReplaced) Effect.runForkWith(context)(sayReplaced(prefix, error))
  })

/** Appends one call after the other, each until it is written or refused. */
class Appender {
  readonly #connections: Connections
  readonly #prefix: string
  readonly #appended: AppendedRecords
  readonly #report: Report
  #sender: BatchSender | undefined
  #tail: Promise<void> = Promise.resolve()

  constructor(connections: Connections, prefix: string, appended: AppendedRecords, report: Report) {
    this.#connections = connections
    this.#prefix = prefix
    this.#appended = appended
    this.#report = report
  }

  async connect(shouldContinue: () => boolean): Promise<void> {
    this.#sender = await this.#makeSender(shouldContinue)
  }

  /** `signal` takes the call out of the queue for as long as its turn has not come. */
  append(records: ReadonlyArray<NewRecord>, signal: AbortSignal): Promise<void> {
    const turn = this.#tail.then(() => {
      signal.throwIfAborted()
      return this.#send(records)
    })
    this.#tail = turn.catch(() => undefined)
    return turn
  }

  async #send(records: ReadonlyArray<NewRecord>): Promise<void> {
    const shouldContinue = () => !this.#connections.isClosed
    if (!shouldContinue()) throw new Error("the writer was closed")
    for (const request of toRequests(this.#prefix, records)) {
      let left = request
      for (let attempts = 1; left.length > 0; attempts++) {
        left = await this.#sendOnce(left, shouldContinue, attempts < ATTEMPTS_MAX)
      }
    }
  }

  /** What has to be sent again, with another producer id; `mayRepeat` says whether it can be. */
  async #sendOnce(
    request: ReadonlyArray<PartitionRecords>,
    shouldContinue: () => boolean,
    mayRepeat: boolean
  ): Promise<ReadonlyArray<PartitionRecords>> {
    const sender = (this.#sender ??= await this.#makeSender(shouldContinue))
    // Until all is written: after a failure sequence numbers may be taken or not, and a new producer
    // id starts over at 0.
    this.#sender = undefined
    const attempts = await sender.sendEach(await sender.sequence(request), shouldContinue)
    const refused = request.filter((part, index) => {
      const attempt = attempts[index]!
      if ("error" in attempt) return true
      this.#appended.written(part.records, attempt.baseOffset)
      return false
    })
    if (refused.length === 0) {
      this.#sender = sender
      return []
    }
    const errors = attempts.flatMap((attempt) => ("error" in attempt ? [attempt.error] : []))
    for (const error of errors) this.#report(error)
    const other = mayRepeat ? errors.find((error) => !isIdTaken(error)) : errors[0]
    if (other !== undefined) throw other
    return refused
  }

  #makeSender(shouldContinue: () => boolean): Promise<BatchSender> {
    const { cluster } = this.#connections
    const make = async () => {
      await this.#connections.connect()
      const broker = await cluster.findControllerBroker()
      const { identity } = throwOnErrorCode(
        await initProducerId(broker, null, TRANSACTION_TIMEOUT_MS)
      )
      return new BatchSender(cluster, null, identity)
    }
    return retryWhile(cluster, shouldContinue, make)
  }
}

/**
 * A writer outside of transactions. Calls are served one after the other; a call whose caller has
 * gone is dropped before its turn, and finished once it has begun.
 */
export const makeAppender = (
  settings: KafkaSettings,
  prefix: string,
  appended = new AppendedRecords()
): Effect.Effect<LogAppender, LogUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* acquireConnections(settings, prefix)
    const appender = new Appender(connections, prefix, appended, yield* makeReport(prefix))
    yield* Effect.tryPromise({
      try: () => within(appender.connect(beforeDeadline(connections)), "connecting"),
      catch: (cause) => new LogUnavailable({ operation: "connect", cause })
    })
    return {
      append: (records) =>
        Effect.tryPromise({
          try: (signal) => appender.append(records, signal),
          catch: (cause) => new LogUnavailable({ operation: "append", cause })
        })
    }
  })

/** What a transaction writes first. */
type FirstRecord = NewRecord | PackedRecords

/** As long as it is not known where they will be. */
const anyOffsets = (groups: ReadonlyArray<ReadonlyArray<FirstRecord>>): Placed["offsets"] =>
  Object.fromEntries(groups.map(([record]) => [record!.topic, 0]))

const recordsIn = (records: ReadonlyArray<FirstRecord>): number =>
  records.reduce((sum, record) => sum + ("records" in record ? record.count : 1), 0)

/** A transaction that begins with all partitions that it writes to. */
interface Begun {
  readonly partitions: ReadonlyMap<string, TopicPartition>
  /** Succeeds once they are part of the transaction. */
  readonly added: Promise<void>
  /** Where its first record is in each partition that has one yet. */
  readonly begins: Map<string, number>
  readonly shouldContinue: () => boolean
}

/** Offsets that the end of a transaction takes in each of its partitions. */
const MARKER_RECORDS = 1

export interface WriterOptions {
  /** Of records of public topics, zstd unless it is said. */
  readonly publicCompression?: Compression | undefined
  readonly placed?: PlacedSigning | undefined
  /** Milliseconds; as long as a transaction of alk can take unless it is said. */
  readonly stuckAfterMs?: number | undefined
}

const NOTHING_PLACED: PlacedSigning = {
  topics: new Set(),
  sign: (record) => record,
  isGenuine: () => false
}

/** The coordinator takes the identity of a writer, and the leader of a partition has a higher epoch. */
class IdSpoilt extends Error {
  override readonly name = "IdSpoilt"
}

/** Another writer with the same transactional id has been started in the meantime. */
const PRODUCER_FENCED = 90

/** One transaction after the other, until the first that fails. */
class Transactions {
  readonly #connections: Connections
  readonly #prefix: string
  readonly #transactionalId: string
  readonly #publicCompression: Compression
  #identity: ProducerIdentity
  #sender: BatchSender
  #coordinator: RawBroker | undefined
  /** False during a transaction and for ever after one that failed. */
  #usable = true
  /** Where the next first record of a partition will be, after what this writer wrote there. */
  readonly #nextOffsets = new Map<string, number>()
  readonly #placed: PlacedSigning
  readonly #seen: SeenOffsets
  readonly #stuckAfterMs: number

  constructor(
    connections: Connections,
    prefix: string,
    transactionalId: string,
    identity: ProducerIdentity,
    { placed = NOTHING_PLACED, publicCompression = "zstd", stuckAfterMs = STUCK_MS }: WriterOptions
  ) {
    this.#placed = placed
    this.#seen = new SeenOffsets(connections.cluster, prefix, placed)
    this.#stuckAfterMs = stuckAfterMs
    this.#connections = connections
    this.#prefix = prefix
    this.#transactionalId = transactionalId
    this.#publicCompression = publicCompression
    this.#identity = identity
    this.#sender = this.#makeSender()
  }

  #makeSender(): BatchSender {
    const forOthers = new Set(publicTopics.map((kind) => topicName(this.#prefix, kind)))
    return new BatchSender(this.#connections.cluster, this.#transactionalId, this.#identity, {
      compressionOf: (topic) => (forOthers.has(topic) ? this.#publicCompression : "zstd")
    })
  }

  /**
   * Another producer id with the same transactional id, which fences as every start does. The
   * coordinator gives one once the epochs of the old one are used up, which are 32,767.
   * @throws PRODUCER_FENCED if another writer is started in the meantime: an epoch is missing then,
   *   IdStuck if the coordinator gives none
   */
  async renew(signal: AbortSignal): Promise<void> {
    const { cluster } = this.#connections
    const spoilt = this.#identity.producerId
    const shouldContinue = () => !this.#connections.isClosed && !signal.aborted
    const identities = new Identities(this.#connections, this.#transactionalId, this.#stuckAfterMs)
    this.#identity = await retryWhile(cluster, shouldContinue, async () => {
      const ask = () => {
        signal.throwIfAborted()
        return identities.next()
      }
      let known = await ask()
      while (known.producerId === spoilt) {
        const next = await ask()
        const isNext =
          next.producerId === spoilt
            ? next.producerEpoch === known.producerEpoch + 1
            : next.producerEpoch === 0
        if (!isNext) throw errorOfCode(PRODUCER_FENCED)
        known = next
      }
      return known
    })
    this.#sender = this.#makeSender()
    this.#forgetPlaces()
    this.#usable = true
  }

  async commit(
    first: ReadonlyArray<FirstRecord>,
    then: (placed: Placed) => ReadonlyArray<NewRecord>
  ): Promise<void> {
    if (!this.#usable) throw new Error("an earlier transaction of this writer failed")
    this.#usable = false
    await within(this.#runUntilPlaced(first, then), "the transaction")
    this.#usable = true
  }

  /** Where another writer may have begun since, its records have to be seen: that is not asked anew. */
  #forgetPlaces(): void {
    this.#nextOffsets.clear()
    for (const [key, { offset }] of this.#seen.places) this.#nextOffsets.set(key, offset)
  }

  /**
   * Records that are not where they were expected are aborted, and written where there is room.
   * @throws TakenOver if another owner has written what is in their place
   */
  async #runUntilPlaced(
    first: ReadonlyArray<FirstRecord>,
    then: (placed: Placed) => ReadonlyArray<NewRecord>
  ): Promise<void> {
    const shouldContinue = beforeDeadline(this.#connections)
    for (;;) {
      try {
        return await this.#run(first, then, shouldContinue)
      } catch (error) {
        if (error instanceof IdSpoilt) await this.#endOwn(shouldContinue)
        if (!(error instanceof OffsetConflict && shouldContinue())) throw error
        await this.#end("abort", shouldContinue)
        await this.#seen.lookOn(shouldContinue)
        this.#forgetPlaces()
      }
    }
  }

  async #run(
    first: ReadonlyArray<FirstRecord>,
    then: (placed: Placed) => ReadonlyArray<NewRecord>,
    shouldContinue: () => boolean
  ): Promise<void> {
    const groups = [...Map.groupBy(first, ({ topic }) => topic).values()]
    const expected = this.#expectedOffsets(groups)
    // Which partitions there are depends on no offset.
    const planned = then({ offsets: expected ?? anyOffsets(groups) })
    const begun = this.#begin([...first, ...planned], shouldContinue)
    const offsets = expected ?? (await this.#placeAll(groups, begun))
    const following = expected === undefined ? then({ offsets }) : planned
    const next = new Map<string, number>()
    const others = await this.#signed(following, next, begun)
    if (expected !== undefined) {
      for (const [record] of groups) next.set(this.#keyOf(record!), offsets[record!.topic]!)
    }
    const left = expected === undefined ? others : [...first, ...others]
    for (const request of toRequests(this.#prefix, left)) {
      checkOffsets(request, await this.#write(request, begun), next)
    }
    await begun.added
    if (begun.partitions.size > 0) {
      const partitions = [...begun.partitions.values()]
      const states = await this.#sender.statesNow(partitions)
      const ended = endOfBegun(begun.begins, states)
      if (ended !== undefined) await this.#refuse(ended, partitions, shouldContinue)
      await this.#end("commit", shouldContinue)
    }
    for (const records of groups) {
      const [first] = records as [FirstRecord]
      next.set(this.#keyOf(first), offsets[first.topic]! + recordsIn(records))
    }
    for (const [key, end] of next) {
      this.#nextOffsets.set(key, end + MARKER_RECORDS)
      // Others may have written before the marker.
      this.#seen.wroteUpTo(key, end)
    }
  }

  /**
   * All partitions at once, before the first record: later that could begin another transaction, where
   * another program has ended this one, and it would be committed without what came before.
   */
  #begin(records: ReadonlyArray<FirstRecord>, shouldContinue: () => boolean): Begun {
    const partitions = new Map<string, TopicPartition>()
    for (const { partition, topic } of records) {
      const place = { topic: topicName(this.#prefix, topic), partition }
      partitions.set(keyOf(place), place)
    }
    this.#sender.startCounting()
    const added = this.#addAll([...partitions.values()], shouldContinue)
    // Its users wait for it; what fails before says why.
    added.catch(() => undefined)
    return { partitions, added, begins: new Map(), shouldContinue }
  }

  async #addAll(
    partitions: ReadonlyArray<TopicPartition>,
    shouldContinue: () => boolean
  ): Promise<void> {
    if (partitions.length === 0) return
    await this.#checkEpochs(partitions)
    await this.#add(partitions, shouldContinue)
  }

  /** Where the batches are, once they are written. */
  async #write(
    request: ReadonlyArray<PartitionRecords>,
    { added, begins, partitions, shouldContinue }: Begun
  ): Promise<ReadonlyArray<number>> {
    const other = request.find((part) => !partitions.has(keyOf(part)))
    if (other !== undefined) throw new Error(`the transaction began without ${keyOf(other)}`)
    const [sequenced] = await Promise.all([this.#sender.sequence(request), added])
    const bases = await this.#send(sequenced, shouldContinue)
    for (const [index, part] of request.entries()) {
      const key = keyOf(part)
      if (!begins.has(key)) begins.set(key, bases[index]!)
    }
    return bases
  }

  /**
   * Records that are signed with their offsets are, as if there were no other writer; `next` says
   * where the first of each partition is expected.
   */
  async #signed(
    records: ReadonlyArray<NewRecord>,
    next: Map<string, number>,
    begun: Begun
  ): Promise<ReadonlyArray<NewRecord>> {
    const { topics } = this.#placed
    const ends = new Map<string, number>()
    const signed: Array<NewRecord> = []
    for (const record of records) {
      if (!topics.has(record.topic)) {
        signed.push(record)
        continue
      }
      const key = this.#keyOf(record)
      const offset = ends.get(key) ?? (await this.#nextOffset(record, begun))
      if (!next.has(key)) next.set(key, offset)
      ends.set(key, offset + 1)
      signed.push(this.#placed.sign(record, offset))
    }
    return signed
  }

  /** After the first that is asked for, this writer knows its own. */
  async #nextOffset(
    record: Pick<NewRecord, "partition" | "topic">,
    { added, shouldContinue }: Begun
  ): Promise<number> {
    const known = this.#nextOffsets.get(this.#keyOf(record))
    if (known !== undefined) return known
    const topic = topicName(this.#prefix, record.topic)
    const { partition } = record
    // From here on the end of the transaction before has its marker.
    await added
    const { cluster } = this.#connections
    const offset = await retryWhile(cluster, shouldContinue, async () => {
      await cluster.addMultipleTargetTopics([topic])
      const [found] = await cluster.fetchTopicsOffset([
        { topic, partitions: [{ partition }], fromBeginning: false }
      ])
      return Number(found!.partitions[0]!.offset)
    })
    this.#seen.beginAt(this.#keyOf(record), { topic: record.topic, partition, offset })
    return offset
  }

  #keyOf({ partition, topic }: Pick<NewRecord, "partition" | "topic">): string {
    return keyOf({ topic: topicName(this.#prefix, topic), partition })
  }

  /**
   * Where the records that come first will be, if this writer knows that of all of them: it alone
   * writes there. What depends on it can go with them in one request.
   */
  #expectedOffsets(
    groups: ReadonlyArray<ReadonlyArray<FirstRecord>>
  ): Placed["offsets"] | undefined {
    const offsets: Partial<Record<TopicKind, number>> = {}
    for (const records of groups) {
      const [first] = records as [FirstRecord]
      const offset = this.#nextOffsets.get(this.#keyOf(first))
      const isOnePartition = records.every(({ partition }) => partition === first.partition)
      if (offset === undefined || !isOnePartition) return undefined
      offsets[first.topic] = offset
    }
    return offsets
  }

  async #placeAll(
    groups: ReadonlyArray<ReadonlyArray<FirstRecord>>,
    begun: Begun
  ): Promise<Placed["offsets"]> {
    const offsets: Partial<Record<TopicKind, number>> = {}
    for (const records of groups) {
      offsets[records[0]!.topic] = await this.#place(records, begun)
    }
    return offsets
  }

  /** Write the records that come first, in one piece, and say where they are. */
  async #place(first: ReadonlyArray<FirstRecord>, begun: Begun): Promise<number> {
    let firstOffset: number | undefined
    let sent = 0
    for (const request of toRequests(this.#prefix, first)) {
      const [base, ...others] = await this.#write(request, begun)
      firstOffset ??= base!
      if (base! < 0 || base !== firstOffset + sent || others.length > 0) {
        throw new Error(`records are at ${base}, not at ${firstOffset + sent}: another writer?`)
      }
      sent += countOf(request[0]!)
    }
    return firstOffset!
  }

  /**
   * Before a partition is part of the transaction: with an epoch that its leader refuses it could not
   * be ended any more, because the leader refuses the end as well and the coordinator gives up.
   */
  async #checkEpochs(partitions: ReadonlyArray<TopicPartition>): Promise<void> {
    const states = await this.#sender.states(partitions).catch(() => [])
    const { producerEpoch } = this.#identity
    const higher = states.find((state) => state.producerEpoch > producerEpoch)
    if (higher === undefined) return
    throw new IdSpoilt(
      `a batch in ${keyOf(higher)} has the producer id of alk and the epoch ${higher.producerEpoch}, `
        + `which is above ${producerEpoch}`
    )
  }

  async #send(
    batches: ReadonlyArray<Sequenced>,
    shouldContinue: () => boolean
  ): Promise<ReadonlyArray<number>> {
    try {
      return await this.#sender.send(batches, shouldContinue)
    } catch (error) {
      if (!isFenced(error)) throw error
      const names = batches.map(keyOf).join(", ")
      const why = `a leader of ${names} refuses the epoch that the coordinator takes`
      return await this.#refuse(why, batches, shouldContinue)
    }
  }

  /** @throws if a newer writer has fenced this one, else an Error that says why */
  async #refuse(
    why: string,
    partitions: ReadonlyArray<TopicPartition>,
    shouldContinue: () => boolean
  ): Promise<never> {
    // Only asks whether the identity counts: whatever this would begin is never committed.
    await this.#add(partitions, shouldContinue)
    throw new Error(why)
  }

  /** Abort what is open. @throws if this writer has been fenced */
  async #endOwn(shouldContinue: () => boolean): Promise<void> {
    await this.#end("abort", shouldContinue).catch((error: unknown) => {
      if (protocolErrorOf(error) !== "INVALID_TXN_STATE") throw error
    })
  }

  /** The transaction begins with this; it waits until the previous one has its markers. */
  #add(missing: ReadonlyArray<TopicPartition>, shouldContinue: () => boolean): Promise<void> {
    return retryWhile(this.#connections.cluster, shouldContinue, async () => {
      try {
        for (;;) {
          const broker = await this.#findCoordinator()
          const { errorCode } = await addPartitionsToTransaction(
            broker,
            this.#transactionalId,
            this.#identity,
            missing
          )
          if (errorCode === 0) return
          if (errorCode !== CONCURRENT_TRANSACTIONS || !shouldContinue())
            throw errorOfCode(errorCode)
          await sleep(CONCURRENT_MS)
        }
      } catch (error) {
        this.#coordinator = undefined
        throw error
      }
    })
  }

  /**
   * An answer says what became of the commit, or that another broker decides. A lost answer says
   * nothing, and the request must not be repeated: a late one would end the next transaction.
   */
  async #end(end: TransactionEnd, shouldContinue: () => boolean): Promise<void> {
    const answered = await retryWhile(this.#connections.cluster, shouldContinue, async () => {
      const broker = await this.#findCoordinator()
      if (!shouldContinue()) throw new Error("the transaction took too long")
      const id = this.#transactionalId
      const outcome = await endTransaction(broker, id, this.#identity, end).then(
        ({ errorCode }) => ({ errorCode }),
        (lost: unknown) => ({ lost })
      )
      if ("lost" in outcome || outcome.errorCode === 0) return outcome
      this.#coordinator = undefined
      throw errorOfCode(outcome.errorCode)
    })
    if ("lost" in answered) throw answered.lost
  }

  async #findCoordinator(): Promise<RawBroker> {
    return (this.#coordinator ??= await findCoordinator(this.#connections, this.#transactionalId))
  }
}

/** The broker that decides on the transactions of an id. */
export const findCoordinator = (
  { cluster }: Connections,
  transactionalId: string
): Promise<RawBroker> =>
  cluster.findGroupCoordinator({
    groupId: transactionalId,
    coordinatorType: TRANSACTION_COORDINATOR
  })

/** The coordinator can't end the last transaction of an id: nothing ever begins another one. */
class IdStuck extends Error {
  override readonly name = "IdStuck"
}

/** Identities of one transactional id. Each fences every earlier one and ends what it left open. */
class Identities {
  readonly #connections: Connections
  readonly #transactionalId: string
  readonly #stuckAfterMs: number
  /** Since when the coordinator has answered nothing but CONCURRENT_TRANSACTIONS. */
  #concurrentSince: number | undefined

  constructor(connections: Connections, transactionalId: string, stuckAfterMs: number) {
    this.#connections = connections
    this.#transactionalId = transactionalId
    this.#stuckAfterMs = stuckAfterMs
  }

  get isWaiting(): boolean {
    return this.#concurrentSince !== undefined
  }

  /** @throws IdStuck */
  async next(): Promise<ProducerIdentity> {
    const since = this.#concurrentSince
    this.#concurrentSince = undefined
    await this.#connections.connect()
    const id = this.#transactionalId
    const broker = await findCoordinator(this.#connections, id)
    const answer = await initProducerId(broker, id, TRANSACTION_TIMEOUT_MS)
    if (answer.errorCode === CONCURRENT_TRANSACTIONS) {
      const now = performance.now()
      this.#concurrentSince = since ?? now
      if (now - this.#concurrentSince >= this.#stuckAfterMs) {
        throw new IdStuck(`the broker does not end the last transaction of ${id}`)
      }
    }
    return throwOnErrorCode(answer).identity
  }
}

/**
 * An identity that fences every earlier writer of the same id and ends what it left open.
 * @throws IdStuck
 */
export const fence = (
  connections: Connections,
  transactionalId: string,
  stuckAfterMs = STUCK_MS
): Promise<ProducerIdentity> => {
  const identities = new Identities(connections, transactionalId, stuckAfterMs)
  const isInTime = beforeDeadline(connections)
  const shouldContinue = () => isInTime() || (identities.isWaiting && !connections.isClosed)
  return retryWhile(connections.cluster, shouldContinue, () => identities.next())
}

/**
 * The first id of a writer that is not stuck: its name, or that with a number behind it. All take
 * them in this order, so owners that follow each other meet at the same one. Where one got stuck
 * between them, the places of their records fence the older one.
 */
const takeId = Effect.fnUntraced(function* (
  connections: Connections,
  name: string,
  stuckAfterMs: number
) {
  for (let count = 1; ; count++) {
    const transactionalId = count === 1 ? name : `${name}-${count}`
    const attempt = () =>
      within(
        fence(connections, transactionalId, stuckAfterMs),
        "fencing",
        GIVE_UP_MS + stuckAfterMs
      )
    const taken = yield* Effect.tryPromise({
      try: attempt,
      catch: (cause) => new LogUnavailable({ operation: "fence", cause })
    }).pipe(
      Effect.map((identity) => ({ transactionalId, identity })),
      Effect.catch((failure) =>
        failure.cause instanceof IdStuck && count < IDS_MAX
          ? Effect.as(
              Effect.logError(
                `${failure.cause.message}: a leader refuses its end, most likely because another `
                  + "program has written with its producer id. The next transactional id is taken",
                { transactionalId }
              ),
              undefined
            )
          : Effect.fail(failure)
      )
    )
    if (taken !== undefined) return taken
  }
})

/**
 * A writer that has just fenced every earlier one with the same transactional id: `name`, or what
 * `takeId` makes of it. What it writes to public topics is compressed as their readers can take it,
 * the rest with zstd.
 */
export const makeTransactionalWriter = (
  settings: KafkaSettings,
  prefix: string,
  name: string,
  options: WriterOptions = {}
): Effect.Effect<TransactionalWriter, LogUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* acquireConnections(settings, prefix)
    const report = yield* makeReport(prefix)
    const { stuckAfterMs = STUCK_MS } = options
    const { identity, transactionalId } = yield* takeId(connections, name, stuckAfterMs)
    const transactions = new Transactions(connections, prefix, transactionalId, identity, options)
    const toFailure = (cause: unknown) =>
      isFenced(cause) || cause instanceof TakenOver
        ? new WriterFenced({ transactionalId, cause })
        : new LogUnavailable({ operation: "transaction", cause })
    const commit: TransactionalWriter["commit"] = (first, then) =>
      Effect.tryPromise({ try: () => transactions.commit(first, then), catch: toFailure }).pipe(
        Effect.tapError(({ cause }) => Effect.sync(() => report(cause))),
        Effect.uninterruptible
      )
    const renew = Effect.fnUntraced(function* (spoilt: IdSpoilt) {
      yield* Effect.logError(`${spoilt.message}: another program has written it`, {
        transactionalId
      })
      yield* Effect.logInfo("a new producer id is asked for, which takes a while", {
        transactionalId
      })
      yield* Effect.tryPromise({ try: (signal) => transactions.renew(signal), catch: toFailure })
      yield* Effect.logInfo("the writer has a new producer id", { transactionalId })
    })
    return {
      commit: (first, then) =>
        Effect.catch(commit(first, then), (failure) =>
          failure.cause instanceof IdSpoilt
            ? Effect.andThen(renew(failure.cause), commit(first, then))
            : Effect.fail(failure)
        )
    }
  })

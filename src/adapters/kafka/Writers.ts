/**
 * The two ways in which alk writes to Kafka: appending outside of transactions (commands, progress)
 * and the fenced transactions of a sequencer. Both have one send in flight and are thrown away after
 * the first failure, because kafkajs reuses sequence numbers after an outcome that it doesn't know.
 */
import { Effect, Scope } from "effect"
import type {
  ICustomPartitioner,
  Kafka,
  Producer,
  RecordMetadata,
  TopicMessages,
  Transaction
} from "kafkajs"
import { SEND_BYTES_MAX, SEND_RECORDS_MAX, topicName } from "../../domain/Topics.ts"
import {
  LogUnavailable,
  WriterFenced,
  type LogAppender,
  type NewRecord,
  type Placed,
  type TransactionalWriter
} from "../../ports/EventLog.ts"
import { isFenced, RETRY, ZSTD } from "./KafkaClient.ts"

/** Milliseconds after which the broker aborts a transaction that its writer left open. */
const TRANSACTION_TIMEOUT_MS = 15_000
/** Attempts within one send of a transaction; with RETRY that is longer than its timeout. */
const TRANSACTION_RETRIES = 40

/** Partitions are always chosen by us; a message without one is a mistake, not a matter of luck. */
const explicitPartition: ICustomPartitioner = () => ({ message, topic }) => {
  if (message.partition === undefined) throw new Error(`a record for ${topic} without a partition`)
  return message.partition
}

const size = (value: string | Buffer | null): number =>
  value === null ? 0 : typeof value === "string" ? Buffer.byteLength(value) : value.length

/** Cut records into sends that kafkajs digests well: see SEND_RECORDS_MAX. */
export const toSends = (
  records: ReadonlyArray<NewRecord>
): ReadonlyArray<ReadonlyArray<NewRecord>> => {
  const sends: Array<Array<NewRecord>> = []
  let current: Array<NewRecord> = []
  let bytes = 0
  for (const record of records) {
    const more = size(record.value)
    if (
      current.length > 0 &&
      (current.length >= SEND_RECORDS_MAX || bytes + more > SEND_BYTES_MAX)
    ) {
      sends.push(current)
      current = []
      bytes = 0
    }
    current.push(record)
    bytes += more
  }
  if (current.length > 0) sends.push(current)
  return sends
}

const toTopicMessages = (
  prefix: string,
  records: ReadonlyArray<NewRecord>
): Array<TopicMessages> => {
  const byTopic = new Map<string, TopicMessages["messages"]>()
  for (const record of records) {
    const topic = topicName(prefix, record.topic)
    const message = {
      key: record.key,
      value: record.value,
      partition: record.partition,
      ...(record.headers === undefined ? {} : { headers: record.headers })
    }
    const messages = byTopic.get(topic)
    if (messages === undefined) byTopic.set(topic, [message])
    else messages.push(message)
  }
  return [...byTopic].map(([topic, messages]) => ({ topic, messages }))
}

const disconnect = (producer: Producer): Effect.Effect<void> =>
  Effect.promise(() => producer.disconnect().catch(() => undefined))

/** A writer outside of transactions. Calls are served one after the other. */
export const makeAppender = (
  kafka: Kafka,
  prefix: string
): Effect.Effect<LogAppender, LogUnavailable, Scope.Scope> =>
  Effect.gen(function*() {
    let producer: Producer | undefined
    yield* Effect.addFinalizer(() =>
      producer === undefined ? Effect.void : disconnect(producer)
    )
    const connect = async (): Promise<Producer> => {
      const made = kafka.producer({
        idempotent: true,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        createPartitioner: explicitPartition,
        retry: { ...RETRY, retries: Number.MAX_SAFE_INTEGER }
      })
      await made.connect()
      return made
    }
    const discard = async (): Promise<void> => {
      const failed = producer
      producer = undefined
      await failed?.disconnect().catch(() => undefined)
    }
    let tail: Promise<void> = Promise.resolve()
    const send = async (records: ReadonlyArray<NewRecord>): Promise<void> => {
      producer ??= await connect()
      for (const part of toSends(records)) {
        await producer.sendBatch({
          acks: -1,
          compression: ZSTD,
          topicMessages: toTopicMessages(prefix, part)
        })
      }
    }
    const append = (records: ReadonlyArray<NewRecord>): Effect.Effect<void, LogUnavailable> =>
      Effect.tryPromise({
        try: () => {
          const turn = tail.then(async () => {
            try {
              await send(records)
            } catch (error) {
              await discard()
              throw error
            }
          })
          tail = turn.catch(() => undefined)
          return turn
        },
        catch: (cause) => new LogUnavailable({ operation: "append", cause })
      })
    yield* Effect.tryPromise({
      try: async () => {
        producer = await connect()
      },
      catch: (cause) => new LogUnavailable({ operation: "connect", cause })
    })
    return { append }
  })

const sendFirst = async (
  transaction: Transaction,
  prefix: string,
  first: ReadonlyArray<NewRecord>
): Promise<Placed> => {
  let firstOffset: number | undefined
  let sent = 0
  for (const part of toSends(first)) {
    const reply: ReadonlyArray<RecordMetadata> = await transaction.sendBatch({
      acks: -1,
      compression: ZSTD,
      topicMessages: toTopicMessages(prefix, part)
    })
    const base = Number(reply[0]?.baseOffset)
    firstOffset ??= base
    if (reply.length !== 1 || base !== firstOffset + sent) {
      throw new Error(`records stand at ${base}, not at ${firstOffset + sent}: another writer?`)
    }
    sent += part.length
  }
  return { firstOffset }
}

/** A writer that has just fenced every earlier one with the same transactional id. */
export const makeTransactionalWriter = (
  kafka: Kafka,
  prefix: string,
  transactionalId: string
): Effect.Effect<TransactionalWriter, LogUnavailable, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const producer = kafka.producer({
      transactionalId,
      transactionTimeout: TRANSACTION_TIMEOUT_MS,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      createPartitioner: explicitPartition,
      retry: { ...RETRY, retries: TRANSACTION_RETRIES }
    })
    yield* Scope.addFinalizer(scope, disconnect(producer))
    yield* Effect.tryPromise({
      try: async () => {
        await producer.connect()
        // The first transaction asks for the producer id: that is what fences the others.
        const opening = await producer.transaction()
        await opening.abort()
      },
      catch: (cause) => new LogUnavailable({ operation: "fence", cause })
    })
    const commit: TransactionalWriter["commit"] = (first, then) =>
      Effect.tryPromise({
        try: async () => {
          const transaction = await producer.transaction()
          const placed = await sendFirst(transaction, prefix, first)
          for (const part of toSends(then(placed))) {
            await transaction.sendBatch({
              acks: -1,
              compression: ZSTD,
              topicMessages: toTopicMessages(prefix, part)
            })
          }
          await transaction.commit()
        },
        catch: (cause) =>
          isFenced(cause)
            ? new WriterFenced({ transactionalId, cause })
            : new LogUnavailable({ operation: "transaction", cause })
      }).pipe(Effect.uninterruptible)
    return { commit }
  })


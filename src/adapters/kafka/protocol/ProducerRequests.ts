/**
 * The requests around producing: a producer id, a transaction's partitions, its end. Each returns
 * the broker's error code instead of throwing it, because most of these codes only mean "not yet".
 * Source: Kafka's protocol guide; the encoders are those of kafkajs.
 */
import { createRequire } from "node:module"
import type { RawBroker } from "./KafkaClient.ts"

const require = createRequire(import.meta.url)

const { requests } = require("kafkajs/src/protocol/requests") as {
  readonly requests: Record<"InitProducerId" | "AddPartitionsToTxn" | "EndTxn", unknown>
}

const INIT_PRODUCER_ID = 22
const ADD_PARTITIONS_TO_TXN = 24
const END_TXN = 26

/** Other partitions of the same request failed, so nothing was tried on this one. */
const OPERATION_NOT_ATTEMPTED = 55

/** A producer as the brokers know it: a newer epoch fences the older ones. */
export interface ProducerIdentity {
  readonly producerId: bigint
  readonly producerEpoch: number
}

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export const keyOf = ({ partition, topic }: TopicPartition): string => `${topic}/${partition}`

const ask = async <Answer>(
  broker: RawBroker,
  apiKey: number,
  definition: unknown,
  body: object
): Promise<Answer> => {
  const { request, response } = broker.lookupRequest(apiKey, definition)(body)
  return broker.connectionPool.send<Answer>({
    request,
    response: {
      decode: async (payload) => (await response.decode(payload)) as Answer,
      parse: (answer) => Promise.resolve(answer)
    }
  })
}

/** A new identity; with a transactional id, one that fences every earlier one of this id. */
export const initProducerId = async (
  broker: RawBroker,
  transactionalId: string | null,
  transactionTimeout: number
): Promise<{ readonly errorCode: number; readonly identity: ProducerIdentity }> => {
  const { errorCode, producerEpoch, producerId } = await ask<{
    readonly errorCode: number
    readonly producerId: string
    readonly producerEpoch: number
  }>(broker, INIT_PRODUCER_ID, requests.InitProducerId, { transactionalId, transactionTimeout })
  return { errorCode, identity: { producerId: BigInt(producerId), producerEpoch } }
}

const inTransaction = (transactionalId: string, identity: ProducerIdentity) => ({
  transactionalId,
  producerId: String(identity.producerId),
  producerEpoch: identity.producerEpoch
})

/** Make partitions part of the transaction, which begins with the first of them. */
export const addPartitionsToTransaction = async (
  broker: RawBroker,
  transactionalId: string,
  identity: ProducerIdentity,
  added: ReadonlyArray<TopicPartition>
): Promise<{ readonly errorCode: number }> => {
  const topics = [...new Set(added.map(({ topic }) => topic))].map((topic) => ({
    topic,
    partitions: added.filter((entry) => entry.topic === topic).map(({ partition }) => partition)
  }))
  const { errors } = await ask<{
    readonly errors: ReadonlyArray<{
      readonly partitionErrors: ReadonlyArray<{ readonly errorCode: number }>
    }>
  }>(broker, ADD_PARTITIONS_TO_TXN, requests.AddPartitionsToTxn, {
    ...inTransaction(transactionalId, identity),
    topics
  })
  const codes = errors
    .flatMap(({ partitionErrors }) => partitionErrors.map(({ errorCode }) => errorCode))
    .filter((code) => code !== 0)
  return { errorCode: codes.find((code) => code !== OPERATION_NOT_ATTEMPTED) ?? codes[0] ?? 0 }
}

export type TransactionEnd = "commit" | "abort"

/** Without an answer the outcome of the transaction is unknown. */
export const endTransaction = (
  broker: RawBroker,
  transactionalId: string,
  identity: ProducerIdentity,
  end: TransactionEnd
): Promise<{ readonly errorCode: number }> =>
  ask(broker, END_TXN, requests.EndTxn, {
    ...inTransaction(transactionalId, identity),
    transactionResult: end === "commit"
  })

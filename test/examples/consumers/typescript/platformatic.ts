/**
 * Reads `alk.events` from its beginning with @platformatic/kafka and checks the chains while it
 * reads.
 *
 *   npm install @platformatic/kafka
 *   node platformatic.ts [--until-end] [--partial] [topic]
 */
import { randomUUID } from "node:crypto"
import {
  Consumer,
  FetchIsolationLevels,
  ListOffsetTimestamps,
  MessagesStreamFallbackModes,
  MessagesStreamModes,
  type RecordsBatch,
  type SASLMechanismValue
} from "@platformatic/kafka"
import { ChainCheck } from "./chain.ts"
import { brokers, isPartial, sasl, tls, topic, untilEnd } from "./settings.ts"

type Answer = Awaited<ReturnType<Consumer["fetch"]>>
type AnsweredPartition = Answer["responses"][number]["partitions"][number]
type Fetch = (options: object, done: (error: Error | null, answer?: Answer) => void) => void

const TRANSACTIONAL = 0x10
const CONTROL = 0x20

const isAbortMarker = ({ attributes, records: [mark] }: RecordsBatch): boolean =>
  (attributes & CONTROL) !== 0 && mark?.key?.readInt16BE(2) === 0

/**
 * Takes the records of aborted transactions out of an answer. Version 2.12.1 does so itself only for
 * the last aborted transaction of a writer, and only where the answer holds its end as well.
 */
const dropAborted = ({ abortedTransactions, records: batches }: AnsweredPartition): void => {
  const waiting = [...(abortedTransactions ?? [])]
  waiting.sort((left, right) => Number(left.firstOffset - right.firstOffset))
  const aborting = new Set<bigint>()
  for (const batch of batches ?? []) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta)
    while (waiting[0] !== undefined && waiting[0].firstOffset <= last) {
      aborting.add(waiting.shift()!.producerId)
    }
    if (isAbortMarker(batch)) aborting.delete(batch.producerId)
    else if (batch.attributes & TRANSACTIONAL && aborting.has(batch.producerId)) batch.records = []
  }
}

const consumer = new Consumer({
  // A new group each time: the chains are checked from their beginning, and nothing is committed.
  groupId: `chain-check-${randomUUID()}`,
  clientId: "chain-check",
  bootstrapBrokers: brokers,
  isolationLevel: FetchIsolationLevels.READ_COMMITTED,
  maxWaitTime: 500,
  ...(tls && { tls }),
  ...(sasl && {
    sasl: { ...sasl, mechanism: sasl.mechanism.toUpperCase() as SASLMechanismValue }
  })
})
const check = new ChainCheck(isPartial)

const offsetsAt = async (timestamp: bigint): Promise<Array<bigint>> => {
  const isolationLevel = FetchIsolationLevels.READ_COMMITTED
  const found = await consumer.listOffsets({ topics: [topic], timestamp, isolationLevel })
  return found.get(topic) ?? []
}

/** By partition: where it ends, up to where it was fetched, and its last record that is to come. */
const ends = await offsetsAt(ListOffsetTimestamps.LATEST)
const fetched = await offsetsAt(ListOffsetTimestamps.EARLIEST)
const awaited: Array<bigint> = []

const finish = async (): Promise<void> => {
  await consumer.close(true)
  process.exit(check.finish())
}

const isRead = (end: bigint, partition: number): boolean =>
  fetched[partition]! >= end && awaited[partition] === undefined

const finishAtEnd = (): void => {
  if (untilEnd && ends.every(isRead)) void finish()
}

const fetch = consumer.fetch.bind(consumer) as Fetch
const fetchCommitted: Fetch = (options, done) =>
  fetch(options, (error, answer) => {
    for (const partition of answer?.responses.flatMap(({ partitions }) => partitions) ?? []) {
      dropAborted(partition)
      const { partitionIndex, records: batches } = partition
      for (const { attributes, firstOffset, lastOffsetDelta, records } of batches ?? []) {
        fetched[partitionIndex] = firstOffset + BigInt(lastOffsetDelta) + 1n
        if (attributes & CONTROL || records.length === 0) continue
        awaited[partitionIndex] = firstOffset + BigInt(records.at(-1)!.offsetDelta)
      }
    }
    done(error, answer)
    setImmediate(finishAtEnd)
  })
consumer.fetch = fetchCommitted as typeof consumer.fetch

const stream = await consumer.consume({
  topics: [topic],
  autocommit: false,
  mode: MessagesStreamModes.EARLIEST,
  fallbackMode: MessagesStreamFallbackModes.FAIL
})
stream.on("data", ({ key, offset, partition, value }) => {
  check.take(partition, String(offset), String(key), String(value))
  if (offset === awaited[partition]) delete awaited[partition]
})
stream.on("error", (error) => {
  console.error(error)
  process.exit(2)
})
process.once("SIGINT", () => void finish())
finishAtEnd()

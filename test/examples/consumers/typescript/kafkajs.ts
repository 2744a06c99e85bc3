/**
 * Reads `alk.events` from its beginning with kafkajs and checks the chains while it reads.
 *
 *   npm install kafkajs
 *   node kafkajs.ts [--until-end] [--partial] [topic]
 */
import { randomUUID } from "node:crypto"
import { promisify } from "node:util"
import zlib from "node:zlib"
import kafkajs from "kafkajs"
import { ChainCheck } from "./chain.ts"
import { brokers, isPartial, sasl, tls, topic, untilEnd } from "./settings.ts"

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs

// kafkajs knows no zstd. Node does, from 22.15 and 23.8 on.
const decompress = promisify(zlib.zstdDecompress)
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: () => Promise.reject(new Error("this program only reads")),
  decompress: (bytes: Buffer) => decompress(bytes)
})

const kafka = new Kafka({
  brokers,
  clientId: "chain-check",
  logLevel: logLevel.ERROR,
  ...(tls && { ssl: tls }),
  ...(sasl && { sasl: sasl as kafkajs.SASLOptions })
})
const check = new ChainCheck(isPartial)
// A new group each time: the chains are checked from their beginning, and nothing is committed.
const consumer = kafka.consumer({ groupId: `chain-check-${randomUUID()}`, maxWaitTimeInMs: 500 })

const finish = async (): Promise<void> => {
  await consumer.disconnect()
  process.exit(check.finish())
}

/** Where each partition that holds something ends. */
const endsOf = async (): Promise<Map<number, number>> => {
  const admin = kafka.admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  return new Map(
    offsets
      .filter(({ high, low }) => Number(high) > Number(low))
      .map(({ high, partition }) => [partition, Number(high)])
  )
}

await consumer.connect()
await consumer.subscribe({ topic, fromBeginning: true })
if (untilEnd) {
  const ends = await endsOf()
  if (ends.size === 0) await finish()
  // Reported for what kafkajs filters out as well: a partition ends with the mark of a transaction.
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { lastOffset, partition } }) => {
    if (Number(lastOffset) + 1 >= (ends.get(partition) ?? 0)) ends.delete(partition)
    if (ends.size === 0) void finish()
  })
}
process.once("SIGINT", () => void finish())
consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (!payload.restart) process.exit(2)
})
await consumer.run({
  autoCommit: false,
  eachMessage: async ({ message: { key, offset, value }, partition }) => {
    check.take(partition, offset, String(key), String(value))
  }
})

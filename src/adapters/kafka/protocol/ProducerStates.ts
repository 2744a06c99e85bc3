/**
 * What the leader of a partition knows of a producer: the epoch, sequence number and time of its last
 * batch, and where its open transaction begins. The request is of the flexible kind, which kafkajs does
 * not speak; version 0 (Kafka 2.8).
 * Source: Kafka's protocol guide, DescribeProducers API (key 61); KIP-664.
 */
import { Cursor } from "./FetchResponse.ts"
import { type Encoder, NewEncoder } from "./FlexibleEncoder.ts"
import type { RawRequest } from "./KafkaClient.ts"
import type { TopicPartition } from "./ProducerRequests.ts"

const API_KEY = 61
const API_VERSION = 0

/** The last batch of a producer in a partition. */
export interface ProducerState extends TopicPartition {
  readonly producerEpoch: number
  readonly lastSequence: number
  /** Milliseconds since the epoch; -1 if its records say none. */
  readonly lastTimestamp: number
  /** Offset of the first record of its open transaction; -1 if none is open. */
  readonly transactionStart: number
}

const encode = (partitions: ReadonlyArray<TopicPartition>): Encoder => {
  const topics = Map.groupBy(partitions, ({ topic }) => topic)
  const encoded = [...topics].map(([topic, list]) =>
    new NewEncoder()
      .writeUVarIntString(topic)
      .writeUVarIntArray(list.map(({ partition }) => new NewEncoder().writeInt32(partition)))
      .writeUVarIntBytes()
  )
  return new NewEncoder().writeUVarIntBytes().writeUVarIntArray(encoded).writeUVarIntBytes()
}

/** Hot path: an answer names every producer of a partition, of which one is wanted. */
class FlexibleCursor extends Cursor {
  unsigned(): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.bytes.readUInt8(this.at++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }

  text(): string {
    const length = Math.max(0, this.unsigned() - 1)
    this.at += length
    return this.bytes.toString("utf8", this.at - length, this.at)
  }

  /** Tagged fields, which no known version has. */
  tags(): void {
    for (let left = this.unsigned(); left > 0; left--) {
      this.unsigned()
      this.at += this.unsigned()
    }
  }

  /** Structures one after the other. */
  each(read: () => void): void {
    for (let left = this.unsigned() - 1; left > 0; left--) {
      read()
      this.tags()
    }
  }
}

const decode = (payload: Buffer, wanted: bigint): ReadonlyArray<ProducerState> => {
  const found: Array<ProducerState> = []
  const cursor = new FlexibleCursor(payload)
  cursor.tags()
  // How long the broker made us wait.
  cursor.at += 4
  cursor.each(() => {
    const topic = cursor.text()
    cursor.each(() => {
      const partition = cursor.int32()
      // The code and the text of an error; then there are no producers.
      cursor.at += 2
      cursor.text()
      cursor.each(() => {
        const producerId = cursor.bytes.readBigInt64BE(cursor.at)
        cursor.at += 8
        const producerEpoch = cursor.int32()
        const lastSequence = cursor.int32()
        const lastTimestamp = cursor.int64()
        // The epoch of the coordinator.
        cursor.at += 4
        const transactionStart = cursor.int64()
        if (producerId !== wanted) return
        found.push({
          topic,
          partition,
          producerEpoch,
          lastSequence,
          lastTimestamp,
          transactionStart
        })
      })
    })
  })
  return found
}

/**
 * The request for kafkajs's connection, to the leader of all these partitions. A partition in which
 * the producer has written nothing is not in the answer.
 */
export const describeProducers = (
  partitions: ReadonlyArray<TopicPartition>,
  producerId: bigint
): RawRequest<ReadonlyArray<ProducerState>> => ({
  request: {
    apiKey: API_KEY,
    apiVersion: API_VERSION,
    apiName: "DescribeProducers",
    encode: () => Promise.resolve(encode(partitions))
  },
  response: {
    decode: (payload) => Promise.resolve(decode(payload, producerId)),
    parse: (states) => Promise.resolve(states)
  }
})

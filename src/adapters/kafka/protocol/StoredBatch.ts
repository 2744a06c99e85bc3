/**
 * Reads back what stands at an offset, committed or not, and compares it with a batch that was sent.
 * Source: Kafka's protocol guide, Fetch API (key 1) and record batch format version 2.
 */
import {
  ATTRIBUTES_AT,
  BATCH_HEAD_BYTES,
  CODEC_MASK,
  LAST_OFFSET_AT,
  LAST_TIMESTAMP_AT,
  LENGTH_AT,
  PRODUCER_ID_AT,
  RECORDS_AT,
  TIMESTAMP_TYPE_MASK
} from "./BatchLayout.ts"
import { Cursor } from "./FetchResponse.ts"
import { fetchRequest, type RawRequest, READ_UNCOMMITTED } from "./KafkaClient.ts"
import type { PartitionBatch } from "./ProduceRequest.ts"
import { decompress } from "./RecordCodecs.ts"

/** Milliseconds that the leader waits until the batch is on enough of its followers. */
const WAIT_MS = 500

/** What a leader has at an offset. */
export interface StoredBatch {
  /** Zero if the offset can be asked for. */
  readonly errorCode: number
  /** The batch that begins there or holds the offset; undefined if it can't be read yet. */
  readonly bytes: Buffer | undefined
}

const decode = (payload: Buffer): StoredBatch => {
  const cursor = new Cursor(payload)
  cursor.at += 4
  const refused = cursor.int16()
  if (refused !== 0) return { errorCode: refused, bytes: undefined }
  // The session, and one topic with one partition, as it was asked for.
  cursor.at += 4 + 4
  cursor.string()
  cursor.at += 4 + 4
  const errorCode = cursor.int16()
  // Three offsets.
  cursor.at += 24
  const aborted = Math.max(0, cursor.int32())
  cursor.at += 16 * aborted + 4
  const length = Math.max(0, cursor.int32())
  const found = cursor.bytes.subarray(cursor.at, cursor.at + length)
  if (found.length < RECORDS_AT) return { errorCode, bytes: undefined }
  const size = BATCH_HEAD_BYTES + found.readInt32BE(LENGTH_AT)
  return { errorCode, bytes: size > found.length ? undefined : found.subarray(0, size) }
}

/** The request for kafkajs's connection, to the leader of the batch's partition. */
export const fetchStored = (
  { bytes, partition, topic }: PartitionBatch,
  offset: number
): RawRequest<StoredBatch> => ({
  request: fetchRequest({
    replicaId: -1,
    isolationLevel: READ_UNCOMMITTED,
    maxWaitTime: WAIT_MS,
    minBytes: 1,
    maxBytes: bytes.length,
    // A leader gives the first batch whole, whatever the limit is.
    topics: [
      {
        topic,
        partitions: [{ partition, fetchOffset: String(offset), maxBytes: bytes.length }]
      }
    ]
  }),
  response: {
    decode: (payload) => Promise.resolve(decode(payload)),
    parse: (stored) => Promise.resolve(stored)
  }
})

const recordsOf = async (batch: Buffer): Promise<Buffer> =>
  decompress(batch.readInt16BE(ATTRIBUTES_AT) & CODEC_MASK, batch.subarray(RECORDS_AT))

/** What a broker leaves alone in the head of a batch, whatever its topic is set to. */
const headOf = (batch: Buffer, isTimed: boolean): Buffer => {
  const head = Buffer.from(batch.subarray(ATTRIBUTES_AT, RECORDS_AT))
  head.writeInt16BE(head.readInt16BE(0) & ~(CODEC_MASK | TIMESTAMP_TYPE_MASK))
  return isTimed
    ? head
    : head.fill(0, LAST_OFFSET_AT + 4 - ATTRIBUTES_AT, PRODUCER_ID_AT - ATTRIBUTES_AT)
}

/**
 * Whether a broker has stored this batch and no other one there. It may have filled in offset, leader
 * and, by the settings of the topic, times and another compression.
 */
export const isStoredAs = async (
  sent: Buffer,
  stored: Buffer,
  offset: number
): Promise<boolean> => {
  if (new Cursor(stored).int64() !== offset) return false
  if (sent.subarray(ATTRIBUTES_AT).equals(stored.subarray(ATTRIBUTES_AT))) return true
  const isTimed = (stored.readInt16BE(ATTRIBUTES_AT) & TIMESTAMP_TYPE_MASK) === 0
  if (!headOf(sent, isTimed).equals(headOf(stored, isTimed))) return false
  try {
    return (await recordsOf(sent)).equals(await recordsOf(stored))
  } catch {
    // What can't be read is not ours.
    return false
  }
}

/** When the latest record of a batch was made, in milliseconds since the epoch. */
export const lastTimestampOf = (batch: Buffer): number =>
  new Cursor(batch, LAST_TIMESTAMP_AT).int64()

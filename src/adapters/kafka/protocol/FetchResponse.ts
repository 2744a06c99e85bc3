/**
 * Reads the answer to a Fetch request (version 11) as a read_committed reader must: aborted batches
 * are passed over whole, empty batches move the position, headers are decoded only if they are
 * asked for. kafkajs's own decoder makes an object of every header and loses the offsets of empty
 * batches. Source: Kafka's protocol guide, record batch format version 2 (magic 2).
 */
import { hash } from "node:crypto"
import { InflateFailed } from "../../../domain/Inflate.ts"
import { MESSAGE_BYTES_MAX } from "../../../domain/records/Topics.ts"
import type { LogRecord } from "../../../ports/EventLog.ts"
import {
  ATTRIBUTES_AT,
  BATCH_HEAD_BYTES,
  CHECKSUM_AT,
  CODEC_MASK,
  CONTROL_MASK,
  LENGTH_AT,
  MAGIC_AT,
  RECORDS_AT,
  TRANSACTIONAL_MASK
} from "./BatchLayout.ts"
import { crc32c } from "./Crc32c.ts"
import { decompress } from "./RecordCodecs.ts"

/** What a fetch says of one partition. */
export interface FetchedPartition {
  readonly topic: string
  readonly partition: number
  readonly errorCode: number
  readonly writtenEnd: number
  readonly stableEnd: number
  readonly logStart: number
  readonly records: ReadonlyArray<LogRecord>
  /** After the last whole batch; the offset asked for if there was none. */
  readonly nextOffset: number | undefined
}

/** The bytes are not what the protocol promises. */
export class RecordsUnreadable extends Error {
  override readonly name = "RecordsUnreadable"
}

/** Records of one batch at most: twice what alk writes to fill offsets, its largest batches. */
const BATCH_RECORDS_MAX = 100_000
/** Bytes of one answer after decompression, from which the rest of it is left to the next fetch. */
const ANSWER_BYTES_MAX = 8 * MESSAGE_BYTES_MAX
/** What an object of a record takes besides its bytes. */
const RECORD_BYTES = 256
/** Bytes that are kept of a batch that is passed over. */
const KEPT_BYTES = 1_024

/**
 * Hot path: measured in test/bench/Bench.ts (sequencing, projection). Reads big-endian numbers and
 * Kafka's variable-length ones, one after the other.
 */
export class Cursor {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes
    this.at = at
  }

  int8(): number {
    return this.bytes.readInt8(this.at++)
  }

  int16(): number {
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.bytes.readInt32BE(this.at - 4)
  }

  /** An offset or a time: within 2^53. */
  int64(): number {
    this.at += 8
    const high = this.bytes.readInt32BE(this.at - 8)
    return high * 0x1_0000_0000 + this.bytes.readUInt32BE(this.at - 4)
  }

  /** Zigzag-encoded; the low 53 bits are enough for what records hold. */
  varint(): number {
    let result = 0
    let scale = 1
    for (;;) {
      const byte = this.bytes[this.at++]
      if (byte === undefined) throw new RecordsUnreadable("a number runs past the end")
      result += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 0x80
    }
    return result % 2 === 0 ? result / 2 : -(result + 1) / 2
  }

  string(): string {
    const length = this.int16()
    this.at += length
    return this.bytes.toString("utf8", this.at - length, this.at)
  }

  /** Bytes after a variable length; null where the length is negative. */
  slice(): Buffer | null {
    const length = this.varint()
    if (length < 0) return null
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }
}

export class FetchedRecord implements LogRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly #bytes: Buffer
  readonly #headersAt: number
  #headers: Readonly<Record<string, Buffer>> | undefined

  constructor(
    offset: number,
    timestamp: number,
    key: Buffer | null,
    value: Buffer | null,
    bytes: Buffer,
    headersAt: number
  ) {
    this.offset = offset
    this.timestamp = timestamp
    this.key = key
    this.value = value
    this.#bytes = bytes
    this.#headersAt = headersAt
  }

  get headers(): Readonly<Record<string, Buffer>> {
    return (this.#headers ??= readHeaders(new Cursor(this.#bytes, this.#headersAt)))
  }
}

/** Of headers with one name the first counts; a header may have any name, `constructor` too. */
const readHeaders = (cursor: Cursor): Readonly<Record<string, Buffer>> => {
  const headers = Object.create(null) as Record<string, Buffer>
  for (let left = cursor.varint(); left > 0; left--) {
    const name = cursor.slice()?.toString() ?? ""
    headers[name] ??= cursor.slice() ?? Buffer.alloc(0)
  }
  return headers
}

interface Batch {
  readonly baseOffset: number
  readonly lastOffset: number
  readonly attributes: number
  readonly firstTimestamp: number
  /** As hexadecimal digits: an identity, not a quantity. */
  readonly producerId: string
  readonly count: number
  readonly records: Buffer
}

/** The next whole batch, or undefined where the answer was cut. */
const nextBatch = (bytes: Buffer, at: number): { batch: Batch; end: number } | undefined => {
  if (at + RECORDS_AT > bytes.length) return undefined
  const end = at + BATCH_HEAD_BYTES + bytes.readInt32BE(at + LENGTH_AT)
  if (end > bytes.length) return undefined
  const magic = bytes.readInt8(at + MAGIC_AT)
  if (magic !== 2) throw new RecordsUnreadable(`a record batch of format ${magic}`)
  const cursor = new Cursor(bytes, at)
  const baseOffset = cursor.int64()
  cursor.at = at + ATTRIBUTES_AT
  const attributes = cursor.int16()
  const lastOffset = baseOffset + cursor.int32()
  const firstTimestamp = cursor.int64()
  cursor.at += 8
  const producerId = bytes.toString("hex", cursor.at, cursor.at + 8)
  cursor.at = at + RECORDS_AT - 4
  const count = cursor.int32()
  const records = bytes.subarray(at + RECORDS_AT, end)
  const batch = { baseOffset, lastOffset, attributes, firstTimestamp, producerId, count, records }
  return { batch, end }
}

/**
 * The offset of a record from what its batch says: each has one of its own. A broker looks at that in
 * compressed batches alone, so that a record could take the offset of another one.
 * @throws RecordsUnreadable
 */
export const offsetIn = (
  { baseOffset, lastOffset }: Pick<Batch, "baseOffset" | "lastOffset">,
  before: number,
  delta: number
): number => {
  const offset = baseOffset + delta
  if (offset > before && offset >= baseOffset && offset <= lastOffset) return offset
  throw new RecordsUnreadable(`a record that is at offset ${offset}, where others are`)
}

const readRecords = (batch: Batch, bytes: Buffer, from: number, into: Array<LogRecord>): void => {
  const cursor = new Cursor(bytes)
  let before = -1
  for (let left = batch.count; left > 0; left--) {
    const length = cursor.varint()
    const end = cursor.at + length
    cursor.at += 1
    const timestamp = batch.firstTimestamp + cursor.varint()
    const offset = offsetIn(batch, before, cursor.varint())
    before = offset
    const key = cursor.slice()
    const value = cursor.slice()
    if (offset >= from) {
      into.push(new FetchedRecord(offset, timestamp, key, value, bytes, cursor.at))
    }
    cursor.at = end
  }
}

interface Aborted {
  readonly producerId: string
  readonly firstOffset: number
}

/** Type of a control record, the second number of its key: 0 ends an aborted transaction. */
export const isAbortMarker = (bytes: Buffer): boolean => {
  const cursor = new Cursor(bytes)
  cursor.varint()
  cursor.at += 1
  cursor.varint()
  cursor.varint()
  const key = cursor.slice()
  return key !== null && key.length >= 4 && key.readInt16BE(2) === 0
}

/** What one answer may still take after decompression. */
export class AnswerRoom {
  #left = ANSWER_BYTES_MAX

  get isLeft(): boolean {
    return this.#left > 0
  }

  take(bytes: number, records: number): void {
    this.#left -= bytes + records * RECORD_BYTES
  }
}

/** Why no program can read the records of a batch; undefined for failures that may pass. */
export const unreadableReason = (error: unknown): string | undefined =>
  error instanceof InflateFailed
  || error instanceof RecordsUnreadable
  || error instanceof RangeError
    ? error.message
    : undefined

/**
 * In the place of a batch whose records can't be read: any writer of the topic could stop its
 * readers otherwise. What was written is named by its hash.
 */
const passedOver = (batch: Batch, reason: string): LogRecord => ({
  offset: batch.lastOffset,
  timestamp: batch.firstTimestamp,
  key: null,
  value: Buffer.from(batch.records.subarray(0, KEPT_BYTES)),
  headers: {},
  refused:
    `a batch of ${batch.count} records can't be read: ${reason} (${batch.records.length} bytes with `
    + `the SHA-256 ${hash("sha256", batch.records, "hex")}, of which ${KEPT_BYTES} are kept)`
})

const takeBatch = async (
  batch: Batch,
  from: number,
  into: Array<LogRecord>,
  room: AnswerRoom
): Promise<void> => {
  if (batch.count > BATCH_RECORDS_MAX) {
    throw new RecordsUnreadable(`over ${BATCH_RECORDS_MAX} records`)
  }
  const whole = decompress(batch.attributes & CODEC_MASK, batch.records)
  const records = Buffer.isBuffer(whole) ? whole : await whole
  room.take(records.length, batch.count)
  readRecords(batch, records, from, into)
}

/** The committed records at or after `from`, and where the answer ends, or the room for it. */
export const readRecordSet = async (
  bytes: Buffer,
  aborted: ReadonlyArray<Aborted>,
  from: number,
  room = new AnswerRoom()
): Promise<{
  readonly records: ReadonlyArray<LogRecord>
  readonly nextOffset: number | undefined
}> => {
  const records: Array<LogRecord> = []
  const waiting = [...aborted].sort((left, right) => left.firstOffset - right.firstOffset)
  const aborting = new Set<string>()
  let nextOffset: number | undefined
  let start = 0
  while (room.isLeft) {
    const found = nextBatch(bytes, start)
    if (found === undefined) break
    const { batch, end } = found
    const whole = bytes.subarray(start, end)
    start = end
    nextOffset = batch.lastOffset + 1
    while (waiting.length > 0 && waiting[0]!.firstOffset <= batch.lastOffset) {
      aborting.add(waiting.shift()!.producerId)
    }
    if ((batch.attributes & CONTROL_MASK) !== 0) {
      if (batch.count > 0 && isAbortMarker(batch.records)) aborting.delete(batch.producerId)
      continue
    }
    const isAborted =
      (batch.attributes & TRANSACTIONAL_MASK) !== 0 && aborting.has(batch.producerId)
    if (isAborted || batch.lastOffset < from || batch.count === 0) continue
    const before = records.length
    try {
      await takeBatch(batch, from, records, room)
    } catch (error) {
      const reason = unreadableReason(error)
      // What was damaged on its way is asked for again.
      if (reason === undefined || !isWhole(whole)) throw error
      records.length = before
      records.push(passedOver(batch, reason))
    }
  }
  return { records, nextOffset }
}

const isWhole = (batch: Buffer): boolean =>
  batch.readUInt32BE(CHECKSUM_AT) === crc32c(batch, ATTRIBUTES_AT)

const readPartition = async (
  cursor: Cursor,
  topic: string,
  fromOf: (topic: string, partition: number) => number,
  room: AnswerRoom
): Promise<FetchedPartition> => {
  const partition = cursor.int32()
  const errorCode = cursor.int16()
  const writtenEnd = cursor.int64()
  const stableEnd = cursor.int64()
  const logStart = cursor.int64()
  const aborted: Array<Aborted> = []
  for (let left = cursor.int32(); left > 0; left--) {
    const producerId = cursor.bytes.toString("hex", cursor.at, cursor.at + 8)
    cursor.at += 8
    aborted.push({ producerId, firstOffset: cursor.int64() })
  }
  cursor.at += 4
  const length = Math.max(0, cursor.int32())
  const bytes = cursor.bytes.subarray(cursor.at, cursor.at + length)
  cursor.at += length
  const from = fromOf(topic, partition)
  const { nextOffset, records } = await readRecordSet(bytes, aborted, from, room)
  return { topic, partition, errorCode, writtenEnd, stableEnd, logStart, records, nextOffset }
}

/** Every partition of the answer. `fromOf` says from which offset records are wanted. */
export const readFetchResponse = async (
  payload: Buffer,
  fromOf: (topic: string, partition: number) => number
): Promise<ReadonlyArray<FetchedPartition>> => {
  const cursor = new Cursor(payload)
  cursor.at += 4
  const errorCode = cursor.int16()
  if (errorCode !== 0) throw new RecordsUnreadable(`the broker refused the fetch: ${errorCode}`)
  cursor.at += 4
  const room = new AnswerRoom()
  const partitions: Array<FetchedPartition> = []
  for (let topics = cursor.int32(); topics > 0; topics--) {
    const topic = cursor.string()
    for (let left = cursor.int32(); left > 0; left--) {
      partitions.push(await readPartition(cursor, topic, fromOf, room))
    }
  }
  return partitions
}

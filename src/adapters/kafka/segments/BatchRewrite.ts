/**
 * Rewrites record batches of format 2 (magic 2) as a segment file of a broker holds them. What is
 * kept is copied byte for byte; a batch of which nothing changes is not touched at all. Offsets,
 * producer, sequence, times and attributes stay: only values, the number of records, the length and
 * the checksum change.
 * Source: Kafka's protocol guide, record batch format.
 */

import { InflateFailed } from "../../../domain/Inflate.ts"
import type { RecordFate } from "../../../domain/records/RecordFate.ts"
import { VARINT_BYTES_MAX, writeVarint } from "../../../domain/records/RecordFormat.ts"
import type { Compression } from "../../../domain/records/Topics.ts"
import type { LogRecord } from "../../../ports/EventLog.ts"
import {
  ATTRIBUTES_AT,
  BATCH_HEAD_BYTES,
  CHECKSUM_AT,
  CODEC_MASK,
  CODECS,
  CONTROL_MASK,
  COUNT_AT,
  FIRST_TIMESTAMP_AT,
  LAST_OFFSET_AT,
  LENGTH_AT,
  MAGIC_AT,
  PRODUCER_ID_AT,
  RECORDS_AT,
  TRANSACTIONAL_MASK
} from "../protocol/BatchLayout.ts"
import { crc32c } from "../protocol/Crc32c.ts"
import {
  Cursor,
  FetchedRecord,
  isAbortMarker,
  offsetIn,
  RecordsUnreadable,
  unreadableReason
} from "../protocol/FetchResponse.ts"
import { compressors } from "../protocol/RecordBatch.ts"
import { decompress } from "../protocol/RecordCodecs.ts"

/** Bytes of the batch that begins with this head. */
export const batchBytesOf = (head: Buffer): number => BATCH_HEAD_BYTES + head.readInt32BE(LENGTH_AT)

/** A whole batch whose checksum holds. */
export interface SegmentBatch {
  readonly bytes: Buffer
  readonly baseOffset: number
  readonly lastOffset: number
  readonly producerId: bigint
  readonly count: number
  readonly isTransactional: boolean
  /** Ends a transaction instead of holding records: what it came to. */
  readonly ends: "committed" | "aborted" | undefined
}

/** @throws RecordsUnreadable for bytes that a broker would not accept */
export const readBatch = (bytes: Buffer): SegmentBatch => {
  if (bytes.length < RECORDS_AT) throw new RecordsUnreadable("a record batch without a head")
  const magic = bytes.readInt8(MAGIC_AT)
  if (magic !== 2) throw new RecordsUnreadable(`a record batch of format ${magic}`)
  if (bytes.readUInt32BE(CHECKSUM_AT) !== crc32c(bytes, ATTRIBUTES_AT)) {
    throw new RecordsUnreadable("a record batch whose checksum is wrong")
  }
  const cursor = new Cursor(bytes)
  const baseOffset = cursor.int64()
  const attributes = bytes.readInt16BE(ATTRIBUTES_AT)
  const count = bytes.readInt32BE(COUNT_AT)
  const isControl = (attributes & CONTROL_MASK) !== 0
  const ended = count > 0 && isAbortMarker(bytes.subarray(RECORDS_AT)) ? "aborted" : "committed"
  return {
    bytes,
    baseOffset,
    lastOffset: baseOffset + bytes.readInt32BE(LAST_OFFSET_AT),
    producerId: bytes.readBigInt64BE(PRODUCER_ID_AT),
    count,
    isTransactional: (attributes & TRANSACTIONAL_MASK) !== 0,
    ends: isControl ? ended : undefined
  }
}

interface Inflated {
  readonly records: Buffer
  readonly parts: ReadonlyArray<PlacedPart>
}

/**
 * Its records as they were before compression, or why that can't be known: the checksum of the batch
 * holds, so another program wrote it like this.
 */
const inflatedOf = async (batch: SegmentBatch): Promise<Inflated | string> => {
  try {
    const records = await decompress(codecOf(batch), batch.bytes.subarray(RECORDS_AT))
    return { records, parts: partsOf(batch, records) }
  } catch (cause) {
    const why = unreadableReason(cause)
    if (why === undefined) throw cause
    return cause instanceof InflateFailed ? why : `unreadable: ${why}`
  }
}

const codecOf = ({ bytes }: SegmentBatch): number => bytes.readInt16BE(ATTRIBUTES_AT) & CODEC_MASK

/** A record and where its parts are in the bytes of its batch. */
interface PlacedPart {
  readonly record: LogRecord
  /** Of its length. */
  readonly start: number
  /** After its length. */
  readonly bodyAt: number
  /** Of the length of its value. */
  readonly valueAt: number
  readonly headersAt: number
  readonly end: number
}

const partsOf = (batch: SegmentBatch, records: Buffer): ReadonlyArray<PlacedPart> => {
  const times = new Cursor(batch.bytes, FIRST_TIMESTAMP_AT)
  const firstTimestamp = times.int64()
  const cursor = new Cursor(records)
  const parts: Array<PlacedPart> = []
  let before = -1
  for (let left = batch.count; left > 0; left--) {
    const start = cursor.at
    const length = cursor.varint()
    const bodyAt = cursor.at
    const end = bodyAt + length
    if (length < 0 || end > records.length) {
      throw new RecordsUnreadable("a record that runs past its batch")
    }
    cursor.at += 1
    const timestamp = firstTimestamp + cursor.varint()
    const offset = offsetIn(batch, before, cursor.varint())
    before = offset
    const key = cursor.slice()
    const valueAt = cursor.at
    const value = cursor.slice()
    const headersAt = cursor.at
    const record = new FetchedRecord(offset, timestamp, key, value, records, headersAt)
    parts.push({ record, start, bodyAt, valueAt, headersAt, end })
    cursor.at = end
  }
  if (cursor.at !== records.length) throw new RecordsUnreadable("bytes after the last record")
  return parts
}

/**
 * The records of a batch; none of one that ends a transaction. Of one in a compression that alk does
 * not write, that is larger, or whose records have no offsets of their own, why it can't be read.
 */
export const recordsOf = async (
  batch: SegmentBatch
): Promise<ReadonlyArray<LogRecord> | string> => {
  if (batch.ends !== undefined || batch.count === 0) return []
  const found = await inflatedOf(batch)
  return typeof found === "string" ? found : found.parts.map(({ record }) => record)
}

const varint = (length: number): Buffer => {
  const bytes = Buffer.alloc(VARINT_BYTES_MAX)
  return bytes.subarray(0, writeVarint(bytes, 0, length))
}

/** The bytes of the record with another value. */
const withValue = (
  records: Buffer,
  { bodyAt, end, headersAt, valueAt }: PlacedPart,
  value: Buffer
): ReadonlyArray<Buffer> => {
  const length = varint(value.length)
  const before = records.subarray(bodyAt, valueAt)
  const after = records.subarray(headersAt, end)
  const bytes = before.length + length.length + value.length + after.length
  return [varint(bytes), before, length, value, after]
}

const nameOf = (codec: number): Compression => {
  const [name] = Object.entries(CODECS).find(([, number]) => number === codec) ?? []
  return name as Compression
}

/** The same head over other records. */
const toBatch = async (batch: SegmentBatch, records: Buffer, count: number): Promise<Buffer> => {
  const head = Buffer.from(batch.bytes.subarray(0, RECORDS_AT))
  // As Kafka's own cleaner leaves a batch without records: its head only, which names no codec.
  const codec = count === 0 ? CODECS.none : codecOf(batch)
  const body = await compressors[nameOf(codec)](records)
  const bytes = Buffer.concat([head, body])
  bytes.writeInt32BE(bytes.length - BATCH_HEAD_BYTES, LENGTH_AT)
  bytes.writeInt16BE((head.readInt16BE(ATTRIBUTES_AT) & ~CODEC_MASK) | codec, ATTRIBUTES_AT)
  bytes.writeInt32BE(count, COUNT_AT)
  bytes.writeUInt32BE(crc32c(bytes, ATTRIBUTES_AT), CHECKSUM_AT)
  return bytes
}

export interface RewrittenBatch {
  /** Those of the batch, if nothing changes. */
  readonly bytes: Buffer
  readonly replaced: number
  readonly dropped: number
}

/**
 * The batch with what `fateOf` says of each record. A batch of which all records go keeps its head: the
 * broker finds the producer's last sequence number and the offsets there. One that alk can't have
 * written, as it can't be read, stays as it is.
 */
export const rewriteBatch = async (
  batch: SegmentBatch,
  fateOf: (record: LogRecord) => RecordFate
): Promise<RewrittenBatch> => {
  const same = { bytes: batch.bytes, replaced: 0, dropped: 0 }
  if (batch.ends !== undefined || batch.count === 0) return same
  const found = await inflatedOf(batch)
  if (typeof found === "string") return same
  const { parts, records } = found
  const pieces: Array<Buffer> = []
  let replaced = 0
  let dropped = 0
  for (const part of parts) {
    const fate = fateOf(part.record)
    if (fate === "keep") pieces.push(records.subarray(part.start, part.end))
    else if (fate === "drop") dropped += 1
    else {
      pieces.push(...withValue(records, part, fate.value))
      replaced += 1
    }
  }
  if (replaced === 0 && dropped === 0) return same
  const bytes = await toBatch(batch, Buffer.concat(pieces), batch.count - dropped)
  return { bytes, replaced, dropped }
}

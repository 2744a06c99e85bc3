/**
 * Records as the bytes of one batch, each with a time of its own, and records that only take up
 * offsets. Not on a hot path: a restore writes them.
 * Source: Kafka's protocol guide, record batch format; varints are those of Protocol Buffers.
 */
import { VARINT_BYTES_MAX, varintSize, writeVarint } from "../../../domain/records/RecordFormat.ts"
import type { LogRecord } from "../../../ports/EventLog.ts"

export type PlacedRecord = Pick<LogRecord, "offset" | "timestamp" | "key" | "value" | "headers">

/** A batch without its frame. */
export interface PlacedBatch {
  readonly records: Buffer
  readonly count: number
  readonly times: { readonly first: number; readonly last: number }
}

/** A varint of 64 bits has at most so many bytes. */
const VARLONG_BYTES_MAX = 10
/** The varint of -1, the length of what is null. */
const NULL = Buffer.from([1])
/** A compacted topic takes no record without a key. */
const FILLER_KEY = Buffer.from("-")

const varint = (value: number): Buffer => {
  const bytes = Buffer.alloc(VARLONG_BYTES_MAX)
  return bytes.subarray(0, writeVarint(bytes, 0, value))
}

const withLength = (bytes: Buffer | null): ReadonlyArray<Buffer> =>
  bytes === null ? [NULL] : [varint(bytes.length), bytes]

const encode = (record: PlacedRecord, offsetDelta: number, timestampDelta: number): Buffer => {
  const { headers, key, value } = record
  const names = Object.keys(headers)
  const body = Buffer.concat([
    Buffer.alloc(1),
    varint(timestampDelta),
    varint(offsetDelta),
    ...withLength(key),
    ...withLength(value),
    varint(names.length),
    ...names.flatMap((name) => [
      ...withLength(Buffer.from(name)),
      ...withLength(headers[name] ?? null)
    ])
  ])
  return Buffer.concat([varint(body.length), body])
}

/** Records whose offsets follow each other without a gap; at least one. */
export const placedBatch = (records: ReadonlyArray<PlacedRecord>): PlacedBatch => {
  const times = records.map(({ timestamp }) => timestamp)
  const first = times.reduce((left, right) => Math.min(left, right))
  const last = times.reduce((left, right) => Math.max(left, right))
  const encoded = records.map((record, index) => encode(record, index, record.timestamp - first))
  return { records: Buffer.concat(encoded), count: records.length, times: { first, last } }
}

/** Bytes of a record that only takes up an offset, beside its length and its offset. */
const FILLER_BYTES = 2 + 1 + FILLER_KEY.length + NULL.length + 1

/** So many records without a value, of one time. */
export const fillerBatch = (count: number, timestamp: number): PlacedBatch => {
  const bytes = Buffer.alloc(count * (FILLER_BYTES + 2 * VARINT_BYTES_MAX))
  let at = 0
  for (let index = 0; index < count; index++) {
    at = writeVarint(bytes, at, FILLER_BYTES + varintSize(index))
    // Attributes and the difference to the batch's time: both zero, as the buffer is.
    at = writeVarint(bytes, at + 2, index)
    at = writeVarint(bytes, at, FILLER_KEY.length)
    at += FILLER_KEY.copy(bytes, at)
    at += NULL.copy(bytes, at)
    // No headers.
    at += 1
  }
  return { records: bytes.subarray(0, at), count, times: { first: timestamp, last: timestamp } }
}

/**
 * Encodes records as one batch of Kafka's format 2 (magic 2): one pass into a growing buffer, then
 * compression of the records and the checksum over all.
 * Source: Kafka's protocol guide, record batch format; varints are those of Protocol Buffers.
 */
import { promisify } from "node:util"
import zlib from "node:zlib"
import { VARINT_BYTES_MAX, varintSize, writeVarint } from "../../../domain/records/RecordFormat.ts"
import type { Compression } from "../../../domain/records/Topics.ts"
import type { Headers } from "../../../ports/EventLog.ts"
import {
  ATTRIBUTES_AT,
  CHECKSUM_AT,
  CODECS,
  COUNT_AT,
  FIRST_TIMESTAMP_AT,
  LAST_OFFSET_AT,
  LAST_TIMESTAMP_AT,
  LEADER_EPOCH_AT,
  LENGTH_AT,
  MAGIC_AT,
  PRODUCER_EPOCH_AT,
  PRODUCER_ID_AT,
  RECORDS_AT,
  SEQUENCE_AT,
  TRANSACTIONAL_MASK
} from "./BatchLayout.ts"
import { crc32c } from "./Crc32c.ts"

export interface BatchRecord {
  readonly key: string | Buffer | null
  readonly value: string | Buffer | null
  readonly headers?: Headers
}

/** What a batch says of itself besides its records. */
export interface BatchFrame {
  readonly producerId: bigint
  readonly producerEpoch: number
  /** Sequence number of the first record. */
  readonly sequence: number
  readonly transactional: boolean
  /** Milliseconds since the epoch, of every record that says no difference to it. */
  readonly timestamp: number
  /** The latest time of a record, if not that one. */
  readonly lastTimestamp?: number
  /** Of records of COMPRESS_BYTES_MIN and more in all. */
  readonly compression: Compression
}

const MAGIC = 2

/** Records smaller than this in all are not compressed: it costs more than it saves. */
const COMPRESS_BYTES_MIN = 512
/** Records up to this size in all are compressed on the spot: cheaper than the thread pool. */
const COMPRESS_INLINE_BYTES_MAX = 65_536
/** The fastest of both codecs: records are written once and their writer is the bottleneck. */
const COMPRESSION_LEVEL = 1

const zstdCompress = promisify(zlib.zstdCompress)
const gzip = promisify(zlib.gzip)
const gzipOptions: zlib.ZlibOptions = { level: COMPRESSION_LEVEL }

/** The size is known beforehand, so tables are small and the output mostly comes in one piece. */
const zstdOptions = (bytes: number): zlib.ZstdOptions => ({
  params: { [zlib.constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL },
  pledgedSrcSize: bytes,
  chunkSize: (bytes >>> 1) + 512
})

const GROW_FROM = 16_384
/** Buffers up to this size are used again: fresh memory costs more than what is written into it. */
const SCRATCH_BYTES_MAX = 4 * 1_048_576
/** As many as there are batches in the making at a time. */
const SCRATCH_MAX = 4
const scratch: Array<Buffer> = []

/** A UTF-16 unit has at most so many bytes in UTF-8. */
const UTF8_BYTES_MAX = 3
/** Up to this length JavaScript writes a string faster than a call into Node does. */
const SHORT_STRING_MAX = 24

/**
 * Hot path: measured in test/bench/Bench.ts (ingest, sequencing). Writes records into a buffer that
 * grows, strings before their length is known.
 */
class RecordWriter {
  bytes = scratch.pop() ?? Buffer.allocUnsafeSlow(GROW_FROM)
  at = 0

  /** What has been written, until `release`. */
  get written(): Buffer {
    return this.bytes.subarray(0, this.at)
  }

  /** Give the buffer to the next batch. */
  release(): void {
    if (this.bytes.length <= SCRATCH_BYTES_MAX && scratch.length < SCRATCH_MAX) {
      scratch.push(this.bytes)
    }
  }

  ensure(more: number): void {
    const needed = this.at + more
    if (needed <= this.bytes.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2))
    this.bytes.copy(grown, 0, 0, this.at)
    this.bytes = grown
  }

  record(record: BatchRecord, offsetDelta: number): void {
    const { headers, key, value } = record
    const estimate = (key?.length ?? 0) + (value?.length ?? 0) + (headers === undefined ? 8 : 128)
    this.ensure(3 * VARINT_BYTES_MAX + 2)
    const lengthAt = this.at
    const width = varintSize(estimate)
    this.at += width
    // Attributes and the difference to the batch's time: both zero.
    this.bytes[this.at++] = 0
    this.bytes[this.at++] = 0
    this.#varint(offsetDelta)
    this.#nullable(key)
    this.#nullable(value)
    this.#headers(headers)
    this.#close(lengthAt, width)
  }

  /** Needs room. */
  #varint(length: number): void {
    this.at = writeVarint(this.bytes, this.at, length)
  }

  /** Put the length before what has been written since, whose room was a guess. */
  #close(lengthAt: number, width: number): void {
    const length = this.at - lengthAt - width
    const wanted = varintSize(length)
    if (wanted !== width) {
      this.ensure(VARINT_BYTES_MAX)
      this.bytes.copyWithin(lengthAt + wanted, lengthAt + width, this.at)
      this.at += wanted - width
    }
    writeVarint(this.bytes, lengthAt, length)
  }

  #nullable(value: string | Buffer | null): void {
    if (value === null) {
      this.ensure(1)
      // Minus one, zigzag-encoded.
      this.bytes[this.at++] = 1
    } else if (typeof value === "string") this.#string(value)
    else this.#bytes(value)
  }

  #bytes(value: Buffer): void {
    this.ensure(VARINT_BYTES_MAX + value.length)
    this.#varint(value.length)
    this.bytes.set(value, this.at)
    this.at += value.length
  }

  #string(value: string): void {
    this.ensure(VARINT_BYTES_MAX + value.length * UTF8_BYTES_MAX)
    if (value.length <= SHORT_STRING_MAX && this.#ascii(value)) return
    const lengthAt = this.at
    const width = varintSize(value.length)
    this.at += width
    this.at += this.bytes.write(value, this.at)
    this.#close(lengthAt, width)
  }

  /** Write a short string of ASCII; false, and nothing written, if it has other characters. */
  #ascii(value: string): boolean {
    const { bytes } = this
    const start = this.at + 1
    for (let index = 0; index < value.length; index++) {
      const unit = value.charCodeAt(index)
      if (unit >= 0x80) return false
      bytes[start + index] = unit
    }
    bytes[this.at] = value.length * 2
    this.at = start + value.length
    return true
  }

  #headers(headers: Headers | undefined): void {
    this.ensure(VARINT_BYTES_MAX)
    if (headers === undefined) {
      this.bytes[this.at++] = 0
      return
    }
    const names = Object.keys(headers)
    this.#varint(names.length)
    for (const name of names) {
      this.#string(name)
      this.#nullable(headers[name]!)
    }
  }
}

const toBatch = (
  body: Buffer,
  compression: Compression,
  count: number,
  frame: BatchFrame
): Buffer => {
  const batch = Buffer.allocUnsafe(RECORDS_AT + body.length)
  // The base offset is the broker's to fill in, like the epoch of the leader.
  batch.fill(0, 0, LENGTH_AT)
  batch.writeInt32BE(batch.length - LEADER_EPOCH_AT, LENGTH_AT)
  batch.writeInt32BE(-1, LEADER_EPOCH_AT)
  batch.writeInt8(MAGIC, MAGIC_AT)
  batch.writeInt16BE(
    CODECS[compression] | (frame.transactional ? TRANSACTIONAL_MASK : 0),
    ATTRIBUTES_AT
  )
  batch.writeInt32BE(count - 1, LAST_OFFSET_AT)
  const { lastTimestamp = frame.timestamp } = frame
  batch.writeBigInt64BE(BigInt(frame.timestamp), FIRST_TIMESTAMP_AT)
  batch.writeBigInt64BE(BigInt(lastTimestamp), LAST_TIMESTAMP_AT)
  batch.writeBigInt64BE(frame.producerId, PRODUCER_ID_AT)
  batch.writeInt16BE(frame.producerEpoch, PRODUCER_EPOCH_AT)
  batch.writeInt32BE(frame.sequence, SEQUENCE_AT)
  batch.writeInt32BE(count, COUNT_AT)
  body.copy(batch, RECORDS_AT)
  batch.writeUInt32BE(crc32c(batch, ATTRIBUTES_AT), CHECKSUM_AT)
  return batch
}

type Compressor = (records: Buffer) => Buffer | Promise<Buffer>

const bySize =
  (onTheSpot: Compressor, inThePool: Compressor): Compressor =>
  (records) =>
    records.length <= COMPRESS_INLINE_BYTES_MAX ? onTheSpot(records) : inThePool(records)

export const compressors: Readonly<Record<Compression, Compressor>> = {
  zstd: bySize(
    (records) => zlib.zstdCompressSync(records, zstdOptions(records.length)),
    (records) => zstdCompress(records, zstdOptions(records.length))
  ),
  gzip: bySize(
    (records) => zlib.gzipSync(records, gzipOptions),
    (records) => gzip(records, gzipOptions)
  ),
  none: (records) => records
}

/** The batch of so many records that are written already, as a Produce request carries it. */
export const toRecordBatch = async (
  records: Buffer,
  count: number,
  frame: BatchFrame
): Promise<Buffer> => {
  const compression = records.length < COMPRESS_BYTES_MIN ? "none" : frame.compression
  return toBatch(await compressors[compression](records), compression, count, frame)
}

/** The bytes of a batch of at least one record, as a Produce request carries them. */
export const encodeRecordBatch = async (
  records: ReadonlyArray<BatchRecord>,
  frame: BatchFrame
): Promise<Buffer> => {
  const writer = new RecordWriter()
  for (let index = 0; index < records.length; index++) writer.record(records[index]!, index)
  const batch = await toRecordBatch(writer.written, records.length, frame)
  writer.release()
  return batch
}

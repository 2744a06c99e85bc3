/**
 * The bytes of one file of a backup: records of a partition with their offsets, times, keys, values and
 * headers as they were on the topic. Knows neither compression nor files.
 *
 * After the mark each record is: offset and time (8 bytes each), key, value, the number of headers (4
 * bytes), and name and value of each. A key, value or name is its length (4 bytes, -1 for null) and its
 * bytes. All numbers are big-endian.
 */
import { RecordUnreadable } from "../json/RecordFields.ts"

/** A record as it was on the topic. */
export interface BackupRecord {
  readonly offset: number
  /** Milliseconds since the epoch. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer>>
}

const MARK = Buffer.from("alk-backup-segment-v1\n")
const NULL_LENGTH = -1
const LENGTH_BYTES = 4
const NUMBER_BYTES = 8

const slice = (bytes: Buffer | null): ReadonlyArray<Buffer> => {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeInt32BE(bytes === null ? NULL_LENGTH : bytes.length)
  return bytes === null ? [length] : [length, bytes]
}

const encodeRecord = ({ headers, key, offset, timestamp, value }: BackupRecord): Buffer => {
  const place = Buffer.alloc(2 * NUMBER_BYTES)
  place.writeBigInt64BE(BigInt(offset))
  place.writeBigInt64BE(BigInt(timestamp), NUMBER_BYTES)
  const names = Object.keys(headers)
  const count = Buffer.alloc(LENGTH_BYTES)
  count.writeInt32BE(names.length)
  return Buffer.concat([
    place,
    ...slice(key),
    ...slice(value),
    count,
    ...names.flatMap((name) => [...slice(Buffer.from(name)), ...slice(headers[name]!)])
  ])
}

/** True if a file holds the same of both. */
export const isSameRecord = (left: BackupRecord, right: BackupRecord): boolean =>
  encodeRecord(left).equals(encodeRecord(right))

/** Gathers the records of one file. */
export class SegmentWriter {
  readonly #pieces: Array<Buffer> = [MARK]
  #bytes = MARK.length
  #records = 0

  get bytes(): number {
    return this.#bytes
  }

  get records(): number {
    return this.#records
  }

  append(record: BackupRecord): void {
    const piece = encodeRecord(record)
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#records += 1
  }

  finish(): Buffer {
    return Buffer.concat(this.#pieces, this.#bytes)
  }
}

/** Reads on in the bytes of a file. */
class SegmentReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  take(length: number): Buffer {
    const end = this.#at + length
    if (length < 0 || end > this.#bytes.length) {
      throw new RecordUnreadable("the segment ends within a record")
    }
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  number(): number {
    return Number(this.take(NUMBER_BYTES).readBigInt64BE())
  }

  count(): number {
    return this.take(LENGTH_BYTES).readInt32BE()
  }

  slice(): Buffer | null {
    const length = this.count()
    return length === NULL_LENGTH ? null : this.take(length)
  }
}

/**
 * The records of a file.
 * @throws RecordUnreadable if the bytes are none of a segment
 */
export const readSegment = (bytes: Buffer): ReadonlyArray<BackupRecord> => {
  const reader = new SegmentReader(bytes)
  if (bytes.length < MARK.length || !reader.take(MARK.length).equals(MARK)) {
    throw new RecordUnreadable("it is no segment of a backup, or one of a newer version")
  }
  const records: Array<BackupRecord> = []
  while (!reader.isAtEnd) {
    const offset = reader.number()
    const timestamp = reader.number()
    const key = reader.slice()
    const value = reader.slice()
    const headers: Record<string, Buffer> = {}
    for (let left = reader.count(); left > 0; left--) {
      const name = reader.slice()?.toString() ?? ""
      headers[name] = reader.slice() ?? Buffer.alloc(0)
    }
    records.push({ offset, timestamp, key, value, headers })
  }
  return records
}

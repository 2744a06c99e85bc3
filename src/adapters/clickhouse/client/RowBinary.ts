/**
 * Reads ClickHouse's RowBinary format: integers little-endian, strings and lists after their
 * length. No byte of a stored body is escaped, decoded or looked at on the way.
 */

import { isUtf8 } from "node:buffer"
import type { Sliced } from "../../../domain/Slices.ts"

const UINT32 = 0x1_0000_0000
/** What is read in the place of bytes that are no UTF-8. */
const REPLACEMENT = "\uFFFD"

export class RowBinary {
  readonly #bytes: Buffer
  #at = 0
  #isExact = true

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** True when every row has been read. */
  get done(): boolean {
    return this.#at >= this.#bytes.length
  }

  uint8(): number {
    const value = this.#bytes.readUInt8(this.#at)
    this.#at += 1
    return value
  }

  uint32(): number {
    const value = this.#bytes.readUInt32LE(this.#at)
    this.#at += 4
    return value
  }

  /** As a number: exact up to 2^53, which no sequence number or count of ours exceeds. */
  uint64(): number {
    const low = this.#bytes.readUInt32LE(this.#at)
    const high = this.#bytes.readUInt32LE(this.#at + 4)
    this.#at += 8
    return high * UINT32 + low
  }

  /** As a number, like `uint64`. */
  int64(): number {
    const low = this.#bytes.readUInt32LE(this.#at)
    const high = this.#bytes.readInt32LE(this.#at + 4)
    this.#at += 8
    return high * UINT32 + low
  }

  /** As a number where a double holds it exactly, else as a bigint. */
  exactInt64(): number | bigint {
    const value = this.int64()
    return Number.isSafeInteger(value) ? value : this.#bytes.readBigInt64LE(this.#at - 8)
  }

  float64(): number {
    const value = this.#bytes.readDoubleLE(this.#at)
    this.#at += 8
    return value
  }

  /** Of seven bits a byte, the lowest first; the high bit says that more follow. */
  #length(): number {
    let length = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.uint8()
      length += (byte & 127) * factor
      if (byte < 128) return length
    }
  }

  bytes(): Buffer {
    const length = this.#length()
    const end = this.#at + length
    if (end > this.#bytes.length) throw new RangeError("the answer ends within a row")
    const value = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return value
  }

  /** A FixedString: so many bytes. */
  fixed(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new RangeError("the answer ends within a row")
    const value = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return value
  }

  string(): string {
    const bytes = this.bytes()
    const text = bytes.toString("utf8")
    if (text.includes(REPLACEMENT) && !isUtf8(bytes)) this.#isExact = false
    return text
  }

  /** False if a string that was read since the last call was no UTF-8, so that it was another one. */
  takeExact(): boolean {
    const isExact = this.#isExact
    this.#isExact = true
    return isExact
  }

  list<A>(item: () => A): ReadonlyArray<A> {
    return Array.from({ length: this.#length() }, item)
  }
}

/** All rows of an answer; one in a step. */
export function* readRows<A>(
  bytes: Buffer,
  row: (reader: RowBinary) => A
): Sliced<ReadonlyArray<A>> {
  const reader = new RowBinary(bytes)
  const rows: Array<A> = []
  while (!reader.done) {
    rows.push(row(reader))
    yield
  }
  return rows
}

/**
 * Hot path: measured in test/bench/Bench.ts (projection). Writes ClickHouse's Native format: one
 * block of rows, column by column, as plain bytes.
 */

/** Bytes of a buffer to begin with. */
const START_BYTES = 65_536
/** Bytes of a length of a string at most: seven bits of 32 in each. */
const LENGTH_BYTES_MAX = 5
const UINT32 = 0x1_0000_0000

/** Bytes of a column, which grow as they are written. */
abstract class Column {
  readonly name: string
  readonly type: string
  protected buffer = Buffer.allocUnsafe(START_BYTES)
  protected at = 0

  constructor(name: string, type: string) {
    this.name = name
    this.type = type
  }

  /** Makes room for more bytes. */
  protected reserve(bytes: number): void {
    const wanted = this.at + bytes
    if (wanted <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(wanted, 2 * this.buffer.length))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }

  /** Adds values that have the form of the column already: bytes of `source` up to `end`. */
  append(source: Buffer, from: number, end: number): void {
    this.reserve(end - from)
    source.copy(this.buffer, this.at, from, end)
    this.at += end - from
  }

  /** What was written; of no use any more once the column is cleared. */
  bytes(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  /** Begin again; keeps the room. */
  clear(): void {
    this.at = 0
  }
}

export class UInt32Column extends Column {
  constructor(name: string) {
    super(name, "UInt32")
  }

  add(value: number): void {
    this.reserve(4)
    this.at = this.buffer.writeUInt32LE(value, this.at)
  }
}

/** 64-bit numbers: UInt64, Int64, DateTime64. A number is one that a double holds exactly. */
export class Int64Column extends Column {
  add(value: number | bigint): void {
    this.reserve(8)
    if (typeof value === "bigint") {
      this.at = this.buffer.writeBigInt64LE(value, this.at)
      return
    }
    const high = Math.floor(value / UINT32)
    this.buffer.writeUInt32LE(value - high * UINT32, this.at)
    this.at = this.buffer.writeInt32LE(high, this.at + 4)
  }
}

/** Strings of one length, given as lower-case hex digits: FixedString(n). */
export class HexColumn extends Column {
  readonly #width: number

  constructor(name: string, width: number) {
    super(name, `FixedString(${width})`)
    this.#width = width
  }

  /** The digits of `source` from `from` on; zero bytes if that is undefined. */
  add(source: Buffer, from: number | undefined): void {
    const width = this.#width
    this.reserve(width)
    if (from === undefined) this.buffer.fill(0, this.at, this.at + width)
    else {
      for (let index = 0; index < width; index++) {
        const at = from + 2 * index
        this.buffer[this.at + index] = (nibble(source[at]!) << 4) | nibble(source[at + 1]!)
      }
    }
    this.at += width
  }
}

/** Of a lower-case hex digit, which is checked before. */
const nibble = (digit: number): number => (digit <= 57 ? digit - 48 : digit - 87)

export class StringColumn extends Column {
  constructor(name: string) {
    super(name, "String")
  }

  #length(length: number): void {
    let left = length
    while (left >= 128) {
      this.buffer[this.at++] = (left & 127) | 128
      left >>>= 7
    }
    this.buffer[this.at++] = left
  }

  /** The bytes of `source` from `from` up to `end`. */
  add(source: Buffer, from: number, end: number): void {
    const length = end - from
    this.reserve(length + LENGTH_BYTES_MAX)
    this.#length(length)
    source.copy(this.buffer, this.at, from, end)
    this.at += length
  }
}

/** Seven bits a byte, the lowest first. */
const lengthBytes = (length: number): Buffer => {
  const bytes: Array<number> = []
  let left = length
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128)
  return Buffer.from([...bytes, left])
}

const textBytes = (text: string): ReadonlyArray<Buffer> => {
  const bytes = Buffer.from(text, "utf8")
  return [lengthBytes(bytes.length), bytes]
}

/** The block of these columns. */
export const nativeBlock = (columns: ReadonlyArray<Column>, rows: number): Buffer =>
  Buffer.concat([
    lengthBytes(columns.length),
    lengthBytes(rows),
    ...columns.flatMap((column) => [
      ...textBytes(column.name),
      ...textBytes(column.type),
      column.bytes()
    ])
  ])

/** The structure of the block, as ClickHouse's table functions take it. */
export const structureOf = (columns: ReadonlyArray<Column>): string =>
  columns.map(({ name, type }) => `${name} ${type}`).join(", ")

/**
 * ZIPs that no honest tool writes: every header can be made to say something else than the others.
 * Each entry is written as it is told, whether a reader would accept it or not.
 */
import { crc32, deflateRawSync } from "node:zlib"

/** What a header says in place of the truth. */
export interface Said {
  readonly name?: string
  readonly flags?: number
  readonly method?: number
  readonly crc?: number
  readonly packedBytes?: number
  readonly bytes?: number
  readonly extra?: Buffer
}

export interface RawEntry {
  readonly name: string
  readonly content: Buffer
  /** Sizes and checksum follow the data, as in a ZIP that was streamed. */
  readonly isStreamed?: boolean
  /** Bytes before the local header. */
  readonly before?: Buffer
  /** Bytes after the compressed data that count as compressed data. */
  readonly padding?: Buffer
  readonly local?: Said
  readonly central?: Said & { readonly comment?: string; readonly attributes?: number }
  readonly descriptor?: { readonly crc?: number; readonly packedBytes?: number }
  /** Left out of the directory. */
  readonly isHidden?: boolean
}

export interface RawZip {
  readonly entries: ReadonlyArray<RawEntry>
  readonly beforeDirectory?: Buffer
  readonly afterDirectory?: Buffer
  readonly comment?: string
  /** Bytes after everything. */
  readonly tail?: Buffer
  /** Entries that the end record says there are. */
  readonly count?: number
}

const STREAMED = 8
const UTF8 = 0x0800
const DEFLATED = 8

const header = (signature: number, said: Required<Said>): Buffer => {
  const isCentral = signature === 0x02014b50
  const head = Buffer.alloc(isCentral ? 46 : 30)
  const shift = isCentral ? 2 : 0
  head.writeUInt32LE(signature, 0)
  head.writeUInt16LE(20, 4 + shift)
  head.writeUInt16LE(said.flags, 6 + shift)
  head.writeUInt16LE(said.method, 8 + shift)
  head.writeUInt16LE(0x21, 12 + shift)
  head.writeUInt32LE(said.crc, 14 + shift)
  head.writeUInt32LE(said.packedBytes, 18 + shift)
  head.writeUInt32LE(said.bytes, 22 + shift)
  head.writeUInt16LE(Buffer.byteLength(said.name), 26 + shift)
  head.writeUInt16LE(said.extra.length, 28 + shift)
  return head
}

const numbers = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, at) => bytes.writeUInt32LE(value >>> 0, 4 * at))
  return bytes
}

/** The bytes of a ZIP. */
export const rawZip = (zip: RawZip): Buffer => {
  const parts: Array<Buffer> = []
  const directory: Array<Buffer> = []
  let offset = 0
  let count = 0
  const push = (...bytes: ReadonlyArray<Buffer>) => {
    parts.push(...bytes)
    for (const { length } of bytes) offset += length
  }
  for (const entry of zip.entries) {
    const { before, central, content, descriptor, isHidden, isStreamed, local, name } = entry
    const packed = Buffer.concat([deflateRawSync(content), entry.padding ?? Buffer.alloc(0)])
    const truth = {
      name,
      flags: UTF8 | (isStreamed === true ? STREAMED : 0),
      method: DEFLATED,
      crc: crc32(content),
      packedBytes: packed.length,
      bytes: content.length,
      extra: Buffer.alloc(0)
    }
    if (before !== undefined) push(before)
    const start = offset
    const streamed = isStreamed === true ? { crc: 0, packedBytes: 0, bytes: 0 } : {}
    const first = { ...truth, ...streamed, ...local }
    push(header(0x04034b50, first), Buffer.from(first.name), first.extra, packed)
    if (isStreamed === true) {
      const { crc, packedBytes } = { ...truth, ...descriptor }
      push(numbers(0x08074b50, crc, packedBytes, truth.bytes))
    }
    if (isHidden === true) continue
    const second = { ...truth, ...central }
    const comment = Buffer.from(central?.comment ?? "")
    const head = header(0x02014b50, second)
    head.writeUInt16LE(comment.length, 32)
    head.writeUInt32LE(central?.attributes ?? 0, 38)
    head.writeUInt32LE(start, 42)
    directory.push(head, Buffer.from(second.name), second.extra, comment)
    count += 1
  }
  push(zip.beforeDirectory ?? Buffer.alloc(0))
  const listing = Buffer.concat(directory)
  const start = offset
  push(listing, zip.afterDirectory ?? Buffer.alloc(0))
  const comment = Buffer.from(zip.comment ?? "")
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(zip.count ?? count, 8)
  end.writeUInt16LE(zip.count ?? count, 10)
  end.writeUInt32LE(listing.length, 12)
  end.writeUInt32LE(start, 16)
  end.writeUInt16LE(comment.length, 20)
  push(end, comment, zip.tail ?? Buffer.alloc(0))
  return Buffer.concat(parts)
}

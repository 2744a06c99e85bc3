/**
 * Hot path: measured in test/bench/Sequencing.ts. The form of a record in Kafka's record batches of
 * format 2 (magic 2), as far as those write it who write records as bytes: variable-length numbers
 * and headers. Source: Kafka's protocol guide, record batch format; varints are those of Protocol
 * Buffers, zigzag-encoded.
 */

/** A varint of 32 bits has at most so many bytes. */
export const VARINT_BYTES_MAX = 5

/** Bytes of the varint of a length, which is never negative. */
export const varintSize = (length: number): number =>
  length < 0x40 ? 1 : length < 0x2000 ? 2 : length < 0x10_0000 ? 3 : length < 0x800_0000 ? 4 : 5

/** Write the varint of a length, which is never negative; where it ends. Needs room. */
export const writeVarint = (bytes: Uint8Array, start: number, length: number): number => {
  let left = length * 2
  let at = start
  while (left >= 0x80) {
    bytes[at++] = (left & 0x7f) | 0x80
    left = Math.floor(left / 0x80)
  }
  bytes[at] = left
  return at + 1
}

/** A length and the bytes after it, the form of keys, values, and names and values of headers. */
export const withLength = (text: string): Buffer => {
  const length = Buffer.byteLength(text)
  const bytes = Buffer.allocUnsafe(varintSize(length) + length)
  bytes.write(text, writeVarint(bytes, 0, length))
  return bytes
}

/** Headers as a record has them, and where the value of each begins. */
export interface EncodedHeaders {
  readonly bytes: Buffer
  readonly valueAt: Readonly<Record<string, number>>
}

/** The end of a record: the number of its headers, then each name with its value. */
export const encodeHeaders = (headers: Readonly<Record<string, string>>): EncodedHeaders => {
  const entries = Object.entries(headers)
  const count = Buffer.allocUnsafe(varintSize(entries.length))
  writeVarint(count, 0, entries.length)
  const parts: Array<Buffer> = [count]
  const valueAt: Record<string, number> = {}
  let at = count.length
  for (const [name, value] of entries) {
    const own = [withLength(name), withLength(value)] as const
    at += own[0].length + own[1].length
    valueAt[name] = at - Buffer.byteLength(value)
    parts.push(...own)
  }
  return { bytes: Buffer.concat(parts), valueAt }
}

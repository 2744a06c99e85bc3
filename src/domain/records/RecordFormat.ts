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
  const texts = Object.entries(headers).flat()
  const lengths = texts.map((text) => Buffer.byteLength(text))
  const count = texts.length / 2
  let size = varintSize(count)
  for (const length of lengths) size += varintSize(length) + length
  const bytes = Buffer.allocUnsafe(size)
  const valueAt: Record<string, number> = {}
  let at = writeVarint(bytes, 0, count)
  for (let index = 0; index < texts.length; index++) {
    at = writeVarint(bytes, at, lengths[index]!)
    if (index % 2 === 1) valueAt[texts[index - 1]!] = at
    at += bytes.write(texts[index]!, at)
  }
  return { bytes, valueAt }
}

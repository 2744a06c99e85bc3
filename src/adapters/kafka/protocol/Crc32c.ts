/**
 * CRC-32C (Castagnoli), the checksum of Kafka's record batches. Slicing-by-16: sixteen tables take
 * four words per step, about four times as fast as the one table of kafkajs. Node's zlib has only
 * the other CRC-32. Words are read as little-endian, as on every processor that alk runs on.
 */

/** The polynomial 0x1EDC6F41, bits reversed. */
const POLYNOMIAL = 0x82f63b78
const SLICES = 16
const WORDS = SLICES / 4

/** Sixteen tables of 256 in a row; table n advances a byte that is followed by n others. */
const TABLES = ((): Int32Array => {
  const tables = new Int32Array(SLICES * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ POLYNOMIAL
    tables[byte] = crc
  }
  for (let at = 256; at < tables.length; at++) {
    const shorter = tables[at - 256]!
    tables[at] = (shorter >>> 8) ^ tables[shorter & 0xff]!
  }
  return tables
})()

const byByte = (crc: number, bytes: Uint8Array, start: number, end: number): number => {
  let result = crc
  for (let at = start; at < end; at++) {
    result = TABLES[(result ^ bytes[at]!) & 0xff]! ^ (result >>> 8)
  }
  return result
}

const byWords = (crc: number, words: Int32Array): number => {
  const tables = TABLES
  let result = crc
  for (let at = 0; at < words.length; at += WORDS) {
    const a = result ^ words[at]!
    const b = words[at + 1]!
    const c = words[at + 2]!
    const d = words[at + 3]!
    result =
      tables[3840 + (a & 0xff)]!
      ^ tables[3584 + ((a >>> 8) & 0xff)]!
      ^ tables[3328 + ((a >>> 16) & 0xff)]!
      ^ tables[3072 + (a >>> 24)]!
      ^ tables[2816 + (b & 0xff)]!
      ^ tables[2560 + ((b >>> 8) & 0xff)]!
      ^ tables[2304 + ((b >>> 16) & 0xff)]!
      ^ tables[2048 + (b >>> 24)]!
      ^ tables[1792 + (c & 0xff)]!
      ^ tables[1536 + ((c >>> 8) & 0xff)]!
      ^ tables[1280 + ((c >>> 16) & 0xff)]!
      ^ tables[1024 + (c >>> 24)]!
      ^ tables[768 + (d & 0xff)]!
      ^ tables[512 + ((d >>> 8) & 0xff)]!
      ^ tables[256 + ((d >>> 16) & 0xff)]!
      ^ tables[d >>> 24]!
  }
  return result
}

/** Checksum of the bytes from `start` up to `end`, as an unsigned number. */
export const crc32c = (bytes: Uint8Array, start = 0, end = bytes.length): number => {
  const aligned = Math.min(end, start + (-(bytes.byteOffset + start) & 3))
  const steps = Math.floor((end - aligned) / SLICES)
  const rest = aligned + steps * SLICES
  let crc = byByte(-1, bytes, start, aligned)
  if (steps > 0) {
    crc = byWords(crc, new Int32Array(bytes.buffer, bytes.byteOffset + aligned, steps * WORDS))
  }
  return ~byByte(crc, bytes, rest, end) >>> 0
}

/**
 * Looks for words in the files of a Kafka broker as they are on the disk: in every file as it is, and
 * in the records of every segment after decompression. Checks the checksum of every batch on the way.
 * Shares no code with alk and none with kafkajs.
 *
 *   node test/independent/segment_words.mjs <folder> <word>...
 *
 * Prints a line `<file> <word>` for each word that a file holds, and last `<batches> batches`. Exit
 * code: 0 read to the end, 1 a checksum is wrong or a file ends within a batch, 2 wrong arguments.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import zlib from "node:zlib"

const [folder, ...words] = process.argv.slice(2)
if (folder === undefined || words.length === 0) {
  process.stderr.write("usage: segment_words.mjs <folder> <word>...\n")
  process.exit(2)
}

/** CRC-32C, a bit at a time to make a table of a byte. */
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  return crc
})
const crc32c = (bytes) => {
  let crc = 0xffffffff
  for (const byte of bytes) crc = table[(crc ^ byte) & 0xff] ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

const decompressed = (codec, bytes) => {
  if (codec === 0) return bytes
  if (codec === 1) return zlib.gunzipSync(bytes)
  if (codec === 4) return zlib.zstdDecompressSync(bytes)
  throw new Error(`codec ${codec}`)
}

let batches = 0

/** What the segment holds, decompressed. */
const contentOf = (path, bytes) => {
  const contents = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 12 + (at + 12 > bytes.length ? Infinity : bytes.readInt32BE(at + 8))
    if (!(end <= bytes.length)) throw new Error(`${path} ends within a batch at ${at}`)
    const batch = bytes.subarray(at, end)
    if (crc32c(batch.subarray(21)) !== batch.readUInt32BE(17)) {
      throw new Error(`${path} has a wrong checksum at ${at}`)
    }
    contents.push(decompressed(batch.readInt16BE(21) & 7, batch.subarray(61)))
    batches += 1
    at = end
  }
  return contents
}

for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const path = join(entry.parentPath, entry.name)
  const bytes = readFileSync(path)
  const isSegment = /^[0-9]{20}\.log$/.test(entry.name)
  const contents = [bytes, ...(isSegment ? contentOf(path, bytes) : [])]
  for (const word of words) {
    if (!contents.some((content) => content.includes(word))) continue
    process.stdout.write(`${relative(folder, path)} ${word}\n`)
  }
}
process.stdout.write(`${batches} batches\n`)

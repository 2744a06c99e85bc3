/**
 * Decompresses zstd. Node makes the output of pieces of 16 KiB by default and copies them together:
 * four times the CPU of one piece as large as the frame's header says the content is.
 * Source: RFC 8878, section 3.1.1 (frame header).
 */
import { promisify } from "node:util"
import zlib from "node:zlib"

const unzstd = promisify(zlib.zstdDecompress)

/** Compressed bytes up to which the event loop does it: cheaper than a trip to the thread pool. */
const INLINE_BYTES_MAX = 16_384
/** The first piece of output is never larger: the size in a header is only a claim. */
const PIECE_BYTES_MAX = 16 * 1_048_576
const PIECE_BYTES_MIN = 1_024
/** Where the header doesn't say it. */
const PIECE_BYTES_UNKNOWN = 262_144
/** With an output just as large as the content, another piece is begun to find that it has ended. */
const SPARE_BYTES = 64

const MAGIC = 0xfd2fb528
const DESCRIPTOR_AT = 4
const SINGLE_SEGMENT = 0x20
const DICTIONARY_BYTES = [0, 1, 2, 4] as const

/** Bytes of content that the header of a zstd frame claims, if it does. */
export const contentSizeOf = (frame: Buffer): number | undefined => {
  if (frame.length < DESCRIPTOR_AT + 1 || frame.readUInt32LE(0) !== MAGIC) return undefined
  const descriptor = frame[DESCRIPTOR_AT]!
  const isSingle = (descriptor & SINGLE_SEGMENT) !== 0
  const at = DESCRIPTOR_AT + 1 + (isSingle ? 0 : 1) + DICTIONARY_BYTES[descriptor & 3]!
  if (at + 8 > frame.length) return undefined
  switch (descriptor >>> 6) {
    case 0:
      return isSingle ? frame[at] : undefined
    case 1:
      return frame.readUInt16LE(at) + 256
    case 2:
      return frame.readUInt32LE(at)
    default:
      return Number(frame.readBigUInt64LE(at))
  }
}

const pieceOf = (frame: Buffer): number => {
  const size = contentSizeOf(frame) ?? PIECE_BYTES_UNKNOWN
  return Math.max(PIECE_BYTES_MIN, Math.min(size + SPARE_BYTES, PIECE_BYTES_MAX))
}

/** The content of a frame; at once where it is small. */
export const zstdDecompress = (frame: Buffer): Buffer | Promise<Buffer> => {
  const options = { chunkSize: pieceOf(frame) }
  return frame.length <= INLINE_BYTES_MAX
    ? zlib.zstdDecompressSync(frame, options)
    : unzstd(frame, options)
}

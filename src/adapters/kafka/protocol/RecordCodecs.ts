/**
 * Decompresses the records of a batch of any client, and at most so many bytes of them. Node makes
 * the output of zstd in pieces of 16 KiB by default and copies them together: four times the CPU of
 * one piece as large as the frame's header says the content is.
 * Source: RFC 8878, section 3.1.1 (frame header).
 */
import { type Coding, InflateFailed, inflate, inflateSync } from "../../../domain/Inflate.ts"
import { MESSAGE_BYTES_MAX } from "../../../domain/records/Topics.ts"
import { CODECS } from "./BatchLayout.ts"

/** Bytes of the records of one batch, decompressed: twice what alk writes at most. */
export const INFLATED_BYTES_MAX = 2 * MESSAGE_BYTES_MAX
/** Compressed bytes up to which the event loop does it: cheaper than a trip to the thread pool. */
const INLINE_BYTES_MAX = 16_384
/** Bytes of content up to which it does, where a header says them. */
const INLINE_CONTENT_BYTES_MAX = 4 * 1_048_576
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

/** Where the header doesn't say it, what a few kilobytes of honest records unpack to. */
const isSmall = (coding: Coding, bytes: Buffer): boolean =>
  bytes.length <= INLINE_BYTES_MAX
  && (coding !== "zstd" || (contentSizeOf(bytes) ?? 0) <= INLINE_CONTENT_BYTES_MAX)

const codings: ReadonlyMap<number, Coding> = new Map([
  [CODECS.gzip, "gzip"],
  [CODECS.zstd, "zstd"]
])

/** The records of a batch as they were before compression. @throws, rejects with InflateFailed */
export const decompress = (codec: number, bytes: Buffer): Buffer | Promise<Buffer> => {
  if (codec === CODECS.none) return bytes
  const coding = codings.get(codec)
  if (coding === undefined) {
    throw new InflateFailed("invalid", `compressed with codec ${codec}; alk reads zstd and gzip`)
  }
  const piece = coding === "zstd" ? pieceOf : undefined
  return isSmall(coding, bytes)
    ? inflateSync(coding, bytes, INFLATED_BYTES_MAX, piece)
    : inflate(coding, bytes, INFLATED_BYTES_MAX, piece)
}

/**
 * Undoes compression: all of the input or nothing of it. Every frame of zstd, member of gzip and stream
 * of deflate is read, what follows the last one is refused, and so is more than so many bytes. Node's
 * own functions read the first frame and pass over the rest without a word.
 * Sources: RFC 8878, section 3.1 (zstd frames); RFC 1952, section 2.2 (gzip members); RFC 1950, section
 * 2.2 (zlib streams); RFC 9110, section 8.4.1.2 (deflate is zlib, and some send it without its header).
 */
import type { Transform } from "node:stream"
import { promisify } from "node:util"
import zlib from "node:zlib"

/** What can be undone. `deflate` is zlib, or the raw stream in it. */
export type Coding = "gzip" | "zstd" | "br" | "zlib" | "deflate"

/** The bytes are not of this coding, not all of them, or more than they may be. */
export class InflateFailed extends Error {
  override readonly name = "InflateFailed"
  readonly reason: "invalid" | "too_large"

  constructor(reason: InflateFailed["reason"], message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/** Frames of one input at most: a context of the decoder is made for each, about half a millisecond. */
const FRAMES_MAX = 256

const invalid = (coding: Coding, why: string, cause?: unknown): InflateFailed =>
  new InflateFailed("invalid", `not valid ${coding}${why}`, { cause })

const tooLarge = (bytesMax: number): InflateFailed =>
  new InflateFailed("too_large", `over ${bytesMax} bytes after decompression`)

const failure = (coding: Coding, bytesMax: number, cause: unknown): InflateFailed => {
  const { code } = cause as NodeJS.ErrnoException
  if (code === "ERR_BUFFER_TOO_LARGE") return tooLarge(bytesMax)
  return invalid(coding, code === "Z_BUF_ERROR" ? ": it breaks off" : "", cause)
}

/** Of these Node reads one frame. */
const areFramesJoined: ReadonlySet<Coding> = new Set(["zstd", "zlib", "deflate"])

/** zlib's method in the low half of the first byte: no encoder pads the first block of raw deflate so. */
const ZLIB_METHOD = 8
/** What both bytes of a zlib header are divisible by. */
const ZLIB_CHECK = 31

/** True for the header of zlib, or what there is of it. */
const isZlib = ([first, second]: Buffer): boolean =>
  first !== undefined
  && (first & 0x0f) === ZLIB_METHOD
  && (second === undefined || (first * 256 + second) % ZLIB_CHECK === 0)

/** What follows the bytes that were read: another frame of them, or nothing. */
const following = (coding: Coding, bytes: Buffer, read: number, frames: number): Buffer => {
  const left = bytes.subarray(read)
  if (left.length === 0) return left
  if (areFramesJoined.has(coding) && read > 0) {
    if (frames < FRAMES_MAX) return left
    throw invalid(coding, `: it has over ${FRAMES_MAX} frames`)
  }
  // gzip may be padded with zeros, as on tapes.
  if (coding === "gzip" && left.every((byte) => byte === 0)) return left.subarray(left.length)
  throw invalid(coding, ": bytes follow its end")
}

/** Bytes of the first piece of output; see Node's `chunkSize`. */
export type PieceOf = (input: Buffer) => number

interface Options {
  readonly chunkSize: number
  readonly maxOutputLength: number
  readonly info: true
}

/** What zlib's functions give with `info`. */
interface Read {
  readonly buffer: Buffer
  readonly engine: { readonly bytesWritten: number }
}

type Decode = (input: Buffer, options: Options) => Read

/** A function of zlib and of raw deflate, chosen by the input. */
const byHeader =
  <Result>(
    wrapped: (input: Buffer, options: Options) => Result,
    raw: (input: Buffer, options: Options) => Result
  ) =>
  (input: Buffer, options: Options): Result =>
    (isZlib(input) ? wrapped : raw)(input, options)

const decoders = {
  gzip: zlib.gunzipSync,
  zstd: zlib.zstdDecompressSync,
  br: zlib.brotliDecompressSync,
  zlib: zlib.inflateSync,
  deflate: byHeader<Buffer>(zlib.inflateSync, zlib.inflateRawSync)
} as unknown as Readonly<Record<Coding, Decode>>

type PoolDecode = (input: Buffer, options: Options) => Promise<Read>

const poolDecoders = {
  gzip: promisify(zlib.gunzip),
  zstd: promisify(zlib.zstdDecompress),
  br: promisify(zlib.brotliDecompress),
  zlib: promisify(zlib.inflate),
  deflate: byHeader<Promise<Buffer>>(promisify(zlib.inflate), promisify(zlib.inflateRaw))
} as unknown as Readonly<Record<Coding, PoolDecode>>

/** Asks for one frame after the other to be read, and puts them together. */
function* frames(
  coding: Coding,
  bytes: Buffer,
  bytesMax: number,
  pieceOf: PieceOf
): Generator<readonly [Buffer, Options], Buffer, Read> {
  const contents: Array<Buffer> = []
  let length = 0
  let left = bytes
  do {
    // Node takes no zero: a frame after exactly so many bytes may be empty.
    const maxOutputLength = Math.max(1, bytesMax - length)
    const { buffer, engine } = yield [
      left,
      { chunkSize: pieceOf(left), maxOutputLength, info: true }
    ]
    length += buffer.length
    if (length > bytesMax) throw tooLarge(bytesMax)
    contents.push(buffer)
    left = following(coding, left, engine.bytesWritten, contents.length)
  } while (left.length > 0)
  return contents.length === 1 ? contents[0]! : Buffer.concat(contents, length)
}

/** What Node takes without a size. */
const defaultPiece: PieceOf = () => 16_384

/** The content of at most `bytesMax` bytes, at once. @throws InflateFailed */
export const inflateSync = (
  coding: Coding,
  bytes: Buffer,
  bytesMax: number,
  pieceOf: PieceOf = defaultPiece
): Buffer => {
  const reading = frames(coding, bytes, bytesMax, pieceOf)
  try {
    let next = reading.next()
    while (next.done !== true) next = reading.next(decoders[coding](...next.value))
    return next.value
  } catch (error) {
    throw error instanceof InflateFailed ? error : failure(coding, bytesMax, error)
  }
}

/** The same in the thread pool. Rejects with InflateFailed. */
export const inflate = async (
  coding: Coding,
  bytes: Buffer,
  bytesMax: number,
  pieceOf: PieceOf = defaultPiece
): Promise<Buffer> => {
  const reading = frames(coding, bytes, bytesMax, pieceOf)
  try {
    let next = reading.next()
    while (next.done !== true) next = reading.next(await poolDecoders[coding](...next.value))
    return next.value
  } catch (error) {
    throw error instanceof InflateFailed ? error : failure(coding, bytesMax, error)
  }
}

/** Bytes of one piece that a stream hands on: few pieces for large contents. */
const STREAM_PIECE_BYTES = 262_144
/** log2 of the window that a zstd frame may ask for: 8 MiB, what RFC 8878 asks decoders to take. */
const ZSTD_WINDOW_LOG_MAX = 23

type Stream = Transform & { readonly bytesWritten: number }

const inPieces = { chunkSize: STREAM_PIECE_BYTES }

const streams: Readonly<Record<Coding, (input: Buffer) => Stream>> = {
  gzip: () => zlib.createGunzip(inPieces),
  br: () => zlib.createBrotliDecompress(inPieces),
  zlib: () => zlib.createInflate(inPieces),
  deflate: (input) =>
    isZlib(input) ? zlib.createInflate(inPieces) : zlib.createInflateRaw(inPieces),
  zstd: () =>
    zlib.createZstdDecompress({
      ...inPieces,
      params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX }
    })
}

/**
 * Hands the content on piece by piece, for who counts it while it grows. `ended` is called once, with
 * why it failed or undefined; nothing is called after the returned function, which stops it.
 */
export const inflatePieces = (
  coding: Coding,
  bytes: Buffer,
  take: (piece: Buffer) => void,
  ended: (failed: InflateFailed | undefined) => void
): (() => void) => {
  let isOver = false
  let stream: Transform | undefined
  const stop = () => {
    isOver = true
    stream?.destroy()
  }
  const end = (failed: InflateFailed | undefined) => {
    if (isOver) return
    stop()
    ended(failed)
  }
  const read = (input: Buffer, frame: number): void => {
    const reading = streams[coding](input)
    stream = reading
    reading.on("data", (piece: Buffer) => {
      if (!isOver) take(piece)
    })
    reading.on("error", (cause) => end(failure(coding, Infinity, cause)))
    reading.once("end", () => {
      try {
        const left = following(coding, input, reading.bytesWritten, frame)
        if (left.length === 0) end(undefined)
        else if (!isOver) read(left, frame + 1)
      } catch (failed) {
        end(failed as InflateFailed)
      }
    })
    reading.end(input)
  }
  read(bytes, 1)
  return stop
}

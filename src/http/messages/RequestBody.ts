/**
 * From the wire to the bytes of a request body: media type, coding, size, time, and room in memory.
 * Every limit holds while the bytes arrive and while they are inflated, so that no client decides
 * how much memory it takes. It does not interpret the bytes.
 */
import { Effect, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"
import { type Coding, inflatePieces } from "../../domain/Inflate.ts"
import { ApiError, refusable } from "./ApiError.ts"
import { type BodyAccount, CurrentBody } from "./BodyBudget.ts"
import { CurrentRequest } from "./CurrentRequest.ts"
import { decodedMemory } from "./DecodedMemory.ts"

/** Milliseconds that a whole body may take to arrive. */
export const BODY_TIMEOUT_MS = 30_000
/** Bytes of a block that small pieces are copied into. */
const BLOCK_BYTES = 65_536
/** Bytes that any body may inflate to. */
const INFLATED_FREELY_BYTES = 1_048_576
/** Times its size that a body may inflate to beyond that: above what traces of one text reach. */
const INFLATED_TIMES_MAX = 512

const codings = {
  gzip: "gzip",
  "x-gzip": "gzip",
  zstd: "zstd",
  br: "br",
  deflate: "deflate",
  zlib: "zlib"
} as const
const ACCEPTED_CODINGS = "gzip, zstd, br, deflate, zlib"
/** What editors and shells put before a text of UTF-8; RFC 8259 lets readers pass over it. */
const BYTE_ORDER_MARK = Buffer.from("\ufeff")

const tooLarge = (limit: number): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message: `the body is over ${limit} bytes after decompression; send fewer or smaller events`
  })

const inflatesTooMuch = (times: number, limit: number): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message:
      `Content-Encoding: the body inflates to over ${times} bytes, ${INFLATED_TIMES_MAX} times its `
      + `size; send it without a coding, or in smaller parts: of at most ${limit} bytes`,
    field: "Content-Encoding"
  })

/**
 * Pieces of a body put together, within its limit and what the account gives. Small pieces are
 * copied into blocks: a buffer for each byte that arrives alone would be a hundred times the
 * body.
 */
class BodyBuffer {
  readonly #account: BodyAccount
  readonly #limit: number
  readonly #overLimit: () => ApiError
  /** Whole blocks; the newest one has room. */
  readonly #blocks: Array<Buffer> = []
  #room = 0
  #bytes = 0

  constructor(account: BodyAccount, limit: number, overLimit: () => ApiError) {
    this.#account = account
    this.#limit = limit
    this.#overLimit = overLimit
  }

  /** The refusal if the piece is one too many. */
  add(piece: Uint8Array): ApiError | undefined {
    if (this.#bytes + piece.length > this.#limit) return this.#overLimit()
    const refusal = this.#account.reserve(piece.length)
    if (refusal !== undefined) return refusal
    this.#bytes += piece.length
    let at = 0
    if (this.#room > 0) {
      const block = this.#blocks.at(-1)!
      at = Math.min(this.#room, piece.length)
      block.set(piece.subarray(0, at), block.length - this.#room)
      this.#room -= at
    }
    const rest = piece.subarray(at)
    if (rest.length >= BLOCK_BYTES) this.#blocks.push(bufferOf(rest))
    else if (rest.length > 0) this.#start(rest)
    return undefined
  }

  #start(piece: Uint8Array): void {
    // The first piece of most bodies is all of it.
    if (this.#blocks.length === 0) return void this.#blocks.push(bufferOf(piece))
    const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
    block.set(piece)
    this.#blocks.push(block)
    this.#room = BLOCK_BYTES - piece.length
  }

  /** All of it in one piece, for which the copy is counted too while there is one. */
  whole(): Buffer | ApiError {
    const [first] = this.#blocks
    if (first === undefined) return Buffer.alloc(0)
    if (this.#blocks.length === 1) return first.subarray(0, this.#bytes)
    const refusal = this.#account.reserve(this.#bytes)
    if (refusal !== undefined) return refusal
    const whole = Buffer.concat(this.#blocks, this.#bytes)
    this.#blocks.length = 0
    this.#account.giveBack(this.#bytes)
    return whole
  }
}

const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** A result that is either what was wanted or a refusal. */
const orRefused = <A>(result: A | ApiError): Effect.Effect<A, ApiError> =>
  result instanceof ApiError ? Effect.fail(result) : Effect.succeed(result)

const inflated = (
  coding: Coding,
  body: Buffer,
  limit: number,
  account: BodyAccount
): Effect.Effect<Buffer, ApiError> =>
  Effect.callback((resume) => {
    const times = Math.max(INFLATED_FREELY_BYTES, INFLATED_TIMES_MAX * body.length)
    const gathered =
      times < limit
        ? new BodyBuffer(account, times, () => inflatesTooMuch(times, limit))
        : new BodyBuffer(account, limit, () => tooLarge(limit))
    const stop = inflatePieces(
      coding,
      body,
      (piece) => {
        const refusal = gathered.add(piece)
        if (refusal === undefined) return
        stop()
        resume(Effect.fail(refusal))
      },
      (failed) => {
        if (failed !== undefined) return resume(Effect.fail(notInflated(failed.message)))
        account.giveBack(body.length)
        resume(orRefused(gathered.whole()))
      }
    )
    return Effect.sync(stop)
  })

const notInflated = (reason: string): ApiError =>
  new ApiError({
    code: "invalid_request",
    message: `Content-Encoding: the body is ${reason}`,
    field: "Content-Encoding"
  })

/** The coding to undo, or undefined; throws ApiError for any other. */
const codingOf = (header: string | undefined): Coding | undefined => {
  const coding = header?.trim().toLowerCase()
  if (coding === undefined || coding === "" || coding === "identity") return undefined
  if (Object.hasOwn(codings, coding)) return codings[coding as keyof typeof codings]
  throw new ApiError({
    code: "unsupported_media_type",
    message: `Content-Encoding: one of ${ACCEPTED_CODINGS}, identity is understood`,
    field: "Content-Encoding",
    headers: { "accept-encoding": ACCEPTED_CODINGS }
  })
}

/** The media type of the body; none is taken for `accepted[0]`; throws ApiError for any other. */
const mediaTypeOf = (header: string | undefined, accepted: ReadonlyArray<string>): string => {
  if (header === undefined || header.trim() === "") return accepted[0]!
  const [type = "", ...parameters] = header.split(";").map((part) => part.trim().toLowerCase())
  const charset = parameters.find((parameter) => parameter.startsWith("charset="))
  const isUtf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset)
  if (accepted.includes(type) && isUtf8) return type
  throw new ApiError({
    code: "unsupported_media_type",
    message: `Content-Type: ${accepted.join(" or ")} in UTF-8 is accepted here`,
    field: "Content-Type"
  })
}

const late = Effect.suspend(() =>
  Effect.fail(
    new ApiError({
      code: "invalid_request",
      message: `the body did not arrive within ${BODY_TIMEOUT_MS / 1_000} s`,
      headers: { connection: "close" }
    })
  )
).pipe(Effect.delay(BODY_TIMEOUT_MS))

/** Fails if the body has to make room for others. */
const whenEvicted = (account: BodyAccount): Effect.Effect<never, ApiError> =>
  Effect.callback((resume) => {
    account.arriving((refusal) => resume(Effect.fail(refusal)))
    return Effect.sync(() => account.arrived())
  })

/** The body as it was sent, at most `limit` bytes of it. */
const received = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number,
  account: BodyAccount
): Effect.Effect<Buffer, ApiError> => {
  const gathered = new BodyBuffer(account, limit, () => tooLarge(limit))
  const reading = request.stream.pipe(
    Stream.mapError(() => new ApiError({ code: "invalid_request", message: "the body broke off" })),
    Stream.runForEachArray((pieces) => {
      for (const piece of pieces) {
        const refusal = gathered.add(piece)
        if (refusal !== undefined) return Effect.fail(refusal)
      }
      return Effect.void
    }),
    Effect.flatMap(() => orRefused(gathered.whole()))
  )
  return Effect.raceAllFirst([reading, late, whenEvicted(account)])
}

/** A body that has arrived whole, within its limits. */
export interface ReceivedBody {
  /** One of the accepted media types. */
  readonly mediaType: string
  /** After decompression, of a text without its byte order mark. */
  readonly bytes: Buffer
}

const withoutMark = (mediaType: string, bytes: Buffer): Buffer =>
  mediaType.endsWith("json") && BYTE_ORDER_MARK.equals(bytes.subarray(0, BYTE_ORDER_MARK.length))
    ? bytes.subarray(BYTE_ORDER_MARK.length)
    : bytes

/** Read the body of a request, at most `limit` bytes after decompression. */
export const readBody = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  accepted: ReadonlyArray<string>,
  limit: number
): Effect.fn.Return<ReceivedBody, ApiError> {
  const { coding, mediaType } = yield* refusable(() => {
    const { headers } = request
    const head = {
      mediaType: mediaTypeOf(headers["content-type"], accepted),
      coding: codingOf(headers["content-encoding"])
    }
    if (Number(headers["content-length"] ?? 0) > limit) throw tooLarge(limit)
    return head
  })
  const account = yield* CurrentBody
  const reading = Effect.flatMap(received(request, limit, account), (sent) =>
    coding === undefined ? Effect.succeed(sent) : inflated(coding, sent, limit, account)
  )
  // What has been read stays on the account until the request is over.
  const bytes = yield* Effect.onError(reading, () => Effect.sync(() => account.close()))
  const body = { mediaType, bytes: withoutMark(mediaType, bytes) }
  const { tenantId = "" } = yield* CurrentRequest
  yield* decodedMemory.turn(tenantId, body, account)
  return body
})

/**
 * From the wire to the bytes of a request body: media type, coding, size, time. Every limit holds
 * while the bytes arrive and while they are inflated, so that no client decides how much memory it
 * takes. What the bytes say is none of its business.
 */
import { Effect, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { brotliDecompress, constants, gunzip, zstdDecompress } from "node:zlib"
import { ApiError, refusable } from "./ApiError.ts"

/** Milliseconds that a whole body may take to arrive. */
export const BODY_TIMEOUT_MS = 30_000
/** Bytes of one piece of inflated output: few pieces for large bodies. */
const INFLATE_CHUNK_BYTES = 262_144
/** log2 of the window that a zstd frame may ask for: 8 MiB, what RFC 8878 asks decoders to take. */
const ZSTD_WINDOW_LOG_MAX = 23

const ACCEPTED_CODINGS = "gzip, zstd, br"

const tooLarge = (limit: number): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message: `the body is over ${limit} bytes after decompression; send fewer or smaller events`
  })

type Inflate = (
  body: Buffer,
  limit: number,
  done: (error: Error | null, inflated: Buffer) => void
) => void

const inflaters: Readonly<Record<string, Inflate>> = {
  gzip: (body, limit, done) =>
    gunzip(body, { maxOutputLength: limit, chunkSize: INFLATE_CHUNK_BYTES }, done),
  br: (body, limit, done) =>
    brotliDecompress(body, { maxOutputLength: limit, chunkSize: INFLATE_CHUNK_BYTES }, done),
  zstd: (body, limit, done) =>
    zstdDecompress(
      body,
      {
        maxOutputLength: limit,
        chunkSize: INFLATE_CHUNK_BYTES,
        params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX }
      },
      done
    )
}

const inflated = (coding: string, body: Buffer, limit: number): Effect.Effect<Buffer, ApiError> =>
  Effect.callback((resume) => {
    inflaters[coding]!(body, limit, (error, bytes) => {
      if (error === null) return resume(Effect.succeed(bytes))
      const overLimit = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE"
      resume(
        Effect.fail(
          overLimit
            ? tooLarge(limit)
            : new ApiError({
                code: "invalid_request",
                message: `Content-Encoding: the body is not valid ${coding}`,
                field: "Content-Encoding"
              })
        )
      )
    })
  })

/** The coding to undo, or undefined; throws ApiError for any other. */
const codingOf = (header: string | undefined): string | undefined => {
  const coding = header?.trim().toLowerCase()
  if (coding === undefined || coding === "" || coding === "identity") return undefined
  const known = coding === "x-gzip" ? "gzip" : coding
  if (Object.hasOwn(inflaters, known)) return known
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

/** The body as it was sent, at most `limit` bytes of it. */
const received = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<Buffer, ApiError> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  return request.stream.pipe(
    Stream.mapError(
      () => new ApiError({ code: "invalid_request", message: "the body broke off" })
    ),
    Stream.runForEachArray((pieces) => {
      for (const piece of pieces) {
        bytes += piece.length
        if (bytes > limit) return Effect.fail(tooLarge(limit))
        chunks.push(piece)
      }
      return Effect.void
    }),
    Effect.timeoutOrElse({
      duration: BODY_TIMEOUT_MS,
      orElse: () =>
        Effect.fail(
          new ApiError({
            code: "invalid_request",
            message: `the body did not arrive within ${BODY_TIMEOUT_MS / 1_000} s`,
            headers: { connection: "close" }
          })
        )
    }),
    Effect.map(() => Buffer.concat(chunks))
  )
}

/** A body that has arrived whole, within its limits. */
export interface ReceivedBody {
  /** One of the accepted media types. */
  readonly mediaType: string
  /** After decompression. */
  readonly bytes: Buffer
}

/** Read the body of a request, at most `limit` bytes after decompression. */
export const readBody = Effect.fnUntraced(function*(
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
  const sent = yield* received(request, limit)
  return { mediaType, bytes: coding === undefined ? sent : yield* inflated(coding, sent, limit) }
})

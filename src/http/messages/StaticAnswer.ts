/**
 * Answers that stay the same while the process runs (the reference page, the published documents):
 * compressed once per coding when it is first asked for, and sent again only to who lacks them.
 */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { negotiate } from "./MediaTypes.ts"

/** Text and its media type. */
export interface StaticText {
  readonly text: string
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Five minutes, unless given. */
  readonly cacheControl?: string
}

/** Seconds that a cache may keep one without asking: about as long as an upgrade may go unseen. */
const MAX_AGE_SECONDS = 300
const CACHE_CONTROL = `public, max-age=${MAX_AGE_SECONDS}`
/** Bytes below which compressing saves nothing. */
const COMPRESS_BYTES_MIN = 1_024
/** Made once and sent often; 11 would take seconds for megabytes. */
const BROTLI_QUALITY = 9
const ETAG_LENGTH = 22

const codings = {
  identity: (bytes: Buffer) => Promise.resolve(bytes),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes, { level: 9 }),
  br: (bytes: Buffer) =>
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length
      }
    })
} as const

type Coding = keyof typeof codings

const codingOf = (header: string | undefined): Coding => {
  if (header === undefined) return "identity"
  const asked = negotiate(header, ["br", "gzip"])
  return asked ?? "identity"
}

/** RFC 9110, section 13.1.2: weak comparison, so the mark of weakness doesn't count. */
export const matchesEtag = (header: string | undefined, etag: string): boolean => {
  if (header === undefined) return false
  const bare = (tag: string) => tag.trim().replace(/^W\//u, "")
  return header.trim() === "*" || header.split(",").some((tag) => bare(tag) === bare(etag))
}

const shared = new WeakSet<Uint8Array>()

/** True of bytes that every answer with them shares. */
export const isShared = (bytes: Uint8Array): boolean => shared.has(bytes)

/** The answer to GET and HEAD of such a text. */
export const staticAnswer = (answer: StaticText) => {
  const { cacheControl = CACHE_CONTROL, contentType, headers = {}, text } = answer
  const bytes = Buffer.from(text)
  const digest = createHash("sha256").update(bytes).digest("base64url").slice(0, ETAG_LENGTH)
  const made = new Map<Coding, Promise<Buffer>>()
  const encoded = (coding: Coding): Promise<Buffer> => {
    const before = made.get(coding)
    if (before !== undefined) return before
    const promise = codings[coding](bytes).then((body) => {
      shared.add(body)
      return body
    })
    made.set(coding, promise)
    return promise
  }
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const coding =
      bytes.length < COMPRESS_BYTES_MIN ? "identity" : codingOf(request.headers["accept-encoding"])
    const etag = coding === "identity" ? `"${digest}"` : `"${digest}-${coding}"`
    const common = {
      ...headers,
      etag,
      "cache-control": cacheControl,
      vary: "Accept-Encoding"
    }
    if (matchesEtag(request.headers["if-none-match"], etag)) {
      return HttpServerResponse.empty({ status: 304, headers: common })
    }
    const body = yield* Effect.promise(() => encoded(coding))
    return HttpServerResponse.uint8Array(body, {
      contentType,
      headers: { ...common, ...(coding === "identity" ? {} : { "content-encoding": coding }) }
    })
  })
}

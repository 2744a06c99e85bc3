/**
 * The coding of an answer as its client asks for it (RFC 9110, section 12.5.3): what it likes best,
 * never what it refuses.
 */
import { HttpMiddleware } from "effect/http"
import { weighted } from "../messages/MediaTypes.ts"

/** Bytes of an answer below which compressing it costs more than it saves. */
const COMPRESS_BYTES_MIN = 1_024
const COMPRESSIBLE = /^(?:application\/(?:json|x-ndjson|yaml)|text\/(?:csv|html|plain))\b/

/** The fastest: an answer is read once, and gzip costs several times what zstd does. */
const GZIP_LEVEL = 1

/** In our order, for clients that like several equally. */
const codings = ["zstd", "br", "gzip"] as const
type Coding = (typeof codings)[number]

const compressionTo = (coding: Coding | undefined, minSize: number) =>
  HttpMiddleware.compression({
    algorithms: coding === undefined ? [] : [coding],
    levels: { gzip: GZIP_LEVEL },
    minSize,
    compressible: (contentType) => COMPRESSIBLE.test(contentType)
  })

const none = compressionTo(undefined, COMPRESS_BYTES_MIN)
const byCoding = {
  zstd: compressionTo("zstd", COMPRESS_BYTES_MIN),
  br: compressionTo("br", COMPRESS_BYTES_MIN),
  gzip: compressionTo("gzip", COMPRESS_BYTES_MIN)
}
/** For clients that take nothing uncompressed, however small. */
const always = {
  zstd: compressionTo("zstd", 0),
  br: compressionTo("br", 0),
  gzip: compressionTo("gzip", 0)
}

/** The coding to answer in; undefined: none. */
const chosen = (header: string): { coding: Coding | undefined; isForced: boolean } => {
  const accepted = new Map(weighted(header).map(({ name, quality }) => [name, quality]))
  const rest = accepted.get("*")
  const identity = accepted.get("identity") ?? (rest === 0 ? 0 : undefined)
  let coding: Coding | undefined
  let best = 0
  for (const one of codings) {
    const quality = accepted.get(one) ?? rest ?? 0
    if (quality > best) {
      best = quality
      coding = one
    }
  }
  if (identity !== undefined && identity > best) coding = undefined
  return { coding, isForced: identity === 0 }
}

/** The middleware for what `Accept-Encoding` says. */
export const compressed = (header: string | undefined) => {
  if (header === undefined || header === "") return none
  const { coding, isForced } = chosen(header)
  if (coding === undefined) return none
  return isForced ? always[coding] : byCoding[coding]
}

/**
 * Values that have no room in a span: in the span stands a reference with the beginning, size and
 * SHA-256 of the value, and the value itself is in facts of its own, in pieces, so that it is under
 * the chain and is erased with its execution.
 */
import { Schema } from "effect"
import { natural, sequence, sha256, text } from "../Forms.ts"
import { sha256Hex } from "../Identifiers.ts"
import { isObject, type JsonObject } from "../json/Json.ts"
import { finish, type Sliced } from "../Slices.ts"
import { PreparedDetails, type TraceFact } from "./TraceFact.ts"

/** Bytes of UTF-8 above which a text leaves its span. */
export const LARGE_VALUE_BYTES = 8_192
/** Bytes of a value that is kept; of a larger one the reference is all there is. */
export const PAYLOAD_VALUE_BYTES_MAX = 16 * 1_048_576
/** Bytes of a piece at most. */
export const CHUNK_BYTES = 262_144
/**
 * Bytes of a piece as JSON at most, where a control character is six of them: with the rest of its fact
 * a record has less than the 1,048,588 bytes that brokers and clients take by default.
 */
export const CHUNK_JSON_BYTES = 786_432
/** Bytes that a byte of a text may be in JSON. */
const ESCAPE_BYTES = 6

const REFERENCE_PREFIX = "sha256:"
export const REFERENCE_FORM = /^sha256:[0-9a-f]{64}$/u

/** The reference to a value, which a span has in its place. */
export const PayloadReference = Schema.Struct({
  $ref: Schema.String.check(Schema.isPattern(REFERENCE_FORM)).annotate({
    description: "SHA-256 of the UTF-8 bytes of the value."
  }),
  bytes: natural("Size of the value."),
  preview: Schema.optionalKey(text("Its beginning.")),
  media_type: Schema.optionalKey(
    Schema.Literal("application/json").annotate({
      description: "The value was no text, and is its RFC 8785 JSON."
    })
  ),
  truncated: Schema.optionalKey(
    Schema.Literal(true).annotate({ description: "The value is not kept." })
  )
}).annotate({
  identifier: "PayloadReference",
  description:
    "In place of a value in metadata, payload or error of a span or trace event, or in metadata of "
    + "an event."
})
export type PayloadReference = typeof PayloadReference.Type

/** The `payload` of a span.payload fact. */
export const PayloadChunk = Schema.Struct({
  bytes: natural("Size of the whole value."),
  chunk: sequence("From 1."),
  chunks: sequence("Pieces of the value; they are in consecutive order in the execution."),
  sha256: sha256("Of the whole value."),
  text: Schema.String.annotate({ description: "The piece." })
}).annotate({ identifier: "PayloadChunk" })
export type PayloadChunk = typeof PayloadChunk.Type

/** A value on its way to the chain. */
export const PreparedPayload = Schema.Struct({
  sha256: sha256("Of the value."),
  chunks: Schema.optionalKey(
    Schema.Array(PreparedDetails).annotate({
      description: "Its pieces; absent if an earlier operation of the command has them."
    })
  )
}).annotate({ identifier: "PreparedPayload" })
export type PreparedPayload = typeof PreparedPayload.Type

export const referenceTo = (hash: string): string => `${REFERENCE_PREFIX}${hash}`

/** Bytes of a text up to a place, less where that is within a character. */
const wholeEnd = (bytes: Buffer, place: number): number => {
  let end = Math.min(bytes.length, place)
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return end
}

/** A text of at most so many bytes of UTF-8, the beginning of another, no character in two. */
export const beginningOf = (bytes: Buffer, bytesMax: number): string =>
  bytes.subarray(0, wholeEnd(bytes, bytesMax)).toString("utf8")

const isTooLong = (text: string): boolean =>
  ESCAPE_BYTES * text.length > CHUNK_JSON_BYTES
  && Buffer.byteLength(JSON.stringify(text)) > CHUNK_JSON_BYTES

/** The longest beginning of a text that a piece has room for, of those that are tried. */
const pieceAt = (bytes: Buffer, start: number): string => {
  for (let most = CHUNK_BYTES; ; most /= 2) {
    const text = bytes.subarray(start, wholeEnd(bytes, start + most)).toString("utf8")
    if (!isTooLong(text)) return text
  }
}

/** The pieces of a value, which has this SHA-256, one a step. */
export function* chunksInSteps(value: string, hash: string): Sliced<ReadonlyArray<PayloadChunk>> {
  const bytes = Buffer.from(value, "utf8")
  const texts: Array<string> = []
  for (let start = 0; start < bytes.length; ) {
    yield
    const text = pieceAt(bytes, start)
    texts.push(text)
    start += Buffer.byteLength(text)
  }
  // In the order of RFC 8785.
  return texts.map((piece, index) => ({
    bytes: bytes.length,
    chunk: index + 1,
    chunks: texts.length,
    sha256: hash,
    text: piece
  }))
}

/** The same at once. */
export const chunksOf = (value: string): ReadonlyArray<PayloadChunk> =>
  finish(chunksInSteps(value, sha256Hex(value)))

const isChunk = (value: unknown): value is PayloadChunk =>
  isObject(value)
  && typeof value["sha256"] === "string"
  && typeof value["text"] === "string"
  && ["bytes", "chunk", "chunks"].every((name) => Number.isSafeInteger(value[name]))

/** The piece that a fact holds; undefined if it holds none, or none any more. */
export const chunkOf = (fact: TraceFact | undefined): PayloadChunk | undefined => {
  if (fact?.type !== "span.payload") return undefined
  const payload = fact.details?.payload as JsonObject | undefined
  return isChunk(payload) ? payload : undefined
}

/** The value that is among pieces, in any order and some of them twice; undefined if none is. */
export const wholeValue = (
  hash: string,
  pieces: ReadonlyArray<PayloadChunk>
): string | undefined => {
  const own = pieces.filter(({ sha256: of }) => of === hash)
  const texts = new Map(own.map(({ chunk, text: piece }) => [chunk, piece]))
  const chunks = own[0]?.chunks ?? 0
  if (chunks < 1 || chunks > texts.size) return undefined
  const whole = Array.from({ length: chunks }, (_, index) => texts.get(index + 1) ?? "").join("")
  return sha256Hex(whole) === hash ? whole : undefined
}

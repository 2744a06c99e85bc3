/**
 * Values that a span has no room for: what is kept of each is its beginning, its size and its hash,
 * so that the span is stored, and whoever has the value can show that it is the one. Pure, and the
 * same for the same value: an export that is sent again is the same export.
 */
import { sha256Hex } from "../../../domain/Identifiers.ts"
import { canonicalize } from "../../../domain/json/CanonicalJson.ts"
import { isObject } from "../../../domain/json/Json.ts"
import { type JsonObject, type JsonValue, NESTING_MAX } from "../../../domain/json/StrictJson.ts"
import { isLonger } from "../Prepare.ts"

/** What is cut, and what stays of it, in bytes; the next step where the one before is not enough. */
const STEPS = [
  { over: 8_192, preview: 2_048 },
  { over: 2_048, preview: 512 },
  { over: 512, preview: 64 }
] as const

/** Bytes of a member that is put away as a whole where many small values are too much. */
const MEMBER_BYTES = 256

/** A text of at most so many bytes of UTF-8, the beginning of another, no character in two. */
const beginningOf = (bytes: Buffer, bytesMax: number): string => {
  let end = Math.min(bytes.length, bytesMax)
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.subarray(0, end).toString("utf8")
}

/** What stands for a text; `hash` is that of its UTF-8. */
const standIn = (text: string, previewBytes: number): JsonObject => {
  const bytes = Buffer.from(text, "utf8")
  const preview = beginningOf(bytes, previewBytes)
  return {
    $ref: `sha256:${sha256Hex(text)}`,
    bytes: bytes.length,
    ...(preview === "" ? {} : { preview }),
    truncated: true
  }
}

/** Put in for values that were cut, counted. */
class Cutter {
  count = 0
  readonly #over: number
  readonly #preview: number

  constructor({ over, preview }: { readonly over: number; readonly preview: number }) {
    this.#over = over
    this.#preview = preview
  }

  /** The members of an object, which is at a level of nesting: 1 is the outermost. */
  members(object: JsonObject, level = 1): JsonObject {
    const entries = Object.entries(object).map(
      ([key, value]) => [key, this.#texts(value, level + 1)] as const
    )
    return Object.fromEntries(entries)
  }

  #texts(value: JsonValue, level: number): JsonValue {
    if (typeof value === "string") return this.#text(value, level)
    if (Array.isArray(value)) {
      return value.map((element: JsonValue) => this.#texts(element, level + 1))
    }
    return isObject(value) ? this.members(value as JsonObject, level) : value
  }

  #text(value: string, level: number): JsonValue {
    if (!isLonger(value, this.#over)) return value
    this.count += 1
    // An object would be nested too deep there.
    return level > NESTING_MAX ? fittedText(value, this.#over) : standIn(value, this.#preview)
  }

  /** Whole members: texts as they are, the rest as RFC 8785 JSON. */
  whole(object: JsonObject): JsonObject {
    const entries = Object.entries(object).map(([key, value]) => {
      const text = typeof value === "string" ? value : canonicalize(value)
      if (!isLonger(text, MEMBER_BYTES)) return [key, value] as const
      this.count += 1
      return [key, standIn(text, 0)] as const
    })
    return Object.fromEntries(entries)
  }
}

/** An object within its size, as RFC 8785 text. */
export interface Fitted {
  readonly text: string
  /** Values that were cut. */
  readonly cut: number
}

/**
 * The object with its largest texts cut until it takes at most `bytesMax` bytes; of `attributes`
 * in it whole members where texts are not enough. Undefined if even that is not.
 */
export const fitted = (object: JsonObject, bytesMax: number): Fitted | undefined => {
  const whole = canonicalize(object)
  if (!isLonger(whole, bytesMax)) return { text: whole, cut: 0 }
  for (const step of STEPS) {
    const cutter = new Cutter(step)
    const text = canonicalize(cutter.members(object))
    if (!isLonger(text, bytesMax)) return { text, cut: cutter.count }
  }
  const cutter = new Cutter(STEPS.at(-1)!)
  const { attributes } = object
  const small = cutter.members(
    isObject(attributes)
      ? { ...object, attributes: cutter.whole(attributes as JsonObject) }
      : cutter.whole(object)
  )
  const text = canonicalize(small)
  return isLonger(text, bytesMax) ? undefined : { text, cut: cutter.count }
}

/** A text of at most so many bytes, with what was left out at its end. */
export const fittedText = (text: string, bytesMax: number): string => {
  const bytes = Buffer.from(text, "utf8")
  if (bytes.length <= bytesMax) return text
  const end = `… (${bytes.length} bytes, sha256:${sha256Hex(text)})`
  return beginningOf(bytes, bytesMax - Buffer.byteLength(end)) + end
}

/**
 * Values that a span has no room for: in the span stands a reference with the beginning, size and
 * hash of each, and the value is stored apart. Pure, and the same for the same value: what is sent
 * again is the same span.
 */
import { canonicalInSteps, canonicalize, quote } from "../../domain/json/CanonicalJson.ts"
import { isObject, type JsonObject, type JsonValue, NESTING_MAX } from "../../domain/json/Json.ts"
import { isLonger } from "../../domain/json/TextSize.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { piecesOf, sha256InSteps } from "../../domain/TextPieces.ts"
import {
  beginningOf,
  CHUNK_BYTES,
  chunksInSteps,
  LARGE_VALUE_BYTES,
  PAYLOAD_VALUE_BYTES_MAX,
  type PreparedPayload,
  referenceTo
} from "../../domain/traces/Payload.ts"
import type { PreparedDetails } from "../../domain/traces/TraceFact.ts"
import { hashedDetails } from "./HashedDetails.ts"

/** Values that one operation may refer to. */
const VALUES_MAX = 1_000
/**
 * Bytes that values may take in a command: with the rest of it below what the log takes in one
 * record.
 */
const VALUES_ROOM = 20 * 1_048_576

/**
 * Characters of a reference to a value in a command, and of a piece of it besides its text; rounded
 * up.
 */
const REFERENCE_CHARACTERS = 128
const PIECE_CHARACTERS = 512

/** Bytes that are left for values. */
export interface ByteBudget {
  left: number
}

/** A value, and the characters of its pieces in a command. */
interface LargeValue {
  readonly text: string
  readonly characters: number
}

/** What is not made again for each try to find room: a text can be most of a request. */
interface Measured {
  readonly hash: string
  readonly bytes: number
  /** Of the text as a string of JSON in a string of JSON; undefined if it is too long. */
  readonly encoded: Encoded | undefined
}

interface Encoded {
  readonly characters: number
  readonly bytes: number
}

/** What has an escape in JSON, and what in it a string of JSON around it escapes once more. */
const ESCAPED = /["\\\u0000-\u001f]/
const QUOTES = 6
const ESCAPED_TWICE = 3
const ESCAPED_SHORT = 2
const ESCAPED_LONG = 6
const SHORT_ESCAPES = new Set([..."\b\f\n\r\t"].map((text) => text.charCodeAt(0)))
const QUOTE = 0x22
const BACKSLASH = 0x5c

const moreIn = (piece: string): number => {
  let more = 0
  for (let index = 0; index < piece.length; index++) {
    const unit = piece.charCodeAt(index)
    if (unit === QUOTE || unit === BACKSLASH) more += ESCAPED_TWICE
    else if (unit < 0x20) more += SHORT_ESCAPES.has(unit) ? ESCAPED_SHORT : ESCAPED_LONG
  }
  return more
}

/** Counted, not written: each control character becomes seven. Above `VALUES_ROOM` at least that. */
export function* encodedSize(text: string, bytes: number): Sliced<Encoded> {
  let more = QUOTES
  for (const piece of piecesOf(text)) {
    if (ESCAPED.test(piece)) more += moreIn(piece)
    if (bytes + more > VALUES_ROOM) break
    yield
  }
  return { characters: text.length + more, bytes: bytes + more }
}

const never = (_hash: string): boolean => false

export const valuesBudget = (): ByteBudget => ({ left: VALUES_ROOM })

/** The values that an operation refers to. */
export class OffloadedValues {
  /** By SHA-256. */
  readonly #values = new Map<string, LargeValue>()
  readonly #room: ByteBudget
  #measured = new Map<string, Measured>()
  /** References to values that are stored, and to those that are not. */
  referred = 0
  truncated = 0

  constructor(room: ByteBudget = valuesBudget()) {
    this.#room = room
  }

  /** The same values, and room for more that may be taken back. */
  copy(): OffloadedValues {
    const copied = new OffloadedValues({ ...this.#room })
    copied.merge(this)
    copied.#measured = this.#measured
    return copied
  }

  *measure(text: string): Sliced<Measured> {
    const known = this.#measured.get(text)
    if (known !== undefined) return known
    const bytes = Buffer.byteLength(text)
    const hash = yield* sha256InSteps(text)
    const encoded = bytes > PAYLOAD_VALUE_BYTES_MAX ? undefined : yield* encodedSize(text, bytes)
    const made = { hash, bytes, encoded }
    this.#measured.set(text, made)
    return made
  }

  merge(other: OffloadedValues): void {
    for (const [hash, value] of other.#values) this.#values.set(hash, value)
    this.#room.left = other.#room.left
    this.referred = other.referred
    this.truncated = other.truncated
  }

  /** How many values were referred to, stored or not. */
  get references(): number {
    return this.referred + this.truncated
  }

  /** True if the value is stored. */
  take(text: string, measured: Measured): boolean {
    const isStored = this.#values.has(measured.hash) || this.#add(text, measured)
    if (isStored) this.referred += 1
    else this.truncated += 1
    return isStored
  }

  /** Characters that they take in a command, but for the pieces of those that are there. */
  charactersIn(isThere: (hash: string) => boolean): number {
    let characters = 0
    for (const [hash, value] of this.#values) {
      characters += REFERENCE_CHARACTERS + (isThere(hash) ? 0 : value.characters)
    }
    return characters
  }

  /**
   * For the command, without the pieces of those that are there, one piece in a step; undefined if
   * there are none.
   */
  *payloads(isThere = never): Sliced<ReadonlyArray<PreparedPayload> | undefined> {
    if (this.#values.size === 0) return undefined
    const payloads: Array<PreparedPayload> = []
    for (const [sha256, { text }] of this.#values) {
      const chunks: Array<PreparedDetails> = []
      for (const payload of isThere(sha256) ? [] : yield* chunksInSteps(text, sha256)) {
        yield
        chunks.push(hashedDetails(canonicalize({ payload })))
      }
      payloads.push({ sha256, ...(chunks.length === 0 ? {} : { chunks }) })
    }
    return payloads
  }

  #add(text: string, measured: Measured): boolean {
    const { bytes, encoded, hash } = measured
    if (encoded === undefined || this.#values.size === VALUES_MAX) return false
    if (encoded.bytes > this.#room.left) return false
    this.#room.left -= encoded.bytes
    const pieces = 1 + Math.ceil(bytes / CHUNK_BYTES)
    const characters = encoded.characters + pieces * PIECE_CHARACTERS
    this.#values.set(hash, { text, characters })
    return true
  }
}

/** What leaves an object, and what of it stays as its beginning, in bytes. */
interface Step {
  readonly over: number
  readonly preview: number
  /** Whole members go, whatever they are, and not texts within them. */
  readonly isWhole?: true
}

/** Bytes of the beginning of a value, where there is room for it. */
const PREVIEW_BYTES = 2_048

/** The reference to a value, which is put apart. */
function* reference(
  text: string,
  previewBytes: number,
  apart: OffloadedValues,
  isJson = false
): Sliced<JsonObject> {
  const measured = yield* apart.measure(text)
  // One character more than there is room for, so that none is cut in two within it.
  const preview = beginningOf(Buffer.from(text.slice(0, previewBytes + 1)), previewBytes)
  return {
    $ref: referenceTo(measured.hash),
    bytes: measured.bytes,
    ...(preview === "" ? {} : { preview }),
    ...(isJson ? { media_type: "application/json" } : {}),
    ...(apart.take(text, measured) ? {} : { truncated: true })
  }
}

/** Members that are looked at in one step. */
const STEP_MEMBERS = 1_024

/** Puts in references. */
class TextOffloader {
  readonly #step: Step
  readonly #apart: OffloadedValues
  /** Members that were looked at. */
  #looked = 0

  constructor(step: Step, apart: OffloadedValues) {
    this.#step = step
    this.#apart = apart
  }

  *of(object: JsonObject): Sliced<JsonObject> {
    if (this.#step.isWhole !== true) return yield* this.#members(object, 1)
    const { attributes } = object
    const cut = yield* this.#whole(object)
    return isObject(attributes)
      ? { ...cut, attributes: yield* this.#whole(attributes as JsonObject) }
      : cut
  }

  /** The members of an object, which is at a level of nesting: 1 is the outermost. */
  *#members(object: JsonObject, level: number): Sliced<JsonObject> {
    const entries: Array<readonly [string, JsonValue]> = []
    for (const [key, value] of Object.entries(object)) {
      if (++this.#looked % STEP_MEMBERS === 0) yield
      entries.push([key, yield* this.#texts(value, level + 1)])
    }
    if (entries.length > STEP_MEMBERS) yield
    return Object.fromEntries(entries)
  }

  *#texts(value: JsonValue, level: number): Sliced<JsonValue> {
    if (typeof value === "string") {
      // Deeper than that an object can't be nested.
      const leaves = level <= NESTING_MAX && isLonger(value, this.#step.over)
      return leaves ? yield* this.#refer(value) : value
    }
    if (Array.isArray(value)) {
      const elements: Array<JsonValue> = []
      for (const element of value as ReadonlyArray<JsonValue>) {
        elements.push(yield* this.#texts(element, level + 1))
      }
      return elements
    }
    return isObject(value) ? yield* this.#members(value as JsonObject, level) : value
  }

  #refer(text: string, isJson = false): Sliced<JsonObject> {
    return reference(text, this.#step.preview, this.#apart, isJson)
  }

  /** Members: texts as they are, the rest as RFC 8785 JSON. */
  *#whole(object: JsonObject): Sliced<JsonObject> {
    const entries: Array<readonly [string, JsonValue]> = []
    for (const [key, value] of Object.entries(object)) {
      // Members that were put apart before, and what the caller does next.
      const isKept = key === "attributes" && isObject(value)
      const isText = typeof value === "string"
      const text = isText || isKept ? value : yield* canonicalInSteps(value)
      const leaves = typeof text === "string" && isLonger(text, this.#step.over)
      entries.push([key, leaves ? yield* this.#refer(text, !isText) : value])
    }
    return Object.fromEntries(entries)
  }
}

/** An object with references in it. */
type Cut = (object: JsonObject, apart: OffloadedValues) => Sliced<JsonObject>

const byStep =
  (step: Step): Cut =>
  (object, apart) =>
    new TextOffloader(step, apart).of(object)

/** What is left where little room is. */
const SMALLEST: Step = { over: 256, preview: 0, isWhole: true }

/** What is left of a number of bytes besides the texts and names of a value; below 0 at some time. */
const leftBeside = (value: unknown, bytes: number): number => {
  if (typeof value === "string") return bytes - value.length
  let left = bytes
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index++) {
      left = leftBeside(value[index], left)
    }
  } else if (isObject(value)) {
    for (const name in value) {
      left = leftBeside(value[name], left - name.length)
      if (left < 0) return left
    }
  }
  return left
}

/** Characters of a value that has room in a command whatever they are. */
const SURE_CHARACTERS = Math.floor(VALUES_ROOM / 8)

/** Texts within it go first where all of it may be too much for one value. */
const withoutTexts = byStep({ over: LARGE_VALUE_BYTES, preview: 64 })

/**
 * So many members that not even their values alone can go: `attributes` as a whole, or all of it.
 */
function* withoutMembers(object: JsonObject, apart: OffloadedValues): Sliced<JsonObject> {
  if (!isObject(object["attributes"])) return yield* wholeApart(object, apart)
  const { attributes, ...rest } = object
  const cut = yield* byStep(SMALLEST)(rest, apart)
  return { ...cut, attributes: yield* wholeApart(attributes as JsonObject, apart) }
}

function* wholeApart(value: JsonObject, apart: OffloadedValues): Sliced<JsonObject> {
  const isOne = leftBeside(value, SURE_CHARACTERS) >= 0
  yield
  const text = yield* canonicalInSteps(isOne ? value : yield* withoutTexts(value, apart))
  return yield* reference(text, 0, apart, true)
}

/** The next one where the one before was not enough. All put apart the same texts, or none. */
const TEXT_CUTS: ReadonlyArray<Cut> = [PREVIEW_BYTES, 512, 64].map((preview) =>
  byStep({ over: LARGE_VALUE_BYTES, preview })
)
const MEMBER_CUTS: ReadonlyArray<Cut> = [
  byStep({ over: LARGE_VALUE_BYTES, preview: PREVIEW_BYTES, isWhole: true }),
  byStep({ over: 2_048, preview: 512, isWhole: true }),
  byStep(SMALLEST),
  withoutMembers
]

/** Characters of a member besides its name at least: quotes, colon, comma and a digit. */
const MEMBER_CHARACTERS_MIN = 5

/** True if the names of its members alone have no room, of `attributes` in it too. */
const hasTooManyNames = (object: JsonObject, bytesMax: number): boolean => {
  const { attributes } = object
  let characters = 0
  for (const name in isObject(attributes) ? attributes : object) {
    characters += name.length + MEMBER_CHARACTERS_MIN
    if (characters > bytesMax) return true
  }
  return false
}

const CUTS: ReadonlyArray<ReadonlyArray<Cut>> = [TEXT_CUTS, ...MEMBER_CUTS.map((cut) => [cut])]

/**
 * The RFC 8785 text of an object without texts of more than 8 KiB, and of at most `bytesMax` bytes:
 * what has no room, of `attributes` in it whole members too, is in `apart`. Undefined if that is
 * not enough. `write` makes the text, which may have more in it than the object.
 */
export function* withoutLargeTexts(
  object: JsonObject,
  bytesMax: number,
  apart: OffloadedValues,
  write: (object: JsonObject) => string = canonicalize
): Sliced<string | undefined> {
  if (hasTooManyNames(object, bytesMax)) {
    const text = write(yield* withoutMembers(object, apart))
    return isLonger(text, bytesMax) ? undefined : text
  }
  // What can't have room is not written to find that out: it may be most of a request.
  const whole = leftBeside(object, bytesMax) < 0 ? undefined : write(object)
  if (whole !== undefined && !isLonger(whole, Math.min(LARGE_VALUE_BYTES, bytesMax))) return whole
  const isTooLong = whole === undefined || isLonger(whole, bytesMax)
  for (const cuts of CUTS) {
    for (const cut of cuts) {
      yield
      const tried = apart.copy()
      const rest = yield* cut(object, tried)
      if (tried.references === apart.references) {
        if (isTooLong) break
        return whole
      }
      if (leftBeside(rest, bytesMax) < 0) continue
      const text = write(rest)
      if (isLonger(text, bytesMax)) continue
      apart.merge(tried)
      return text
    }
  }
  return undefined
}

/** The RFC 8785 text of an object: as it is if it has room, else as `withoutLargeTexts`. */
export function* fitTo(
  object: JsonObject,
  bytesMax: number,
  apart: OffloadedValues
): Sliced<string | undefined> {
  const whole = leftBeside(object, bytesMax) < 0 ? undefined : canonicalize(object)
  return whole === undefined || isLonger(whole, bytesMax)
    ? yield* withoutLargeTexts(object, bytesMax, apart)
    : whole
}

/** The RFC 8785 text of an error: a text that has no room is put apart, an object as `fitted`. */
export function* fittedError(
  error: string | JsonObject,
  bytesMax: number,
  apart: OffloadedValues
): Sliced<string | undefined> {
  if (typeof error !== "string") return yield* fitTo(error, bytesMax, apart)
  const text = error.length > bytesMax ? undefined : quote(error)
  return text === undefined || isLonger(text, bytesMax)
    ? canonicalize(yield* reference(error, PREVIEW_BYTES, apart))
    : text
}

/**
 * Bytes of a member's JSON above which it may leave an object, and of the beginning that stays: a
 * reference takes less, whatever that begins with.
 */
const LARGE_MEMBER_BYTES = 2_048
const MEMBER_PREVIEW_BYTES = 256

/** An object without its largest members, and their names; undefined: it is a reference as a whole. */
export interface WithoutMembers {
  readonly text: string
  readonly moved: ReadonlyArray<string> | undefined
}

interface SizedMember {
  readonly name: string
  /** RFC 8785 JSON, of `bytes`. */
  readonly json: string
  readonly bytes: number
}

/** The largest first; of two of one size the one whose name comes first. */
const byRank = (left: SizedMember, right: SizedMember): number =>
  right.bytes - left.bytes || (left.name < right.name ? -1 : 1)

/** Bytes of JSON that a UTF-16 unit takes at most. */
const UNIT_JSON_BYTES = 6

/** True for a member that is too short to leave, whatever is in it. */
const isSurelySmall = (value: JsonValue): boolean =>
  typeof value === "string"
    ? UNIT_JSON_BYTES * value.length + QUOTES <= LARGE_MEMBER_BYTES
    : typeof value !== "object"

/** Members that may leave. */
function* largeMembers(object: JsonObject): Sliced<ReadonlyArray<SizedMember>> {
  const members: Array<SizedMember> = []
  let looked = 0
  for (const name in object) {
    looked += 1
    if (looked % STEP_MEMBERS === 0) yield
    const value = object[name]!
    if (isSurelySmall(value)) continue
    const json = yield* canonicalInSteps(value)
    if (isLonger(json, LARGE_MEMBER_BYTES)) {
      members.push({ name, json, bytes: Buffer.byteLength(json) })
    }
  }
  yield
  return members.sort(byRank)
}

/**
 * The RFC 8785 text of an object, `whole`, that is longer than `bytesMax`, in at most so many bytes: its
 * largest members are in `apart`, as few as will do, or all of it. Undefined if that has no room.
 */
export function* withoutLargeMembers(
  object: JsonObject,
  whole: string,
  bytesMax: number,
  apart: OffloadedValues
): Sliced<WithoutMembers | undefined> {
  const references = new Map<string, JsonObject>()
  let left = Buffer.byteLength(whole)
  for (const { bytes, json, name } of yield* largeMembers(object)) {
    if (left <= bytesMax) break
    const value = object[name]!
    const isText = typeof value === "string"
    const text = isText ? value : json
    const found = yield* reference(text, MEMBER_PREVIEW_BYTES, apart, !isText)
    references.set(name, found)
    left += Buffer.byteLength(canonicalize(found)) - bytes
  }
  if (left <= bytesMax) {
    const entries = Object.entries(object).map(
      ([name, value]) => [name, references.get(name) ?? value] as const
    )
    return { text: canonicalize(Object.fromEntries(entries)), moved: [...references.keys()] }
  }
  const text = canonicalize(yield* reference(whole, MEMBER_PREVIEW_BYTES, apart, true))
  return isLonger(text, bytesMax) ? undefined : { text, moved: undefined }
}

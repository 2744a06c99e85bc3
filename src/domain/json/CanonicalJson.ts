/**
 * RFC 8785 (JCS): the one text of a JSON value, whose bytes are hashed and stored. A property test
 * compares this faster code with the npm package `canonicalize`.
 */
import type { Sliced } from "../Slices.ts"
import type { JsonObject, JsonValue } from "./Json.ts"

/** A value that RFC 8785 has no text for: NaN, an infinity, or an unpaired surrogate. */
export class NotCanonicalizable extends Error {
  override readonly name = "NotCanonicalizable"
}

/** Length up to which looking at each character is faster than asking the engine. */
const SHORT_LENGTH = 64

const quoteByEngine = (text: string): string => {
  if (!text.isWellFormed()) throw new NotCanonicalizable("a string with an unpaired surrogate")
  return JSON.stringify(text)
}

/** The canonical text of a string, quotes included. */
export const quote = (text: string): string => {
  if (text.length > SHORT_LENGTH) return quoteByEngine(text)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    const isPlain = unit >= 0x20 && unit !== 0x22 && unit !== 0x5c && (unit & 0xf800) !== 0xd800
    if (!isPlain) return quoteByEngine(text)
  }
  return `"${text}"`
}

const writeNumber = (value: number): string => {
  if (!Number.isFinite(value)) throw new NotCanonicalizable(`${value} is no JSON number`)
  return String(value)
}

const writeArray = (elements: ReadonlyArray<JsonValue>): string => {
  let text = "["
  for (let index = 0; index < elements.length; index++) {
    text += (index === 0 ? "" : ",") + write(elements[index]!)
  }
  return `${text}]`
}

/** Keys up to which sorting them by insertion is faster than the engine's sort. */
const FEW_KEYS = 16

/** Sort in place by UTF-16 code units, as RFC 8785, section 3.2.3, requires. */
const sortKeys = (keys: Array<string>): Array<string> => {
  if (keys.length > FEW_KEYS) return keys.sort()
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index]!
    let place = index
    while (place > 0 && keys[place - 1]! > key) {
      keys[place] = keys[place - 1]!
      place -= 1
    }
    keys[place] = key
  }
  return keys
}

const writeObject = (value: JsonObject): string => {
  const keys = sortKeys(Object.keys(value))
  let text = "{"
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    text += `${index === 0 ? "" : ","}${quote(key)}:${write(value[key]!)}`
  }
  return `${text}}`
}

const write = (value: JsonValue): string => {
  if (typeof value === "string") return quote(value)
  if (typeof value === "number") return writeNumber(value)
  if (value === null || typeof value === "boolean") return String(value)
  return Array.isArray(value) ? writeArray(value) : writeObject(value as JsonObject)
}

/**
 * The same text in one piece; JSON text never starts with U+0000. V8 joins texts by reference, and
 * the pieces of one event take five times its size; reading a character makes V8 write them out.
 * The character has to be used, or the optimiser leaves the reading out.
 */
export const flat = (json: string): string => (json.charCodeAt(0) === 0 ? "" : json)

/** A value counts as so many characters beside its texts and names. */
const VALUE_LENGTH = 8

/** One look at a value. */
interface Look {
  /** Of the characters of a step; below 0 for a value that is long or deep. */
  left: number
  /**
   * True if the engine's own text is canonical, of what was looked at: keys already in the order of
   * RFC 8785, all numbers finite.
   */
  isInOrder: boolean
}

/** Nothing more is to be learned: it is too long, or its length is not asked for. */
const isOver = ({ isInOrder, left }: Look): boolean => left < 0 || (!isInOrder && left === Infinity)

const lookAt = (value: unknown, levels: number, look: Look): void => {
  look.left -= VALUE_LENGTH
  if (typeof value === "string") look.left -= value.length
  else if (typeof value === "number") look.isInOrder &&= Number.isFinite(value)
  if (typeof value !== "object" || value === null) return
  if (levels === 0) look.left = -1
  else if (Array.isArray(value)) {
    for (let index = 0; index < value.length && !isOver(look); index++) {
      lookAt(value[index], levels - 1, look)
    }
  } else lookAtMembers(value, levels, look)
}

const lookAtMembers = (value: object, levels: number, look: Look): void => {
  let previous = ""
  for (const key in value) {
    if (key < previous) look.isInOrder = false
    previous = key
    look.left -= key.length
    lookAt((value as JsonObject)[key], levels - 1, look)
    if (isOver(look)) return
  }
}

const isInOrder = (value: object): boolean => {
  const look = { left: Infinity, isInOrder: true }
  lookAt(value, Infinity, look)
  return look.isInOrder
}

/** The engine's text of a value whose members are in order. */
const writeInOrder = (value: JsonValue): string => {
  const text = JSON.stringify(value)
  // The engine writes an unpaired surrogate as an escape where RFC 8785 refuses it.
  return text.includes("\\ud") ? flat(write(value)) : text
}

/** The RFC 8785 text of a value. Throws NotCanonicalizable; recursion as deep as the value. */
export const canonicalize = (value: JsonValue): string =>
  typeof value !== "object" || value === null || !isInOrder(value)
    ? flat(write(value))
    : writeInOrder(value)

/** Values and characters that are written in one step. */
const STEP_LENGTH = 65_536

/** Levels of a value that is looked at as a whole before it is written. */
const SMALL_LEVELS = 4

/** What is left of the step that is written. */
interface Pace {
  left: number
}

/** The same in steps, where it is more than one. It takes longer then. */
export function* canonicalInSteps(
  value: JsonValue,
  pace: Pace = { left: STEP_LENGTH }
): Sliced<string> {
  const look = { left: STEP_LENGTH, isInOrder: true }
  lookAt(value, SMALL_LEVELS, look)
  if (typeof value !== "object" || value === null || look.left >= 0) {
    return look.isInOrder ? writeInOrder(value) : flat(write(value))
  }
  const isArray = Array.isArray(value)
  const object = value as JsonObject
  const keys = isArray ? Object.keys(value) : sortKeys(Object.keys(value))
  const parts: Array<string> = []
  pace.left -= keys.length
  for (const key of keys) {
    const member = object[key]!
    const isSimple = typeof member !== "object" || member === null
    const text = isSimple ? write(member) : yield* canonicalInSteps(member, pace)
    parts.push(isArray ? text : `${quote(key)}:${text}`)
    pace.left -= key.length + text.length + VALUE_LENGTH
    if (pace.left >= 0) continue
    pace.left = STEP_LENGTH
    yield
  }
  return isArray ? `[${parts.join(",")}]` : `{${parts.join(",")}}`
}

/** The RFC 8785 text of an object with more members, of which the texts are there already. */
export const canonicalizeWith = (value: JsonObject, texts: ReadonlyMap<string, string>): string => {
  const keys = sortKeys([...Object.keys(value), ...texts.keys()])
  const members = keys.map((key) => `${quote(key)}:${texts.get(key) ?? canonicalize(value[key]!)}`)
  return flat(`{${members.join(",")}}`)
}

/** Files as lines, and lines and files as JSON, each within bounds. */

import { concat, textOf } from "../../domain/Bytes.ts"
import { canonicalize } from "../../domain/json/CanonicalJson.ts"
import { type Fields, isObject, type JsonValue, parseJson } from "../../domain/json/Json.ts"
import { type Chunks, SMALL_FILE_BYTES_MAX, Unreadable } from "./PackFiles.ts"

const LINE_BYTES_MAX = 1_048_576
/** Levels of nested objects and arrays in one JSON text: the service stores at most 66. */
const DEPTH_MAX = 128

/** The lines of a file as texts, undefined for one that is too long or no UTF-8. */
export async function* linesOf(file: Chunks): AsyncGenerator<string | undefined, undefined> {
  // Of a line whose end has not come: joined once, or dropped as soon as it is too long.
  let pieces: Array<Uint8Array> = []
  let size = 0
  const keep = (piece: Uint8Array): void => {
    size += piece.length
    if (size > LINE_BYTES_MAX) pieces = []
    else if (piece.length > 0) pieces.push(piece)
  }
  const line = (): string | undefined => {
    const whole = pieces.length === 1 ? pieces[0]! : concat(...pieces)
    const text = size > LINE_BYTES_MAX ? undefined : textOf(whole)
    pieces = []
    size = 0
    return text
  }
  for await (const chunk of file) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      keep(chunk.subarray(start, end))
      yield line()
      start = end + 1
    }
    keep(chunk.subarray(start))
  }
  if (size > 0) yield line()
}

/** A file as a whole. @throws Unreadable if it is too large */
export const bytesOfFile = async (file: Chunks): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  for await (const chunk of file) {
    size += chunk.length
    if (size > SMALL_FILE_BYTES_MAX) throw new Unreadable("a file is larger than any of a pack is")
    chunks.push(chunk)
  }
  return concat(...chunks)
}

/** True if more than `max` characters of the text are this one. */
const hasMore = (text: string, character: string, max: number): boolean => {
  let count = 0
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
    count += 1
    if (count > max) return true
  }
  return false
}

/** True if objects and arrays are nested deeper than DEPTH_MAX. */
const isTooDeep = (text: string): boolean => {
  const half = DEPTH_MAX / 2
  if (!hasMore(text, "{", half) && !hasMore(text, "[", half)) return false
  let depth = 0
  let isText = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (isText) {
      if (character === "\\") at += 1
      else if (character === '"') isText = false
    } else if (character === '"') isText = true
    else if (character === "{" || character === "[") {
      depth += 1
      if (depth > DEPTH_MAX) return true
    } else if (character === "}" || character === "]") depth -= 1
  }
  return false
}

/** The value of a JSON text; undefined if it is not one, or nested too deep. */
export const jsonOf = (text: string): unknown => {
  if (isTooDeep(text)) return undefined
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Digits in a row that a finite number has at most, roughly. */
const LONG_NUMBER_DIGITS = 300

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

/** True if that many digits are in a row; looks at one character of each possible place. */
const hasLongNumber = (line: string): boolean => {
  for (let at = LONG_NUMBER_DIGITS - 1; at < line.length; at += LONG_NUMBER_DIGITS) {
    if (!isDigit(line.charCodeAt(at))) continue
    let [start, end] = [at, at + 1]
    while (at - start < LONG_NUMBER_DIGITS && isDigit(line.charCodeAt(start - 1))) start -= 1
    while (end - at < LONG_NUMBER_DIGITS && isDigit(line.charCodeAt(end))) end += 1
    if (end - start >= LONG_NUMBER_DIGITS) return true
  }
  return false
}

/** RFC 8785 text of a value that was read from JSON. @throws NotCanonicalizable */
export const canonical = (value: unknown): string => canonicalize(value as JsonValue)

/** True if the value has an RFC 8785 text. */
export const isCanonical = (value: unknown): boolean => {
  try {
    canonical(value)
    return true
  } catch {
    return false
  }
}

/** The JSON value of a line that meets `is` and has an RFC 8785 text; else undefined. */
export const jsonOfLine = <A>(line: string, is: (value: unknown) => value is A): A | undefined => {
  const value = jsonOf(line)
  if (value === undefined || !is(value)) return undefined
  // Only an escape can be an unpaired surrogate, only such numbers can be too large.
  const isOdd = /\\u|[0-9][eE]/.test(line) || hasLongNumber(line)
  return isOdd && !isCanonical(value) ? undefined : value
}

// Values of JSON that a pack holds

const HEX = /^[0-9a-f]{64}$/
export const isHash = (value: unknown): value is string =>
  typeof value === "string" && HEX.test(value)
export const isSequence = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 1
export const isSize = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

/** An object whose members of these names are strings. */
export const hasStrings = <Name extends string>(
  object: unknown,
  ...names: ReadonlyArray<Name>
): object is Fields & Readonly<Record<Name, string>> =>
  isObject(object) && names.every((name) => typeof object[name] === "string")

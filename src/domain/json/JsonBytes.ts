/**
 * Walks over JSON as bytes without making anything of it: where a value ends, how much is in it, and
 * whether a careful reader has to look at it. One pass, whatever the bytes are; whether they are JSON is
 * for a parser to say.
 */
import type { Sliced } from "../Slices.ts"
import { expectedAt, parseJson } from "./Json.ts"

const LEFT_BRACE = 0x7b
const RIGHT_BRACE = 0x7d
const LEFT_BRACKET = 0x5b
const RIGHT_BRACKET = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const LINE_FEED = 0x0a
const MINUS = 0x2d
const PLUS = 0x2b
const DOT = 0x2e
const LETTER_E = 0x65
const LETTER_U = 0x75

/** Digits that a decimal may have so that no two of them share a double (DBL_DIG of C). */
const SAFE_DIGITS = 15
/** Bytes that are skipped in one step. */
const SKIPPED_BYTES = 1_048_576
/** Characters of a number at most that is compared with its double: zeros behind it included. */
const NUMBER_LENGTH_MAX = 1_024

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isNumberByte = (code: number): boolean =>
  isDigit(code) || code === DOT || code === MINUS || code === PLUS || (code | 0x20) === LETTER_E
const isLowerCase = (code: number): boolean => code >= 0x61 && code <= 0x7a

/** 1 at the bytes that may stand between the tokens of JSON: faster than to compare with each. */
const SPACES = new Uint8Array(256)
for (const space of [0x20, LINE_FEED, 0x0d, 0x09]) SPACES[space] = 1

/** The first byte from there that is no space. */
export const afterSpace = (bytes: Uint8Array, from: number): number => {
  const end = bytes.length
  let at = from
  while (at < end && SPACES[bytes[at]!] === 1) at += 1
  return at
}

/** Significant digits and exponent of a decimal in one spelling: `1.10`, `11e-1` give `11e-1`. */
const normalDecimal = (text: string): string => {
  const unsigned = text.startsWith("-") ? text.slice(1) : text
  const letter = unsigned.search(/[eE]/)
  const mantissa = letter === -1 ? unsigned : unsigned.slice(0, letter)
  const point = mantissa.indexOf(".")
  const digits = point === -1 ? mantissa : mantissa.slice(0, point) + mantissa.slice(point + 1)
  let first = 0
  while (first < digits.length && digits[first] === "0") first += 1
  let last = digits.length
  while (last > first && digits[last - 1] === "0") last -= 1
  if (first === last) return "0"
  const fraction = point === -1 ? 0 : mantissa.length - point - 1
  const exponent = (letter === -1 ? 0 : Number(unsigned.slice(letter + 1))) - fraction
  return `${digits.slice(first, last)}e${exponent + digits.length - last}`
}

/** Significant digits after which no double has more to say (DBL_DECIMAL_DIG of C). */
const ROUND_TRIP_DIGITS = 17

/**
 * True if the JSON number has the decimal value of the shortest form of its nearest double, which
 * is what RFC 8785 stores, or is what printers of 17 digits make of that double: then it names it as
 * exactly. Of integers only the former: their digits may be an id. A text longer than NUMBER_LENGTH_MAX
 * is not looked at.
 */
export const isExactNumber = (text: string): boolean => {
  if (text.length > NUMBER_LENGTH_MAX) return false
  const nearest = Number(text)
  if (!Number.isFinite(nearest)) return false
  const decimal = normalDecimal(text)
  if (decimal === normalDecimal(String(nearest))) return true
  return /[.eE]/.test(text) && decimal === normalDecimal(nearest.toPrecision(ROUND_TRIP_DIGITS))
}

const hexDigit = (code: number): number => {
  if (isDigit(code)) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** The code unit of the four hex digits at `at`, or a negative number. */
const codeUnitAt = (bytes: Uint8Array, at: number): number => {
  if (at + 4 > bytes.length) return -1
  let unit = 0
  for (let index = at; index < at + 4; index++) {
    const digit = hexDigit(bytes[index]!)
    if (digit === -1) return -1
    unit = unit * 16 + digit
  }
  return unit
}

const NEEDS_SLOW_PATH = -1

/** The offset after the `\u` escape whose digits start at `at`, or NEEDS_SLOW_PATH. */
const skipUnicodeEscape = (bytes: Uint8Array, at: number): number => {
  const unit = codeUnitAt(bytes, at)
  if (unit <= 0) return NEEDS_SLOW_PATH
  if (unit < 0xd800 || unit > 0xdfff) return at + 4
  if (unit > 0xdbff || bytes[at + 4] !== BACKSLASH || bytes[at + 5] !== LETTER_U)
    return NEEDS_SLOW_PATH
  const low = codeUnitAt(bytes, at + 6)
  return low >= 0xdc00 && low <= 0xdfff ? at + 10 : NEEDS_SLOW_PATH
}

const endOfNumber = (bytes: Uint8Array, start: number): number => {
  let at = start + 1
  while (at < bytes.length && isNumberByte(bytes[at]!)) at += 1
  return at
}

/** The offset after the number that starts at `start`, negative if it may not be exact. */
const skipNumber = (bytes: Uint8Array, start: number): number => {
  let at = start + 1
  while (at < bytes.length && (isDigit(bytes[at]!) || bytes[at] === DOT)) at += 1
  const letter = bytes[at]! | 0x20
  if (at - start <= SAFE_DIGITS && letter !== LETTER_E) return at
  at = endOfNumber(bytes, at - 1)
  if (at - start > NUMBER_LENGTH_MAX) return -at
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, at - start).toString("latin1")
  return isExactNumber(text) ? at : -at
}

/** What one pass over a value found. */
export interface ValueWalk {
  readonly start: number
  /** After the value, or where the bytes end inside it, or the walk. */
  readonly end: number
  /** False if the bytes end inside it, or the walk. */
  readonly isWhole: boolean
  /** True if it holds too many values, and the walk ended there. */
  readonly isTooMuch: boolean
  /** Brackets that are open at the end. */
  readonly open: number
  /** Commas and opening brackets: one less than there are values in it, or as many. */
  readonly values: number
  /** Members that all its objects have together. */
  readonly members: number
  /** True if a key is written with an escape. */
  readonly isKeyEscaped: boolean
  /** Open brackets at once at most. */
  readonly levels: number
  /** True if no number is inexact, and no text has an unpaired surrogate or U+0000. */
  readonly isClean: boolean
}

/**
 * Hot path: measured in test/bench/Bench.ts (ingest). Looks at every byte of the value at `start`
 * once, up to `valuesMax` commas and brackets. Of bytes that are no JSON the result means nothing but
 * that it ends there.
 */
export const walkValue = (bytes: Uint8Array, start: number, valuesMax: number): ValueWalk => {
  const end = bytes.length
  let isKeyEscaped = false
  let isStringEscaped = false
  let isClean = true
  let isWhole = false
  let members = 0
  let values = 0
  let levels = 0
  let deepest = 0
  let at = start
  while (at < end) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      isStringEscaped = false
      at += 1
      while (at < end && bytes[at] !== QUOTE) {
        if (bytes[at] !== BACKSLASH) {
          at += 1
        } else if (bytes[at + 1] === LETTER_U) {
          isStringEscaped = true
          const after = skipUnicodeEscape(bytes, at + 2)
          if (after === NEEDS_SLOW_PATH) isClean = false
          at = after === NEEDS_SLOW_PATH ? at + 2 : after
        } else {
          isStringEscaped = true
          at += 2
        }
      }
      at += 1
    } else if (byte === MINUS || isDigit(byte)) {
      if (isClean) {
        const after = skipNumber(bytes, at)
        isClean = after > 0
        at = isClean ? after : -after
      } else {
        at = endOfNumber(bytes, at)
      }
    } else {
      if (byte === COLON) {
        members += 1
        isKeyEscaped ||= isStringEscaped
      } else if (byte === COMMA) {
        values += 1
        if (values > valuesMax) break
      } else if (byte === LEFT_BRACE || byte === LEFT_BRACKET) {
        values += 1
        levels += 1
        if (levels > deepest) deepest = levels
        if (values > valuesMax) break
      } else if (byte === RIGHT_BRACE || byte === RIGHT_BRACKET) levels -= 1
      else if (levels === 0) {
        at = endOfWord(bytes, at)
        isWhole = true
        break
      }
      at += 1
    }
    if (levels <= 0) {
      isWhole = at <= end
      break
    }
  }
  return {
    start,
    end: Math.min(at, end),
    isWhole,
    isTooMuch: values > valuesMax,
    open: levels,
    values,
    members,
    isKeyEscaped,
    levels: deepest,
    isClean
  }
}

/** The end of a value in which a walk has ended at `start`, with so many brackets open. */
function* skipRest(bytes: Uint8Array, start: number, open: number): Sliced<number | undefined> {
  let levels = open
  let pause = start + SKIPPED_BYTES
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at++) {
        if (bytes[at] === BACKSLASH) at += 1
      }
    } else if (byte === LEFT_BRACE || byte === LEFT_BRACKET) levels += 1
    else if (byte === RIGHT_BRACE || byte === RIGHT_BRACKET) {
      levels -= 1
      if (levels === 0) return at + 1
    }
    if (at < pause) continue
    pause = at + SKIPPED_BYTES
    yield
  }
  return undefined
}

/** After the letters of `true`, `false`, `null`, or of what is none of them. */
const endOfWord = (bytes: Uint8Array, start: number): number => {
  let at = start
  while (at < bytes.length && isLowerCase(bytes[at]!)) at += 1
  return at
}

/** The bytes are no JSON: what is expected at which of them. */
export class NotJson extends Error {
  override readonly name = "NotJson"

  constructor(bytes: Buffer, what: string, at: number) {
    super(messageOf(bytes, what, at))
  }
}

const messageOf = (bytes: Buffer, what: string, at: number): string => {
  if (at >= bytes.length) return expectedAt(what)
  let line = 1
  let start = 0
  for (let index = 0; index < at; index++) {
    if (bytes[index] !== LINE_FEED) continue
    line += 1
    start = index + 1
  }
  return expectedAt(what, line, bytes.toString("utf8", start, at).length + 1)
}

/** Reads the outer parts of a text, token by token; its values are walked over. */
export class JsonCursor {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.skipSpace()
  }

  skipSpace(): void {
    this.at = afterSpace(this.bytes, this.at)
  }

  /** Go behind this byte and the space after it, if it is the next one. */
  take(byte: number): boolean {
    if (this.bytes[this.at] !== byte) return false
    this.at += 1
    this.skipSpace()
    return true
  }

  /** @throws NotJson */
  expected(what: string, at = this.at): never {
    throw new NotJson(this.bytes, what, at)
  }

  /** A key and its colon, up to its value. @throws NotJson */
  key(): string {
    if (this.bytes[this.at] !== QUOTE) return this.expected("a key in double quotes")
    const { end, isWhole, start } = this.value(0)
    if (!isWhole) return this.expected("a closing quote", end)
    const key = this.#text(start, end)
    if (!this.take(COLON)) return this.expected('":"')
    return key
  }

  #text(start: number, end: number): string {
    try {
      // One string: no key is in it.
      return parseJson(this.bytes.toString("utf8", start, end), false) as string
    } catch {
      return this.expected("a key without control characters and with the escapes of JSON", start)
    }
  }

  /** The text of a value that was walked over. */
  textOf({ end, start }: ValueWalk): string {
    return this.bytes.toString("utf8", start, end)
  }

  /** Go behind the value that is next, and the space after it, or as far as the walk. */
  value(valuesMax: number): ValueWalk {
    const walk = walkValue(this.bytes, this.at, valuesMax)
    this.at = walk.end
    if (walk.isWhole) this.skipSpace()
    return walk
  }

  /** Go behind the value in which a walk has ended. @throws NotJson where the bytes end in it */
  *skip({ isTooMuch, open }: ValueWalk): Sliced<void> {
    if (!isTooMuch) return
    const end = yield* skipRest(this.bytes, this.at + 1, open)
    if (end === undefined) return this.expected("a closing bracket", this.bytes.length)
    this.at = end
    this.skipSpace()
  }

  /**
   * The keys of the object that is next, each with the cursor at its value, which the caller goes
   * behind. @throws NotJson
   */
  *members(): Generator<string, void, void> {
    if (!this.take(LEFT_BRACE)) return this.expected('"{"')
    if (this.take(RIGHT_BRACE)) return
    for (;;) {
      yield this.key()
      if (this.take(RIGHT_BRACE)) return
      if (!this.take(COMMA)) return this.expected('"," or "}"')
    }
  }

  /** As often as the array that is next has elements, each time at one of them. @throws NotJson */
  *elements(): Generator<void, void, void> {
    if (!this.take(LEFT_BRACKET)) return this.expected('"["')
    if (this.take(RIGHT_BRACKET)) return
    for (;;) {
      yield
      if (this.take(RIGHT_BRACKET)) return
      if (!this.take(COMMA)) return this.expected('"," or "]"')
    }
  }

  get isAtObject(): boolean {
    return this.bytes[this.at] === LEFT_BRACE
  }

  get isAtArray(): boolean {
    return this.bytes[this.at] === LEFT_BRACKET
  }

  /** @throws NotJson if anything follows */
  end(): void {
    if (this.at < this.bytes.length) this.expected("the end")
  }
}

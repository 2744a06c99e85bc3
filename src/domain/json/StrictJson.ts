/**
 * Reads JSON exactly or refuses it: what a client sent must come back as the same data after a
 * double and RFC 8785 have had their turn. One pass over the bytes finds out whether anything needs
 * a closer look, and only then a slower scanner says what is wrong and where. Knows nothing of
 * events.
 */
import { isUtf8 } from "node:buffer"
import { parseJson } from "./Json.ts"

export type JsonValue = null | boolean | number | string | ReadonlyArray<JsonValue> | JsonObject

export interface JsonObject {
  readonly [key: string]: JsonValue
}

/** Levels that objects and arrays may nest, counted from a member of the item: `metadata` is 1. */
export const NESTING_MAX = 32

/** Why a text or an item of it is refused. */
export interface JsonProblem {
  /**
   * `invalid_json`: no JSON or no UTF-8. `unstorable_value`: JSON that can't be stored exactly.
   * `invalid_request`: the wrapper of a batch is not what it has to be.
   */
  readonly code: "invalid_json" | "unstorable_value" | "invalid_request"
  /** Where, inside the item, as in `metadata.tags[0]`; empty for the text or item as a whole. */
  readonly path: string
  /** A sentence with the path and what to do about it. */
  readonly message: string
}

export type StrictResult = { readonly value: JsonValue } | { readonly problem: JsonProblem }

export type StrictBatch =
  | {
      readonly items: ReadonlyArray<StrictResult>
      /** Names of the other members of the wrapper, whatever they hold. */
      readonly beside: ReadonlyArray<string>
    }
  | { readonly problem: JsonProblem }

/** Open containers above an item that stands alone: the item itself. */
const LEVELS_ABOVE_ALONE = 1
/** Open containers above a member of a batch item: wrapper, array, item. */
const LEVELS_ABOVE_BATCHED = 3
/** Digits that a decimal may have so that no two of them share a double (DBL_DIG of C). */
const SAFE_DIGITS = 15
/** Characters of a key or number that a message repeats. */
const EXCERPT_LENGTH = 64

const LEFT_BRACE = 0x7b
const RIGHT_BRACE = 0x7d
const LEFT_BRACKET = 0x5b
const RIGHT_BRACKET = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const LINE_FEED = 0x0a
const MINUS = 0x2d
const PLUS = 0x2b
const DOT = 0x2e
const LETTER_E = 0x65
const LETTER_U = 0x75

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isNumberByte = (code: number): boolean =>
  isDigit(code) || code === DOT || code === MINUS || code === PLUS || (code | 0x20) === LETTER_E
const isSpace = (code: number): boolean =>
  code === 0x20 || code === LINE_FEED || code === 0x0d || code === 0x09

/** Significant digits and exponent of a decimal in one spelling: `1.10`, `11e-1` give `11e-1`. */
const normalDecimal = (text: string): string => {
  const unsigned = text.startsWith("-") ? text.slice(1) : text
  const mark = unsigned.search(/[eE]/)
  const mantissa = mark === -1 ? unsigned : unsigned.slice(0, mark)
  const point = mantissa.indexOf(".")
  const digits = point === -1 ? mantissa : mantissa.slice(0, point) + mantissa.slice(point + 1)
  let first = 0
  while (first < digits.length && digits[first] === "0") first += 1
  let last = digits.length
  while (last > first && digits[last - 1] === "0") last -= 1
  if (first === last) return "0"
  const fraction = point === -1 ? 0 : mantissa.length - point - 1
  const exponent = (mark === -1 ? 0 : Number(unsigned.slice(mark + 1))) - fraction
  return `${digits.slice(first, last)}e${exponent + digits.length - last}`
}

/**
 * True if the JSON number has the decimal value of the shortest form of its nearest double, which
 * is what RFC 8785 stores.
 */
export const isExactNumber = (text: string): boolean => {
  const nearest = Number(text)
  return Number.isFinite(nearest) && normalDecimal(text) === normalDecimal(String(nearest))
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

/** The offset behind the `\u` escape whose digits start at `at`, or NEEDS_SLOW_PATH. */
const skipUnicodeEscape = (bytes: Uint8Array, at: number): number => {
  const unit = codeUnitAt(bytes, at)
  if (unit <= 0) return NEEDS_SLOW_PATH
  if (unit < 0xd800 || unit > 0xdfff) return at + 4
  if (unit > 0xdbff || bytes[at + 4] !== BACKSLASH || bytes[at + 5] !== LETTER_U)
    return NEEDS_SLOW_PATH
  const low = codeUnitAt(bytes, at + 6)
  return low >= 0xdc00 && low <= 0xdfff ? at + 10 : NEEDS_SLOW_PATH
}

/** The offset behind the number that starts at `start`, or NEEDS_SLOW_PATH if it may not be exact. */
const skipNumber = (bytes: Uint8Array, start: number): number => {
  let at = start + 1
  while (at < bytes.length && (isDigit(bytes[at]!) || bytes[at] === DOT)) at += 1
  const letter = bytes[at]! | 0x20
  if (at - start <= SAFE_DIGITS && letter !== LETTER_E) return at
  while (at < bytes.length && isNumberByte(bytes[at]!)) at += 1
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, at - start).toString("latin1")
  return isExactNumber(text) ? at : NEEDS_SLOW_PATH
}

/** What a survey found. */
interface Survey {
  /** Members that all objects have together. */
  readonly members: number
  /** True if a key is written with an escape. */
  readonly isKeyEscaped: boolean
}

/**
 * Look at every byte once: what is there, or undefined if something nests too deep, is no exact
 * number, or is half a surrogate pair or U+0000. What it says about bytes that are no JSON is worth
 * nothing.
 */
const survey = (bytes: Uint8Array, levelsMax: number): Survey | undefined => {
  const end = bytes.length
  let isKeyEscaped = false
  let isStringEscaped = false
  let members = 0
  let levels = 0
  let at = 0
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
          at = skipUnicodeEscape(bytes, at + 2)
          if (at === NEEDS_SLOW_PATH) return undefined
        } else {
          isStringEscaped = true
          at += 2
        }
      }
      at += 1
    } else if (byte === MINUS || isDigit(byte)) {
      at = skipNumber(bytes, at)
      if (at === NEEDS_SLOW_PATH) return undefined
    } else {
      if (byte === COLON) {
        members += 1
        isKeyEscaped ||= isStringEscaped
      } else if (byte === LEFT_BRACE || byte === LEFT_BRACKET) levels += 1
      else if (byte === RIGHT_BRACE || byte === RIGHT_BRACKET) levels -= 1
      if (levels > levelsMax) return undefined
      at += 1
    }
  }
  return { members, isKeyEscaped }
}

/** Members of all objects of a value: fewer than its text has if a key stands there twice. */
const countMembers = (value: object): number => {
  let members = 0
  if (Array.isArray(value)) {
    for (const element of value as ReadonlyArray<unknown>) {
      if (typeof element === "object" && element !== null) members += countMembers(element)
    }
    return members
  }
  for (const key in value) {
    members += 1
    const member = (value as Record<string, unknown>)[key]
    if (typeof member === "object" && member !== null) members += countMembers(member)
  }
  return members
}

/** The value if the survey and the parser find nothing to object to, else undefined. */
const parseClean = (bytes: Buffer, text: string, levelsMax: number): JsonValue | undefined => {
  const surveyed = survey(bytes, levelsMax)
  if (surveyed === undefined) return undefined
  let value: JsonValue
  try {
    value = parseJson(text, surveyed.isKeyEscaped) as JsonValue
  } catch {
    // The scanner finds the same mistake and says where it is.
    return undefined
  }
  const found = typeof value === "object" && value !== null ? countMembers(value) : 0
  return found === surveyed.members ? value : undefined
}

/** Thrown and caught in this file only: what the text would have to hold, and where. */
class NotJson extends Error {}

const excerpt = (text: string): string =>
  text.length > EXCERPT_LENGTH ? `${text.slice(0, EXCERPT_LENGTH)}…` : text

const pathStep = (path: string, key: string | number): string => {
  if (typeof key === "number") return `${path}[${key}]`
  if (!/^[A-Za-z_][\w-]*$/.test(key) || key.length > EXCERPT_LENGTH) {
    return `${path}[${JSON.stringify(excerpt(key))}]`
  }
  return path === "" ? key : `${path}.${key}`
}

/** An open container: the key or index that is being read in it. */
interface Frame {
  /** Keys read so far; undefined for an array. */
  readonly keys: Set<string> | undefined
  step: string | number
}

interface ItemSpan {
  readonly start: number
  readonly end: number
  readonly problem: JsonProblem | undefined
}

const STRING_ESCAPES = '"\\/bfnrt'
const LITERALS = ["true", "false", "null"]

/**
 * Validates a whole text without recursion, however deep it nests, and remembers the first problem
 * of each item of the array `member`, or of the text where there is none.
 */
class Scanner {
  readonly items: Array<ItemSpan> = []
  /** True if the outermost object has `member` and that is an array. */
  hasArray = false
  /** The first problem outside of items. */
  problem: JsonProblem | undefined
  /** Keys of the outermost object. */
  readonly keys: Set<string> = new Set()
  /** True if `member` is there twice: either might be meant. */
  hasMemberTwice = false
  readonly #text: string
  readonly #member: string | undefined
  readonly #levelsMax: number
  /** For each open container whether it is an object; frames only for those within the limit. */
  readonly #isObject: Array<boolean> = []
  readonly #frames: Array<Frame> = []
  #at = 0
  #itemStart: number | undefined
  #itemProblem: JsonProblem | undefined

  constructor(text: string, levelsMax: number, member: string | undefined) {
    this.#text = text
    this.#levelsMax = levelsMax
    this.#member = member
  }

  scan(): void {
    this.#skipSpace()
    for (;;) {
      if (this.#beginValue()) continue
      if (!this.#endValue()) break
    }
    if (this.#at < this.#text.length) this.#expected("the end")
  }

  /** Read a value, or the beginning of a container: true if a value of it has to follow. */
  #beginValue(): boolean {
    if (this.#isAtItem()) {
      this.#itemStart = this.#at
      this.#itemProblem = undefined
    }
    const code = this.#text.charCodeAt(this.#at)
    if (code === QUOTE) {
      this.#checkText(this.#readString(), "the text")
      return false
    }
    if (code === LEFT_BRACE || code === LEFT_BRACKET) return this.#open(code === LEFT_BRACE)
    if (code === MINUS || isDigit(code)) this.#readNumber()
    else this.#readLiteral()
    return false
  }

  /** Go on behind a value: true if another value has to follow, false at the end of the text. */
  #endValue(): boolean {
    for (;;) {
      if (this.#isAtItem()) this.#endItem()
      this.#skipSpace()
      const isObject = this.#isObject.at(-1)
      if (isObject === undefined) return false
      const code = this.#text.charCodeAt(this.#at)
      if (code === COMMA) {
        this.#at += 1
        this.#skipSpace()
        if (isObject) this.#readKey()
        else this.#nextElement()
        return true
      }
      if (code !== (isObject ? RIGHT_BRACE : RIGHT_BRACKET)) {
        this.#expected(isObject ? '"," or "}"' : '"," or "]"')
      }
      this.#close()
    }
  }

  #open(isObject: boolean): boolean {
    this.#at += 1
    this.#isObject.push(isObject)
    if (this.#isObject.length > this.#levelsMax) {
      this.#report(`nested more than ${NESTING_MAX} levels deep; send it flatter`)
    } else {
      this.#frames.push({ keys: isObject ? new Set() : undefined, step: isObject ? "" : 0 })
    }
    if (this.#isAtItem()) this.hasArray = true
    this.#skipSpace()
    const code = this.#text.charCodeAt(this.#at)
    if (code === (isObject ? RIGHT_BRACE : RIGHT_BRACKET)) {
      this.#close()
      return false
    }
    if (isObject) this.#readKey()
    return true
  }

  #close(): void {
    this.#at += 1
    if (this.#frames.length === this.#isObject.length) this.#frames.pop()
    this.#isObject.pop()
  }

  #frame(): Frame | undefined {
    return this.#frames.length === this.#isObject.length ? this.#frames.at(-1) : undefined
  }

  #nextElement(): void {
    const frame = this.#frame()
    if (frame !== undefined) frame.step = Number(frame.step) + 1
  }

  #readKey(): void {
    if (this.#text.charCodeAt(this.#at) !== QUOTE) this.#expected("a key in double quotes")
    const key = this.#readString()
    const frame = this.#frame()
    if (frame?.keys !== undefined) {
      frame.step = key
      if (frame === this.#frames[0]) this.#noteKey(key)
      if (frame.keys.has(key)) this.#report("this key stands twice in its object; send it once")
      frame.keys.add(key)
      this.#checkText(key, "the key")
    }
    this.#skipSpace()
    if (this.#text.charCodeAt(this.#at) !== COLON) this.#expected('":"')
    this.#at += 1
    this.#skipSpace()
  }

  #noteKey(key: string): void {
    if (key === this.#member && this.keys.has(key)) this.hasMemberTwice = true
    this.keys.add(key)
  }

  /** The string whose opening quote is next, decoded. */
  #readString(): string {
    const start = this.#at
    let escaped = false
    this.#at += 1
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === QUOTE) break
      if (code === BACKSLASH) {
        escaped = true
        this.#skipEscape()
      } else if (code >= 0x20) {
        this.#at += 1
      } else {
        this.#expected("a closing quote, or control characters escaped,")
      }
    }
    this.#at += 1
    return escaped
      ? (parseJson(this.#text.slice(start, this.#at), false) as string)
      : this.#text.slice(start + 1, this.#at - 1)
  }

  #skipEscape(): void {
    const letter = this.#text.charAt(this.#at + 1)
    if (letter === "u" && /^[\da-fA-F]{4}$/.test(this.#text.slice(this.#at + 2, this.#at + 6))) {
      this.#at += 6
    } else if (letter !== "" && STRING_ESCAPES.includes(letter)) {
      this.#at += 2
    } else {
      this.#expected("an escape of JSON")
    }
  }

  #readNumber(): void {
    const form = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y
    form.lastIndex = this.#at
    const number = form.exec(this.#text)?.[0]
    if (number === undefined) return this.#expected("a number of JSON")
    this.#at += number.length
    if (!isExactNumber(number)) {
      this.#report(`no double holds ${excerpt(number)} exactly; send it as a string`)
    }
  }

  #readLiteral(): void {
    const literal = LITERALS.find((word) => this.#text.startsWith(word, this.#at))
    if (literal === undefined) return this.#expected("a value")
    this.#at += literal.length
  }

  #checkText(text: string, what: string): void {
    if (!text.isWellFormed()) {
      this.#report(`${what} holds half a surrogate pair; send whole Unicode characters`)
    } else if (text.includes("\u0000")) {
      this.#report(`${what} holds U+0000; send it without`)
    }
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1
  }

  /** True where a value of the array that holds the items begins or has just ended. */
  #isAtItem(): boolean {
    return (
      this.#member !== undefined
      && this.#isObject.length === LEVELS_ABOVE_BATCHED - 1
      && this.#frames[0]!.step === this.#member
      && this.#frames[0]!.keys !== undefined
      && this.#frames[1]!.keys === undefined
    )
  }

  #endItem(): void {
    this.items.push({ start: this.#itemStart!, end: this.#at, problem: this.#itemProblem })
    this.#itemStart = undefined
  }

  #report(reason: string): void {
    const inItem = this.#itemStart !== undefined
    const known = inItem ? this.#itemProblem : this.problem
    if (known !== undefined) return
    const frames = inItem ? this.#frames.slice(LEVELS_ABOVE_BATCHED - 1) : this.#frames
    const where = frames.reduce((above, { step }) => pathStep(above, step), "")
    const problem: JsonProblem = {
      code: "unstorable_value",
      path: where,
      message: where === "" ? reason : `${where}: ${reason}`
    }
    if (inItem) this.#itemProblem = problem
    else this.problem = problem
  }

  #expected(what: string): never {
    const before = this.#text.slice(0, this.#at)
    const line = before.split("\n").length
    const column = this.#at - before.lastIndexOf("\n")
    throw new NotJson(
      this.#at >= this.#text.length
        ? `the text ends where ${what} is expected`
        : `${what} is expected at line ${line}, column ${column}`
    )
  }
}

const refuse = (code: JsonProblem["code"], message: string): { readonly problem: JsonProblem } => ({
  problem: { code, path: "", message }
})

const notUtf8 = refuse("invalid_json", "not valid UTF-8; send the text as UTF-8")

/** The scanned text, or why it is no JSON. */
const scan = (
  text: string,
  levelsMax: number,
  member?: string
): Scanner | { readonly problem: JsonProblem } => {
  const scanner = new Scanner(text, levelsMax, member)
  try {
    scanner.scan()
  } catch (error) {
    if (!(error instanceof NotJson)) throw error
    return refuse("invalid_json", `not valid JSON: ${error.message}`)
  }
  return scanner
}

/** What a text is refused for, found by the scanner alone; undefined if by nothing. */
export const problemOf = (text: string): JsonProblem | undefined =>
  scan(text, LEVELS_ABOVE_ALONE + NESTING_MAX).problem

/**
 * Read one JSON text. Refuses what is no JSON or no UTF-8 (`invalid_json`), and with the path of
 * the first offender what can't be stored exactly (`unstorable_value`): a key that stands twice, a
 * number that no double holds, half a surrogate pair, U+0000, and more than NESTING_MAX levels
 * below the outermost value. `__proto__` is a key like any other; -0 stays -0, which RFC 8785
 * writes as 0.
 */
export const parseStrict = (body: Buffer): StrictResult => {
  if (!isUtf8(body)) return notUtf8
  const text = body.toString()
  const value = parseClean(body, text, LEVELS_ABOVE_ALONE + NESTING_MAX)
  if (value !== undefined) return { value }
  const problem = problemOf(text)
  return problem === undefined ? { value: parseJson(text) as JsonValue } : { problem }
}

const checkCount = (count: number, what: string, itemsMax: number) =>
  count > 0 && count <= itemsMax
    ? undefined
    : refuse(
        "invalid_request",
        `${what}: ${count === 0 ? "no" : `more than ${itemsMax}`} items; send 1 to ${itemsMax}`
      )

const noArray = (member: string) =>
  refuse("invalid_request", `${member}: missing or no array; send {"${member}": [...]}`)

const memberTwice = (member: string): { readonly problem: JsonProblem } => ({
  problem: {
    code: "invalid_request",
    path: member,
    message: `${member}: this key stands twice in its object; send it once`
  }
})

/** The slow way through a batch: every item on its own, by its place in the text. */
const parseItems = (text: string, member: string, itemsMax: number): StrictBatch => {
  const scanned = scan(text, LEVELS_ABOVE_BATCHED + NESTING_MAX, member)
  if (!(scanned instanceof Scanner)) return scanned
  if (scanned.hasMemberTwice) return memberTwice(member)
  if (!scanned.hasArray) return noArray(member)
  return (
    checkCount(scanned.items.length, member, itemsMax) ?? {
      beside: [...scanned.keys].filter((key) => key !== member),
      items: scanned.items.map(({ end, problem, start }) =>
        problem === undefined
          ? { value: parseJson(text.slice(start, end)) as JsonValue }
          : { problem }
      )
    }
  )
}

/**
 * Read a batch, `{"<member>": [...]}` with 1 to `itemsMax` items. What is wrong inside an item is
 * that item's problem, with the path inside it, and the other items are read. What stands beside the
 * array is not stored, so it may be unstorable; the whole text is refused if it is no JSON
 * (`invalid_json`) or has no such array or two of them (`invalid_request`).
 */
export const parseStrictBatch = (body: Buffer, member: string, itemsMax: number): StrictBatch => {
  if (!isUtf8(body)) return notUtf8
  const text = body.toString()
  const value = parseClean(body, text, LEVELS_ABOVE_BATCHED + NESTING_MAX)
  if (value === undefined) return parseItems(text, member, itemsMax)
  const wrapper = typeof value === "object" && value !== null ? (value as JsonObject) : {}
  const items = Object.hasOwn(wrapper, member) ? wrapper[member] : undefined
  if (!Array.isArray(items)) return noArray(member)
  return (
    checkCount(items.length, member, itemsMax) ?? {
      items: items.map((item: JsonValue) => ({ value: item })),
      beside: Object.keys(wrapper).filter((key) => key !== member)
    }
  )
}

const isBlank = (line: Buffer): boolean => line.every(isSpace)

/**
 * Read NDJSON: one text per line, blank lines don't count. A line that can't be read is the problem
 * of that item alone; only a body without lines or with more than `itemsMax` is refused as a whole.
 */
export const parseStrictLines = (body: Buffer, itemsMax: number): StrictBatch => {
  const lines: Array<Buffer> = []
  for (let start = 0; start < body.length && lines.length <= itemsMax; ) {
    const feed = body.indexOf(LINE_FEED, start)
    const end = feed === -1 ? body.length : feed
    const line = body.subarray(start, end)
    if (!isBlank(line)) lines.push(line)
    start = end + 1
  }
  return (
    checkCount(lines.length, "lines", itemsMax) ?? { items: lines.map(parseStrict), beside: [] }
  )
}

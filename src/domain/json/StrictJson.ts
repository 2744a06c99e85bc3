/**
 * Reads JSON exactly or refuses it: what a client sent must come back as the same data after its
 * numbers were stored as doubles and the whole as RFC 8785. One pass over the bytes finds out
 * whether anything may be wrong, and only then a slower scanner says what and where. Knows nothing
 * of events.
 */
import { isUtf8 } from "node:buffer"
import { type JsonObject, JsonReader, type JsonValue, parseJson } from "./Json.ts"

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

/** Open containers above a member of a single item: the item itself. */
const LEVELS_ABOVE_ALONE = 1
/** Open containers above a member of a batch item: wrapper, array, item. */
const LEVELS_ABOVE_BATCHED = 3
/** Digits that a decimal may have so that no two of them share a double (DBL_DIG of C). */
const SAFE_DIGITS = 15
/** Characters of a key or number that a message repeats. */
const EXCERPT_LENGTH = 64
const KEY_TWICE = "this key is given more than once in its object; send it once"

const LEFT_BRACE = 0x7b
const RIGHT_BRACE = 0x7d
const LEFT_BRACKET = 0x5b
const RIGHT_BRACKET = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
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

/** The offset after the number that starts at `start`, or NEEDS_SLOW_PATH if it may not be exact. */
const skipNumber = (bytes: Uint8Array, start: number): number => {
  let at = start + 1
  while (at < bytes.length && (isDigit(bytes[at]!) || bytes[at] === DOT)) at += 1
  const letter = bytes[at]! | 0x20
  if (at - start <= SAFE_DIGITS && letter !== LETTER_E) return at
  while (at < bytes.length && isNumberByte(bytes[at]!)) at += 1
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, at - start).toString("latin1")
  return isExactNumber(text) ? at : NEEDS_SLOW_PATH
}

/** What one pass over the bytes found. */
interface ByteCheck {
  /** Members that all objects have together. */
  readonly members: number
  /** True if a key is written with an escape. */
  readonly isKeyEscaped: boolean
}

/**
 * Hot path: measured in test/bench/Bench.ts (ingest). Looks at every byte once; undefined if
 * something nests too deep, is no exact number, an unpaired surrogate or U+0000. Of bytes that are no
 * JSON the result means nothing.
 */
const checkBytes = (bytes: Uint8Array, levelsMax: number): ByteCheck | undefined => {
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

/** Members of all objects of a value: fewer than its text has if it repeats a key. */
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

/** The value if both the pass over the bytes and the parser find nothing wrong, else undefined. */
const parseClean = (bytes: Buffer, text: string, levelsMax: number): JsonValue | undefined => {
  const checked = checkBytes(bytes, levelsMax)
  if (checked === undefined) return undefined
  let value: JsonValue
  try {
    value = parseJson(text, checked.isKeyEscaped) as JsonValue
  } catch {
    // The scanner finds the same mistake and says where it is.
    return undefined
  }
  const found = typeof value === "object" && value !== null ? countMembers(value) : 0
  return found === checked.members ? value : undefined
}

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

/**
 * Finds the first problem of each item of the array `member`, or of the text where there is none,
 * and the values of the items without one.
 */
class Scanner extends JsonReader {
  readonly items: Array<StrictResult> = []
  /** True if the outermost object has `member` and that is an array. */
  hasArray = false
  /** The first problem outside of items. */
  problem: JsonProblem | undefined
  /** Keys of the outermost object. */
  readonly keys: Set<string> = new Set()
  /** True if `member` is there twice: either might be meant. */
  hasMemberTwice = false
  readonly #member: string | undefined
  readonly #levelsMax: number
  /** Of the open containers within the limit. */
  readonly #frames: Array<Frame> = []
  #isInItem = false
  #itemProblem: JsonProblem | undefined

  constructor(text: string, levelsMax: number, member: string | undefined) {
    super(text, levelsMax)
    this.#levelsMax = levelsMax
    this.#member = member
  }

  protected override valueBegins(): void {
    if (!this.#isAtItem()) return
    this.#isInItem = true
    this.#itemProblem = undefined
  }

  protected override valueEnds(value: unknown): void {
    if (!this.#isAtItem()) return
    const problem = this.#itemProblem
    this.items.push(problem === undefined ? { value: value as JsonValue } : { problem })
    this.#isInItem = false
  }

  protected override opened(isObject: boolean): void {
    if (this.level > this.#levelsMax) {
      this.#report(`nested more than ${NESTING_MAX} levels deep; send it flatter`)
    } else {
      this.#frames.push({ keys: isObject ? new Set() : undefined, step: isObject ? "" : 0 })
    }
    if (this.#isAtItem()) this.hasArray = true
  }

  protected override closes(): void {
    if (this.#frame() !== undefined) this.#frames.pop()
  }

  protected override elementFollows(): void {
    const frame = this.#frame()
    if (frame !== undefined) frame.step = Number(frame.step) + 1
  }

  protected override keyRead(key: string): void {
    const frame = this.#frame()
    if (frame?.keys === undefined) return
    frame.step = key
    if (frame === this.#frames[0]) {
      if (key === this.#member && this.keys.has(key)) this.hasMemberTwice = true
      this.keys.add(key)
    }
    if (frame.keys.has(key)) this.#report(KEY_TWICE)
    frame.keys.add(key)
    this.#checkText(key, "the key")
  }

  protected override stringRead(text: string): void {
    this.#checkText(text, "the text")
  }

  protected override numberOf(source: string): number {
    if (!isExactNumber(source)) {
      this.#report(`no double holds ${excerpt(source)} exactly; send it as a string`)
    }
    return Number(source)
  }

  /** Of the innermost open container; undefined beyond the limit. */
  #frame(): Frame | undefined {
    return this.#frames.length === this.level ? this.#frames.at(-1) : undefined
  }

  #checkText(text: string, what: string): void {
    if (!text.isWellFormed()) {
      this.#report(`${what} holds an unpaired surrogate; send whole Unicode characters`)
    } else if (text.includes("\u0000")) {
      this.#report(`${what} holds U+0000; send it without`)
    }
  }

  /** True where a value of the array that holds the items begins or has just ended. */
  #isAtItem(): boolean {
    return (
      this.#member !== undefined
      && this.level === LEVELS_ABOVE_BATCHED - 1
      && this.#frames[0]!.step === this.#member
      && this.#frames[0]!.keys !== undefined
      && this.#frames[1]!.keys === undefined
    )
  }

  #report(reason: string): void {
    if ((this.#isInItem ? this.#itemProblem : this.problem) !== undefined) return
    const frames = this.#isInItem ? this.#frames.slice(LEVELS_ABOVE_BATCHED - 1) : this.#frames
    const where = frames.reduce((above, { step }) => pathStep(above, step), "")
    const problem: JsonProblem = {
      code: "unstorable_value",
      path: where,
      message: where === "" ? reason : `${where}: ${reason}`
    }
    if (this.#isInItem) this.#itemProblem = problem
    else this.problem = problem
  }
}

const refuse = (code: JsonProblem["code"], message: string): { readonly problem: JsonProblem } => ({
  problem: { code, path: "", message }
})

const notUtf8 = refuse("invalid_json", "not valid UTF-8; send the text as UTF-8")

interface Scanned {
  readonly problem: JsonProblem | undefined
  /** Both of every text that is JSON. */
  readonly scanner?: Scanner
  readonly value?: JsonValue
}

/** The scanned text with its value, or why it is no JSON. */
const scan = (text: string, levelsMax: number, member?: string): Scanned => {
  const scanner = new Scanner(text, levelsMax, member)
  try {
    return { scanner, value: scanner.read() as JsonValue, problem: scanner.problem }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return refuse("invalid_json", `not valid JSON: ${error.message}`)
  }
}

const scanAlone = (text: string) => scan(text, LEVELS_ABOVE_ALONE + NESTING_MAX)

/** What a text is refused for, found by the scanner alone; undefined if by nothing. */
export const problemOf = (text: string): JsonProblem | undefined => scanAlone(text).problem

/**
 * Read one JSON text. Refuses what is no JSON or no UTF-8 (`invalid_json`), and with the path of
 * the first offender what can't be stored exactly (`unstorable_value`): a repeated key, a number
 * that no double holds, an unpaired surrogate, U+0000, and more than NESTING_MAX levels below the outermost value. `__proto__` is a key like any other; -0 stays -0, which RFC 8785
 * writes as 0.
 */
export const parseStrict = (body: Buffer): StrictResult => {
  if (!isUtf8(body)) return notUtf8
  const text = body.toString()
  const value = parseClean(body, text, LEVELS_ABOVE_ALONE + NESTING_MAX)
  if (value !== undefined) return { value }
  const scanned = scanAlone(text)
  if (scanned.problem !== undefined) return { problem: scanned.problem }
  return { value: scanned.value! }
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
    message: `${member}: ${KEY_TWICE}`
  }
})

/** The slow way through a batch: every item on its own, by its place in the text. */
const parseItems = (text: string, member: string, itemsMax: number): StrictBatch => {
  const scanned = scan(text, LEVELS_ABOVE_BATCHED + NESTING_MAX, member)
  if (scanned.scanner === undefined) return { problem: scanned.problem! }
  const { hasArray, hasMemberTwice, items, keys } = scanned.scanner
  if (hasMemberTwice) return memberTwice(member)
  if (!hasArray) return noArray(member)
  const beside = [...keys].filter((key) => key !== member)
  return checkCount(items.length, member, itemsMax) ?? { beside, items }
}

/**
 * Read a batch, `{"<member>": [...]}` with 1 to `itemsMax` items. What is wrong inside an item is
 * that item's problem, with the path inside it, and the other items are read. What is beside the
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

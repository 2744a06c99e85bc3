/**
 * Reads JSON around a bug of V8: its JSON.parse may give a key that is written with an escape the
 * name of another object's key (nodejs/node#63785, in Node 24 and 26), so texts with such keys are
 * read here. Accepts, refuses and returns what the standard says for JSON.parse.
 */
import { finish, type Sliced } from "../Slices.ts"

export type JsonValue = null | boolean | number | string | ReadonlyArray<JsonValue> | JsonObject

export interface JsonObject {
  readonly [key: string]: JsonValue
}

/** A JSON object whose members are not checked. */
export type Fields = Readonly<Record<string, unknown>>

/** True for a JSON object. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Levels that objects and arrays may nest, counted from a member of the item: `metadata` is 1. */
export const NESTING_MAX = 64

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const COLON = 0x3a
const LEFT_BRACKET = 0x5b
const BACKSLASH = 0x5c
const RIGHT_BRACKET = 0x5d
const LEFT_BRACE = 0x7b
const RIGHT_BRACE = 0x7d

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isSpace = (code: number): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** The place of the quote that ends the string with a backslash at `slash`; -1 without one. */
const endOfString = (text: string, slash: number): number => {
  let quote = text.indexOf('"', slash)
  while (quote !== -1) {
    let before = quote
    while (before > slash && text.charCodeAt(before - 1) === BACKSLASH) before -= 1
    if ((quote - before) % 2 === 0) return quote
    quote = text.indexOf('"', quote + 1)
  }
  return -1
}

/**
 * True if a key of the text is written with an escape; of a text that is no JSON it may say either.
 * A backslash is always inside a string, and a string before a colon is a key, so only the ends of
 * the strings with a backslash are looked at.
 */
export const hasEscapedKey = (text: string): boolean => {
  let slash = text.indexOf("\\")
  while (slash !== -1) {
    let at = endOfString(text, slash) + 1
    if (at === 0) return false
    while (isSpace(text.charCodeAt(at))) at += 1
    if (text.charCodeAt(at) === COLON) return true
    slash = text.indexOf("\\", at)
  }
  return false
}

/** What is expected where, or where the text ends. */
export const expectedAt = (what: string, line?: number, column?: number): string =>
  line === undefined
    ? `the text ends where ${what} is expected`
    : `${what} is expected at line ${line}, column ${column}`

const LINE_FEED = 0x0a

const placeMessage = (text: string, what: string, at: number): string => {
  if (at >= text.length) return expectedAt(what)
  let line = 1
  let start = 0
  for (let index = 0; index < at; index++) {
    if (text.charCodeAt(index) !== LINE_FEED) continue
    line += 1
    start = index + 1
  }
  return expectedAt(what, line, at - start + 1)
}

/** A text is no JSON. */
export class JsonSyntaxError extends SyntaxError {
  /** What is expected. */
  readonly what: string
  /** Where, in UTF-16 units; the length of the text where it ends too soon. */
  readonly at: number

  constructor(text: string, what: string, at: number) {
    super(placeMessage(text, what, at))
    this.what = what
    this.at = Math.min(at, text.length)
  }
}

/** Characters that are read in one step. */
const STEP_LENGTH = 65_536

/** What a value is before all of it is read. */
const UNFINISHED = Symbol("unfinished")

type Container = Array<unknown> | Record<string, unknown>

/** Represent containers that nest too deep to be kept; what is in them is only checked. */
const DEEP_OBJECT: Container = {}
const DEEP_ARRAY: Container = []

/** Sets an own member, also where assigning would change the prototype instead. */
const setMember = (object: Record<string, unknown>, key: string, value: unknown): void => {
  if (key !== "__proto__") object[key] = value
  else {
    const own = { value, writable: true, enumerable: true, configurable: true }
    Object.defineProperty(object, key, own)
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y
const STRING_ESCAPES = '"\\/bfnrt'
const HEX_DIGITS = /^[\da-fA-F]{4}$/
const LITERALS = [
  ["true", true],
  ["false", false],
  ["null", null]
] as const

/**
 * One reading of one text, without recursion: it may nest as deep as JSON.parse lets it. A subclass
 * sees each key, value and container while it is read.
 */
export class JsonReader {
  readonly #text: string
  readonly #levelsMax: number
  /** The open containers, and of each object the key whose value is being read. */
  readonly #containers: Array<Container> = []
  readonly #keys: Array<string> = []
  #at = 0

  /** Of containers below `levelsMax` levels the content is checked, but not kept. */
  constructor(text: string, levelsMax = Infinity) {
    this.#text = text
    this.#levelsMax = levelsMax
  }

  /** The value of the text. Throws JsonSyntaxError, which says what is expected where. */
  read(): unknown {
    return finish(this.readInSteps())
  }

  /** The same in steps. */
  *readInSteps(): Sliced<unknown> {
    this.#skipSpace()
    let value = this.#beginValue()
    let pause = STEP_LENGTH
    while (value === UNFINISHED || this.#containers.length > 0) {
      value = value === UNFINISHED ? this.#beginValue() : this.#place(value)
      if (this.#at < pause) continue
      pause = this.#at + STEP_LENGTH
      yield
    }
    this.#skipSpace()
    if (this.#at < this.#text.length) this.#expected("the end")
    return value
  }

  /** Containers that are open. */
  protected get level(): number {
    return this.#containers.length
  }

  protected valueBegins(): void {}

  /** Called for every value but the outermost one, before its container gets it. */
  protected valueEnds(_value: unknown): void {}

  protected opened(_isObject: boolean): void {}

  protected closes(): void {}

  protected keyRead(_key: string): void {}

  /** Another element of an array follows. */
  protected elementFollows(): void {}

  protected stringRead(_text: string): void {}

  protected numberOf(source: string): unknown {
    return Number(source)
  }

  #expected(what: string, at = this.#at): never {
    throw new JsonSyntaxError(this.#text, what, at)
  }

  #skipSpace(): void {
    let at = this.#at
    while (isSpace(this.#text.charCodeAt(at))) at += 1
    this.#at = at
  }

  /** A scalar or an empty container; UNFINISHED where the first value of a container follows. */
  #beginValue(): unknown {
    this.valueBegins()
    const code = this.#text.charCodeAt(this.#at)
    if (code === LEFT_BRACE || code === LEFT_BRACKET) return this.#open(code === LEFT_BRACE)
    if (code === MINUS || isDigit(code)) return this.#readNumber()
    if (code !== QUOTE) return this.#readLiteral()
    const text = this.#readString()
    this.stringRead(text)
    return text
  }

  #open(isObject: boolean): unknown {
    this.#at += 1
    const isDeep = this.#containers.length >= this.#levelsMax
    if (isObject) this.#containers.push(isDeep ? DEEP_OBJECT : {})
    else this.#containers.push(isDeep ? DEEP_ARRAY : [])
    this.#keys.push("")
    this.opened(isObject)
    this.#skipSpace()
    const end = isObject ? RIGHT_BRACE : RIGHT_BRACKET
    if (this.#text.charCodeAt(this.#at) === end) return this.#close()
    if (isObject) this.#readKey()
    return UNFINISHED
  }

  #close(): unknown {
    this.#at += 1
    this.closes()
    this.#keys.pop()
    return this.#containers.pop()
  }

  /** Put a value into its container: the container if it ends there, UNFINISHED if it goes on. */
  #place(value: unknown): unknown {
    this.valueEnds(value)
    const top = this.#containers.length - 1
    const container = this.#containers[top]!
    const isArray = Array.isArray(container)
    if (isArray) {
      if (container !== DEEP_ARRAY) container.push(value)
    } else if (container !== DEEP_OBJECT) setMember(container, this.#keys[top]!, value)
    this.#skipSpace()
    const code = this.#text.charCodeAt(this.#at)
    if (code === COMMA) {
      this.#at += 1
      this.#skipSpace()
      if (isArray) this.elementFollows()
      else this.#readKey()
      return UNFINISHED
    }
    if (code !== (isArray ? RIGHT_BRACKET : RIGHT_BRACE)) {
      this.#expected(isArray ? '"," or "]"' : '"," or "}"')
    }
    return this.#close()
  }

  /** A key with its colon, up to the value. */
  #readKey(): void {
    if (this.#text.charCodeAt(this.#at) !== QUOTE) this.#expected("a key in double quotes")
    const key = this.#readString()
    this.#keys[this.#keys.length - 1] = key
    this.keyRead(key)
    this.#skipSpace()
    if (this.#text.charCodeAt(this.#at) !== COLON) this.#expected('":"')
    this.#at += 1
    this.#skipSpace()
  }

  /** The string whose opening quote is next, decoded. */
  #readString(): string {
    const text = this.#text
    const start = this.#at
    let at = start + 1
    let isEscaped = false
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) break
      if (code === BACKSLASH) {
        isEscaped = true
        at += this.#escapeLength(at)
      } else if (code >= 0x20) {
        at += 1
      } else {
        this.#expected("a closing quote, or control characters escaped,", at)
      }
    }
    this.#at = at + 1
    // V8's bug is about keys, so a string alone is read right.
    return isEscaped ? (JSON.parse(text.slice(start, at + 1)) as string) : text.slice(start + 1, at)
  }

  #escapeLength(at: number): number {
    const letter = this.#text.charAt(at + 1)
    if (letter === "u" && HEX_DIGITS.test(this.#text.slice(at + 2, at + 6))) return 6
    if (letter !== "" && STRING_ESCAPES.includes(letter)) return 2
    return this.#expected("an escape of JSON", at)
  }

  #readNumber(): unknown {
    NUMBER.lastIndex = this.#at
    const source = NUMBER.exec(this.#text)?.[0]
    if (source === undefined) return this.#expected("a number of JSON")
    this.#at += source.length
    return this.numberOf(source)
  }

  #readLiteral(): boolean | null {
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length
        return value
      }
    }
    return this.#expected("a value")
  }
}

/** Reads numbers by a function of the caller. */
class NumberReader extends JsonReader {
  readonly #numberOf: (source: string) => unknown

  constructor(text: string, numberOf: (source: string) => unknown) {
    super(text)
    this.#numberOf = numberOf
  }

  protected override numberOf(source: string): unknown {
    return this.#numberOf(source)
  }
}

/**
 * The value of a JSON text. Throws SyntaxError. `isKeyEscaped`: the result of hasEscapedKey, where
 * it is known already.
 */
export const parseJson = (text: string, isKeyEscaped = hasEscapedKey(text)): unknown =>
  isKeyEscaped ? new JsonReader(text).read() : JSON.parse(text)

/** The same in steps, but for what the engine reads. */
export function* parseJsonInSteps(
  text: string,
  isKeyEscaped = hasEscapedKey(text)
): Sliced<unknown> {
  return isKeyEscaped ? yield* new JsonReader(text).readInSteps() : parseJson(text, false)
}

/** The same, with `numberOf` of the text of each number in the place of its double. */
export const parseJsonWith = (text: string, numberOf: (source: string) => unknown): unknown =>
  new NumberReader(text, numberOf).read()

/**
 * True if the JSON.parse of this runtime gives an escaped key the name of another object's key.
 * Nothing depends on the answer: parseJson never asks it to read such a key.
 */
export const engineConfusesKeys = (): boolean => {
  JSON.parse('{"engine":1,"\\\\":1}')
  return !Object.hasOwn(JSON.parse('{"engine":1,"\\u007a":1}') as object, "z")
}

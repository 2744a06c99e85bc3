/**
 * Reads JSON without the engine's mistake: V8's JSON.parse may give a key that is written with an
 * escape the name of another object's key (nodejs/node#63785, in Node 24 and 26), so texts with
 * such keys are read here. Accepts, refuses and returns what JSON.parse has to.
 */

const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const LEFT_BRACKET = 0x5b
const BACKSLASH = 0x5c
const RIGHT_BRACKET = 0x5d
const LETTER_E = 0x65
const LEFT_BRACE = 0x7b
const RIGHT_BRACE = 0x7d

const isDigit = (code: number): boolean => code >= ZERO && code <= 0x39
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

/** What a value is before all of it is read. */
const UNFINISHED = Symbol("unfinished")

type Container = Array<unknown> | Record<string, unknown>

/** Sets an own member, also where assigning would change the prototype instead. */
const setMember = (object: Record<string, unknown>, key: string, value: unknown): void => {
  if (key !== "__proto__") object[key] = value
  else {
    const own = { value, writable: true, enumerable: true, configurable: true }
    Object.defineProperty(object, key, own)
  }
}

/** One reading of one text, without recursion: it may nest as deep as JSON.parse lets it. */
class Reader {
  readonly #text: string
  readonly #numberOf: (source: string) => unknown
  /** The open containers, and of each object the key whose value is being read. */
  readonly #containers: Array<Container> = []
  readonly #keys: Array<string> = []
  #at = 0

  constructor(text: string, numberOf: (source: string) => unknown) {
    this.#text = text
    this.#numberOf = numberOf
  }

  read(): unknown {
    this.#skipSpace()
    let value = this.#beginValue()
    while (value === UNFINISHED || this.#containers.length > 0) {
      value = value === UNFINISHED ? this.#beginValue() : this.#place(value)
    }
    this.#skipSpace()
    if (this.#at < this.#text.length) this.#refuse()
    return value
  }

  #refuse(): never {
    const { length } = this.#text
    throw new SyntaxError(
      this.#at < length
        ? `Unexpected token in JSON at position ${this.#at}`
        : "Unexpected end of JSON input"
    )
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1
  }

  /** A scalar or an empty container; UNFINISHED where the first value of a container follows. */
  #beginValue(): unknown {
    const code = this.#text.charCodeAt(this.#at)
    if (code === QUOTE) return this.#readString()
    if (code === MINUS || isDigit(code)) return this.#readNumber()
    if (code !== LEFT_BRACE && code !== LEFT_BRACKET) return this.#readLiteral()
    this.#at += 1
    this.#skipSpace()
    const isObject = code === LEFT_BRACE
    const container: Container = isObject ? {} : []
    if (this.#text.charCodeAt(this.#at) === (isObject ? RIGHT_BRACE : RIGHT_BRACKET)) {
      this.#at += 1
      return container
    }
    this.#containers.push(container)
    this.#keys.push(isObject ? this.#readKey() : "")
    return UNFINISHED
  }

  /** Put a value into its container: the container if it ends there, UNFINISHED if it goes on. */
  #place(value: unknown): unknown {
    const top = this.#containers.length - 1
    const container = this.#containers[top]!
    const isArray = Array.isArray(container)
    if (isArray) container.push(value)
    else setMember(container, this.#keys[top]!, value)
    this.#skipSpace()
    const code = this.#text.charCodeAt(this.#at)
    if (code === COMMA) {
      this.#at += 1
      this.#skipSpace()
      if (!isArray) this.#keys[top] = this.#readKey()
      return UNFINISHED
    }
    if (code !== (isArray ? RIGHT_BRACKET : RIGHT_BRACE)) this.#refuse()
    this.#at += 1
    this.#containers.pop()
    this.#keys.pop()
    return container
  }

  /** A key with its colon, up to the value. */
  #readKey(): string {
    if (this.#text.charCodeAt(this.#at) !== QUOTE) this.#refuse()
    const key = this.#readString()
    this.#skipSpace()
    if (this.#text.charCodeAt(this.#at) !== COLON) this.#refuse()
    this.#at += 1
    this.#skipSpace()
    return key
  }

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
        at += 2
      } else if (code >= 0x20) {
        at += 1
      } else {
        this.#at = at
        this.#refuse()
      }
    }
    this.#at = at + 1
    // A string alone has no key to mistake. The engine also says whether its escapes are JSON.
    return isEscaped ? (JSON.parse(text.slice(start, at + 1)) as string) : text.slice(start + 1, at)
  }

  #skipDigits(): void {
    if (!isDigit(this.#text.charCodeAt(this.#at))) this.#refuse()
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at += 1
  }

  #readNumber(): unknown {
    const text = this.#text
    const start = this.#at
    if (text.charCodeAt(this.#at) === MINUS) this.#at += 1
    if (text.charCodeAt(this.#at) === ZERO) this.#at += 1
    else this.#skipDigits()
    if (text.charCodeAt(this.#at) === DOT) {
      this.#at += 1
      this.#skipDigits()
    }
    if ((text.charCodeAt(this.#at) | 0x20) === LETTER_E) {
      this.#at += 1
      const sign = text.charCodeAt(this.#at)
      if (sign === PLUS || sign === MINUS) this.#at += 1
      this.#skipDigits()
    }
    return this.#numberOf(text.slice(start, this.#at))
  }

  #readLiteral(): boolean | null {
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length
        return value
      }
    }
    return this.#refuse()
  }
}

const LITERALS = [
  ["true", true],
  ["false", false],
  ["null", null]
] as const

/**
 * The value of a JSON text. Throws SyntaxError. `isKeyEscaped`: what hasEscapedKey says, from who
 * has been through the text already.
 */
export const parseJson = (text: string, isKeyEscaped = hasEscapedKey(text)): unknown =>
  isKeyEscaped ? new Reader(text, Number).read() : JSON.parse(text)

/** The same, with `numberOf` of the text of each number in the place of its double. */
export const parseJsonWith = (text: string, numberOf: (source: string) => unknown): unknown =>
  new Reader(text, numberOf).read()

/**
 * True if the JSON.parse of this runtime gives an escaped key the name of another object's key.
 * Nothing depends on the answer: parseJson never asks it to read such a key.
 */
export const engineConfusesKeys = (): boolean => {
  JSON.parse('{"engine":1,"\\\\":1}')
  return !Object.hasOwn(JSON.parse('{"engine":1,"\\u007a":1}') as object, "z")
}

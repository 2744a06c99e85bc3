/**
 * Reads JSON exactly or refuses it: what a client sent must come back as the same data after its
 * numbers were stored as doubles and the whole as RFC 8785. One pass over the bytes finds out
 * whether anything may be wrong, and only then a slower scanner says what and where.
 */
import { isUtf8 } from "node:buffer"
import { finish, type Sliced } from "../Slices.ts"
import {
  expectedAt,
  JsonReader,
  JsonSyntaxError,
  type JsonValue,
  NESTING_MAX,
  parseJsonInSteps
} from "./Json.ts"
import { isExactNumber, JsonCursor, type ValueWalk } from "./JsonBytes.ts"

/** Why a text or an item of it is refused. */
export interface JsonProblem {
  /**
   * `invalid_json`: no JSON or no UTF-8. `unstorable_value`: JSON that can't be stored exactly.
   * `invalid_request`: the wrapper of a batch is not what it has to be. `too_large`: more in all items
   * than a request may hold.
   */
  readonly code: "invalid_json" | "unstorable_value" | "invalid_request" | "too_large"
  /** Where, inside the item, as in `metadata.tags[0]`; empty for the text or item as a whole. */
  readonly path: string
  /** A sentence with the path and what to do about it. */
  readonly message: string
}

export type StrictResult =
  | {
      readonly value: JsonValue
      /** Numbers that were kept as texts: how many, and the paths of the first. */
      readonly texts?: NumberTexts
    }
  | { readonly problem: JsonProblem }

export interface NumberTexts {
  readonly count: number
  readonly paths: ReadonlyArray<string>
}

/** How an item is read. */
export interface StrictOptions {
  /** Below this member, a number that no double holds is kept as the text that it was sent as. */
  readonly textsBelow?: string
}

/** Numbers kept as texts whose paths are given. */
export const NUMBER_PATHS_MAX = 20

/** Open containers above a member of an item: the item itself. */
const LEVELS_ABOVE = 1
/** Levels of an item that is stored, with its own. */
const LEVELS_MAX = LEVELS_ABOVE + NESTING_MAX
/** Bytes of an item in which is looked for what can't be stored. */
export const ITEM_BYTES_MAX = 4 * 1_048_576
/** Values in an item: twice as many as an event can hold of one byte each. */
export const ITEM_VALUES_MAX = 65_536
/** Characters of a key or number that a message repeats. */
const EXCERPT_LENGTH = 64
/** Why a key that is given twice is refused. */
export const KEY_TWICE = "this key is given more than once in its object; send it once"

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

/** The value if both the walk over the bytes and the parser find nothing wrong, else undefined. */
function* parseClean(text: string, walk: ValueWalk): Sliced<JsonValue | undefined> {
  if (!walk.isClean || walk.levels > LEVELS_MAX) return undefined
  let value: JsonValue
  try {
    value = (yield* parseJsonInSteps(text, walk.isKeyEscaped)) as JsonValue
  } catch {
    // The scanner finds the same mistake and says where it is.
    return undefined
  }
  const found = typeof value === "object" && value !== null ? countMembers(value) : 0
  return found === walk.members ? value : undefined
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

/** Finds the first problem of an item. */
class Scanner extends JsonReader {
  problem: JsonProblem | undefined
  readonly #levelsMax: number
  readonly #textsBelow: string | undefined
  readonly #paths: Array<string> = []
  #texts = 0
  /** Of the open containers within the limit. */
  readonly #frames: Array<Frame> = []

  constructor(text: string, levelsMax: number, { textsBelow }: StrictOptions) {
    super(text, levelsMax)
    this.#levelsMax = levelsMax
    this.#textsBelow = textsBelow
  }

  /** The numbers that were kept as texts, if any were. */
  get texts(): NumberTexts | undefined {
    return this.#texts === 0 ? undefined : { count: this.#texts, paths: this.#paths }
  }

  protected override opened(isObject: boolean): void {
    if (this.level > this.#levelsMax) {
      this.#report(`nested more than ${NESTING_MAX} levels deep; send it flatter`)
    } else {
      this.#frames.push({ keys: isObject ? new Set() : undefined, step: isObject ? "" : 0 })
    }
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
    if (frame.keys.has(key)) this.#report(KEY_TWICE)
    frame.keys.add(key)
    this.#checkText(key, "the key")
  }

  protected override stringRead(text: string): void {
    this.#checkText(text, "the text")
  }

  protected override numberOf(source: string): number | string {
    if (isExactNumber(source)) return Number(source)
    const [outermost, ...inner] = this.#frames
    if (
      this.#textsBelow !== undefined
      && outermost?.step === this.#textsBelow
      && inner.length > 0
    ) {
      this.#texts += 1
      if (this.#paths.length < NUMBER_PATHS_MAX) this.#paths.push(this.#path())
      return source
    }
    this.#report(`no double holds ${excerpt(source)} exactly; send it as a string`)
    return 0
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

  #path(): string {
    return this.#frames.reduce((above, { step }) => pathStep(above, step), "")
  }

  #report(reason: string): void {
    if (this.problem !== undefined) return
    const where = this.#path()
    this.problem = {
      code: "unstorable_value",
      path: where,
      message: where === "" ? reason : `${where}: ${reason}`
    }
  }
}

/** A refusal of a text or an item as a whole. */
export const refuse = (
  code: JsonProblem["code"],
  message: string
): { readonly problem: JsonProblem } => ({ problem: { code, path: "", message } })

/** The text of messages about what is no JSON. */
export const notJson = (reason: string): { readonly problem: JsonProblem } =>
  refuse("invalid_json", `not valid JSON: ${reason}`)

export const notUtf8 = refuse("invalid_json", "not valid UTF-8; send the text as UTF-8")

/** An item that holds more than is read. */
export const itemTooLarge = refuse(
  "unstorable_value",
  `over ${ITEM_VALUES_MAX} values in one item, or over ${ITEM_BYTES_MAX} bytes with something that`
    + " can't be stored exactly; send less in it"
)

interface Scanned {
  readonly problem: JsonProblem | undefined
  readonly value?: JsonValue
  readonly texts?: NumberTexts | undefined
  /** Of what is no JSON. */
  readonly error?: JsonSyntaxError
}

/** The value of a text, and what is wrong with it or why it is no JSON. */
function* scan(text: string, options: StrictOptions = {}): Sliced<Scanned> {
  const scanner = new Scanner(text, LEVELS_MAX, options)
  try {
    const value = (yield* scanner.readInSteps()) as JsonValue
    return { value, problem: scanner.problem, texts: scanner.texts }
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    return { ...notJson(error.message), error }
  }
}

/** What a text is refused for, found by the scanner alone; undefined if by nothing. */
export const problemOf = (text: string): JsonProblem | undefined => finish(scan(text)).problem

/**
 * The value of a text of UTF-8 that has been walked over. `onSyntax` is given what makes it no JSON, for
 * a message of its own.
 */
export function* parseWalked(
  text: string,
  walk: ValueWalk,
  options: StrictOptions,
  onSyntax?: (error: JsonSyntaxError) => void
): Sliced<StrictResult> {
  if (walk.isTooMuch) return itemTooLarge
  const value = yield* parseClean(text, walk)
  if (value !== undefined) return { value }
  if (walk.end - walk.start > ITEM_BYTES_MAX) return itemTooLarge
  const { error, problem, texts, value: scanned } = yield* scan(text, options)
  if (error !== undefined) onSyntax?.(error)
  if (problem !== undefined) return { problem }
  return texts === undefined ? { value: scanned! } : { value: scanned!, texts }
}

/**
 * Read one JSON text. Refuses what is no JSON or no UTF-8 (`invalid_json`), and with the path of
 * the first offender what can't be stored exactly (`unstorable_value`): a repeated key, a number
 * that no double holds, an unpaired surrogate, U+0000, more than NESTING_MAX levels below the outermost
 * value, and as a whole one of more than ITEM_VALUES_MAX, of which nothing is made. Of what has more than
 * ITEM_BYTES_MAX it isn't said what can't be stored.
 * `__proto__` is a key like any other; -0 stays -0, which RFC 8785 writes as 0.
 */
export const parseStrict = (body: Buffer, options: StrictOptions = {}): StrictResult =>
  finish(parseInSteps(body, options))

/** The same in steps. */
export function* parseInSteps(body: Buffer, options: StrictOptions = {}): Sliced<StrictResult> {
  return (yield* parseCounted(body, options)).read
}

/** The same, and how many values there may be in it. */
export function* parseCounted(
  body: Buffer,
  options: StrictOptions = {}
): Sliced<{ readonly read: StrictResult; readonly values: number }> {
  if (!isUtf8(body)) return { read: notUtf8, values: 0 }
  const cursor = new JsonCursor(body)
  if (cursor.at === body.length) return { read: notJson(expectedAt("a value")), values: 0 }
  const walk = cursor.value(ITEM_VALUES_MAX)
  const { values } = walk
  if (walk.isTooMuch) return { read: itemTooLarge, values }
  const follows = cursor.at < body.length
  const whole = follows ? { ...walk, isClean: false } : walk
  return { read: yield* parseWalked(body.toString(), whole, options), values }
}

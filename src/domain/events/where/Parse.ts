/**
 * The language of `where`:
 *
 *     any        = all *("OR" all)
 *     all        = one *(["AND"] one)
 *     one        = ("NOT" / "-") one / "(" any ")" / field sign values / text
 *     sign       = ":" / "=" / "!=" / ">" / ">=" / "<" / "<="
 *     values     = value *("," value)
 *     value      = text ["*"] / "*"
 *     text       = 1*(any character but space ( ) " , : = ! < > * \ / "\" any character)
 *                / DQUOTE *(any character but DQUOTE \ / "\" any character) DQUOTE
 *
 * A value in a list may hold `:`, `=`, `!`, `<` and `>`. `*` after a text asks for what starts with it,
 * `*` alone for what there is. Words in capitals are operators; in quotes they are texts.
 */
import { Result } from "effect"
import { nearestName } from "../../NearestName.ts"
import { type WhereField, whereFields, whereNames } from "../EventFields.ts"
import { METADATA_PATH_SEGMENTS_MAX, metadataPathSegments } from "../MetadataPath.ts"
import { combined, conditionOf } from "./ConditionValue.ts"
import {
  type Comparison,
  type Expression,
  type Subject,
  WHERE_CONDITIONS_MAX,
  WHERE_DEPTH_MAX
} from "./Expression.ts"
import { momentFromNow } from "./TimeText.ts"

/** What is wrong with an expression, and where. */
export class WhereError extends Error {
  override readonly name = "WhereError"
  /** Of the first character that can't be, from 1. */
  readonly column: number

  constructor(column: number, what: string) {
    super(`column ${column}: ${what}`)
    this.column = column
  }
}

/** Characters of a text that is searched for at most. */
const SEARCH_LENGTH_MAX = 256

const byName = new Map<string, WhereField>(
  Object.entries(whereFields).flatMap(([name, { aliases = [] }]) =>
    [name, ...aliases].map((one) => [one, name as WhereField] as const)
  )
)

const METADATA = "metadata."

/** What to write instead of a name that is none. */
const fieldMeantBy = (name: string): string => {
  const meant = nearestName(name, byName.keys())
  return meant === undefined
    ? `fields are ${[...whereNames, `${METADATA}<path>`].join(", ")}; a text goes in quotes`
    : `did you mean ${meant}? A text goes in quotes`
}

type Sign = "is" | "is not" | Comparison

const SIGNS: ReadonlyArray<readonly [text: string, sign: Sign]> = [
  ["!=", "is not"],
  [">=", ">="],
  ["<=", "<="],
  [":", "is"],
  ["=", "is"],
  [">", ">"],
  ["<", "<"]
]

/** Characters that end a text of a certain place, unless they are escaped. */
const WORD_END = /[\s()",:=!<>*]/
const VALUE_END = /[\s()",*]/

interface Text {
  readonly text: string
  readonly isQuoted: boolean
  /** Index of its first character. */
  readonly at: number
  /** Index after its last one. */
  readonly end: number
}

interface Value extends Text {
  /** A `*` follows it. */
  readonly isOpen: boolean
}

/** A time from now in a text, and the moment that it means. */
interface FromNow extends Pick<Text, "at" | "end"> {
  readonly moment: string
}

interface Limits {
  readonly conditions: number
  readonly depth: number
}

const ofClients: Limits = { conditions: WHERE_CONDITIONS_MAX, depth: WHERE_DEPTH_MAX }

class Parser {
  readonly #source: string
  readonly #now: string
  readonly #limits: Limits
  readonly #fromNow: Array<FromNow> = []
  #at = 0
  #conditions = 0

  constructor(source: string, now: string, limits: Limits) {
    this.#source = source
    this.#now = now
    this.#limits = limits
  }

  parse(): Expression {
    const expression = this.#any(0)
    if (this.#at < this.#source.length) {
      this.#fail(`${this.#source[this.#at] === ")" ? "no ( is open" : "can't be here"}`)
    }
    return expression
  }

  /** Those of what was parsed, in their order. */
  get fromNow(): ReadonlyArray<FromNow> {
    return this.#fromNow
  }

  #fail(what: string, at = this.#at): never {
    throw new WhereError([...this.#source.slice(0, at)].length + 1, what)
  }

  #skipSpace(): void {
    while (/\s/.test(this.#source[this.#at] ?? "")) this.#at += 1
  }

  /** Takes a word in capitals, if it comes next. */
  #takes(word: string): boolean {
    this.#skipSpace()
    const end = this.#at + word.length
    if (this.#source.slice(this.#at, end) !== word) return false
    const next = this.#source[end]
    if (next !== undefined && !/[\s()"]/.test(next)) return false
    this.#at = end
    return true
  }

  #any(depth: number): Expression {
    const parts = [this.#all(depth)]
    while (this.#takes("OR")) parts.push(this.#all(depth))
    return combined("or", parts)
  }

  #all(depth: number): Expression {
    const parts = [this.#one(depth)]
    for (;;) {
      const isJoined = this.#takes("AND")
      this.#skipSpace()
      const next = this.#source[this.#at]
      if (!isJoined && (next === undefined || next === ")" || this.#isNext("OR"))) break
      parts.push(this.#one(depth))
    }
    return combined("and", parts)
  }

  #isNext(word: string): boolean {
    const at = this.#at
    const isNext = this.#takes(word)
    this.#at = at
    return isNext
  }

  #one(depth: number): Expression {
    const max = this.#limits.depth
    if (depth > max) this.#fail(`more than ${max} brackets in one another`)
    if (this.#takes("NOT")) return { not: this.#one(depth + 1) }
    this.#skipSpace()
    switch (this.#source[this.#at]) {
      case undefined:
        return this.#fail("a condition or a text has to follow")
      case "-":
        this.#at += 1
        return { not: this.#one(depth + 1) }
      case "(":
        return this.#bracket(depth)
      default:
        return this.#condition()
    }
  }

  #bracket(depth: number): Expression {
    const opened = this.#at
    this.#at += 1
    const expression = this.#any(depth + 1)
    this.#skipSpace()
    if (this.#source[this.#at] !== ")") this.#fail("this ( is not closed", opened)
    this.#at += 1
    return expression
  }

  /** A text up to where it may end, escapes taken away. */
  #text(end: RegExp): Text {
    const at = this.#at
    const isQuoted = this.#source[at] === '"'
    if (isQuoted) this.#at += 1
    let text = ""
    for (;;) {
      const next = this.#source[this.#at]
      if (next === undefined || (isQuoted ? next === '"' : end.test(next))) break
      if (next === "\\") {
        this.#at += 1
        if (this.#at === this.#source.length) this.#fail("a character has to follow \\")
      }
      text += this.#source[this.#at]
      this.#at += 1
    }
    if (isQuoted) {
      if (this.#at === this.#source.length) this.#fail('this " is not closed', at)
      this.#at += 1
    }
    if (text.includes("\0")) this.#fail("holds the character U+0000", at)
    return { text, isQuoted, at, end: this.#at }
  }

  #sign(): Sign | undefined {
    for (const [text, sign] of SIGNS) {
      if (!this.#source.startsWith(text, this.#at)) continue
      this.#at += text.length
      return sign
    }
    return undefined
  }

  #condition(): Expression {
    const word = this.#text(WORD_END)
    const sign = word.isQuoted ? undefined : this.#sign()
    if (sign === undefined) return this.#search(word)
    const subject = this.#subject(word)
    const values = this.#values()
    if (sign !== "is" && sign !== "is not" && values.length > 1) {
      this.#fail("is compared with one value", values[1]!.at)
    }
    const asked = combined(
      "or",
      values.map((value) => this.#asked(subject, sign, value))
    )
    return sign === "is not" ? { not: asked } : asked
  }

  #search(word: Text): Expression {
    const next = this.#source[this.#at]
    if (word.text === "") {
      const what = word.isQuoted ? "the text is empty" : "a condition or a text has to be here"
      this.#fail(what, word.at)
    }
    if (!word.isQuoted && (word.text === "AND" || word.text === "OR")) {
      this.#fail(`a condition or a text has to be before ${word.text}`, word.at)
    }
    if (next === "*") this.#fail("* follows the value of a field only")
    if ([...word.text].length > SEARCH_LENGTH_MAX) {
      this.#fail(`a text has at most ${SEARCH_LENGTH_MAX} characters`, word.at)
    }
    this.#count(word.at)
    return { search: word.text }
  }

  #subject({ at, text }: Text): Subject {
    const field = byName.get(text)
    if (field !== undefined) return { field }
    if (!text.startsWith(METADATA)) {
      this.#fail(`${JSON.stringify(text)} is no field; ${fieldMeantBy(text)}`, at)
    }
    const path = text.slice(METADATA.length)
    if (path === "") this.#fail("names no path below metadata", at)
    if (metadataPathSegments(path).length > METADATA_PATH_SEGMENTS_MAX) {
      this.#fail(`has more than ${METADATA_PATH_SEGMENTS_MAX} segments`, at)
    }
    return { metadata: path }
  }

  #values(): ReadonlyArray<Value> {
    const values = [this.#value()]
    while (this.#source[this.#at] === ",") {
      this.#at += 1
      this.#skipSpace()
      values.push(this.#value())
    }
    return values
  }

  #value(): Value {
    const value = this.#text(VALUE_END)
    const isOpen = this.#source[this.#at] === "*"
    if (isOpen) this.#at += 1
    if (value.text === "" && !isOpen && !value.isQuoted)
      this.#fail("a value has to follow", value.at)
    const next = this.#source[this.#at]
    if (next !== undefined && !/[\s),]/.test(next)) {
      this.#fail(isOpen ? "* is allowed at the end of a value only" : "can't be in a value")
    }
    return { ...value, isOpen }
  }

  #count(at: number): void {
    this.#conditions += 1
    const max = this.#limits.conditions
    if (this.#conditions > max) this.#fail(`more than ${max} conditions`, at)
  }

  #asked(subject: Subject, sign: Sign, { at, end, isOpen, isQuoted, text }: Value): Expression {
    this.#count(at)
    const comparison = sign === "is" || sign === "is not" ? undefined : sign
    const value = { text, isOpen, isAny: isOpen && text === "" && !isQuoted }
    const asked = conditionOf(subject, comparison, value, this.#now)
    if (Result.isSuccess(asked)) {
      const isTime = "field" in subject && whereFields[subject.field].kind === "time"
      const moment = isTime ? momentFromNow(text, this.#now) : undefined
      if (moment !== undefined) this.#fromNow.push({ at, end, moment })
      return asked.success
    }
    const name = "field" in subject ? subject.field : `${METADATA}${subject.metadata}`
    return this.#fail(`${name} ${asked.failure}`, at)
  }
}

/**
 * The expression that a text means, at a time in canonical microsecond form.
 * @throws WhereError
 */
export const parseWhere = (source: string, now: string): Expression =>
  new Parser(source, now, ofClients).parse()

/**
 * Where a text has times from now, and the moments that they mean.
 * @throws WhereError
 */
export const timesFromNow = (source: string, now: string): ReadonlyArray<FromNow> => {
  const parser = new Parser(source, now, ofClients)
  parser.parse()
  return parser.fromNow
}

/**
 * The expression that a text of `printWhere` means. It may have more brackets and conditions than
 * what a client wrote: a day has two ends, and what AND binds gets brackets.
 */
export const parsePrinted = (text: string): Expression =>
  // No time in it depends on another one.
  new Parser(text, "1970-01-01T00:00:00.000000Z", { conditions: Infinity, depth: Infinity }).parse()

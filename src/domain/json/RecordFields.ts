/**
 * Reading the JSON of internal records without trusting it: a client that may write to Kafka may
 * write anything. Each member is checked before it is used, and what is wrong is named.
 */
import { parseTimestamp } from "../Timestamp.ts"
import { type Fields, isObject, parseJson } from "./Json.ts"

/** A record is not what its topic holds; the message says in which respect. */
export class RecordUnreadable extends Error {
  override readonly name = "RecordUnreadable"
}

/** The members of an object; each is read under the name that errors call it by. */
export class RecordFields {
  readonly value: Fields
  readonly #what: string

  /** @throws RecordUnreadable if the value is no object */
  constructor(value: unknown, what: string) {
    if (!isObject(value)) throw new RecordUnreadable(`${what} is no JSON object`)
    this.value = value
    this.#what = what
  }

  /** @throws RecordUnreadable if the bytes are not those of an object */
  static of(bytes: Buffer | string, what: string): RecordFields {
    let value: unknown
    try {
      value = parseJson(bytes.toString())
    } catch {
      throw new RecordUnreadable(`${what} is no JSON`)
    }
    return new RecordFields(value, what)
  }

  has(name: string): boolean {
    return this.value[name] !== undefined
  }

  /** A text that is not empty, of a form if one is given. */
  text(name: string, form?: RegExp): string {
    const value = this.value[name]
    if (typeof value === "string" && value !== "" && (form === undefined || form.test(value))) {
      return value
    }
    throw this.wrong(name, form === undefined ? "a text" : `of the form ${form.source}`)
  }

  anyText(name: string): string {
    const value = this.value[name]
    if (typeof value === "string") return value
    throw this.wrong(name, "a text")
  }

  /** A time in canonical form. */
  time(name: string): string {
    const value = this.value[name]
    if (typeof value === "string" && parseTimestamp(value) === value) return value
    throw this.wrong(name, "a time in canonical form")
  }

  /** An integer that a double holds exactly. */
  integer(name: string, minimum = 0): number {
    const value = this.value[name]
    if (Number.isSafeInteger(value) && (value as number) >= minimum) return value as number
    throw this.wrong(name, `an integer from ${minimum} to ${Number.MAX_SAFE_INTEGER}`)
  }

  oneOf(name: string, values: ReadonlyArray<unknown>): void {
    if (!values.includes(this.value[name])) throw this.wrong(name, `one of ${values.join(", ")}`)
  }

  list(name: string): ReadonlyArray<unknown> {
    const value = this.value[name]
    if (Array.isArray(value)) return value
    throw this.wrong(name, "a list")
  }

  texts(name: string): ReadonlyArray<string> {
    const values = this.list(name)
    if (values.every((value) => typeof value === "string")) return values as ReadonlyArray<string>
    throw this.wrong(name, "a list of texts")
  }

  object(name: string): RecordFields {
    return new RecordFields(this.value[name], `${this.#what}: ${name}`)
  }

  /** Check the members that are there. */
  optional(names: ReadonlyArray<string>, check: (name: string) => void): void {
    for (const name of names) if (this.has(name)) check(name)
  }

  wrong(name: string, expected: string): RecordUnreadable {
    return new RecordUnreadable(`${this.#what}: ${name} is not ${expected}`)
  }
}

/** The reason in what was thrown while a record was read. */
export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

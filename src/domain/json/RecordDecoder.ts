/**
 * Reading the JSON of a record by its schema, where records are few. Hot paths read by hand, with
 * RecordFields. Either way a value that is not what the schema says is refused and named, and
 * members that a newer version has added are kept.
 */
import { Result, Schema, SchemaIssue } from "effect"
import { parseJson } from "./Json.ts"
import { RecordUnreadable } from "./RecordFields.ts"

/** A schema whose values are the JSON itself: it changes nothing in decoding, and needs nothing. */
type JsonSchema<A> = Schema.Codec<A, unknown>

/** What the library calls a type, in the words of RecordFields. */
const TYPES: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  object: "a JSON object",
  string: "a text",
  number: "a number"
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const messageOf = (what: string, issue: SchemaIssue.Issue): string => {
  const [first] = formatIssues(issue).issues
  const path = (first?.path ?? []).map(String).join(".")
  const place = path === "" ? what : `${what}: ${path}`
  const message = first?.message ?? ""
  if (message === "Missing key") return `${place} is missing`
  const expected = /^Expected (.*)$/su.exec(message)?.[1]
  return expected === undefined
    ? `${place}: ${message}`
    : `${place} is not ${TYPES[expected] ?? expected}`
}

/** Checks a value that JSON was read to, and returns this very value. */
export const recordChecker = <A>(schema: JsonSchema<A>, what: string): ((value: unknown) => A) => {
  const check = Schema.decodeUnknownResult(schema)
  return (value) => {
    const checked = check(value)
    if (Result.isFailure(checked)) {
      throw new RecordUnreadable(messageOf(what, checked.failure.issue))
    }
    return value as A
  }
}

/**
 * Reads the JSON of a record. The reader throws RecordUnreadable.
 * @param what what errors call the record
 */
export const recordDecoder = <A>(
  schema: JsonSchema<A>,
  what: string
): ((json: Buffer | string) => A) => {
  const check = recordChecker(schema, what)
  return (json) => {
    let value: unknown
    try {
      value = parseJson(json.toString())
    } catch {
      throw new RecordUnreadable(`${what} is no JSON`)
    }
    return check(value)
  }
}

/** The same for JSON that may be anything: undefined if it is not what the schema says. */
export const recordReader = <A>(schema: JsonSchema<A>): ((json: string) => A | undefined) => {
  const is = Schema.is(schema)
  return (json) => {
    try {
      const value = parseJson(json)
      return is(value) ? value : undefined
    } catch {
      return undefined
    }
  }
}

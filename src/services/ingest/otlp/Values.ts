/**
 * Attributes of OpenTelemetry as JSON that can be stored exactly. What JSON has no form for is
 * written as text, as docs/agents.md says; what can't be stored at all is refused with its path. Knows
 * no convention: what an attribute means is the mapping's business.
 */
import type { JsonObject, JsonValue } from "../../../domain/json/Json.ts"
import { NESTING_MAX } from "../../../domain/json/StrictJson.ts"
import type { AnyValue, KeyValue } from "./gen/opentelemetry/proto/common/v1/common_pb.js"

/**
 * Characters of a key. V8 hashes a text of more than 16,383 by its length alone, so that as keys of
 * one object those of one length are all compared with one another.
 */
const KEY_LENGTH_MAX = 4_096
/** Characters of a key that a message repeats. */
const EXCERPT_LENGTH = 64

/** Why something can't be stored, for counting. */
export type UnstorableReason =
  | "character"
  | "id"
  | "nesting"
  | "repeated_key"
  | "status"
  | "time"
  | "too_large"
  | "too_long"
  | "too_many"

/** A value or a span that can't be stored; the message begins with the path of the offender. */
export class Unstorable extends Error {
  override readonly name = "Unstorable"
  readonly reason: UnstorableReason

  constructor(reason: UnstorableReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** Something that is left out of what is stored; the message begins with its path. */
export type LeftOutPart = Pick<Unstorable, "message" | "reason">

/** A key as a message repeats it. */
export const excerpt = (key: string): string =>
  JSON.stringify(key.length > EXCERPT_LENGTH ? `${key.slice(0, EXCERPT_LENGTH)}…` : key)

/** What could not be stored, and is left out of what is. */
export class LeftOut {
  readonly parts: Array<LeftOutPart> = []

  add(reason: UnstorableReason, message: string): void {
    this.parts.push({ reason, message })
  }

  /** What is made, or undefined where it can't be stored. */
  unless<A>(make: () => A): A | undefined {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof Unstorable)) throw error
      this.add(error.reason, error.message)
      return undefined
    }
  }
}

const textAt = (text: string, path: Path): string => {
  if (text.includes("\u0000"))
    throw new Unstorable("character", `${path()}: holds U+0000; send it without`)
  if (!text.isWellFormed())
    throw new Unstorable("character", `${path()}: holds an unpaired surrogate`)
  return text
}

/** The text, unless it holds what no answer could show. */
export const textOf = (text: string, path: string): string => textAt(text, () => path)

/** Where a value is: written only for what is left out, since most values are not. */
type Path = () => string

const checkLevel = (level: number, path: Path): void => {
  if (level > NESTING_MAX) {
    throw new Unstorable(
      "nesting",
      `${path()}: nested more than ${NESTING_MAX} levels deep; send it flatter`
    )
  }
}

const doubleOf = (value: number): JsonValue => (Number.isFinite(value) ? value : String(value))

/** A number if a double holds it, and every other integer near it as well; else its digits. */
const integerOf = (value: bigint): JsonValue => {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

const jsonOf = (
  any: AnyValue | undefined,
  level: number,
  path: Path,
  leftOut: LeftOut
): JsonValue => {
  const value = any?.value
  switch (value?.case) {
    case undefined:
      return null
    case "stringValue":
      return textAt(value.value, path)
    case "boolValue":
      return value.value
    case "intValue":
      return integerOf(value.value)
    case "doubleValue":
      return doubleOf(value.value)
    case "bytesValue":
      return Buffer.from(value.value).toString("base64")
    case "arrayValue":
      checkLevel(level, path)
      return value.value.values.map((element, index) =>
        jsonOf(element, level + 1, () => `${path()}[${index}]`, leftOut)
      )
    case "kvlistValue":
      return objectOf(value.value.values, level, path, leftOut)
    case "stringValueStrindex":
      // An index into a table that only profiles have: by OTLP, an empty value.
      return null
  }
}

const objectOf = (
  pairs: ReadonlyArray<KeyValue>,
  level: number,
  path: Path,
  leftOut: LeftOut
): JsonObject => {
  checkLevel(level, path)
  const entries = new Map<string, JsonValue>()
  for (const { key, value } of pairs) {
    const at = () => `${path()}[${excerpt(key)}]`
    leftOut.unless(() => {
      if (key.length > KEY_LENGTH_MAX) {
        const message = `${at()}: this key has more than ${KEY_LENGTH_MAX} characters; send it shorter`
        throw new Unstorable("too_long", message)
      }
      if (entries.has(key)) {
        throw new Unstorable(
          "repeated_key",
          `${at()}: this key is given more than once; send it once`
        )
      }
      entries.set(textAt(key, at), jsonOf(value, level + 1, at, leftOut))
    })
  }
  // Unlike an assignment this makes a member of every key, `__proto__` included.
  return Object.fromEntries(entries)
}

/**
 * Key-value pairs as an object that is at `level`, counted from `metadata` or `payload`, which
 * is 1. Integers beyond 2^53 become their digits, NaN and the infinities their names, bytes base64,
 * an empty value null. Left out are a key that was there before or is too long, U+0000, unpaired
 * surrogates, and what is below NESTING_MAX levels.
 */
export const attributesOf = (
  pairs: ReadonlyArray<KeyValue>,
  level: number,
  path: string,
  leftOut: LeftOut
): JsonObject => objectOf(pairs, level, () => path, leftOut)

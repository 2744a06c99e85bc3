/**
 * Attributes of OpenTelemetry as JSON that can be stored exactly. What JSON has no form for is
 * written as text, as docs/traces.md says; what can't be stored at all is refused with its path. Knows
 * no convention: what an attribute means is the mapping's business.
 */
import { type JsonObject, type JsonValue, NESTING_MAX } from "../../../domain/json/StrictJson.ts"
import type { AnyValue, KeyValue } from "./gen/opentelemetry/proto/common/v1/common_pb.js"

/** Characters of a key that a message repeats. */
const EXCERPT_LENGTH = 64

/** A value or a span that can't be stored; the message begins with the path of the offender. */
export class Unstorable extends Error {
  override readonly name = "Unstorable"
}

const excerpt = (key: string): string =>
  JSON.stringify(key.length > EXCERPT_LENGTH ? `${key.slice(0, EXCERPT_LENGTH)}…` : key)

/** The text, unless it holds what no answer could show. */
export const textOf = (text: string, path: string): string => {
  if (text.includes("\u0000")) throw new Unstorable(`${path}: holds U+0000; send it without`)
  if (!text.isWellFormed()) throw new Unstorable(`${path}: holds an unpaired surrogate`)
  return text
}

const checkLevel = (level: number, path: string): void => {
  if (level > NESTING_MAX) {
    throw new Unstorable(`${path}: nested more than ${NESTING_MAX} levels deep; send it flatter`)
  }
}

const doubleOf = (value: number): JsonValue => (Number.isFinite(value) ? value : String(value))

/** A number if a double holds it, and every other integer near it as well; else its digits. */
const integerOf = (value: bigint): JsonValue => {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

const jsonOf = (any: AnyValue | undefined, level: number, path: string): JsonValue => {
  const value = any?.value
  switch (value?.case) {
    case undefined:
      return null
    case "stringValue":
      return textOf(value.value, path)
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
        jsonOf(element, level + 1, `${path}[${index}]`)
      )
    case "kvlistValue":
      return attributesOf(value.value.values, level, path)
    case "stringValueStrindex":
      // An index into a table that only profiles have: by OTLP, an empty value.
      return null
  }
}

/**
 * Key-value pairs as an object that is at `level`, counted from `metadata` or `payload`, which
 * is 1. Integers beyond 2^53 become their digits, NaN and the infinities their names, bytes base64,
 * an empty value null. Throws Unstorable for a key that is given twice, U+0000 and nesting over
 * NESTING_MAX levels.
 */
export const attributesOf = (
  pairs: ReadonlyArray<KeyValue>,
  level: number,
  path: string
): JsonObject => {
  checkLevel(level, path)
  const entries = new Map<string, JsonValue>()
  for (const { key, value } of pairs) {
    const at = `${path}[${excerpt(key)}]`
    if (entries.has(key))
      throw new Unstorable(`${at}: this key is given more than once; send it once`)
    entries.set(textOf(key, at), jsonOf(value, level + 1, at))
  }
  // Unlike an assignment this makes a member of every key, `__proto__` included.
  return Object.fromEntries(entries)
}

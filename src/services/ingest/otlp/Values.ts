/**
 * Attributes of OpenTelemetry as JSON that can be stored exactly. What JSON has no form for is
 * written as text, and what can't be stored is repaired, as docs/traces.md says. What an attribute
 * means is not decided here.
 */
import { sha256Hex } from "../../../domain/Identifiers.ts"
import { canonicalInSteps } from "../../../domain/json/CanonicalJson.ts"
import type { JsonObject, JsonValue } from "../../../domain/json/Json.ts"
import { NESTING_MAX } from "../../../domain/json/Json.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { isBroken, mended } from "./BrokenText.ts"
import type { AnyValue, KeyValue } from "./gen/opentelemetry/proto/common/v1/common_pb.js"
import type { Path, RepairLog } from "./RepairLog.ts"

/**
 * Characters of a key. V8 hashes a text of more than 16,383 by its length alone, so that as keys of
 * one object those of one length are all compared with one another.
 */
const KEY_LENGTH_MAX = 4_096
/** Characters of a longer key that stay in its place. */
const SHORT_KEY_LENGTH = 256
/** Characters of a key that a message repeats. */
const EXCERPT_LENGTH = 64

/** Why a span can't be stored, nor repaired; the message begins with the path of the offender. */
export class Unstorable extends Error {
  override readonly name = "Unstorable"
}

/** A key as a message repeats it. */
export const excerpt = (key: string): string =>
  JSON.stringify(key.length > EXCERPT_LENGTH ? `${key.slice(0, EXCERPT_LENGTH)}…` : key)

type Container = Extract<
  AnyValue["value"],
  { readonly case: "arrayValue" } | { readonly case: "kvlistValue" }
>

const doubleOf = (value: number): JsonValue => (Number.isFinite(value) ? value : String(value))

/** A number if a double holds it, and every other integer near it as well; else its digits. */
const integerOf = (value: bigint): JsonValue => {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/**
 * Where a value is, counted from `metadata` or `payload`: below NESTING_MAX it becomes JSON text.
 */
type Level = number
/** Of a value that is within a JSON text. */
const IN_TEXT: Level = Number.NEGATIVE_INFINITY

function* containerOf(
  value: Container,
  level: Level,
  path: Path,
  repairs: RepairLog
): Sliced<JsonValue> {
  if (level > NESTING_MAX) {
    repairs.add("deep_value", path)
    return yield* canonicalInSteps(yield* containerOf(value, IN_TEXT, path, repairs))
  }
  if (value.case === "kvlistValue") {
    return yield* attributesOf(value.value.values, level, path, repairs)
  }
  const elements: Array<JsonValue> = []
  for (const [index, element] of value.value.values.entries()) {
    elements.push(yield* jsonOf(element, level + 1, () => `${path()}[${index}]`, repairs))
  }
  return elements
}

/** A value that holds no others, and whose text can be stored. */
const scalarOf = (value: Exclude<AnyValue["value"], Container>): JsonValue => {
  switch (value.case) {
    case "stringValue":
    case "boolValue":
      return value.value
    case "intValue":
      return integerOf(value.value)
    case "doubleValue":
      return doubleOf(value.value)
    case "bytesValue":
      return Buffer.from(value.value).toString("base64")
    case "stringValueStrindex":
    case undefined:
      // An index into a table that only profiles have: by OTLP, an empty value.
      return null
  }
}

/** The value of an attribute or a body, which is at `level` if it holds others. */
export function* jsonOf(
  any: AnyValue | undefined,
  level: Level,
  path: Path,
  repairs: RepairLog
): Sliced<JsonValue> {
  const value = any?.value
  if (value === undefined) return null
  switch (value.case) {
    case "arrayValue":
    case "kvlistValue":
      return yield* containerOf(value, level, path, repairs)
    case "stringValue":
      return yield* repairs.text(value.value, path)
    default:
      return scalarOf(value)
  }
}

/**
 * The key of a value whose own is too long: its beginning, and a hash that tells it from others.
 */
const shortKey = (key: string): string =>
  `${mended(key.slice(0, SHORT_KEY_LENGTH))}…${sha256Hex(key)}`

/** A value with its key beside it, in an object that is at `level`. */
function* withKey(
  key: string,
  any: AnyValue | undefined,
  level: Level,
  path: Path,
  repairs: RepairLog
): Sliced<JsonValue> {
  const isDeep = level > NESTING_MAX
  const pair = { key, value: yield* jsonOf(any, isDeep ? IN_TEXT : level + 1, path, repairs) }
  return isDeep ? yield* canonicalInSteps(pair) : pair
}

/** Attributes that are read in one step, and characters of their texts. */
const STEP_ATTRIBUTES = 1_024
const STEP_CHARACTERS = 65_536

/**
 * Key-value pairs as an object that is at `level`. Integers beyond 2^53 become their digits, NaN
 * and the infinities their names, bytes base64, an empty value null.
 */
export function* attributesOf(
  pairs: ReadonlyArray<KeyValue>,
  level: Level,
  path: Path,
  repairs: RepairLog
): Sliced<JsonObject> {
  const entries = new Map<string, JsonValue>()
  let [attributes, characters] = [0, 0]
  for (const { key: sent, value } of pairs) {
    const at = () => `${path()}[${excerpt(sent)}]`
    const whole = isBroken(sent) ? yield* repairs.text(sent, at) : sent
    const isLong = whole.length > KEY_LENGTH_MAX
    const key = isLong ? shortKey(whole) : whole
    if (isLong) repairs.add("long_key", at)
    if (entries.has(key)) repairs.add("repeated_key", at)
    const one = value?.value
    const isText = one?.case === "stringValue"
    entries.set(
      key,
      isLong
        ? yield* withKey(whole, value, level + 1, at, repairs)
        : isText && !isBroken(one.value)
          ? one.value
          : yield* jsonOf(value, level + 1, at, repairs)
    )
    attributes += 1
    characters += sent.length + (isText ? one.value.length : 0)
    if (attributes < STEP_ATTRIBUTES && characters < STEP_CHARACTERS) continue
    attributes = 0
    characters = 0
    yield
  }
  // Unlike an assignment this makes a member of every key, `__proto__` included.
  return Object.fromEntries(entries)
}

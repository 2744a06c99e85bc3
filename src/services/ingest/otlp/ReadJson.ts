/** Reads exports in JSON. */
import { isUtf8 } from "node:buffer"
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageShape
} from "@bufbuild/protobuf"
import {
  isObject,
  JsonReader,
  JsonSyntaxError,
  parseJson,
  parseJsonWith
} from "../../../domain/json/Json.ts"
import { JsonCursor, NotJson, type ValueWalk } from "../../../domain/json/JsonBytes.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { textOfBytes } from "./BrokenText.ts"
import { hasLongText, IdReader, lengthsOf } from "./JsonIds.ts"
import {
  Census,
  type Decoded,
  KeyTwice,
  MEMBERS_MAX,
  MESSAGE_LEVELS_MAX,
  Misplaced,
  membersMessage,
  PIECE_VALUES_MAX,
  Piece,
  refusalOf,
  refuse,
  type Split,
  setList,
  someOf,
  splitOf,
  TooDeep,
  TooMany,
  tooManyValues,
  unread
} from "./Reading.ts"
import { excerpt } from "./Values.ts"

/** Values that are parsed and decoded in one step. */
const SMALL_VALUES = 1_000
/** Containers inside each other in JSON, where a message takes two. */
const JSON_LEVELS_MAX = 2 * MESSAGE_LEVELS_MAX

/** An integer in the place of a JSON number, too long for every double to hold. */
const LONG_INTEGER = /[:,[]\s*-?\d{16}/
const INTEGER = /^-?\d+$/

/** Integers that a double would round stay texts, which 64-bit fields take as well. */
const exactNumber = (source: string): number | string => {
  const nearest = Number(source)
  return Number.isSafeInteger(nearest) || !INTEGER.test(source) ? nearest : source
}

const parseExact = (text: string): unknown =>
  LONG_INTEGER.test(text) ? parseJsonWith(text, exactNumber) : parseJson(text)

/**
 * The message of a text that was walked over. `parts` are those values of it that may be no JSON.
 * @throws TooMany, NotJson
 */
function* readText<Type extends DescMessage>(
  type: Type,
  text: string,
  walk: Pick<ValueWalk, "levels" | "members" | "values">,
  { census, level, parts }: { census: Census; level: number; parts: () => void }
): Sliced<MessageShape<Type>> {
  const piece = new Piece(census)
  let value: unknown
  try {
    piece.addValues(walk.values)
    value = jsonOf(text, parts)
    const ids = new IdReader(piece, lengthsOf(type))
    const members = typeof value === "object" && value !== null ? ids.read(value, "") : 0
    if (members !== walk.members) throw new KeyTwice()
    if (walk.values > SMALL_VALUES) yield
    const message = fromJson(type, value as JsonValue, jsonOptions)
    census.flaws.add(message, ...ids.flaws)
    return message
  } catch (error) {
    const readable = () => fromJson(type, readableOf(type, value), jsonOptions)
    return unread(type, census, level, error, () => text, readable)
  }
}

const isReadable = (type: DescMessage, value: unknown): boolean => {
  if (hasLongText(value, lengthsOf(type))) return false
  try {
    fromJson(type, value as JsonValue, jsonOptions)
    return true
  } catch {
    // What it would say is said of the whole.
    return false
  }
}

/** The members of a message, and the elements of its lists of messages, that can be read. */
const readableOf = (type: DescMessage, value: unknown): JsonValue => {
  const entries = Object.entries(isObject(value) ? value : {}).map(([key, member]) => {
    const message = type.fields.find((field) => [field.jsonName, field.name].includes(key))?.message
    if (message === undefined) return [key, member] as const
    return Array.isArray(member)
      ? ([key, member.filter((element) => isReadable(message, element))] as const)
      : ([key, readableOf(message, member)] as const)
  })
  const readable = entries.filter(([key, member]) => isReadable(type, { [key]: member }))
  return Object.fromEntries(readable) as JsonValue
}

const jsonOf = (text: string, parts: () => void): unknown => {
  try {
    return parseExact(text)
  } catch (error) {
    if (error instanceof SyntaxError) parts()
    throw error
  }
}

const jsonOptions = { ignoreUnknownFields: true, recursionLimit: 2 * MESSAGE_LEVELS_MAX }

/** Throws NotJson for a value that is no JSON. */
const checkSyntax = (cursor: JsonCursor, walk: ValueWalk): void => {
  const text = cursor.textOf(walk)
  try {
    new JsonReader(text).read()
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    cursor.expected(error.what, walk.start + Buffer.byteLength(text.slice(0, error.at)))
  }
}

/** Why a value is not read; undefined if it may be. */
const limitOf = ({ isTooMuch, levels }: ValueWalk): Error | undefined => {
  if (levels > JSON_LEVELS_MAX) return new TooDeep()
  return isTooMuch ? tooManyValues() : undefined
}

/** The value that is next, which does not end too soon. @throws NotJson */
const wholeValue = (cursor: JsonCursor): ValueWalk => {
  const walk = cursor.value(PIECE_VALUES_MAX)
  const limit = limitOf(walk)
  if (limit !== undefined) throw limit
  if (!walk.isWhole) checkSyntax(cursor, walk)
  return walk
}

/** Reads texts that may be no UTF-8. */
class OtlpCursor extends JsonCursor {
  override textOf({ end, start }: ValueWalk): string {
    return textOfBytes(this.bytes.subarray(start, end))
  }
}

/** The message that is next, of which no list is read element by element. */
function* readElement<Type extends DescMessage>(
  cursor: JsonCursor,
  type: Type,
  census: Census,
  level: number
): Sliced<MessageShape<Type>> {
  const walk = cursor.value(PIECE_VALUES_MAX)
  const limit = limitOf(walk)
  if (limit !== undefined) {
    yield* cursor.skip(walk)
    return unread(type, census, level, limit, () => "")
  }
  const parts = () => checkSyntax(cursor, walk)
  if (!walk.isWhole) parts()
  return yield* readText(type, cursor.textOf(walk), walk, { census, level, parts })
}

/** Members that say that an export is of another signal, and where that is taken. */
const otherSignals: ReadonlyMap<string, string> = new Map(
  [
    ["resourceSpans", "spans: send them to /v1/traces"],
    ["resourceLogs", "log records: send them to /v1/logs"],
    ["resourceMetrics", "metrics: send them to /v1/metrics"],
    ["resourceProfiles", "profiles, which are not taken"]
  ].flatMap(([name, where]) => [
    [name!, where!],
    [name!.replace("resource", "resource_").toLowerCase(), where!]
  ])
)

/** True for a member that is not read and holds something. */
const isFilled = (field: DescField | undefined, text: string): boolean =>
  field === undefined && text !== "null" && text !== "[]"

const FORM = '{"resourceSpans":[{"scopeSpans":[{"spans":[…]}]}]}'

/** Why a member that is not read refuses the request, where `list` is what is read. */
const misplaced = (name: string, list: string, level: number): Misplaced => {
  const where = level === 0 ? otherSignals.get(name) : undefined
  if (where !== undefined) return new Misplaced(`${excerpt(name)}: these are ${where}`)
  const form = list === "resourceSpans" || list === "scopeSpans" || list === "spans"
  return new Misplaced(
    `${excerpt(name)}: this member is not read, and ${list} is not there; send ${list}`
      + (form ? `, as in ${FORM}` : "")
  )
}

/** What is no object where a message with a list is to be. */
const noObject = (cursor: JsonCursor, type: DescMessage, { list }: Split): Misplaced => {
  const what = `no ${type.name}`
  const form = list.jsonName === "resourceSpans" ? ` in the form of OTLP, ${FORM}` : ""
  const send = `send an object with ${list.jsonName}${form}`
  return new Misplaced(
    cursor.isAtArray
      ? `${what}, but a list: lists of records and Zipkin's JSON are not read; ${send}`
      : `${what}, and no object; ${send}`
  )
}

/** The message that is next: its list element by element, the rest of it at once. */
function* readJson<Type extends DescMessage>(
  cursor: JsonCursor,
  type: Type,
  census: Census,
  level: number
): Sliced<MessageShape<Type>> {
  const split = splitOf(type, level)
  yield
  census.addPart(level)
  if (split === undefined) return yield* readElement(cursor, type, census, level)
  if (!cursor.isAtObject) {
    const error = noObject(cursor, type, split)
    const walk = wholeValue(cursor)
    checkSyntax(cursor, walk)
    return unread(type, census, level, error, () => cursor.textOf(walk))
  }
  const walks: Array<ValueWalk> = []
  const rest: Array<string> = []
  const { byName, list } = split
  const elements: Array<unknown> = []
  const lists = new Set<string>()
  let other: string | undefined
  let lost: string | undefined
  let hasList = false
  for (const key of cursor.members()) {
    const field = byName.get(key)
    if (field === list) hasList = true
    if (cursor.isAtArray && field === list) {
      if (lists.has(key)) throw new KeyTwice()
      lists.add(key)
      for (const _ of cursor.elements()) {
        elements.push(yield* readJson(cursor, list.message, census, level + 1))
      }
      continue
    }
    const walk = wholeValue(cursor)
    if (walks.push(walk) > MEMBERS_MAX) throw new TooMany(membersMessage)
    const text = cursor.textOf(walk)
    if (field === list && text !== "null") throw new Misplaced(`${excerpt(key)}: must be a list`)
    if (field === undefined) other ??= key
    if (level === 0 && otherSignals.has(key) && isFilled(field, text)) lost ??= key
    rest.push(`${JSON.stringify(field?.jsonName ?? key)}:${text}`)
  }
  const wrong = lost ?? (hasList ? undefined : other)
  if (wrong !== undefined) throw misplaced(wrong, list.jsonName, level)
  const sum = (of: (walk: ValueWalk) => number) => walks.reduce((all, walk) => all + of(walk), 0)
  const outer = {
    levels: Math.max(0, ...walks.map(({ levels }) => levels)),
    members: sum(({ members }) => members + 1),
    values: sum(({ values }) => values + 1)
  }
  const parts = () => walks.forEach((walk) => checkSyntax(cursor, walk))
  const read = yield* readText(type, `{${rest.join(",")}}`, outer, { census, level, parts })
  if (lists.size > 0) setList(read, list, elements)
  return read
}

/**
 * Read `application/json`, the JSON mapping of protobuf with OTLP's deviations: ids in hex, unknown
 * fields ignored, but not in the place of the resources, scopes or spans. Enums may be numbers, as
 * OTLP has them, or names; 64-bit integers strings or numbers, and neither is rounded. Bytes in
 * texts that are no UTF-8 are half pairs.
 */
export function* fromText<Type extends DescMessage>(
  type: Type,
  bytes: Buffer
): Sliced<Decoded<Type>> {
  try {
    const [cursor, census] = [
      isUtf8(bytes) ? new JsonCursor(bytes) : new OtlpCursor(bytes),
      new Census()
    ]
    const request = yield* readJson(cursor, type, census, 0)
    cursor.end()
    return someOf(request, census)
  } catch (error) {
    if (error instanceof KeyTwice) return refuse("invalid_json", error.message)
    if (!(error instanceof NotJson)) return refusalOf(error, type)
    const encoding = isUtf8(bytes) ? "" : "; it is not valid UTF-8, so send the text as UTF-8"
    return refuse("invalid_json", `not valid JSON: ${error.message}${encoding}`)
  }
}

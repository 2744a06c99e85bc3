/**
 * From the bytes of an OTLP/HTTP request to its message, in both encodings of the specification.
 * The generated code decodes; here is what it leaves open: how much memory a body may ask for,
 * hex ids, and numbers that a double would round. What the spans say is none of its business.
 */
import { isUtf8 } from "node:buffer"
import {
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  ScalarType
} from "@bufbuild/protobuf"
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"
import { JsonReader, JsonSyntaxError, parseJson, parseJsonWith } from "../../../domain/json/Json.ts"
import { JsonCursor, NotJson, type ValueWalk } from "../../../domain/json/JsonBytes.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { ExportTraceServiceRequestSchema } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import { excerpt } from "./Values.ts"

/**
 * Messages in one request, every attribute counting as two: a message may take two bytes on the
 * wire and a hundred times that in memory.
 */
export const MESSAGES_MAX = 1_000_000
/** Resources, scopes, and spans or what a scope has instead: each is read by itself. */
const PARTS_MAX = 65_536
/** Messages in one span, or in what is beside the spans of a scope or resource. */
export const PIECE_MESSAGES_MAX = 40_000
/** Fields in the same, and values in JSON, whether they are known or not. */
const PIECE_VALUES_MAX = 2 * PIECE_MESSAGES_MAX
/** Values that are parsed and decoded in one step. */
const SMALL_VALUES = 1_000
/** Members of one object in JSON: no message has as many as a hundred. */
const MEMBERS_MAX = 1_000
/** Levels of lists that are read element by element: resources, their scopes, and their spans. */
const SPLIT_LEVELS = 3
/** Characters of a 64-bit integer at most, with room for zeros in front. */
const INTEGER_LENGTH_MAX = 64
/** Characters of a value of bytes in base64 at most: far more than is stored of one. */
const BYTES_LENGTH_MAX = 4 * 1_048_576
/** Numbers in lists that count as one message: each may take 32 bytes of memory, and one sent. */
const SCALARS_PER_MESSAGE = 4
/** Messages inside each other: more than an attribute needs that nests as deep as can be stored. */
const MESSAGE_LEVELS_MAX = 256
/** Containers inside each other in JSON, where a message takes two. */
const JSON_LEVELS_MAX = 2 * MESSAGE_LEVELS_MAX

export type DecodeCode = "invalid_json" | "invalid_request" | "payload_too_large"

export interface Undecodable {
  readonly problem: { readonly code: DecodeCode; readonly message: string }
}

/** The message of a body, or what is wrong with the bytes. */
export type Decoded<Type extends DescMessage = typeof ExportTraceServiceRequestSchema> =
  | { readonly request: MessageShape<Type> }
  | Undecodable

const refuse = (code: DecodeCode, message: string): Undecodable => ({ problem: { code, message } })

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : "not a message of this type"

/** Thrown and caught in this file only. */
class TooMany extends Error {}
class TooDeep extends Error {}
class KeyTwice extends Error {
  override readonly message = "a key is given more than once in its object; send it once"
}
/** What may be in a member that nobody reads is not lost in silence. */
class Unread extends Error {
  constructor(name: string, list: string) {
    super(`${excerpt(name)}: this member is not read, and ${list} is not there; send ${list}`)
  }
}

/** Counts messages, and refuses more than fit in memory. */
class Census {
  #messages = 0
  #parts = 0

  /** A resource, a scope, or a span and the like. */
  addPart(): void {
    this.#parts += 1
    if (this.#parts > PARTS_MAX) {
      throw new TooMany(`more than ${PARTS_MAX} resources, scopes and spans; send less at once`)
    }
  }

  add(messages: number): void {
    this.#messages += messages
    if (this.#messages > MESSAGES_MAX) {
      throw new TooMany(`the request holds more than ${MESSAGES_MAX} messages; send less at once`)
    }
  }
}

const tooManyMembers = (): TooMany =>
  new TooMany(`an object has more than ${MEMBERS_MAX} members; send OTLP as it is defined`)

const tooManyValues = (): TooMany =>
  new TooMany(
    `a span, resource or the like holds more than ${PIECE_VALUES_MAX} values; send less in it`
  )

/** Counts what is read in one step, and refuses what would take long. */
class Piece {
  readonly #census: Census
  #messages = 0
  #fields = 0

  constructor(census: Census) {
    this.#census = census
  }

  add(level: number): void {
    this.#count(1)
    if (level > MESSAGE_LEVELS_MAX) throw new TooDeep()
  }

  /** Elements of lists that are no messages. */
  addScalars(count: number): void {
    this.#count(count / SCALARS_PER_MESSAGE)
  }

  addField(): void {
    this.addValues(1)
  }

  /** Fields, or values in JSON. */
  addValues(count: number): void {
    this.#fields += count
    if (this.#fields > PIECE_VALUES_MAX) {
      throw tooManyValues()
    }
  }

  #count(messages: number): void {
    this.#census.add(messages)
    this.#messages += messages
    if (this.#messages > PIECE_MESSAGES_MAX) {
      throw new TooMany(
        `a span, resource or the like holds more than ${PIECE_MESSAGES_MAX} messages; send less in it`
      )
    }
  }
}

/** What may take much memory in a message: messages, by field number, and lists of scalars. */
interface LargeFields {
  readonly messages: ReadonlyMap<number, DescMessage>
  readonly lists: ReadonlySet<number>
}

const largeFields = new Map<DescMessage, LargeFields>()

const largeFieldsOf = (type: DescMessage): LargeFields => {
  const known = largeFields.get(type)
  if (known !== undefined) return known
  const messages = new Map<number, DescMessage>()
  const lists = new Set<number>()
  for (const field of type.fields) {
    if (field.message !== undefined) messages.set(field.number, field.message)
    else if (field.fieldKind === "list") lists.add(field.number)
  }
  const fields = { messages, lists }
  largeFields.set(type, fields)
  return fields
}

/** Walk over the bytes up to `end` without making anything of them. */
const survey = (
  reader: BinaryReader,
  end: number,
  type: DescMessage,
  piece: Piece,
  level: number
): void => {
  piece.add(level)
  const { lists, messages } = largeFieldsOf(type)
  while (reader.pos < end) {
    const [number, wireType] = reader.tag()
    piece.addField()
    const message = wireType === WireType.LengthDelimited ? messages.get(number) : undefined
    if (message === undefined) {
      const start = reader.pos
      reader.skip(wireType, number)
      // A packed list has a byte for each element at least.
      if (lists.has(number)) piece.addScalars(reader.pos - start)
    } else {
      survey(reader, endOf(reader, end), message, piece, level + 1)
    }
  }
}

/** Where the message ends whose length is next. */
const endOf = (reader: BinaryReader, end: number): number => {
  const length = reader.uint32()
  if (reader.pos + length > end) throw new RangeError("premature EOF")
  return reader.pos + length
}

const outOfBounds = (error: unknown): Undecodable | undefined => {
  if (error instanceof TooMany) return refuse("payload_too_large", error.message)
  return error instanceof TooDeep
    ? refuse("invalid_request", `a value nests deeper than ${MESSAGE_LEVELS_MAX} messages`)
    : undefined
}

type ListField = DescField & { readonly message: DescMessage }

/** A message of which a list is read element by element. */
interface Split {
  readonly list: ListField
  /** Numbers of the list, today's and the one that it had. */
  readonly numbers: ReadonlySet<number>
  /** Fields by today's names and those that they had. */
  readonly byName: ReadonlyMap<string, DescField>
}

/**
 * What scopes were called before OTLP 0.15, with the same fields: lists of them had a number of their
 * own, and were `instrumentationLibrarySpans` and the like.
 */
const OLD_LISTS_NUMBER = 1_000
const oldNameOf = (name: string, word: string): string => name.replace(/^scope(?=[A-Z_]|$)/, word)

const splitBy = (type: DescMessage): Split | undefined => {
  const isList = (field: DescField): field is ListField =>
    field.fieldKind === "list" && field.message !== undefined
  const list = type.fields.find(isList)
  if (list === undefined) return undefined
  const isOfScopes = list.name.startsWith("scope_")
  const names = type.fields.flatMap((field) =>
    [
      field.jsonName,
      field.name,
      oldNameOf(field.jsonName, "instrumentationLibrary"),
      oldNameOf(field.name, "instrumentation_library")
    ].map((name) => [name, field] as const)
  )
  return {
    list,
    numbers: new Set(isOfScopes ? [list.number, OLD_LISTS_NUMBER] : [list.number]),
    byName: new Map(names)
  }
}

const splits = new Map<DescMessage, Split | undefined>()

/** The list that is read element by element, of a message at this level. */
const splitOf = (type: DescMessage, level: number): Split | undefined => {
  if (level >= SPLIT_LEVELS) return undefined
  if (!splits.has(type)) splits.set(type, splitBy(type))
  return splits.get(type)
}

const setList = (message: object, field: DescField, elements: ReadonlyArray<unknown>): void => {
  ;(message as Record<string, unknown>)[field.localName] = elements
}

/** The message up to `end`: its list element by element, the rest of it at once. */
function* readBinary<Type extends DescMessage>(
  reader: BinaryReader,
  bytes: Uint8Array,
  end: number,
  type: Type,
  census: Census,
  level: number
): Sliced<MessageShape<Type>> {
  const start = reader.pos
  const piece = new Piece(census)
  const split = splitOf(type, level)
  if (split === undefined) {
    yield
    census.addPart()
    survey(reader, end, type, piece, level)
    return fromBinary(type, bytes.subarray(start, end), binaryOptions)
  }
  yield
  census.addPart()
  piece.add(level)
  const elements: Array<unknown> = []
  const rest: Array<Uint8Array> = []
  const { list, numbers } = split
  const { messages } = largeFieldsOf(type)
  while (reader.pos < end) {
    const from = reader.pos
    const [number, wireType] = reader.tag()
    const isLong = wireType === WireType.LengthDelimited
    if (isLong && numbers.has(number)) {
      const stop = endOf(reader, end)
      elements.push(yield* readBinary(reader, bytes, stop, list.message, census, level + 1))
      continue
    }
    const message = isLong ? messages.get(number) : undefined
    piece.addField()
    if (message === undefined) reader.skip(wireType, number)
    else survey(reader, endOf(reader, end), message, piece, level + 1)
    rest.push(bytes.subarray(from, reader.pos))
  }
  const read = fromBinary(type, Buffer.concat(rest), binaryOptions)
  setList(read, list, elements)
  return read
}

const binaryOptions = { readUnknownFields: false, recursionLimit: 2 * MESSAGE_LEVELS_MAX }

/** Read `application/x-protobuf`. Unknown fields are ignored, as protobuf says. */
function* fromProtobuf<Type extends DescMessage>(
  type: Type,
  bytes: Uint8Array
): Sliced<Decoded<Type>> {
  try {
    const reader = new BinaryReader(bytes)
    return { request: yield* readBinary(reader, bytes, bytes.length, type, new Census(), 0) }
  } catch (error) {
    // The library throws plain errors for every kind of unreadable bytes.
    return (
      outOfBounds(error)
      ?? refuse("invalid_request", `the body is no ${type.name}: ${reasonOf(error)}`)
    )
  }
}

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

/** The fields that OTLP writes in hex where the JSON mapping of protobuf has base64. */
const hexFields: ReadonlySet<string> = new Set(
  ["traceId", "spanId", "parentSpanId"].flatMap((name) => [
    name,
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  ])
)
/** Characters that the text of a field may have, by the field's type. */
const lengthsByType: ReadonlyMap<ScalarType, number> = new Map([
  [ScalarType.INT64, INTEGER_LENGTH_MAX],
  [ScalarType.UINT64, INTEGER_LENGTH_MAX],
  [ScalarType.FIXED64, INTEGER_LENGTH_MAX],
  [ScalarType.SFIXED64, INTEGER_LENGTH_MAX],
  [ScalarType.SINT64, INTEGER_LENGTH_MAX],
  [ScalarType.BYTES, BYTES_LENGTH_MAX]
])

type Lengths = Map<string, number>

/** By the names of the fields of a message and of what it holds. */
const addLengths = (type: DescMessage, lengths: Lengths, seen: Set<DescMessage>): void => {
  if (seen.has(type)) return
  seen.add(type)
  for (const { jsonName, message, name, scalar } of type.fields) {
    if (message !== undefined) addLengths(message, lengths, seen)
    const most = scalar === undefined ? undefined : lengthsByType.get(scalar)
    if (most !== undefined) lengths.set(jsonName, most).set(name, most)
  }
}

const lengthsOfTypes = new Map<DescMessage, Lengths>()

const lengthsOf = (type: DescMessage): Lengths => {
  const known = lengthsOfTypes.get(type)
  if (known !== undefined) return known
  const lengths: Lengths = new Map()
  addLengths(type, lengths, new Set())
  lengthsOfTypes.set(type, lengths)
  return lengths
}

const HEX = /^(?:[\da-fA-F]{2})*$/

/** What is no hex is no id: empty, so that the span is refused and not the request. */
const toBase64 = (hex: string): string =>
  HEX.test(hex) ? Buffer.from(hex, "hex").toString("base64") : ""

/** Turns hex ids into base64, in place, and counts. */
class IdReader {
  readonly #piece: Piece
  readonly #lengths: Lengths

  constructor(piece: Piece, lengths: Lengths) {
    this.#piece = piece
    this.#lengths = lengths
  }

  /** A large number takes a time to read that the square of its digits decides. */
  #check(text: string, key: string): void {
    const most = this.#lengths.get(key)
    if (most !== undefined && text.length > most) {
      throw new Error(`${key}: over ${most} characters; no such number, or too many bytes`)
    }
  }

  /** How many members there are. `key`: whose value this is. */
  read(value: object, key: string): number {
    return Array.isArray(value) ? this.#list(value, key) : this.#object(value)
  }

  #list(list: ReadonlyArray<unknown>, key: string): number {
    let members = 0
    for (const element of list) {
      if (typeof element === "object" && element !== null) {
        members += this.read(element, key)
      } else {
        this.#piece.addScalars(1)
        if (typeof element === "string") this.#check(element, key)
      }
    }
    return members
  }

  #object(value: object): number {
    this.#piece.add(0)
    const object = value as Record<string, unknown>
    let members = 0
    const keys = Object.keys(object)
    if (keys.length > MEMBERS_MAX) throw tooManyMembers()
    for (const key of keys) {
      members += 1
      const member = object[key]
      if (typeof member === "object" && member !== null) members += this.read(member, key)
      else if (typeof member !== "string") continue
      else if (hexFields.has(key)) object[key] = toBase64(member)
      else this.#check(member, key)
    }
    return members
  }
}

/** The message of a text that was walked over. `parts` are those values of it that may be no JSON. */
function* readText<Type extends DescMessage>(
  type: Type,
  text: string,
  walk: Pick<ValueWalk, "levels" | "members" | "values">,
  piece: Piece,
  parts: () => void
): Sliced<MessageShape<Type>> {
  if (walk.levels > JSON_LEVELS_MAX) throw new TooDeep()
  piece.addValues(walk.values)
  let value: unknown
  try {
    value = parseExact(text)
  } catch (error) {
    if (error instanceof SyntaxError) parts()
    throw error
  }
  const ids = new IdReader(piece, lengthsOf(type))
  const members = typeof value === "object" && value !== null ? ids.read(value, "") : 0
  if (members !== walk.members) throw new KeyTwice()
  if (walk.values > SMALL_VALUES) yield
  return fromJson(type, value as JsonValue, jsonOptions)
}

const jsonOptions = { ignoreUnknownFields: true, recursionLimit: 2 * MESSAGE_LEVELS_MAX }

/** Throws NotJson for a value that is none. */
const checkSyntax = (cursor: JsonCursor, walk: ValueWalk): void => {
  const text = cursor.textOf(walk)
  try {
    new JsonReader(text).read()
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    cursor.expected(error.what, walk.start + Buffer.byteLength(text.slice(0, error.at)))
  }
}

/** The value that is next, which does not end too soon. @throws NotJson */
const wholeValue = (cursor: JsonCursor): ValueWalk => {
  const walk = cursor.value(PIECE_VALUES_MAX)
  if (walk.levels > JSON_LEVELS_MAX) throw new TooDeep()
  if (walk.isTooMuch) throw tooManyValues()
  if (!walk.isWhole) checkSyntax(cursor, walk)
  return walk
}

/** The message that is next: its list element by element, the rest of it at once. */
function* readJson<Type extends DescMessage>(
  cursor: JsonCursor,
  type: Type,
  census: Census,
  level: number
): Sliced<MessageShape<Type>> {
  const piece = new Piece(census)
  const split = splitOf(type, level)
  yield
  census.addPart()
  if (split === undefined || !cursor.isAtObject) {
    const walk = wholeValue(cursor)
    return yield* readText(type, cursor.textOf(walk), walk, piece, () => checkSyntax(cursor, walk))
  }
  const walks: Array<ValueWalk> = []
  const rest: Array<string> = []
  const { byName, list } = split
  const elements: Array<unknown> = []
  const lists = new Set<string>()
  let unread: string | undefined
  let hasList = false
  for (const key of cursor.members()) {
    const field = byName.get(key)
    if (field === undefined) unread ??= key
    if (field === list) hasList = true
    if (cursor.isAtArray && field === list) {
      if (lists.has(key)) throw new KeyTwice()
      lists.add(key)
      for (const _ of cursor.elements()) {
        elements.push(yield* readJson(cursor, list.message, census, level + 1))
      }
    } else {
      const walk = wholeValue(cursor)
      if (walks.push(walk) > MEMBERS_MAX) throw tooManyMembers()
      piece.addField()
      rest.push(`${JSON.stringify(field?.jsonName ?? key)}:${cursor.textOf(walk)}`)
    }
  }
  const sum = (of: (walk: ValueWalk) => number) => walks.reduce((all, walk) => all + of(walk), 0)
  const outer = {
    levels: Math.max(0, ...walks.map(({ levels }) => levels)),
    members: sum(({ members }) => members + 1),
    values: sum(({ values }) => values + 1)
  }
  const read = yield* readText(type, `{${rest.join(",")}}`, outer, piece, () => {
    for (const walk of walks) checkSyntax(cursor, walk)
  })
  if (unread !== undefined && !hasList) throw new Unread(unread, list.jsonName)
  if (lists.size > 0) setList(read, list, elements)
  return read
}

/**
 * Read `application/json`, the JSON mapping of protobuf with OTLP's deviations: ids in hex, unknown
 * fields ignored, but not in the place of the resources, scopes or spans. Enums may be numbers, as OTLP has them, or names; 64-bit integers strings or
 * numbers, and neither is rounded. A key that is given twice is refused.
 */
function* fromText<Type extends DescMessage>(type: Type, bytes: Buffer): Sliced<Decoded<Type>> {
  if (!isUtf8(bytes)) return refuse("invalid_json", "not valid UTF-8; send the text as UTF-8")
  try {
    const cursor = new JsonCursor(bytes)
    const request = yield* readJson(cursor, type, new Census(), 0)
    cursor.end()
    return { request }
  } catch (error) {
    if (error instanceof NotJson) return refuse("invalid_json", `not valid JSON: ${error.message}`)
    if (error instanceof KeyTwice) return refuse("invalid_json", error.message)
    if (error instanceof Unread) return refuse("invalid_request", error.message)
    // As above: the library's errors are of no class of their own.
    return (
      outOfBounds(error)
      ?? refuse("invalid_request", `the body is no ${type.name}: ${reasonOf(error)}`)
    )
  }
}

/** How a message is read in both encodings. */
export const decodersOf = <Type extends DescMessage>(type: Type) => ({
  protobuf: (bytes: Uint8Array) => fromProtobuf(type, bytes),
  json: (bytes: Buffer) => fromText(type, bytes)
})

export const { json: decodeJson, protobuf: decodeProtobuf } = decodersOf(
  ExportTraceServiceRequestSchema
)

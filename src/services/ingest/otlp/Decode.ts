/**
 * From the bytes of an OTLP/HTTP request to its message, in both encodings of the specification.
 * The generated code decodes; here is what it leaves open: how much memory a body may ask for,
 * hex ids, and numbers that a double would round. What the spans say is none of its business.
 */
import { isUtf8 } from "node:buffer"
import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape
} from "@bufbuild/protobuf"
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"
import { parseJson, parseJsonWith } from "../../../domain/json/Json.ts"
import { problemOf } from "../../../domain/json/StrictJson.ts"
import { ExportTraceServiceRequestSchema } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"

/**
 * Messages in one request, every attribute counting as two: a message may take two bytes on the
 * wire and a hundred times that in memory.
 */
export const MESSAGES_MAX = 1_000_000
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

/** Counts messages, and refuses more than fit in memory. */
class Census {
  #messages = 0

  add(level: number): void {
    this.#count(1)
    if (level > MESSAGE_LEVELS_MAX) throw new TooDeep()
  }

  /** Elements of lists that are no messages. */
  addScalars(count: number): void {
    this.#count(count / SCALARS_PER_MESSAGE)
  }

  #count(messages: number): void {
    this.#messages += messages
    if (this.#messages > MESSAGES_MAX) throw new TooMany()
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

/** Walk over the bytes without making anything of them. */
const survey = (
  reader: BinaryReader,
  end: number,
  type: DescMessage,
  census: Census,
  level: number
): void => {
  census.add(level)
  const { lists, messages } = largeFieldsOf(type)
  while (reader.pos < end) {
    const [number, wireType] = reader.tag()
    const message = wireType === WireType.LengthDelimited ? messages.get(number) : undefined
    if (message === undefined) {
      const start = reader.pos
      reader.skip(wireType, number)
      // A packed list has a byte for each element at least.
      if (lists.has(number)) census.addScalars(reader.pos - start)
    } else {
      const length = reader.uint32()
      survey(reader, reader.pos + length, message, census, level + 1)
    }
  }
}

const outOfBounds = (error: unknown): Undecodable | undefined => {
  if (error instanceof TooMany) {
    return refuse(
      "payload_too_large",
      `the request holds more than ${MESSAGES_MAX} messages; send less at once`
    )
  }
  return error instanceof TooDeep
    ? refuse("invalid_request", `a value nests deeper than ${MESSAGE_LEVELS_MAX} messages`)
    : undefined
}

/** Read `application/x-protobuf`. Unknown fields are ignored. */
const fromProtobuf = <Type extends DescMessage>(type: Type, bytes: Uint8Array): Decoded<Type> => {
  try {
    survey(new BinaryReader(bytes), bytes.length, type, new Census(), 0)
    return {
      request: fromBinary(type, bytes, {
        readUnknownFields: false,
        recursionLimit: 2 * MESSAGE_LEVELS_MAX
      })
    }
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

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a

/** Members that all objects of a valid JSON text have together, keys that are given twice included. */
const membersIn = (bytes: Uint8Array): number => {
  let members = 0
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) {
      inString = true
    } else if (byte === COLON) {
      members += 1
    }
  }
  return members
}

/** The fields that OTLP writes in hex where the JSON mapping of protobuf has base64. */
const hexFields: ReadonlySet<string> = new Set(
  ["traceId", "spanId", "parentSpanId"].flatMap((name) => [
    name,
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  ])
)
const HEX = /^(?:[\da-fA-F]{2})*$/

/** What is no hex is no id: empty, so that the span is refused and not the request. */
const toBase64 = (hex: string): string =>
  HEX.test(hex) ? Buffer.from(hex, "hex").toString("base64") : ""

/** Turn hex ids into base64, in place; how many members there are. */
const readIds = (value: object, census: Census, level: number): number => {
  if (level > JSON_LEVELS_MAX) throw new TooDeep()
  let members = 0
  if (Array.isArray(value)) {
    for (const element of value as ReadonlyArray<unknown>) {
      if (typeof element === "object" && element !== null) {
        members += readIds(element, census, level + 1)
      } else {
        census.addScalars(1)
      }
    }
    return members
  }
  census.add(0)
  const object = value as Record<string, unknown>
  for (const key of Object.keys(object)) {
    members += 1
    const member = object[key]
    if (typeof member === "object" && member !== null) {
      members += readIds(member, census, level + 1)
    } else if (typeof member === "string" && hexFields.has(key)) {
      object[key] = toBase64(member)
    }
  }
  return members
}

/**
 * Read `application/json`, the JSON mapping of protobuf with OTLP's deviations: ids in hex, unknown
 * fields ignored. Enums may be numbers, as OTLP has them, or names; 64-bit integers strings or
 * numbers, and neither is rounded. A key that is given twice is refused.
 */
const fromText = <Type extends DescMessage>(type: Type, bytes: Buffer): Decoded<Type> => {
  if (!isUtf8(bytes)) return refuse("invalid_json", "not valid UTF-8; send the text as UTF-8")
  const text = bytes.toString()
  let value: unknown
  try {
    value = parseExact(text)
  } catch {
    // The scanner finds the same mistake and says where it is.
    return refuse("invalid_json", problemOf(text)?.message ?? "not valid JSON")
  }
  try {
    const members =
      typeof value === "object" && value !== null ? readIds(value, new Census(), 1) : 0
    if (members !== membersIn(bytes)) {
      return refuse("invalid_json", "a key is given more than once in its object; send it once")
    }
    return {
      request: fromJson(type, value as JsonValue, {
        ignoreUnknownFields: true,
        recursionLimit: 2 * MESSAGE_LEVELS_MAX
      })
    }
  } catch (error) {
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

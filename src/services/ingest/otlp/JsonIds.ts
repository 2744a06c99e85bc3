/** Ids and enums as OTLP's JSON has them, turned into what the JSON mapping of protobuf has. */
import { type DescEnum, type DescMessage, ScalarType } from "@bufbuild/protobuf"
import { isObject } from "../../../domain/json/Json.ts"
import type { Flaw } from "./Flaws.ts"
import {
  Span_SpanKindSchema,
  Status_StatusCodeSchema
} from "./gen/opentelemetry/proto/trace/v1/trace_pb.js"
import { MEMBERS_MAX, membersMessage, type Piece, TooMuch } from "./Reading.ts"

/** Characters of a 64-bit integer at most, with room for zeros in front. */
const INTEGER_LENGTH_MAX = 64
/** Characters of a value of bytes in base64 at most: far more than is stored of one. */
const BYTES_LENGTH_MAX = 4 * 1_048_576

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

export const lengthsOf = (type: DescMessage): Lengths => {
  const known = lengthsOfTypes.get(type)
  if (known !== undefined) return known
  const lengths: Lengths = new Map()
  addLengths(type, lengths, new Set())
  lengthsOfTypes.set(type, lengths)
  return lengths
}

/** True if a text in a value, the member `key` of something, is longer than its field may be. */
export const hasLongText = (value: unknown, lengths: Lengths, key = ""): boolean => {
  if (typeof value === "string") return value.length > (lengths.get(key) ?? Infinity)
  if (Array.isArray(value)) return value.some((element) => hasLongText(element, lengths, key))
  return (
    isObject(value)
    && Object.entries(value).some(([name, member]) => hasLongText(member, lengths, name))
  )
}

const HEX = /^(?:[\da-fA-F]{2})*$/

/** Before an id that is no hex: with it, it is longer than any id. */
const NO_HEX = "not hexadecimal: "

const toBase64 = (hex: string): string =>
  Buffer.from(HEX.test(hex) ? hex : `${NO_HEX}${hex}`, HEX.test(hex) ? "hex" : "utf8").toString(
    "base64"
  )

/** An id as it was sent: in hex, or as the text in its place. */
export const sentId = (id: Uint8Array): string => {
  const text = id.length > NO_HEX.length ? Buffer.from(id).toString("utf8") : ""
  return text.startsWith(NO_HEX) ? text.slice(NO_HEX.length) : Buffer.from(id).toString("hex")
}

interface Enum {
  /** The member, and the one that this is in. */
  readonly member: string
  readonly of: string
  readonly path: string
  readonly prefix: string
  readonly type: DescEnum
}

const enums: ReadonlyArray<Enum> = [
  { member: "kind", of: "", path: "kind", prefix: "SPAN_KIND_", type: Span_SpanKindSchema },
  {
    member: "code",
    of: "status",
    path: "status.code",
    prefix: "STATUS_CODE_",
    type: Status_StatusCodeSchema
  }
]

/** Reads ids and names of enums in place, and counts. */
export class IdReader {
  /** Names that enums don't have. */
  readonly flaws: Array<Flaw> = []
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
    return Array.isArray(value) ? this.#list(value, key) : this.#object(value, key)
  }

  /** The number of an enum by its name, with the prefix of the protocol or without, in any case. */
  #enum(name: string, member: string, of: string): number | string {
    const found = enums.find((one) => one.member === member && one.of === of)
    if (found === undefined || /^\d+$/.test(name)) return found === undefined ? name : Number(name)
    const { path, prefix, type } = found
    const upper = name.toUpperCase()
    const full = upper.startsWith(prefix) ? upper : `${prefix}${upper}`
    const value = type.values.find((one) => one.name === full)?.number
    if (value === undefined) this.flaws.push({ kind: "unknown_name", message: path, sent: name })
    return value ?? 0
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

  #object(value: object, of: string): number {
    this.#piece.add(0)
    const object = value as Record<string, unknown>
    let members = 0
    const keys = Object.keys(object)
    if (keys.length > MEMBERS_MAX) throw new TooMuch(membersMessage)
    for (const key of keys) {
      members += 1
      const member = object[key]
      if (typeof member === "object" && member !== null) members += this.read(member, key)
      else if (typeof member !== "string") continue
      else if (hexFields.has(key)) object[key] = toBase64(member)
      else if (key === "kind" || key === "code") object[key] = this.#enum(member, key, of)
      else this.#check(member, key)
    }
    return members
  }
}

/** Reads exports in protobuf. */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf"
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"
import type { Sliced } from "../../../domain/Slices.ts"
import "./BrokenText.ts"
import {
  Census,
  type Decoded,
  MESSAGE_LEVELS_MAX,
  Piece,
  refusalOf,
  setList,
  someOf,
  splitOf,
  unread
} from "./Reading.ts"

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

/** Throws where a message ends after what it is in. */
const checkEnd = (reader: BinaryReader, end: number): void => {
  if (reader.pos > end) throw new RangeError("premature EOF")
}

/** A message of which no list is read element by element. */
const readPiece = <Type extends DescMessage>(
  reader: BinaryReader,
  bytes: Uint8Array,
  end: number,
  type: Type,
  census: Census,
  level: number
): MessageShape<Type> => {
  const own = bytes.subarray(reader.pos, end)
  try {
    survey(reader, end, type, new Piece(census), level)
    return fromBinary(type, own, binaryOptions)
  } catch (error) {
    return unread(type, census, level, error, () => base64Of(own))
  } finally {
    reader.pos = end
  }
}

const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

/** The message up to `end`: its list element by element, the rest of it at once. */
function* readBinary<Type extends DescMessage>(
  reader: BinaryReader,
  bytes: Uint8Array,
  end: number,
  type: Type,
  census: Census,
  level: number
): Sliced<MessageShape<Type>> {
  const split = splitOf(type, level)
  yield
  census.addPart(level)
  if (split === undefined) return readPiece(reader, bytes, end, type, census, level)
  const elements: Array<unknown> = []
  const rest: Array<Uint8Array> = []
  const piece = new Piece(census)
  const { list, numbers } = split
  while (reader.pos < end) {
    const from = reader.pos
    const [number, wireType] = reader.tag()
    if (wireType === WireType.LengthDelimited && numbers.has(number)) {
      const stop = endOf(reader, end)
      elements.push(yield* readBinary(reader, bytes, stop, list.message, census, level + 1))
      continue
    }
    piece.addField()
    reader.skip(wireType, number)
    checkEnd(reader, end)
    rest.push(bytes.subarray(from, reader.pos))
  }
  const outer = Buffer.concat(rest)
  const read = readPiece(new BinaryReader(outer), outer, outer.length, type, census, level)
  setList(read, list, elements)
  return read
}

const binaryOptions = { readUnknownFields: false, recursionLimit: 2 * MESSAGE_LEVELS_MAX }

/** Read `application/x-protobuf`. Unknown fields are ignored, as protobuf says. */
export function* fromProtobuf<Type extends DescMessage>(
  type: Type,
  bytes: Uint8Array
): Sliced<Decoded<Type>> {
  try {
    const [reader, census] = [new BinaryReader(bytes), new Census()]
    return someOf(yield* readBinary(reader, bytes, bytes.length, type, census, 0), census)
  } catch (error) {
    return refusalOf(error, type)
  }
}

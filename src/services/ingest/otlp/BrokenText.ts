/**
 * Texts that can't be stored: with U+0000, with half a surrogate pair, or of bytes that are no
 * UTF-8. Each such byte is read as half a pair, U+DC80 to U+DCFF, so that the bytes as sent are
 * known as long as the text is not mended.
 */
import { isUtf8 } from "node:buffer"
import { configureTextEncoding } from "@bufbuild/protobuf/wire"
import { finish, type Sliced } from "../../../domain/Slices.ts"
import { piecesOf, sha256InSteps } from "../../../domain/TextPieces.ts"

const BYTE_AS_HALF = 0xdc00
const REPLACEMENT = 0xfffd
const UNIT_BYTES_MAX = 3

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The text of the first UTF-16 units. */
const textOfUnits = (units: Uint16Array, length: number): string =>
  Buffer.from(units.buffer, units.byteOffset, 2 * length).toString("utf16le")

const unitsOf = (text: string): Uint16Array => {
  const bytes = Buffer.from(text, "utf16le")
  return new Uint16Array(bytes.buffer, bytes.byteOffset, text.length)
}

/** Bits that a byte of UTF-8 after the first adds; negative if it is not one. */
const bitsOf = (byte: number | undefined): number =>
  byte !== undefined && (byte & 0xc0) === 0x80 ? byte & 0x3f : -1

/** The character above U+007F that begins at a place, in UTF-8; negative if none does. */
const codeAt = (bytes: Uint8Array, at: number): number => {
  const first = bytes[at]!
  if (first < 0xc2 || first > 0xf4) return -1
  const second = bitsOf(bytes[at + 1])
  if (second < 0) return -1
  if (first < 0xe0) return ((first & 0x1f) << 6) | second
  const third = bitsOf(bytes[at + 2])
  if (third < 0) return -1
  if (first < 0xf0) {
    const code = ((first & 0x0f) << 12) | (second << 6) | third
    return code < 0x800 || (code & 0xf800) === 0xd800 ? -1 : code
  }
  const fourth = bitsOf(bytes[at + 3])
  const code = ((first & 0x07) << 18) | (second << 12) | (third << 6) | fourth
  return fourth < 0 || code < 0x10000 || code > 0x10ffff ? -1 : code
}

/** UTF-16 units that are made at once: they stay in the cache of the processor. */
const UNITS_AT_ONCE = 65_536

/** Makes texts of bytes, in one pass: what a message holds is read in one step. */
class Escaper {
  // A character may end behind the last of them.
  readonly #units = new Uint16Array(UNITS_AT_ONCE + 1)
  readonly #bytes: Uint8Array
  at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  next(): string {
    const [bytes, units] = [this.#bytes, this.#units]
    let { at } = this
    let length = 0
    while (at < bytes.length && length < UNITS_AT_ONCE) {
      const byte = bytes[at]!
      const code = byte < 0x80 ? byte : codeAt(bytes, at)
      if (code < 0x80) {
        units[length++] = code < 0 ? BYTE_AS_HALF + byte : code
        at += 1
      } else if (code < 0x10000) {
        units[length++] = code
        at += code < 0x800 ? 2 : 3
      } else {
        units[length++] = 0xd7c0 + (code >> 10)
        units[length++] = 0xdc00 + (code & 0x3ff)
        at += 4
      }
    }
    this.at = at
    return textOfUnits(units, length)
  }
}

const escaped = (bytes: Uint8Array): string => {
  const escaper = new Escaper(bytes)
  const parts: Array<string> = []
  while (escaper.at < bytes.length) parts.push(escaper.next())
  return parts.join("")
}

/** The text of bytes, which may be no UTF-8. */
export const textOfBytes = (bytes: Uint8Array): string =>
  isUtf8(bytes) ? bufferOf(bytes).toString("utf8") : escaped(bytes)

const encoder = new TextEncoder()

// What the generated code reads strings with: it refuses a message for one of them otherwise.
configureTextEncoding({
  decodeUtf8: textOfBytes,
  encodeUtf8: (text) => encoder.encode(text),
  encodeUtf8Into: (text, bytes) => encoder.encodeInto(text, bytes),
  checkUtf8: () => true
})

/** True for a text that can't be stored. */
export const isBroken = (text: string): boolean => text.includes("\u0000") || !text.isWellFormed()

const isPair = (units: Uint16Array, at: number): boolean =>
  (units[at]! & 0xfc00) === 0xd800 && (units[at + 1]! & 0xfc00) === 0xdc00

const isByte = (unit: number): boolean => unit >= 0xdc80 && unit <= 0xdcff

/** Mends a text piece by piece. */
class Mender {
  #isInRow = false

  next(piece: string): string {
    const units = unitsOf(piece)
    let length = 0
    let isInRow = this.#isInRow
    for (let at = 0; at < units.length; at++) {
      const unit = units[at]!
      if (unit !== 0 && (unit & 0xf800) !== 0xd800) {
        units[length++] = unit
        isInRow = false
      } else if (isPair(units, at)) {
        units[length++] = unit
        units[length++] = units[++at]!
        isInRow = false
      } else {
        if (!(isInRow && isByte(unit))) units[length++] = REPLACEMENT
        isInRow = isByte(unit)
      }
    }
    this.#isInRow = isInRow
    return textOfUnits(units, length)
  }
}

/** The same with U+FFFD in the place of what can't be stored: one for bytes in a row. */
export function* mendedInSteps(text: string): Sliced<string> {
  const mender = new Mender()
  const parts: Array<string> = []
  for (const piece of piecesOf(text)) {
    if (parts.length > 0) yield
    parts.push(mender.next(piece))
  }
  return parts.join("")
}

/** The same at once. */
export const mended = (text: string): string => finish(mendedInSteps(text))

/** Bytes as sent: of half a pair the one that was sent, or the three that UTF-8 would have. */
const bytesAsSent = (piece: string): Buffer => {
  if (piece.isWellFormed()) return Buffer.from(piece)
  const units = unitsOf(piece)
  const bytes = Buffer.allocUnsafe(UNIT_BYTES_MAX * units.length)
  let length = 0
  for (let at = 0; at < units.length; at++) {
    const unit = units[at]!
    if (unit < 0x80) bytes[length++] = unit
    else if (isByte(unit)) bytes[length++] = unit - BYTE_AS_HALF
    else if (unit < 0x800) {
      bytes[length++] = 0xc0 | (unit >> 6)
      bytes[length++] = 0x80 | (unit & 0x3f)
    } else if (isPair(units, at)) {
      const code = 0x10000 + ((unit & 0x3ff) << 10) + (units[++at]! & 0x3ff)
      bytes[length++] = 0xf0 | (code >> 18)
      bytes[length++] = 0x80 | ((code >> 12) & 0x3f)
      bytes[length++] = 0x80 | ((code >> 6) & 0x3f)
      bytes[length++] = 0x80 | (code & 0x3f)
    } else {
      bytes[length++] = 0xe0 | (unit >> 12)
      bytes[length++] = 0x80 | ((unit >> 6) & 0x3f)
      bytes[length++] = 0x80 | (unit & 0x3f)
    }
  }
  return bytes.subarray(0, length)
}

/** SHA-256 of a text as it was sent, in steps. */
export const hashAsSent = (text: string): Sliced<string> => sha256InSteps(text, bytesAsSent)

/**
 * Texts that can't be stored: with U+0000, with half a surrogate pair, or of bytes that are no
 * UTF-8. Each such byte is read as half a pair, U+DC80 to U+DCFF, so that the bytes as sent are
 * known as long as the text is not mended.
 */
import { isUtf8 } from "node:buffer"
import { configureTextEncoding } from "@bufbuild/protobuf/wire"
import { sha256Hex } from "../../../domain/Identifiers.ts"

const BYTE_AS_HALF = 0xdc00
const HALF = /([\ud800-\udfff])/u
const BYTES_AS_HALVES = /[\udc80-\udcff]+/gu

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Bytes of the character that a byte begins, as far as that byte says it. */
const lengthAt = (byte: number): number => {
  if (byte < 0xe0) return 2
  return byte < 0xf0 ? 3 : 4
}

const escaped = (bytes: Buffer): string => {
  let text = ""
  let plain = 0
  let at = 0
  while (at < bytes.length) {
    const byte = bytes[at]!
    const length = byte < 0x80 ? 1 : lengthAt(byte)
    if (length === 1 || (at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)))) {
      at += length
      continue
    }
    text += bytes.toString("utf8", plain, at) + String.fromCharCode(BYTE_AS_HALF + byte)
    at += 1
    plain = at
  }
  return text + bytes.toString("utf8", plain)
}

/** The text of bytes, which may be no UTF-8. */
export const textOfBytes = (bytes: Uint8Array): string =>
  isUtf8(bytes) ? bufferOf(bytes).toString("utf8") : escaped(bufferOf(bytes))

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

/** The same with U+FFFD in the place of what can't be stored: one for bytes in a row. */
export const mended = (text: string): string => {
  const whole = text.isWellFormed()
    ? text
    : text.replaceAll(BYTES_AS_HALVES, "\ufffd").toWellFormed()
  if (!whole.includes("\u0000")) return whole
  // In place: replacing makes a text for each.
  const bytes = Buffer.from(whole, "utf16le")
  const units = new Uint16Array(bytes.buffer, bytes.byteOffset, whole.length)
  for (let at = units.indexOf(0); at >= 0; at = units.indexOf(0, at + 1)) units[at] = 0xfffd
  return bytes.toString("utf16le")
}

/** Bytes of half a pair: the one that was sent, or the three that UTF-8 would have for it. */
const bytesOfHalf = (half: string): Buffer => {
  const code = half.charCodeAt(0)
  return code >= 0xdc80 && code <= 0xdcff
    ? Buffer.of(code - BYTE_AS_HALF)
    : Buffer.of(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f))
}

/** SHA-256 of a text as it was sent. */
export const hashAsSent = (text: string): string =>
  sha256Hex(
    Buffer.concat(
      text
        .split(HALF)
        .map((part, index) => (index % 2 === 0 ? Buffer.from(part) : bytesOfHalf(part)))
    )
  )

/** Bytes, and their texts in hex and base64. */

export const utf8 = new TextEncoder()
const fromUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const HEX_OF_BYTE = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** Undefined for bytes that are no UTF-8. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return fromUtf8.decode(bytes)
  } catch {
    return undefined
  }
}

const nibble = (code: number): number => (code < 0x3a ? code - 0x30 : code - 0x57)

/** Write the bytes of hex digits to a place; the digits are lower-case ones. */
export const writeHex = (hex: string, bytes: Uint8Array, at: number): void => {
  for (let index = 0; 2 * index < hex.length; index++) {
    const high = nibble(hex.charCodeAt(2 * index))
    bytes[at + index] = (high << 4) | nibble(hex.charCodeAt(2 * index + 1))
  }
}

export const bytesOfHex = (hex: string): Uint8Array => {
  const bytes = new Uint8Array(hex.length / 2)
  writeHex(hex, bytes, 0)
  return bytes
}

export const hexOf = (bytes: Uint8Array): string => {
  let hex = ""
  for (let at = 0; at < bytes.length; at++) hex += HEX_OF_BYTE[bytes[at]!]
  return hex
}

export const concat = (...parts: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Undefined unless it is the one standard spelling. */
export const bytesOfBase64 = (text: string): Uint8Array<ArrayBuffer> | undefined => {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  return base64Of(bytes) === text ? bytes : undefined
}

export const base64Of = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

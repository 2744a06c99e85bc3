/** AssemblyScript. Writes bytes one after the other: texts of the program, of the request, hex. */

/** Where the next byte is written. */
export let out: usize = 0

export function writeAt(place: usize): void {
  out = place
}

const TEXTS = memory.data(1_024, 16)
const HEX_DIGITS = memory.data<u8>([
  0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66
])
let textsEnd: usize = TEXTS

/** An ASCII text of the program, kept for writeText: its length, then its bytes. */
export function ascii(text: string): usize {
  const place = textsEnd
  store<u32>(place, text.length)
  for (let index = 0; index < text.length; index++) {
    store<u8>(place + 4 + index, <u8>text.charCodeAt(index))
  }
  textsEnd = place + 4 + text.length
  return place
}

/** Copies 16 bytes at a time: up to 15 after the end are written too, and mean nothing. */
export function write(from: usize, length: usize): void {
  const to = out
  for (let at: usize = 0; at < length; at += 16) v128.store(to + at, v128.load(from + at))
  out = to + length
}

export function writeText(text: usize): void {
  write(text + 4, load<u32>(text))
}

export function writeByte(byte: u8): void {
  store<u8>(out++, byte)
}

export function hexDigit(value: u32): u8 {
  return load<u8>(HEX_DIGITS + value)
}

export function writeHex(from: usize, length: usize): void {
  let to = out
  for (let at: usize = 0; at < length; at++) {
    const byte = <u32>load<u8>(from + at)
    store<u8>(to, hexDigit(byte >> 4))
    store<u8>(to, hexDigit(byte & 15), 1)
    to += 2
  }
  out = to
}

/**
 * AssemblyScript. Reads JSON and writes it in its RFC 8785 form at the same time. A function gives
 * false for everything that it does not fully understand, JSON or not; TypeScript looks at it then.
 *
 * The byte after the request is zero, which ends every token, so that nothing is read beyond it but
 * what a vector takes along. What is written is never longer than what was read.
 */
import { ITEM_BYTES_MAX, KEY_BYTES, KEYS, KEYS_MAX, LEVELS_MAX } from "./Layout"
import { hexDigit, out, writeAt, writeByte } from "./Texts"

export const QUOTE: u8 = 0x22
export const BACKSLASH: u8 = 0x5c
export const COMMA: u8 = 0x2c
export const COLON: u8 = 0x3a
export const LEFT_BRACE: u8 = 0x7b
export const RIGHT_BRACE: u8 = 0x7d
export const LEFT_BRACKET: u8 = 0x5b
export const RIGHT_BRACKET: u8 = 0x5d
export const LINE_FEED: u8 = 0x0a
const MINUS: u8 = 0x2d
const DOT: u8 = 0x2e
const ZERO: u8 = 0x30
const LETTER_E: u8 = 0x65
const LETTER_U: u8 = 0x75
/** Four zeros: a fraction that begins so may be written with an exponent. */
const FOUR_ZEROS: u32 = 0x30303030
/** Little-endian words of the literals. */
const TRUE: u32 = 0x65757274
const ALSE: u32 = 0x65736c61
const NULL: u32 = 0x6c6c756e
/** Digits, sign and point of a number: with so few, no two texts share a double. */
const NUMBER_LENGTH_MAX: usize = 15
/** From this byte on, the order of UTF-8 is not that of UTF-16. */
const ORDER_DIFFERS: u8 = 0xee

/** The next byte to read. */
export let at: usize = 0
/** Where the item has more bytes than are read here. */
let itemLimit: usize = 0
/** True if a line feed ends the item. */
let isLine: bool = false
/** Where the key of the next object goes in the table of keys. */
let keysEnd: usize = KEYS

export function readAt(place: usize): void {
  at = place
}

export function setLines(lines: bool): void {
  isLine = lines
}

/** An item begins at the next byte. */
export function beginItem(): void {
  itemLimit = at + ITEM_BYTES_MAX
  keysEnd = KEYS
}

export function isDigit(byte: u8): bool {
  return byte - ZERO < 10
}

export function skipSpace(): void {
  while (true) {
    const byte = load<u8>(at)
    if (byte > 0x20) return
    if (byte !== 0x20 && byte !== 0x0d && byte !== 0x09 && (byte !== LINE_FEED || isLine)) return
    at++
  }
}

/** Read this byte. */
export function take(byte: u8): bool {
  if (load<u8>(at) !== byte) return false
  at++
  return true
}

/** Read this byte, and the space before and after it. */
export function takeMark(byte: u8): bool {
  skipSpace()
  if (!take(byte)) return false
  skipSpace()
  return true
}

/** The bit of each of 16 bytes that ends what a string may hold as it is. */
function endsOfPlain(bytes: v128): i32 {
  const quotes = i8x16.eq(bytes, i8x16.splat(QUOTE))
  const slashes = i8x16.eq(bytes, i8x16.splat(BACKSLASH))
  const controls = i8x16.lt_u(bytes, i8x16.splat(0x20))
  return i8x16.bitmask(v128.or(v128.or(quotes, slashes), controls))
}

/** Read a string and write its canonical form, both with their quotes. */
export function copyString(): bool {
  if (load<u8>(at) !== QUOTE) return false
  let from = at + 1
  let to = out
  store<u8>(to++, QUOTE)
  while (true) {
    while (true) {
      if (from > itemLimit) return false
      const bytes = v128.load(from)
      v128.store(to, bytes)
      const ends = endsOfPlain(bytes)
      const plain: usize = ends === 0 ? 16 : ctz(ends)
      from += plain
      to += plain
      if (ends !== 0) break
    }
    const byte = load<u8>(from)
    if (byte === QUOTE) {
      store<u8>(to, QUOTE)
      at = from + 1
      writeAt(to + 1)
      return true
    }
    if (byte !== BACKSLASH) return false
    at = from
    writeAt(to)
    if (!copyEscape()) return false
    from = at
    to = out
  }
}

function hexValue(byte: u8): i32 {
  if (isDigit(byte)) return byte - ZERO
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** The UTF-16 unit of four hex digits; negative if they are not. */
function unitAt(place: usize): i32 {
  let unit: i32 = 0
  for (let index: usize = 0; index < 4; index++) {
    const digit = hexValue(load<u8>(place + index))
    if (digit < 0) return -1
    unit = (unit << 4) | digit
  }
  return unit
}

function copyEscape(): bool {
  const letter = load<u8>(at, 1)
  if (letter === LETTER_U) return copyUnicodeEscape()
  at += 2
  if (letter === 0x2f) {
    writeByte(letter)
    return true
  }
  // " \ b f n r t
  const isKept =
    letter === QUOTE
    || letter === BACKSLASH
    || letter === 0x62
    || letter === 0x66
    || letter === 0x6e
    || letter === 0x72
    || letter === 0x74
  writeByte(BACKSLASH)
  writeByte(letter)
  return isKept
}

/** U+0000 and what is no character is not written. */
function copyUnicodeEscape(): bool {
  const unit = unitAt(at + 2)
  if (unit <= 0) return false
  at += 6
  if (unit < 0xd800 || unit > 0xdfff) {
    writeUnit(unit)
    return true
  }
  if (unit > 0xdbff || load<u8>(at) !== BACKSLASH || load<u8>(at, 1) !== LETTER_U) return false
  const low = unitAt(at + 2)
  if (low < 0xdc00 || low > 0xdfff) return false
  at += 6
  const point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
  writeByte(<u8>(0xf0 | (point >> 18)))
  writeByte(<u8>(0x80 | ((point >> 12) & 63)))
  writeByte(<u8>(0x80 | ((point >> 6) & 63)))
  writeByte(<u8>(0x80 | (point & 63)))
  return true
}

/** The letter after the backslash in the short form of a control character; 0 without one. */
function shortEscape(unit: i32): u8 {
  if (unit === 0x08) return 0x62
  if (unit === 0x09) return 0x74
  if (unit === 0x0a) return 0x6e
  if (unit === 0x0c) return 0x66
  return unit === 0x0d ? 0x72 : 0
}

/** A character of the basic plane as a canonical string has it. */
function writeUnit(unit: i32): void {
  if (unit >= 0x800) {
    writeByte(<u8>(0xe0 | (unit >> 12)))
    writeByte(<u8>(0x80 | ((unit >> 6) & 63)))
    writeByte(<u8>(0x80 | (unit & 63)))
  } else if (unit >= 0x80) {
    writeByte(<u8>(0xc0 | (unit >> 6)))
    writeByte(<u8>(0x80 | (unit & 63)))
  } else if (unit >= 0x20) {
    if (unit === QUOTE || unit === BACKSLASH) writeByte(BACKSLASH)
    writeByte(<u8>unit)
  } else {
    const letter = shortEscape(unit)
    writeByte(BACKSLASH)
    if (letter !== 0) {
      writeByte(letter)
    } else {
      writeByte(LETTER_U)
      writeByte(ZERO)
      writeByte(ZERO)
      writeByte(<u8>(ZERO + (unit >> 4)))
      writeByte(hexDigit(unit & 15))
    }
  }
}

/** A number whose text is canonical already. */
function copyNumber(): bool {
  const start = at
  if (load<u8>(at) === MINUS) at++
  const digits = at
  while (isDigit(load<u8>(at))) at++
  const whole = at - digits
  if (whole === 0) return false
  const startsWithZero = load<u8>(digits) === ZERO
  if (startsWithZero && whole > 1) return false
  const hasFraction = load<u8>(at) === DOT
  if (hasFraction) {
    const fraction = ++at
    while (isDigit(load<u8>(at))) at++
    if (at === fraction || load<u8>(at - 1) === ZERO) return false
    if (startsWithZero && load<u32>(fraction) === FOUR_ZEROS) return false
  } else if (startsWithZero && digits !== start) {
    return false
  }
  const length = at - start
  if (length > NUMBER_LENGTH_MAX || (load<u8>(at) | 0x20) === LETTER_E) return false
  v128.store(out, v128.load(start))
  writeAt(out + length)
  return true
}

function copyLiteral(): bool {
  const word = load<u32>(at)
  if (word === TRUE || word === NULL) {
    store<u32>(out, word)
    at += 4
    writeAt(out + 4)
    return true
  }
  if (load<u8>(at) !== 0x66 || load<u32>(at, 1) !== ALSE) return false
  store<u8>(out, 0x66)
  store<u32>(out, ALSE, 1)
  at += 5
  writeAt(out + 5)
  return true
}

/** Read a value and write its canonical form; `level` containers are open. */
export function copyValue(level: u32): bool {
  const byte = load<u8>(at)
  if (byte === QUOTE) return copyString()
  if (byte === LEFT_BRACE) return level < LEVELS_MAX && copyObject(level + 1)
  if (byte === LEFT_BRACKET) return level < LEVELS_MAX && copyArray(level + 1)
  if (byte === MINUS || isDigit(byte)) return at <= itemLimit && copyNumber()
  return at <= itemLimit && copyLiteral()
}

function copyArray(level: u32): bool {
  at++
  writeByte(LEFT_BRACKET)
  skipSpace()
  if (take(RIGHT_BRACKET)) {
    writeByte(RIGHT_BRACKET)
    return at <= itemLimit
  }
  while (true) {
    if (!copyValue(level)) return false
    skipSpace()
    if (take(RIGHT_BRACKET)) break
    if (!take(COMMA)) return false
    writeByte(COMMA)
    skipSpace()
  }
  writeByte(RIGHT_BRACKET)
  return at <= itemLimit
}

/** The order of two keys of the table. */
function compareKeys(one: usize, other: usize): i32 {
  const oneKey = <usize>load<u32>(one)
  const otherKey = <usize>load<u32>(other)
  const oneLength = load<u32>(one, 4)
  const otherLength = load<u32>(other, 4)
  const length = min(oneLength, otherLength)
  for (let index: u32 = 0; index < length; index++) {
    const order = <i32>load<u8>(oneKey + index) - <i32>load<u8>(otherKey + index)
    if (order !== 0) return order
  }
  return <i32>oneLength - <i32>otherLength
}

/** Read a key, without escapes and of characters that sort the same in UTF-8 and UTF-16. */
function copyKey(entry: usize): bool {
  const start = out + 1
  if (!copyString()) return false
  const length = out - 1 - start
  for (let index: usize = 0; index < length; index++) {
    const byte = load<u8>(start + index)
    if (byte === BACKSLASH || byte >= ORDER_DIFFERS) return false
  }
  store<u32>(entry, <u32>start)
  store<u32>(entry, <u32>length, 4)
  return true
}

function copyObject(level: u32): bool {
  at++
  const start = out
  writeByte(LEFT_BRACE)
  skipSpace()
  if (take(RIGHT_BRACE)) {
    writeByte(RIGHT_BRACE)
    return at <= itemLimit
  }
  const table = keysEnd
  const last = table + (KEYS_MAX - 1) * KEY_BYTES
  let entry = table
  let isSorted = true
  while (true) {
    if (!copyKey(entry)) return false
    if (entry > table && isSorted) {
      const order = compareKeys(entry - KEY_BYTES, entry)
      if (order === 0) return false
      isSorted = order < 0
    }
    keysEnd = entry + KEY_BYTES
    if (!takeMark(COLON)) return false
    writeByte(COLON)
    if (!copyValue(level)) return false
    store<u32>(entry, <u32>out, 8)
    skipSpace()
    if (take(RIGHT_BRACE)) break
    if (!take(COMMA) || entry === last) return false
    writeByte(COMMA)
    skipSpace()
    entry += KEY_BYTES
  }
  if (!isSorted && !sortMembers(start + 1, table, entry)) return false
  keysEnd = table
  writeByte(RIGHT_BRACE)
  return at <= itemLimit
}

/** Sort the table of keys from `first` to `last`; false if a key is there twice. */
function sortKeys(first: usize, last: usize): bool {
  const moved = last + KEY_BYTES
  for (let entry = first + KEY_BYTES; entry <= last; entry += KEY_BYTES) {
    memory.copy(moved, entry, KEY_BYTES)
    let place = entry
    while (place > first) {
      const order = compareKeys(place - KEY_BYTES, moved)
      if (order === 0) return false
      if (order < 0) break
      memory.copy(place, place - KEY_BYTES, KEY_BYTES)
      place -= KEY_BYTES
    }
    memory.copy(place, moved, KEY_BYTES)
  }
  return true
}

/** Write the members that begin at `start` in the order of their keys. */
function sortMembers(start: usize, first: usize, last: usize): bool {
  if (!sortKeys(first, last)) return false
  const length = out - start
  const copy = out + 16
  memory.copy(copy, start, length)
  writeAt(start)
  for (let entry = first; entry <= last; entry += KEY_BYTES) {
    if (entry > first) writeByte(COMMA)
    const member = <usize>load<u32>(entry) - 1
    const bytes = <usize>load<u32>(entry, 8) - member
    memory.copy(out, copy + (member - start), bytes)
    writeAt(out + bytes)
  }
  return true
}

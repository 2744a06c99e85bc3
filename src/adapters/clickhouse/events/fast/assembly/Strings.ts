/**
 * AssemblyScript. Reads JSON strings and objects, as EventSplit.ts does. The places that are given
 * may be behind the end of the row: the row is done only if its last part ends where it ends.
 */
import { FIELDS, STRING_BYTES, STRINGS, STRINGS_MAX } from "./Layout"
import { NOT } from "./Marks"

export const QUOTE: u8 = 0x22
export const BACKSLASH: u8 = 0x5c
export const LETTER_U: u8 = 0x75
const SPACE: u8 = 0x20
const COLON: u8 = 0x3a
const LEFT_BRACE: u8 = 0x7b
const RIGHT_BRACE: u8 = 0x7d
const LEFT_BRACKET: u8 = 0x5b
const RIGHT_BRACKET: u8 = 0x5d
/** "00" in front of the two digits of an escape. */
const TWO_ZEROS: u16 = 0x3030
/** What an escape is longer than the one byte that it means. */
const SHORT_SURPLUS: usize = 1
const LONG_SURPLUS: usize = 5

/** Bytes that go when the escapes of the string that was read are resolved. */
let surplus: usize = 0
/** Strings in the metadata of the row, keys aside. */
export let strings: u32 = 0
let rowEnd: usize = 0

/** A row that ends there is read next. */
export function beginRow(end: usize): void {
  rowEnd = end
  strings = 0
}

/** The bit of each of 16 bytes that ends what a string may hold as it is. */
function endsOfPlain(bytes: v128): i32 {
  const quotes = i8x16.eq(bytes, i8x16.splat(QUOTE))
  const slashes = i8x16.eq(bytes, i8x16.splat(BACKSLASH))
  const controls = i8x16.lt_u(bytes, i8x16.splat(SPACE))
  return i8x16.bitmask(v128.or(v128.or(quotes, slashes), controls))
}

/** Of a lower-case hex digit; 16 for another byte. */
export function hexValue(digit: u8): u32 {
  if (digit - 0x30 < 10) return digit - 0x30
  return digit - 0x61 < 6 ? digit - 0x57 : 16
}

/** Where reading goes on after the backslash at `at`; NOT if its escape isn't understood. */
function escapeEnd(at: usize, isText: bool): usize {
  const escaped = load<u8>(at, 1)
  if (escaped === QUOTE || escaped === BACKSLASH) {
    surplus += SHORT_SURPLUS
    return at + 2
  }
  if (!isText) return NOT
  if (escaped === LETTER_U) {
    // From U+0080 on, a character has more than one byte.
    const isAscii = load<u16>(at, 2) === TWO_ZEROS && hexValue(load<u8>(at, 4)) < 8
    if (!isAscii || hexValue(load<u8>(at, 5)) > 15) return NOT
    surplus += LONG_SURPLUS
    return at + 6
  }
  // b, f, n, r, t.
  if (
    escaped !== 0x62
    && escaped !== 0x66
    && escaped !== 0x6e
    && escaped !== 0x72
    && escaped !== 0x74
  ) {
    return NOT
  }
  surplus += SHORT_SURPLUS
  return at + 2
}

/** The closing quotation mark of the string whose first character is at `from`. */
function stringEnd(from: usize, isText: bool): usize {
  surplus = 0
  let at = from
  while (at < rowEnd) {
    const ends = endsOfPlain(v128.load(at))
    if (ends === 0) {
      at += 16
      continue
    }
    at += ctz(ends)
    const byte = load<u8>(at)
    if (byte === QUOTE) return at
    if (byte !== BACKSLASH) return NOT
    at = escapeEnd(at, isText)
    if (at === NOT) return NOT
  }
  return NOT
}

function note(place: usize, from: usize, end: usize): void {
  store<u32>(place, <u32>from)
  store<u32>(place, <u32>end, 4)
  store<u32>(place, <u32>surplus, 8)
}

/** Reads the string of a field from behind its opening mark; where reading goes on behind it. */
function readString(field: u32, from: usize, isText: bool): usize {
  if (from === NOT) return NOT
  const end = stringEnd(from, isText)
  if (end === NOT) return NOT
  note(FIELDS + field * STRING_BYTES, from, end)
  return end + 1
}

/** A string that a column holds without its escapes: of quotation marks and backslashes only. */
export function readPlain(field: u32, from: usize): usize {
  return readString(field, from, false)
}

/** A string of which a column holds the JSON text. */
export function readText(field: u32, from: usize): usize {
  return readString(field, from, true)
}

/** The row has no such field. */
export function omit(field: u32): void {
  surplus = 0
  note(FIELDS + field * STRING_BYTES, 0, 0)
}

/** Where the object whose opening brace is before `from` ends; notes the strings in it. */
export function objectEnd(from: usize): usize {
  let depth = 1
  for (let at = from; at < rowEnd; at++) {
    const byte = load<u8>(at)
    if (byte === QUOTE) {
      const end = stringEnd(at + 1, true)
      if (end === NOT) return NOT
      if (load<u8>(end, 1) !== COLON) {
        if (strings === STRINGS_MAX) return NOT
        note(STRINGS + strings++ * STRING_BYTES, at + 1, end)
      }
      at = end
    } else if (byte === LEFT_BRACE || byte === LEFT_BRACKET) {
      depth++
    } else if (byte === RIGHT_BRACE || byte === RIGHT_BRACKET) {
      depth--
      if (depth === 0) return at + 1
    } else if (byte < SPACE) {
      return NOT
    }
  }
  return NOT
}

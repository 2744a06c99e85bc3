/** AssemblyScript. Writes the columns of a block in ClickHouse's Native format. */
import { COLUMN_BYTES, COLUMNS, COLUMNS_COUNT, FIELDS, STRING_BYTES, STRINGS } from "./Layout"
import { BACKSLASH, hexValue, LETTER_U, strings } from "./Strings"

/** Before each string in `search` but the first. */
const SEPARATOR: u8 = 0

/** Forget what was written. */
export function clearColumns(): void {
  for (let column: u32 = 0; column < COLUMNS_COUNT; column++) {
    const place = COLUMNS + column * COLUMN_BYTES
    store<u32>(place, load<u32>(place), 4)
  }
}

/** Where the next value of a column goes. */
export function endOf(column: u32): usize {
  return load<u32>(COLUMNS + column * COLUMN_BYTES, 4)
}

export function setEnd(column: u32, end: usize): void {
  store<u32>(COLUMNS + column * COLUMN_BYTES, <u32>end, 4)
}

export function addNumber(column: u32, value: i64): void {
  const to = endOf(column)
  store<i64>(to, value)
  setEnd(column, to + 8)
}

/** Copies 16 bytes at a time: up to 15 after the end are written too, and mean nothing. */
function copy(to: usize, from: usize, length: usize): usize {
  for (let at: usize = 0; at < length; at += 16) v128.store(to + at, v128.load(from + at))
  return to + length
}

/** Seven bits a byte, the lowest first. */
function writeLength(at: usize, length: usize): usize {
  let to = at
  let left = length
  while (left >= 128) {
    store<u8>(to++, <u8>(left | 128))
    left >>= 7
  }
  store<u8>(to, <u8>left)
  return to + 1
}

/** The byte that a letter after a backslash means. */
function meaning(escaped: u8): u8 {
  if (escaped === 0x62) return 0x08
  if (escaped === 0x66) return 0x0c
  if (escaped === 0x6e) return 0x0a
  if (escaped === 0x72) return 0x0d
  return escaped === 0x74 ? 0x09 : escaped
}

/** Copies a string whose place is noted, its escapes resolved. */
function copyString(to: usize, place: usize): usize {
  const from = <usize>load<u32>(place)
  const end = <usize>load<u32>(place, 4)
  if (load<u32>(place, 8) === 0) return copy(to, from, end - from)
  let next = to
  for (let at = from; at < end; at++) {
    let byte = load<u8>(at)
    if (byte === BACKSLASH) {
      const escaped = load<u8>(++at)
      if (escaped === LETTER_U) {
        byte = <u8>((hexValue(load<u8>(at, 3)) << 4) | hexValue(load<u8>(at, 4)))
        at += 4
      } else {
        byte = meaning(escaped)
      }
    }
    store<u8>(next++, byte)
  }
  return next
}

/** Bytes of a string whose place is noted, its escapes resolved. */
function lengthOf(place: usize): usize {
  return load<u32>(place, 4) - load<u32>(place) - load<u32>(place, 8)
}

/** The bytes as they are. */
export function addBytes(column: u32, from: usize, length: usize): void {
  setEnd(column, copy(writeLength(endOf(column), length), from, length))
}

export function addPlain(column: u32, field: u32): void {
  const place = FIELDS + field * STRING_BYTES
  setEnd(column, copyString(writeLength(endOf(column), lengthOf(place)), place))
}

/** The string as JSON; nothing if the row has no such field. */
export function addText(column: u32, field: u32): void {
  const place = FIELDS + field * STRING_BYTES
  const from = <usize>load<u32>(place)
  const end = <usize>load<u32>(place, 4)
  if (from === 0) addBytes(column, from, 0)
  else addBytes(column, from - 1, end - from + 2)
}

/** The first `fields` fields and the strings of the metadata, as one string to search in. */
export function addSearch(column: u32, fields: u32): void {
  let length: usize = fields - 1 + strings
  for (let field: u32 = 0; field < fields; field++)
    length += lengthOf(FIELDS + field * STRING_BYTES)
  for (let index: u32 = 0; index < strings; index++) {
    length += lengthOf(STRINGS + index * STRING_BYTES)
  }
  let to = writeLength(endOf(column), length)
  to = copyString(to, FIELDS)
  for (let field: u32 = 1; field < fields; field++) {
    store<u8>(to, SEPARATOR)
    to = copyString(to + 1, FIELDS + field * STRING_BYTES)
  }
  for (let index: u32 = 0; index < strings; index++) {
    store<u8>(to, SEPARATOR)
    to = copyString(to + 1, STRINGS + index * STRING_BYTES)
  }
  setEnd(column, to)
}

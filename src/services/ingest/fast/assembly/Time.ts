/** AssemblyScript. Times in UTC: `2026-11-21T10:00:01Z`, with 1 to 9 digits of a fraction or none. */
import { isDigit } from "./Json"
import { write, writeByte } from "./Texts"

const YEAR_MIN: u32 = 1_970
const YEAR_MAX: u32 = 2_261
const FRACTION_AT: usize = 19
const LENGTH_MIN: usize = 20
const LENGTH_MAX: usize = 35
const FRACTION_DIGITS_MAX: usize = 9
const MICROSECOND_DIGITS: usize = 6
const ZERO: u8 = 0x30
const HYPHEN: u8 = 0x2d
const COLON: u8 = 0x3a
const DOT: u8 = 0x2e
const TIME_MARK: u8 = 0x54
const UTC: u8 = 0x5a
const PLUS: u8 = 0x2b
/** Bytes of `+00:00`. */
const OFFSET_LENGTH: usize = 6
/** "00:0" in little-endian order. */
const NO_OFFSET: u32 = 0x303a3030

/** The number that two digits write; 100 or more if they are not. */
function twoDigits(at: usize): u32 {
  const tens = load<u8>(at)
  const ones = load<u8>(at, 1)
  if (!isDigit(tens) || !isDigit(ones)) return 100
  return <u32>(tens - ZERO) * 10 + <u32>(ones - ZERO)
}

function daysOf(year: u32, month: u32): u32 {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function isDate(at: usize): bool {
  const century = twoDigits(at)
  const rest = twoDigits(at + 2)
  const month = twoDigits(at + 5)
  const day = twoDigits(at + 8)
  if (century > 99 || rest > 99 || load<u8>(at, 4) !== HYPHEN || load<u8>(at, 7) !== HYPHEN) {
    return false
  }
  const year = century * 100 + rest
  if (year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12) return false
  return day >= 1 && day <= daysOf(year, month)
}

function isTimeOfDay(at: usize): bool {
  return (
    load<u8>(at) === TIME_MARK
    && twoDigits(at + 1) <= 23
    && load<u8>(at, 3) === COLON
    && twoDigits(at + 4) <= 59
    && load<u8>(at, 6) === COLON
    && twoDigits(at + 7) <= 59
  )
}

/** Bytes of the text before `Z` or `+00:00`; 0 if it ends with neither. */
function lengthOfLocal(at: usize, length: usize): usize {
  if (load<u8>(at + length - 1) === UTC) return length - 1
  const offset = at + length - OFFSET_LENGTH
  if (load<u8>(offset) !== PLUS || load<u32>(offset, 1) !== NO_OFFSET) return 0
  return load<u8>(offset, 5) === ZERO ? length - OFFSET_LENGTH : 0
}

export function isTimestamp(at: usize, length: usize): bool {
  if (length < LENGTH_MIN || length > LENGTH_MAX) return false
  const end = lengthOfLocal(at, length)
  if (end < FRACTION_AT || !isDate(at) || !isTimeOfDay(at + 10)) return false
  if (end === FRACTION_AT) return true
  const digits = end - FRACTION_AT - 1
  if (load<u8>(at + FRACTION_AT) !== DOT || digits < 1 || digits > FRACTION_DIGITS_MAX) return false
  for (let digit = at + FRACTION_AT + 1; digit < at + end; digit++) {
    if (!isDigit(load<u8>(digit))) return false
  }
  return true
}

/** Write a time in the form that is stored: six digits of the fraction, `Z`. */
export function writeTimestamp(at: usize, length: usize): void {
  write(at, FRACTION_AT)
  writeByte(DOT)
  const digits = lengthOfLocal(at, length) - FRACTION_AT
  const given: usize = digits === 0 ? 0 : min(digits - 1, MICROSECOND_DIGITS)
  for (let index: usize = 0; index < MICROSECOND_DIGITS; index++) {
    writeByte(index < given ? load<u8>(at + FRACTION_AT + 1 + index) : ZERO)
  }
  writeByte(UTC)
}

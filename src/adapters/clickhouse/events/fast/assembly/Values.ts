/** AssemblyScript. Reads times, numbers and hex digits into what their columns hold. */
import { NOT } from "./Marks"

const ZERO: u8 = 0x30
const TIME_LENGTH: usize = 27
/** A double holds every integer of so many digits. */
const SEQUENCE_DIGITS_MAX: usize = 15
const YEAR_MIN: i32 = 1900
const YEAR_MAX: i32 = 2261

/** What was read last: microseconds since 1970. */
export let time: i64 = 0
/** What was read last. */
export let sequenceNumber: i64 = 0

/** The lowest bytes of "0000-00-00T00:00" and "00:00:00.000000Z", and how much is allowed above. */
const DATE = i8x16(48, 48, 48, 48, 45, 48, 48, 45, 48, 48, 84, 48, 48, 58, 48, 48)
const DATE_RANGE = i8x16(9, 9, 9, 9, 0, 9, 9, 0, 9, 9, 0, 9, 9, 0, 9, 9)
const CLOCK = i8x16(48, 48, 58, 48, 48, 58, 48, 48, 46, 48, 48, 48, 48, 48, 48, 90)
const CLOCK_RANGE = i8x16(9, 9, 0, 9, 9, 0, 9, 9, 0, 9, 9, 9, 9, 9, 9, 0)

function hasForm(bytes: v128, lowest: v128, range: v128): bool {
  return i8x16.all_true(i8x16.le_u(i8x16.sub(bytes, lowest), range))
}

/** The number of two digits. */
function two(at: usize): i32 {
  return <i32>(load<u8>(at) - ZERO) * 10 + <i32>(load<u8>(at, 1) - ZERO)
}

function daysOf(year: i32, month: i32): i32 {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days from 1970-01-01 to a day, whose parts are in their ranges. */
function daysTo(year: i32, month: i32, day: i32): i32 {
  // Years that begin in March, so that the day that leap years add is their last one.
  const shifted = month <= 2 ? year - 1 : year
  const era = shifted / 400
  const yearOfEra = shifted - era * 400
  const dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
  return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
}

/** Reads a time in canonical microsecond form into `time`; where reading goes on. */
export function readTime(at: usize): usize {
  if (at === NOT) return NOT
  if (!hasForm(v128.load(at), DATE, DATE_RANGE)) return NOT
  if (!hasForm(v128.load(at, 11), CLOCK, CLOCK_RANGE)) return NOT
  const year = two(at) * 100 + two(at + 2)
  const month = two(at + 5)
  const day = two(at + 8)
  if (year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12) return NOT
  if (day < 1 || day > daysOf(year, month)) return NOT
  const hour = two(at + 11)
  const minute = two(at + 14)
  const second = two(at + 17)
  if (hour > 23 || minute > 59 || second > 59) return NOT
  const micros = two(at + 20) * 10_000 + two(at + 22) * 100 + two(at + 24)
  const seconds = <i64>daysTo(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
  time = seconds * 1_000_000 + micros
  return at + TIME_LENGTH
}

/** Reads an integer without needless zeros into `sequenceNumber`; where reading goes on. */
export function readSequence(from: usize): usize {
  if (from === NOT) return NOT
  let value: i64 = 0
  let at = from
  while (load<u8>(at) - ZERO < 10 && at - from <= SEQUENCE_DIGITS_MAX) {
    value = value * 10 + (load<u8>(at) - ZERO)
    at++
  }
  const count = at - from
  if (count === 0 || count > SEQUENCE_DIGITS_MAX) return NOT
  if (load<u8>(from) === ZERO && count > 1) return NOT
  sequenceNumber = value
  return at
}

/** The value of each of 16 lower-case hex digits; other bytes set the highest bit. */
function nibbles(bytes: v128): v128 {
  const digits = i8x16.sub(bytes, i8x16.splat(0x30))
  const letters = i8x16.sub(bytes, i8x16.splat(0x57))
  const areDigits = i8x16.lt_u(digits, i8x16.splat(10))
  const areLetters = i8x16.lt_u(i8x16.sub(bytes, i8x16.splat(0x61)), i8x16.splat(6))
  const values = v128.bitselect(letters, digits, areLetters)
  const others = v128.not(v128.or(areDigits, areLetters))
  return v128.or(values, v128.and(others, i8x16.splat(-128)))
}

/** Pairs of nibbles as 16-bit lanes that hold a byte each. */
function joined(values: v128): v128 {
  const high = i16x8.shl(v128.and(values, i16x8.splat(0x0f)), 4)
  return v128.or(high, i16x8.shr_u(values, 8))
}

/** Writes the 16 bytes of 32 lower-case hex digits; where reading goes on. */
export function readHex(from: usize, to: usize): usize {
  if (from === NOT) return NOT
  const first = nibbles(v128.load(from))
  const second = nibbles(v128.load(from, 16))
  if (i8x16.bitmask(v128.or(first, second)) !== 0) return NOT
  v128.store(to, i8x16.narrow_i16x8_u(joined(first), joined(second)))
  return from + 32
}

/** Writes the 32 bytes of 64 lower-case hex digits; where reading goes on. */
export function readHash(from: usize, to: usize): usize {
  return readHex(readHex(from, to), to + 16)
}

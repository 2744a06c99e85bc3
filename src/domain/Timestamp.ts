/**
 * Points in time as alk writes them: `YYYY-MM-DDTHH:MM:SS.ffffffZ`, UTC with microseconds, so that
 * texts sort as times do. Reads every RFC 3339 form of the supported years and refuses to guess at
 * the rest.
 */

/** Years that the service supports; 64-bit nanoseconds end in 2262. */
export const YEAR_MIN = 1970
export const YEAR_MAX = 2261

/** The whole supported history: what bounds mean when they are left out. */
export const HISTORY_FROM = "1970-01-01T00:00:00.000000Z"
export const HISTORY_TO = "2261-12-31T23:59:59.999999Z"

const FORM = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:\d\d)$/

/** Positions of the parts of that form; the offset is counted from the end. */
const MONTH_AT = 5
const DAY_AT = 8
const TIME_MARK_AT = 10
const HOUR_AT = 11
const MINUTE_AT = 14
const SECOND_AT = 17
const FRACTION_AT = 19
const OFFSET_LENGTH = 6
/** Characters of the canonical form. */
const CANONICAL_LENGTH = 27

const numberAt = (text: string, at: number, digits: number): number => {
  let value = 0
  for (let index = at; index < at + digits; index++) {
    value = value * 10 + text.charCodeAt(index) - 0x30
  }
  return value
}

const DAYS_OF_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const isLeapYear = (year: number): boolean =>
  year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const isDate = (year: number, month: number, day: number): boolean => {
  if (month < 1 || month > 12 || day < 1) return false
  return day <= DAYS_OF_MONTH[month - 1]! + (month === 2 && isLeapYear(year) ? 1 : 0)
}

const pad = (value: number, width: number): string => String(value).padStart(width, "0")

const isSupportedYear = (year: number): boolean => year >= YEAR_MIN && year <= YEAR_MAX

/** Six digits of the fraction, which ends at `end`; what is missing is 0, what is more is cut. */
const microsText = (text: string, end: number): string =>
  text.slice(FRACTION_AT + 1, Math.min(end, FRACTION_AT + 7)).padEnd(6, "0")

const withOffset = (text: string): string | undefined => {
  const start = text.length - OFFSET_LENGTH
  const hours = numberAt(text, start + 1, 2)
  const minutes = numberAt(text, start + 4, 2)
  if (hours > 23 || minutes > 59) return undefined
  const offset = (hours * 60 + minutes) * (text[start] === "-" ? -1 : 1)
  const local = Date.parse(`${text.slice(0, TIME_MARK_AT)}T${text.slice(HOUR_AT, FRACTION_AT)}Z`)
  const utc = new Date(local - offset * 60_000).toISOString()
  // Years before 0 and after 9999 have a sign and two more digits there, so they are out too.
  if (!isSupportedYear(Number(utc.slice(0, 4)))) return undefined
  return `${utc.slice(0, FRACTION_AT)}.${microsText(text, start)}Z`
}

/**
 * The canonical form of an RFC 3339 date-time: offset converted to UTC, fractions cut to
 * microseconds. Undefined for anything else, second 60, dates that don't exist and years outside
 * YEAR_MIN to YEAR_MAX after the conversion.
 */
export const parseTimestamp = (text: string): string | undefined => {
  if (!FORM.test(text)) return undefined
  const year = numberAt(text, 0, 4)
  if (!isDate(year, numberAt(text, MONTH_AT, 2), numberAt(text, DAY_AT, 2))) return undefined
  if (numberAt(text, HOUR_AT, 2) > 23 || numberAt(text, MINUTE_AT, 2) > 59) return undefined
  if (numberAt(text, SECOND_AT, 2) > 59) return undefined
  const last = text[text.length - 1]
  if (last !== "Z" && last !== "z") return withOffset(text)
  if (!isSupportedYear(year)) return undefined
  const isCanonical = text.length === CANONICAL_LENGTH && last === "Z" && text[TIME_MARK_AT] === "T"
  return isCanonical
    ? text
    : `${text.slice(0, TIME_MARK_AT)}T${text.slice(HOUR_AT, FRACTION_AT)}`
        + `.${microsText(text, text.length - 1)}Z`
}

/** Microseconds since the epoch (an integer; a bigint is not negative) in canonical form. */
export const formatMicros = (micros: bigint | number): string => {
  const milliseconds =
    typeof micros === "bigint" ? Number(micros / 1000n) : Math.floor(micros / 1000)
  const rest = typeof micros === "bigint" ? Number(micros % 1000n) : micros - milliseconds * 1000
  return `${new Date(milliseconds).toISOString().slice(0, -1)}${pad(rest, 3)}Z`
}

/**
 * Microseconds since the epoch of a canonical text. Exact up to the year 2255, where a double has
 * no room for single microseconds any more; beyond that within one.
 */
export const microsOf = (canonical: string): number =>
  Date.parse(`${canonical.slice(0, 23)}Z`) * 1000 + Number(canonical.slice(23, 26))

/** Milliseconds that the fine clock may stray from the wall clock before it is set anew. */
const DRIFT_MS_MAX = 2

let anchorMicros = Number.NaN
let anchorFine = 0

/** The wall clock, microseconds since the epoch; follows it when it is set forward or back. */
export const nowMicros = (): number => {
  const fine = performance.now()
  const wall = Date.now()
  const micros = Math.floor(anchorMicros + (fine - anchorFine) * 1000)
  if (Math.abs(micros / 1000 - wall) <= DRIFT_MS_MAX) return micros
  anchorMicros = wall * 1000
  anchorFine = fine
  return anchorMicros
}

/** Now, in the canonical form. */
export const currentTime = (): string => formatMicros(nowMicros())

/**
 * Points in time as alk writes them: `YYYY-MM-DDTHH:MM:SS.ffffffZ`, UTC with microseconds, so that
 * texts sort as times do. Reads every RFC 3339 form of the supported years and refuses to guess at
 * the rest.
 */

/** Years that the service supports; 64-bit nanoseconds end in 2262. */
export const YEAR_MIN = 1970
export const YEAR_MAX = 2261

const FORM =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([-+])(\d\d):(\d\d))$/

const DAYS_OF_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const isLeapYear = (year: number): boolean =>
  year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const isDate = (year: number, month: number, day: number): boolean => {
  if (month < 1 || month > 12 || day < 1) return false
  return day <= DAYS_OF_MONTH[month - 1]! + (month === 2 && isLeapYear(year) ? 1 : 0)
}

const pad = (value: number, width: number): string => String(value).padStart(width, "0")

/** Whole seconds since the epoch as `YYYY-MM-DDTHH:MM:SS`. */
const formatSeconds = (milliseconds: number): string =>
  new Date(milliseconds).toISOString().slice(0, 19)

/**
 * The canonical form of an RFC 3339 date-time: offset converted to UTC, fractions cut to
 * microseconds. Undefined for anything else, second 60, dates that don't exist and years outside
 * YEAR_MIN to YEAR_MAX after the conversion.
 */
export const parseTimestamp = (text: string): string | undefined => {
  const match = FORM.exec(text)
  if (match === null) return undefined
  const year = Number(match[1])
  const month = Number(match[2])
  const hour = Number(match[4])
  const minute = Number(match[5])
  if (!isDate(year, month, Number(match[3]))) return undefined
  if (hour > 23 || minute > 59 || Number(match[6]) > 59) return undefined
  const micros = (match[7] ?? "").slice(0, 6).padEnd(6, "0")
  if (match[8] === undefined) {
    if (year < YEAR_MIN || year > YEAR_MAX) return undefined
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${micros}Z`
  }
  const offsetHour = Number(match[9])
  const offsetMinute = Number(match[10])
  if (offsetHour > 23 || offsetMinute > 59) return undefined
  const offset = (offsetHour * 60 + offsetMinute) * (match[8] === "-" ? -1 : 1)
  const local = Date.parse(`${text.slice(0, 10)}T${text.slice(11, 19)}Z`)
  const utc = formatSeconds(local - offset * 60_000)
  const utcYear = Number(utc.slice(0, 4))
  if (!(utcYear >= YEAR_MIN && utcYear <= YEAR_MAX)) return undefined
  return `${utc}.${micros}Z`
}

/** Microseconds since the epoch (an integer, not negative) in canonical form. */
export const formatMicros = (micros: bigint | number): string => {
  const milliseconds =
    typeof micros === "bigint" ? Number(micros / 1000n) : Math.floor(micros / 1000)
  const rest = typeof micros === "bigint" ? Number(micros % 1000n) : micros % 1000
  return `${new Date(milliseconds).toISOString().slice(0, -1)}${pad(rest, 3)}Z`
}

/**
 * Microseconds since the epoch of a canonical text. Exact up to the year 2255, where a double has no
 * room for single microseconds any more; beyond that within one.
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

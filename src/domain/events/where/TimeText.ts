/** Times as people write them: a moment, a day, or so long before or after now. */
import { formatMicros, microsOf, parseTimestamp } from "../../Timestamp.ts"

/** Both ends included, in canonical microsecond form; of a moment they are the same. */
export interface TimeSpan {
  readonly first: string
  readonly last: string
}

const DATE = /^\d{4}-\d{2}-\d{2}$/
const FROM_NOW = /^(?:now)?([+-])(\d{1,6})(s|m|h|d|w)$/
const SECOND = 1_000_000
const UNITS = {
  s: SECOND,
  m: 60 * SECOND,
  h: 3_600 * SECOND,
  d: 86_400 * SECOND,
  w: 604_800 * SECOND
}

/**
 * `2026-11-21T10:00:00Z`, `2026-11-21` (the day in UTC), `now`, `-24h`, `+30m`; units are s, m, h, d
 * and w. Undefined if it has another form, or is beyond the years that are supported.
 */
export const timeSpanOf = (text: string, now: string): TimeSpan | undefined => {
  if (DATE.test(text)) {
    const first = parseTimestamp(`${text}T00:00:00Z`)
    return first === undefined ? undefined : { first, last: `${text}T23:59:59.999999Z` }
  }
  const moment = momentFromNow(text, now) ?? parseTimestamp(text)
  return moment === undefined ? undefined : { first: moment, last: moment }
}

/** The moment that `now` or so long from now means; undefined for every other text. */
export const momentFromNow = (text: string, now: string): string | undefined => {
  if (text === "now") return now
  const [, direction, count, unit] = FROM_NOW.exec(text) ?? []
  if (unit === undefined) return undefined
  const micros = Number(count) * UNITS[unit as keyof typeof UNITS]
  const at = microsOf(now) + (direction === "-" ? -micros : micros)
  if (at < 0 || !Number.isSafeInteger(at)) return undefined
  return parseTimestamp(formatMicros(at))
}

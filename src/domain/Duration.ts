/** How long something took, as the console and reports say it. Pure. */

/** Halves round up. Whole numbers in and out, so that no binary fraction decides. */
const roundedTo = (value: number, unit: number): number =>
  Math.floor((value + unit / 2) / unit) * unit

const grouped = new Intl.NumberFormat("en-US")

const MILLISECOND = 1_000
const SECOND = 1_000 * MILLISECOND
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Up to `below` microseconds: rounded to `step`, said in `unit` with so many decimals. */
const decimals = [
  { below: MILLISECOND, step: 1, unit: 1, name: "µs", places: 0 },
  { below: 10 * MILLISECOND, step: 100, unit: MILLISECOND, name: "ms", places: 1 },
  { below: SECOND, step: MILLISECOND, unit: MILLISECOND, name: "ms", places: 0 },
  { below: 10 * SECOND, step: 10 * MILLISECOND, unit: SECOND, name: "s", places: 2 },
  { below: MINUTE, step: 100 * MILLISECOND, unit: SECOND, name: "s", places: 1 }
] as const

/** From `from` microseconds on: the two units that it is said in. */
const pairs = [
  { from: DAY, unit: DAY, name: "d", smaller: HOUR, smallerName: "h" },
  { from: HOUR, unit: HOUR, name: "h", smaller: MINUTE, smallerName: "min" },
  { from: 0, unit: MINUTE, name: "min", smaller: SECOND, smallerName: "s" }
] as const

/** Microseconds as `950 µs`, `4.2 ms`, `470 ms`, `1.25 s`, `12.5 s`, `2 min 5 s` or `2 d 4 h`. */
export const duration = (microseconds: number): string => {
  for (const { below, name, places, step, unit } of decimals) {
    const rounded = roundedTo(microseconds, step)
    if (rounded < below) return `${(rounded / unit).toFixed(places)} ${name}`
  }
  const { name, smaller, smallerName, unit } = pairs.find(
    (pair) => roundedTo(microseconds, pair.smaller) >= pair.from
  )!
  const rounded = roundedTo(microseconds, smaller)
  const rest = Math.floor((rounded % unit) / smaller)
  const whole = grouped.format(Math.floor(rounded / unit))
  return `${whole} ${name}${rest === 0 ? "" : ` ${rest} ${smallerName}`}`
}

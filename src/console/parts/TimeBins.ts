/** Counts by time gathered into so many bars as a picture has room for. Pure. */

export const units = ["minute", "hour", "day"] as const
export type Unit = (typeof units)[number]

const UNIT_MS: Readonly<Record<Unit, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000
}

const BARS_MAX = 100
const MULTIPLES: Readonly<Record<Unit, ReadonlyArray<number>>> = {
  minute: [1, 2, 5, 10, 15, 30],
  hour: [1, 2, 3, 6, 12],
  day: [1, 7, 14, 28, 91, 364, 3_640]
}

/** The unit that a span of milliseconds is counted by. */
export const unitOf = (spanMs: number): Unit =>
  spanMs <= 180 * UNIT_MS.minute ? "minute" : spanMs <= 8 * UNIT_MS.day ? "hour" : "day"

export interface Count {
  /** RFC 3339. */
  readonly start: string
  readonly key: string
  readonly count: number
}

export interface Bin {
  /** Milliseconds since 1970; `to` is the first that is not in it. */
  readonly from: number
  readonly to: number
  readonly counts: Readonly<Record<string, number>>
  readonly total: number
}

/** Bars of equal length over the span and all counts, those without events too. */
export const binsOf = (
  counts: ReadonlyArray<Count>,
  unit: Unit,
  span: { readonly from: number | undefined; readonly to: number | undefined }
): ReadonlyArray<Bin> => {
  const starts = counts.map(({ start }) => Date.parse(start))
  const first = Math.min(span.from ?? Infinity, ...starts)
  const last = Math.max(span.to ?? -Infinity, ...starts)
  if (!Number.isFinite(first) || !Number.isFinite(last)) return []
  const unitMs = UNIT_MS[unit]
  const begin = Math.floor(first / unitMs) * unitMs
  const wanted = (last - begin + 1) / unitMs / BARS_MAX
  const multiple = MULTIPLES[unit].find((one) => one >= wanted) ?? Math.ceil(wanted)
  const stepMs = multiple * unitMs
  const bins = Array.from({ length: Math.floor((last - begin) / stepMs) + 1 }, (_, n) => ({
    from: begin + n * stepMs,
    to: begin + (n + 1) * stepMs,
    counts: {} as Record<string, number>,
    total: 0
  }))
  counts.forEach(({ count, key }, index) => {
    const bin = bins[Math.floor((starts[index]! - begin) / stepMs)]!
    bin.counts[key] = (bin.counts[key] ?? 0) + count
    bin.total += count
  })
  return bins
}

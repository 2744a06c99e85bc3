/** Medians, percentiles and spreads of measured values. */

const ascending = (values: ReadonlyArray<number>): ReadonlyArray<number> =>
  [...values].sort((left, right) => left - right)

/**
 * The smallest value that at least `share` (0 to 1) of the values do not exceed (nearest rank). NaN
 * without values.
 */
export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const rank = Math.max(1, Math.ceil(values.length * share))
  return ascending(values)[rank - 1] ?? Number.NaN
}

/** The middle value, or the mean of the two in the middle. NaN without values. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = ascending(values)
  const middle = sorted.length >> 1
  if (sorted.length % 2 === 1) return sorted[middle]!
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
}

export interface Summary {
  readonly median: number
  readonly low: number
  readonly high: number
  readonly runs: number
}

export const summarise = (values: ReadonlyArray<number>): Summary => ({
  median: median(values),
  low: Math.min(...values),
  high: Math.max(...values),
  runs: values.length
})

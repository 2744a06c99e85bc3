/** Ranks of a report: percentiles, and the few largest of many items. */

export interface Quantiles {
  readonly median: number
  readonly p95: number
  readonly maximum: number
}

/** By nearest rank, of ascending values; zeros of none. */
export const quantilesOf = (ascending: Float64Array): Quantiles => {
  const rank = (part: number) => ascending[Math.max(0, Math.ceil(part * ascending.length) - 1)] ?? 0
  return { median: rank(0.5), p95: rank(0.95), maximum: rank(1) }
}

/**
 * Insert an item into a list that holds the largest `itemsMax` in descending order; of equal items
 * the first ones are kept. `make` is called only for an item that is kept.
 */
export const insertRanked = <A>(
  list: Array<A>,
  make: () => A,
  isSmaller: (other: A) => boolean,
  itemsMax: number
): void => {
  const at = list.findIndex(isSmaller)
  if (at === -1 && list.length === itemsMax) return
  list.splice(at === -1 ? list.length : at, 0, make())
  if (list.length > itemsMax) list.pop()
}

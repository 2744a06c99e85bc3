/** How fast a check goes and how long it will take, from what it has said of its progress. Pure. */

export interface Sample {
  /** Milliseconds of any clock that only goes forward. */
  readonly at: number
  readonly done: number
}

/** Samples that the rate is taken from: with one a second, that of the last ten seconds. */
const SAMPLES_MAX = 11

/** The samples with one more. */
export const withSample = (samples: ReadonlyArray<Sample>, sample: Sample): ReadonlyArray<Sample> =>
  [...samples, sample].slice(-SAMPLES_MAX)

/** So many a second; undefined before there are two samples at different times. */
export const rateOf = (samples: ReadonlyArray<Sample>): number | undefined => {
  const [first, last] = [samples[0], samples.at(-1)]
  if (first === undefined || last === undefined || last.at <= first.at) return undefined
  return Math.max(0, ((last.done - first.done) / (last.at - first.at)) * 1_000)
}

/** Seconds that are left at this rate; undefined where it is unknown. */
export const secondsLeft = (left: number, rate: number | undefined): number | undefined =>
  left <= 0 ? 0 : rate === undefined || rate === 0 ? undefined : left / rate

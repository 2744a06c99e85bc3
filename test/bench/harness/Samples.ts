/** Times of requests one after another, and what is recorded of them. */
import type { Recorder } from "../report/Results.ts"
import { percentile } from "../report/Statistics.ts"

/** Milliseconds of each. */
export const timesOf = async (
  count: number,
  once: (n: number) => Promise<unknown>
): Promise<ReadonlyArray<number>> => {
  const times: Array<number> = []
  for (let n = 0; n < count; n++) {
    const started = performance.now()
    await once(n)
    times.push(performance.now() - started)
  }
  return times
}

const SHARES = { p50: 0.5, p95: 0.95, p99: 0.99, "p99.9": 0.999 }

export type Share = keyof typeof SHARES

/** Percentiles of one run, some with a goal in milliseconds. */
export const recordTimes = (
  recorder: Recorder,
  name: string,
  times: ReadonlyArray<number>,
  shares: Partial<Record<Share, number | undefined>>,
  of: "this" | "against" = "this"
): void => {
  for (const [share, goal] of Object.entries(shares)) {
    const more = goal === undefined ? { of } : { of, goal }
    recorder.add(`${name}, ${share}`, "ms", percentile(times, SHARES[share as Share]), more)
  }
}

/** `1M`, `20,000`. */
export const sizeText = (size: number): string =>
  size % 1e6 === 0 ? `${size / 1e6}M` : size.toLocaleString("en-US")

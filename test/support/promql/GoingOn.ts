/**
 * Two scrapes of a program as a longer time: counters and histograms grow on as they have between the
 * two, gauges stay at what the second says. So a rule that waits for minutes is tried within seconds.
 */
import { INTERVAL, type Scrape } from "./Alerts.ts"

const SAMPLE = /^(\S+?(?:\{.*\})?) (\S+)$/

const valuesIn = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split("\n")
      .map((line) => SAMPLE.exec(line))
      .filter((found) => found !== null && !found[0].startsWith("#"))
      .map((found) => [found![1]!, Number(found![2])])
  )

const isGrowing = (sample: string): boolean =>
  /^\w+_(?:total|bucket|sum|count)(?:\{|$)/.test(sample)

/** Scrapes of so many seconds, the first two of which are real. */
export const goingOn = (before: string, after: string, seconds: number): ReadonlyArray<Scrape> => {
  const old = valuesIn(before)
  const last = valuesIn(after)
  return Array.from({ length: Math.floor(seconds / INTERVAL) + 1 }, (_, step) => {
    const values = step === 0 ? old : last
    const lines = [...values].map(([sample, value]) => {
      const first = old.get(sample) ?? 0
      const grown = step > 0 && isGrowing(sample) ? first + step * (value - first) : value
      return `${sample} ${grown}`
    })
    return { at: step * INTERVAL, text: lines.join("\n") }
  })
}

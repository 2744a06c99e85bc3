/**
 * The text format of Prometheus (0.0.4) as numbers: samples with their labels, and quantiles of
 * histograms. Pure.
 */

export interface MetricSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Samples by name; those of a histogram under the names of its series. */
export type Metrics = ReadonlyMap<string, ReadonlyArray<MetricSample>>

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
/** One label and what follows it: a comma or the end. */
const LABEL = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*(,?)/

const escapes: Readonly<Record<string, string>> = { n: "\n", "\\": "\\", '"': '"' }

const unescaped = (text: string): string =>
  text.replaceAll(/\\(.)/g, (whole, character: string) => escapes[character] ?? whole)

/** The labels between braces, and the text after them; undefined if it is not one. */
const labelsIn = (
  text: string
): { readonly labels: Readonly<Record<string, string>>; readonly rest: string } | undefined => {
  if (!text.startsWith("{")) return { labels: {}, rest: text }
  const labels: Record<string, string> = {}
  let rest = text.slice(1)
  for (let found = LABEL.exec(rest); found !== null; found = LABEL.exec(rest)) {
    const [whole, name = "", value = "", comma] = found
    labels[name] = unescaped(value)
    rest = rest.slice(whole.length)
    if (comma === "") break
  }
  const [end] = /^\s*\}/.exec(rest) ?? []
  return end === undefined ? undefined : { labels, rest: rest.slice(end.length) }
}

const numberOf = (text: string): number | undefined => {
  if (text === "+Inf") return Infinity
  if (text === "-Inf") return -Infinity
  if (text === "NaN") return Number.NaN
  const value = Number(text)
  return text === "" || Number.isNaN(value) ? undefined : value
}

const sampleOf = (line: string): MetricSample | undefined => {
  const [name] = NAME.exec(line) ?? []
  if (name === undefined) return undefined
  const found = labelsIn(line.slice(name.length).trimStart())
  const [text = ""] = found?.rest.trim().split(/\s+/) ?? []
  const value = numberOf(text)
  return found === undefined || value === undefined
    ? undefined
    : { name, labels: found.labels, value }
}

/** What a text says; lines that are not samples are passed over. */
export const parseMetrics = (text: string): Metrics => {
  const metrics = new Map<string, Array<MetricSample>>()
  for (const line of text.split("\n")) {
    const sample = line.startsWith("#") ? undefined : sampleOf(line.trim())
    if (sample === undefined) continue
    const known = metrics.get(sample.name)
    if (known === undefined) metrics.set(sample.name, [sample])
    else known.push(sample)
  }
  return metrics
}

/** What was measured at a time. */
export interface Reading {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly metrics: Metrics
}

type Wanted = (labels: Readonly<Record<string, string>>) => boolean

/** Values of a metric; empty if nothing was measured. */
const valuesOf = (metrics: Metrics, name: string, isWanted: Wanted): ReadonlyArray<number> =>
  (metrics.get(name) ?? []).filter(({ labels }) => isWanted(labels)).map(({ value }) => value)

const every: Wanted = () => true

/** The sum over all series; undefined if there is none. */
export const sumOf = (metrics: Metrics, name: string, isWanted = every): number | undefined => {
  const values = valuesOf(metrics, name, isWanted)
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0)
}

/** The largest, or the smallest, of all series; undefined if there is none. */
export const mostOf = (metrics: Metrics, name: string): number | undefined =>
  valuesOf(metrics, name, every).reduce<number | undefined>(
    (most, value) => (most === undefined ? value : Math.max(most, value)),
    undefined
  )
export const leastOf = (metrics: Metrics, name: string): number | undefined =>
  valuesOf(metrics, name, every).reduce<number | undefined>(
    (least, value) => (least === undefined ? value : Math.min(least, value)),
    undefined
  )

/** Sums by the value of a label, largest first. */
export const byLabel = (
  metrics: Metrics,
  name: string,
  label: string
): ReadonlyArray<readonly [value: string, sum: number]> => {
  const sums = new Map<string, number>()
  for (const { labels, value } of metrics.get(name) ?? []) {
    const key = labels[label] ?? ""
    sums.set(key, (sums.get(key) ?? 0) + value)
  }
  return [...sums].sort(([, left], [, right]) => right - left)
}

/** Counts of a histogram by upper bound, ascending, each with those below it. */
export type Buckets = ReadonlyArray<readonly [bound: number, count: number]>

export const bucketsOf = (metrics: Metrics, name: string, isWanted = every): Buckets => {
  const counts = new Map<number, number>()
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const bound = numberOf(labels["le"] ?? "")
    if (bound === undefined || !isWanted(labels)) continue
    counts.set(bound, (counts.get(bound) ?? 0) + value)
  }
  return [...counts].sort(([left], [right]) => left - right)
}

/** What was counted between two readings; counters that began anew count from 0. */
export const between = (before: Buckets, after: Buckets): Buckets => {
  const old = new Map(before)
  const hasRestarted = after.some(([bound, count]) => count < (old.get(bound) ?? 0))
  return hasRestarted
    ? after
    : after.map(([bound, count]) => [bound, count - (old.get(bound) ?? 0)] as const)
}

/**
 * The value that a part `quantile` of all is at most, as if values were spread evenly within their
 * bucket. Undefined without values; the largest finite bound where it is beyond that.
 */
export const quantileOf = (buckets: Buckets, quantile: number): number | undefined => {
  const total = buckets.at(-1)?.[1] ?? 0
  if (total <= 0) return undefined
  const wanted = quantile * total
  const at = buckets.findIndex(([, count]) => count >= wanted)
  const [bound, count] = buckets[at]!
  const [lower, below] = at === 0 ? [0, 0] : buckets[at - 1]!
  if (!Number.isFinite(bound)) return lower
  return count === below ? bound : lower + ((bound - lower) * (wanted - below)) / (count - below)
}

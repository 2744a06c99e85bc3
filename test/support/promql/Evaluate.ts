/**
 * Evaluates the PromQL of Parse.ts over series, at a time. Differs from Prometheus in that rate and
 * increase don't extrapolate to the ends of the range: they say what the samples in it show.
 */
import { type Expression, type Matcher, parse } from "./Parse.ts"

export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Time in seconds and value, ascending. */
  readonly points: ReadonlyArray<readonly [time: number, value: number]>
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

type Value = number | ReadonlyArray<Sample>

/** Seconds that a sample counts for, as in Prometheus. */
const LOOKBACK = 300

const matches = ({ label, operator, value }: Matcher, { labels }: Series): boolean => {
  const own = labels[label] ?? ""
  const isEqual = operator.endsWith("~") ? new RegExp(`^(?:${value})$`).test(own) : own === value
  return isEqual !== operator.startsWith("!")
}

const keyOf = (labels: Sample["labels"]): string => JSON.stringify(Object.entries(labels).sort())

const without = (labels: Sample["labels"], name: string): Sample["labels"] =>
  Object.fromEntries(Object.entries(labels).filter(([label]) => label !== name))

/** What functions of a range make of the points in it; undefined for too few of them. */
const ofRange: Readonly<
  Record<string, (points: Series["points"], range: number) => number | undefined>
> = {
  increase: (points) => {
    if (points.length < 2) return undefined
    let sum = 0
    for (const [index, [, value]] of points.entries()) {
      if (index === 0) continue
      const before = points[index - 1]![1]
      sum += value < before ? value : value - before
    }
    return sum
  },
  rate: (points, range) => {
    const sum = ofRange["increase"]!(points, range)
    return sum === undefined ? undefined : sum / (points.at(-1)![0] - points[0]![0])
  },
  changes: (points) =>
    points.length === 0
      ? undefined
      : points.filter(([, value], index) => index > 0 && value !== points[index - 1]![1]).length
}

const aggregate: Readonly<Record<string, (values: ReadonlyArray<number>) => number>> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  avg: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  count: (values) => values.length
}

const arithmetic: Readonly<Record<string, (left: number, right: number) => number>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => left / right
}

const comparisons: Readonly<Record<string, (left: number, right: number) => boolean>> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  ">": (left, right) => left > right,
  "<": (left, right) => left < right,
  ">=": (left, right) => left >= right,
  "<=": (left, right) => left <= right
}

const setOperation = (
  operator: string,
  left: ReadonlyArray<Sample>,
  right: ReadonlyArray<Sample>
): ReadonlyArray<Sample> => {
  const has = (samples: ReadonlyArray<Sample>) => {
    const keys = new Set(samples.map(({ labels }) => keyOf(labels)))
    return ({ labels }: Sample) => keys.has(keyOf(labels))
  }
  if (operator === "or") return [...left, ...right.filter((one) => !has(left)(one))]
  return left.filter((one) => has(right)(one) === (operator === "and"))
}

const quantileOf = (
  quantile: number,
  buckets: ReadonlyArray<readonly [number, number]>
): number => {
  const total = buckets.at(-1)?.[1] ?? 0
  if (total === 0) return Number.NaN
  const at = buckets.findIndex(([, count]) => count >= quantile * total)
  const [bound, count] = buckets[at]!
  const [lower, below] = at === 0 ? [0, 0] : buckets[at - 1]!
  if (!Number.isFinite(bound)) return lower
  return lower + ((bound - lower) * (quantile * total - below)) / (count - below)
}

class Evaluation {
  readonly #series: ReadonlyArray<Series>
  readonly #time: number

  constructor(series: ReadonlyArray<Series>, time: number) {
    this.#series = series
    this.#time = time
  }

  value(expression: Expression): Value {
    switch (expression.kind) {
      case "number":
        return expression.value
      case "selector":
        return this.#instant(expression)
      case "call":
        return this.#call(expression)
      case "aggregation":
        return this.#aggregation(expression)
      case "binary":
        return this.#binary(expression)
    }
  }

  vector(expression: Expression): ReadonlyArray<Sample> {
    const value = this.value(expression)
    return typeof value === "number" ? [{ labels: {}, value }] : value
  }

  #found({ matchers, metric }: Expression & { kind: "selector" }): ReadonlyArray<Series> {
    return this.#series.filter(
      (one) => one.name === metric && matchers.every((matcher) => matches(matcher, one))
    )
  }

  #within({ points }: Series, seconds: number): Series["points"] {
    return points.filter(([time]) => time > this.#time - seconds && time <= this.#time)
  }

  #instant(selector: Expression & { kind: "selector" }): ReadonlyArray<Sample> {
    return this.#found(selector).flatMap((one) => {
      const last = this.#within(one, LOOKBACK).at(-1)
      // The name leaves with the first operation; nothing here looks at it.
      return last === undefined ? [] : [{ labels: one.labels, value: last[1] }]
    })
  }

  #call({ arguments: given, name }: Expression & { kind: "call" }): Value {
    if (name === "time") return this.#time
    if (name === "histogram_quantile") return this.#quantiles(given[0]!, given[1]!)
    const make = ofRange[name]
    const [range] = given
    if (make === undefined || range?.kind !== "selector" || range.range === undefined) {
      throw new Error(`not a function of a range: ${name}`)
    }
    const seconds = range.range
    return this.#found(range).flatMap((one) => {
      const value = make(this.#within(one, seconds), seconds)
      return value === undefined ? [] : [{ labels: one.labels, value }]
    })
  }

  #quantiles(wanted: Expression, of: Expression): ReadonlyArray<Sample> {
    const quantile = this.value(wanted) as number
    const groups = Map.groupBy(this.vector(of), ({ labels }) => keyOf(without(labels, "le")))
    return [...groups.values()].map((samples) => {
      const buckets = samples
        .map(
          ({ labels, value }) => [Number(labels["le"]!.replace("+Inf", "Infinity")), value] as const
        )
        .sort(([left], [right]) => left - right)
      return { labels: without(samples[0]!.labels, "le"), value: quantileOf(quantile, buckets) }
    })
  }

  #aggregation({ by, name, of }: Expression & { kind: "aggregation" }): ReadonlyArray<Sample> {
    const kept = (labels: Sample["labels"]) =>
      Object.fromEntries(Object.entries(labels).filter(([label]) => by.includes(label)))
    const groups = Map.groupBy(this.vector(of), ({ labels }) => keyOf(kept(labels)))
    return [...groups.values()].map((samples) => ({
      labels: kept(samples[0]!.labels),
      value: aggregate[name]!(samples.map(({ value }) => value))
    }))
  }

  #binary({ left, operator, right }: Expression & { kind: "binary" }): Value {
    const [one, other] = [this.value(left), this.value(right)]
    const compute = arithmetic[operator]
    const compare = comparisons[operator]
    if (compute === undefined && compare === undefined) {
      return setOperation(operator, this.vector(left), this.vector(right))
    }
    if (typeof one === "number" && typeof other === "number") {
      if (compute === undefined) throw new Error("numbers are not compared in these rules")
      return compute(one, other)
    }
    const samples = typeof one === "number" ? (other as ReadonlyArray<Sample>) : one
    return samples.flatMap(({ labels, value }) => {
      const partner = this.#partner(typeof one === "number" ? one : other, labels)
      if (partner === undefined) return []
      const [first, second] = typeof one === "number" ? [one, value] : [value, partner]
      if (compute !== undefined) return [{ labels, value: compute(first, second) }]
      return compare!(first, second) ? [{ labels, value }] : []
    })
  }

  #partner(other: Value, labels: Sample["labels"]): number | undefined {
    if (typeof other === "number") return other
    return other.find((sample) => keyOf(sample.labels) === keyOf(labels))?.value
  }
}

/** What the expression says at the time; empty means that an alert does not fire. */
export const evaluate = (
  text: string,
  series: ReadonlyArray<Series>,
  time: number
): ReadonlyArray<Sample> => new Evaluation(series, time).vector(parse(text))

/** Metrics as the table describes them: nothing is counted that it does not name. */
import { Effect, Metric } from "effect"
import { type MetricEntry, type MetricName, metricTable, type NameOf } from "./MetricTable.ts"

export const counterOf = (name: NameOf<"counter">) =>
  Metric.counter(name, { description: metricTable[name].help, incremental: true })

export const gaugeOf = (name: NameOf<"gauge">) =>
  Metric.gauge(name, { description: metricTable[name].help })

export const histogramOf = (name: NameOf<"histogram">) => {
  const { boundaries = [], help }: MetricEntry = metricTable[name]
  return Metric.histogram(name, { description: help, boundaries: [...boundaries] })
}

const isCounter = (name: MetricName): name is NameOf<"counter"> =>
  metricTable[name].type === "counter"

/** The series of a counter that are known before anything is counted. */
const seriesOf = (name: NameOf<"counter">): ReadonlyArray<Readonly<Record<string, string>>> => {
  const { from = [], labels = {} }: MetricEntry = metricTable[name]
  const [label] = Object.keys(labels)
  return label === undefined ? [{}] : from.map((value) => ({ [label]: value }))
}

/**
 * Shows counters as 0 before anything is counted: of one that appears with its first count, a
 * monitoring system sees no increase.
 */
export const startCounting: Effect.Effect<void> = Effect.forEach(
  (Object.keys(metricTable) as ReadonlyArray<MetricName>).filter(isCounter),
  (name) =>
    Effect.forEach(
      seriesOf(name),
      (labels) => Metric.update(Metric.withAttributes(counterOf(name), labels), 0),
      { discard: true }
    ),
  { discard: true }
)

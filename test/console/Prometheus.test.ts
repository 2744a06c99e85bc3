/** The text of `/metrics` as numbers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as fc from "fast-check"
import {
  between,
  bucketsOf,
  byLabel,
  leastOf,
  mostOf,
  parseMetrics,
  quantileOf,
  sumOf
} from "../../src/console/state/Prometheus.ts"

const text = `# HELP a_total What a is. {not="a label"} 7
# TYPE a_total counter
a_total{route="/x y",status="200"} 1
a_total{ status = "500" , route="/v1/{id}" , } 2.5e1 1395066363000
# TYPE b gauge
b 4
b_seconds{le="}"} -Inf
c{} NaN
d{text="a \\"quote\\", a \\\\ and a\\nline"} +Inf
no number
{nothing="here"} 1
broken{x="1} 1
`

describe("parseMetrics", () => {
  const metrics = parseMetrics(text)

  it("reads names, labels and numbers in every form", () => {
    assert.deepStrictEqual(metrics.get("a_total"), [
      { name: "a_total", labels: { route: "/x y", status: "200" }, value: 1 },
      { name: "a_total", labels: { route: "/v1/{id}", status: "500" }, value: 25 }
    ])
    assert.strictEqual(metrics.get("b_seconds")?.[0]?.value, -Infinity)
    assert.isNaN(metrics.get("c")?.[0]?.value)
    assert.strictEqual(metrics.get("d")?.[0]?.labels["text"], 'a "quote", a \\ and a\nline')
  })

  it("passes over what is no sample", () => {
    assert.sameMembers([...metrics.keys()], ["a_total", "b", "b_seconds", "c", "d"])
    assert.strictEqual(parseMetrics("").size, 0)
  })

  it("sums, and says that nothing was measured instead of 0", () => {
    assert.strictEqual(sumOf(metrics, "a_total"), 26)
    assert.strictEqual(
      sumOf(metrics, "a_total", ({ status }) => status === "500"),
      25
    )
    assert.strictEqual(mostOf(metrics, "a_total"), 25)
    assert.strictEqual(leastOf(metrics, "a_total"), 1)
    for (const of of [sumOf, mostOf, leastOf]) assert.isUndefined(of(metrics, "none"))
    assert.deepStrictEqual(byLabel(metrics, "a_total", "status"), [
      ["500", 25],
      ["200", 1]
    ])
  })

  it.effect("reads what the service writes", () =>
    Effect.gen(function* () {
      const histogram = Metric.histogram("test_prometheus_seconds", { boundaries: [0.1, 1] })
      const labelled = Metric.withAttributes(histogram, { path: '/"\\\n' })
      for (const value of [0.05, 0.5, 0.5, 5]) yield* Metric.update(labelled, value)
      const read = parseMetrics(yield* PrometheusMetrics.format())
      assert.deepStrictEqual(
        bucketsOf(read, "test_prometheus_seconds", ({ path }) => path === '/"\\\n'),
        [
          [0.1, 1],
          [1, 3],
          [Infinity, 4]
        ]
      )
    })
  )
})

describe("histograms", () => {
  const buckets = [
    [0.1, 50],
    [1, 90],
    [Infinity, 100]
  ] as const

  it("say a quantile within a bucket, and the last bound beyond all", () => {
    assert.strictEqual(quantileOf(buckets, 0.5), 0.1)
    assert.closeTo(quantileOf(buckets, 0.7)!, 0.55, 1e-9)
    assert.strictEqual(quantileOf(buckets, 0.99), 1)
    assert.isUndefined(quantileOf([], 0.5))
    assert.isUndefined(quantileOf([[1, 0]], 0.5))
  })

  it("say no quantile below a smaller one", () => {
    const counts = fc.array(fc.nat(20), { minLength: 2, maxLength: 8 })
    fc.assert(
      fc.property(counts, fc.double({ min: 0.01, max: 1, noNaN: true }), (added, quantile) => {
        fc.pre(added.some((one) => one > 0))
        let sum = 0
        const some = added.map((one, at) => {
          sum += one
          return [at === added.length - 1 ? Infinity : at + 1, sum] as const
        })
        const [value, smaller] = [quantileOf(some, quantile)!, quantileOf(some, quantile / 2)!]
        assert.isAtLeast(value, smaller)
        assert.isAtMost(value, added.length)
      })
    )
  })

  it("count what came since an earlier reading, and anew after a restart", () => {
    const before = [
      [0.1, 20],
      [1, 60],
      [Infinity, 60]
    ] as const
    assert.deepStrictEqual(between(before, buckets), [
      [0.1, 30],
      [1, 30],
      [Infinity, 40]
    ])
    assert.deepStrictEqual(between(buckets, before), before)
    assert.deepStrictEqual(between([], before), before)
  })
})

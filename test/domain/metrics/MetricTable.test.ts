/** The table of metrics follows the conventions of Prometheus, and the program makes no other. */
import { globSync, readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { type MetricEntry, metricTable } from "../../../src/domain/metrics/MetricTable.ts"
import { METRICS_PAGE_FILE, metricsPage } from "../../../src/tools/MetricsPage.ts"

const all: ReadonlyArray<readonly [string, MetricEntry]> = Object.entries(metricTable)

const wrong = (isWrong: (name: string, entry: MetricEntry) => boolean) =>
  all.filter(([name, entry]) => isWrong(name, entry)).map(([name]) => name)

describe("the table of metrics", () => {
  it("names counters with _total, and nothing else", () => {
    assert.deepStrictEqual(
      wrong((name, { type }) => name.endsWith("_total") !== (type === "counter")),
      []
    )
  })

  it("names what is measured in seconds or bytes with the unit", () => {
    assert.deepStrictEqual(
      wrong((name, { unit }) => {
        const base = name.replace(/_total$/, "")
        return ["seconds", "bytes"].some((one) => (unit === one) !== base.endsWith(`_${one}`))
      }),
      []
    )
  })

  it("gives histograms ascending bounds, and nothing else any", () => {
    assert.deepStrictEqual(
      wrong((_, { boundaries, type }) => (type === "histogram") !== (boundaries !== undefined)),
      []
    )
    for (const [name, { boundaries = [] }] of all) {
      assert.deepStrictEqual(
        boundaries,
        [...new Set(boundaries)].sort((a, b) => a - b),
        name
      )
    }
  })

  it("says each meaning in a sentence", () => {
    assert.deepStrictEqual(
      wrong((_, { help }) => !/^[A-Z0-9].*[.]$/.test(help)),
      []
    )
  })

  it("is what the page in docs says", () => {
    assert.strictEqual(readFileSync(METRICS_PAGE_FILE, "utf8"), metricsPage())
  })

  it("names nothing that no source makes, and no source makes a metric past it", () => {
    const sources = globSync("src/**/*.ts")
      .filter((file) => !file.startsWith("src/domain/metrics/"))
      .map((file) => readFileSync(file, "utf8"))
      .join("\n")
    const made = new Set(
      [...sources.matchAll(/(?:counter|gauge|histogram)Of\(\s*"([a-z0-9_]+)"/g)].map(
        ([, name]) => name!
      )
    )
    assert.sameMembers([...made], Object.keys(metricTable))
    assert.notMatch(sources, /Metric\.(?:counter|gauge|histogram|frequency|summary|timer)\(/)
  })
})

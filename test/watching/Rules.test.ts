/**
 * The alert rules and the dashboard: they parse, use only metrics and labels that the table has, and
 * each alert has its section in docs/alerts.md. What fires on a running program is tested there; the
 * conditions that no test can wait for are fed here as series.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { type MetricEntry, metricTable } from "../../src/domain/metrics/MetricTable.ts"
import { fires, INTERVAL, type Rule, rules, seriesOf } from "../support/promql/Alerts.ts"
import { evaluate, type Series } from "../support/promql/Evaluate.ts"
import { type Expression, parse, selectorsOf } from "../support/promql/Parse.ts"

/** Labels that Prometheus, or several processes on one port, give to every metric. */
const EVERYWHERE = ["instance", "job", "worker"]

const entryOf = (metric: string): MetricEntry | undefined => {
  const table: Readonly<Record<string, MetricEntry>> = metricTable
  const histogram = table[metric.replace(/_(?:bucket|sum|count)$/, "")]
  return table[metric] ?? (histogram?.type === "histogram" ? histogram : undefined)
}

const unknownIn = (expression: string): ReadonlyArray<string> =>
  selectorsOf(parse(expression)).flatMap(({ matchers, metric }) => {
    if (metric === "up") return []
    const entry = entryOf(metric)
    if (entry === undefined) return [metric]
    const known = [...Object.keys(entry.labels ?? {}), ...EVERYWHERE, "le"]
    return matchers.map(({ label }) => label).filter((label) => !known.includes(label))
  })

const groupedBy = (expression: Expression): ReadonlyArray<string> => {
  switch (expression.kind) {
    case "aggregation":
      return [...expression.by, ...groupedBy(expression.of)]
    case "binary":
      return [...groupedBy(expression.left), ...groupedBy(expression.right)]
    case "call":
      return expression.arguments.flatMap(groupedBy)
    default:
      return []
  }
}

const labelNames = new Set([
  ...Object.values(metricTable as Readonly<Record<string, MetricEntry>>).flatMap(
    ({ labels = {} }) => Object.keys(labels)
  ),
  ...EVERYWHERE,
  "le"
])

const ruleOf = (alert: string): Rule => rules.find((rule) => rule.alert === alert)!

describe("the alert rules", () => {
  it("use metrics and labels that there are", () => {
    for (const { alert, expr } of rules) {
      assert.deepStrictEqual(unknownIn(expr), [], alert)
      for (const label of groupedBy(parse(expr))) assert.isTrue(labelNames.has(label), alert)
    }
  })

  it("have a severity, a summary, a description and a section, in the order of the page", () => {
    const page = readFileSync("docs/alerts.md", "utf8")
    const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title!)
    assert.deepStrictEqual(
      rules.map(({ alert }) => alert),
      sections
    )
    for (const { alert, annotations, labels } of rules) {
      assert.include(["critical", "warning"], labels.severity, alert)
      assert.isAbove(annotations.summary.length, 10, alert)
      assert.isAbove(annotations.description.length, 10, alert)
      assert.strictEqual(annotations.runbook, `docs/alerts.md#${alert.toLowerCase()}`)
    }
  })

  it("say on the page how severe they are", () => {
    const page = readFileSync("docs/alerts.md", "utf8")
    for (const { alert, labels } of rules) {
      const [, first] = page.split(`## ${alert}\n\n`)
      assert.strictEqual(first?.split(":")[0]?.toLowerCase(), labels.severity, alert)
    }
  })
})

describe("the dashboard", () => {
  interface Panel {
    readonly id: number
    readonly title: string
    readonly type: string
    readonly gridPos: {
      readonly h: number
      readonly w: number
      readonly x: number
      readonly y: number
    }
    readonly targets?: ReadonlyArray<{ readonly expr: string; readonly refId: string }>
  }
  const board = JSON.parse(readFileSync("docker/grafana/alk.json", "utf8")) as {
    readonly uid: string
    readonly title: string
    readonly schemaVersion: number
    readonly panels: ReadonlyArray<Panel>
  }

  it("has panels with ids of their own, a place and a query each", () => {
    assert.isAbove(board.schemaVersion, 35)
    const ids = board.panels.map(({ id }) => id)
    assert.strictEqual(new Set(ids).size, ids.length)
    const taken = new Set<string>()
    for (const { gridPos, targets = [], title, type } of board.panels) {
      assert.isAtMost(gridPos.x + gridPos.w, 24, title)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.isFalse(taken.has(`${x}/${y}`), `${title} lies over another panel`)
          taken.add(`${x}/${y}`)
        }
      }
      if (type !== "row") assert.isNotEmpty(targets, title)
      assert.strictEqual(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    }
  })

  it("asks for metrics and labels that there are", () => {
    for (const { targets = [], title } of board.panels) {
      for (const { expr } of targets) {
        const plain = expr.replaceAll("$__rate_interval", "5m").replaceAll(/,?job="\$job"/g, "")
        assert.deepStrictEqual(unknownIn(plain), [], title)
      }
    }
  })
})

describe("the evaluation of rules", () => {
  const one = (name: string, values: ReadonlyArray<number>, labels = {}): Series => ({
    name,
    labels,
    points: values.map((value, index) => [index * INTERVAL, value])
  })

  it("counts what a counter has grown by, across a restart", () => {
    const series = [one("c_total", [5, 7, 1, 4])]
    assert.deepStrictEqual(evaluate("increase(c_total[2m])", series, 45), [
      { labels: {}, value: 6 }
    ])
    assert.deepStrictEqual(evaluate("increase(c_total[15s])", series, 45), [])
    assert.deepStrictEqual(evaluate("changes(c_total[2m]) > 2", series, 45), [
      { labels: {}, value: 3 }
    ])
  })

  it("matches by labels, and adds up by them", () => {
    const series = [
      one("a", [1], { p: "0", i: "x" }),
      one("a", [3], { p: "0", i: "y" }),
      one("a", [4], { p: "1", i: "x" }),
      one("b", [2], { p: "0", i: "x" })
    ]
    assert.deepStrictEqual(evaluate('sum by (p) (a{i=~"x|y"}) > 3', series, 0), [
      { labels: { p: "0" }, value: 4 },
      { labels: { p: "1" }, value: 4 }
    ])
    assert.deepStrictEqual(evaluate("b / a", series, 0), [{ labels: { p: "0", i: "x" }, value: 2 }])
    assert.lengthOf(evaluate("a and b", series, 0), 1)
    assert.lengthOf(evaluate("a unless b", series, 0), 2)
    assert.lengthOf(evaluate("b > 1 or a", series, 0), 3)
    assert.deepStrictEqual(evaluate("time() - a", series, 60)[0], {
      labels: { p: "0", i: "x" },
      value: 59
    })
    assert.deepStrictEqual(evaluate("a", series, 301), [])
  })

  it("has the quantile of a histogram", () => {
    const series = [
      one("h_bucket", [0, 90], { le: "1" }),
      one("h_bucket", [0, 100], { le: "2" }),
      one("h_bucket", [0, 100], { le: "+Inf" })
    ]
    const [found] = evaluate(
      "histogram_quantile(0.95, sum by (le) (rate(h_bucket[1m])))",
      series,
      15
    )
    assert.closeTo(found!.value, 1.5, 1e-9)
  })

  it("waits as long as the rule says", () => {
    const rule = { ...ruleOf("AlkBrokerUnreachable"), for: "1m" }
    const down = (from: number) =>
      seriesOf(
        Array.from({ length: 9 }, (_, index) => ({
          at: index * INTERVAL,
          text: `alk_broker_reachable ${index >= from ? 0 : 1}`
        }))
      )
    const window = { from: 0, to: 8 * INTERVAL }
    assert.isTrue(fires(rule, down(4), window))
    assert.isFalse(fires(rule, down(5), window))
  })

  it("refuses what it does not know", () => {
    for (const text of ["a offset 5m", "topk(3, a)", "a{", "sum(a", "a ^ 2", "deriv(a[5m])"]) {
      assert.throws(() => evaluate(text, [], 0), undefined, undefined, text)
    }
  })
})

/** Conditions that no test can wait for, or must not make on a machine that others use. */
describe("what can't be made on a running program fires over series", () => {
  const HOURS = 3_600
  const now = 1_800_000_000

  /** The rule over texts of metrics that are made for each time of the last so many seconds. */
  const firesOver = (alert: string, seconds: number, text: (at: number) => string): boolean => {
    const scrapes = []
    for (let at = now - seconds; at <= now; at += INTERVAL) scrapes.push({ at, text: text(at) })
    return fires(ruleOf(alert), seriesOf(scrapes), { from: now - seconds, to: now })
  }

  it("AlkCheckpointOld: events are committed, nothing is signed", () => {
    const text = (signedBefore: (at: number) => number, grows: boolean) => (at: number) =>
      `alk_checkpoint_newest_timestamp_seconds ${signedBefore(at)}
alk_events_committed_total ${grows ? at - now + HOURS : 7}`
    const stopped = () => now - HOURS
    assert.isTrue(firesOver("AlkCheckpointOld", 600, text(stopped, true)))
    assert.isFalse(firesOver("AlkCheckpointOld", 600, text(stopped, false)))
    assert.isFalse(
      firesOver(
        "AlkCheckpointOld",
        600,
        text((at) => at - 20, true)
      )
    )
  })

  it("AlkRetentionKept: a chain does not verify as far as it is old", () => {
    const text = (chains: number) => () => `alk_retention_kept_chains ${chains}`
    assert.isTrue(firesOver("AlkRetentionKept", 120, text(1)))
    assert.isFalse(firesOver("AlkRetentionKept", 120, text(0)))
  })

  it("AlkSelfVerificationLate: no pass for a week, or never one", () => {
    const text = (passed: number, started: number) => () =>
      `alk_self_verification_oldest_pass_timestamp_seconds ${passed}
process_start_time_seconds ${started}`
    const [old, recent] = [now - 200 * HOURS, now - 2 * HOURS]
    const fired = (passed: number, started: number) =>
      firesOver("AlkSelfVerificationLate", 2 * HOURS, text(passed, started))
    assert.isTrue(fired(old, old))
    assert.isTrue(fired(0, old))
    assert.isFalse(fired(recent, old))
    assert.isFalse(fired(0, recent))
  })

  it("AlkMemoryHigh: near the limit of the process, or of its heap", () => {
    const text = (rss: number, heap: number) => () =>
      `process_resident_memory_bytes ${rss}
alk_memory_limit_bytes 1000
nodejs_heap_size_used_bytes ${heap}
nodejs_heap_size_limit_bytes 1000`
    const fired = (rss: number, heap: number) => firesOver("AlkMemoryHigh", 600, text(rss, heap))
    assert.isTrue(fired(900, 100))
    assert.isTrue(fired(100, 950))
    assert.isFalse(fired(700, 800))
  })
})

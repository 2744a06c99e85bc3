/** Statistics, tables, charts and Markdown of the benchmark. */
import { assert, describe, it } from "vitest"
import { barChart } from "./Chart.ts"
import { chartsOf } from "./Charts.ts"
import { figureTable, formatNumber, markdownTable, sumsOf, terminalTable } from "./Format.ts"
import { withFigures, wrap } from "./Markdown.ts"
import { Recorder, reached, type ScenarioResult } from "./Results.ts"
import { median, percentile, summarise } from "./Statistics.ts"

describe("statistics", () => {
  it("take the middle, and the mean of two middles", () => {
    assert.strictEqual(median([3, 1, 2]), 2)
    assert.strictEqual(median([4, 1, 3, 2]), 2.5)
    assert.isNaN(median([]))
  })

  it("take percentiles by nearest rank, in any order of values", () => {
    const values = Array.from({ length: 100 }, (_, n) => 100 - n)
    assert.strictEqual(percentile(values, 0.5), 50)
    assert.strictEqual(percentile(values, 0.99), 99)
    assert.strictEqual(percentile(values, 0.999), 100)
    assert.strictEqual(percentile([7], 0.01), 7)
  })

  it("say lowest, highest and how many", () => {
    assert.deepStrictEqual(summarise([3, 9, 4]), { median: 4, low: 3, high: 9, runs: 3 })
  })
})

describe("figures", () => {
  it("collect a value a run, apart for each program", () => {
    const recorder = new Recorder()
    for (const value of [10, 12]) recorder.add("rate", "events/s", value, { goal: 11 })
    for (const value of [5, 4]) {
      recorder.add("rate", "events/s", value, { of: "against", goal: 11 })
    }
    recorder.ratio("of against", ["rate"], ["rate", "against"], 3)
    const [own, other, ratio] = recorder.figures()
    assert.deepInclude(own, { values: [10, 12], goal: 11 })
    assert.deepInclude(other, { of: "against", values: [5, 4] })
    assert.notProperty(other, "goal")
    assert.deepInclude(ratio, { unit: "ratio", values: [2, 3], goal: 3 })
    assert.isTrue(reached(own!))
    assert.isFalse(reached(ratio!))
    assert.isUndefined(reached(other!))
  })

  it("have no goals where the numbers are small", () => {
    const small = new Recorder(false)
    small.add("rate", "events/s", 1, { goal: 2 })
    small.ratio("of itself", ["rate"], ["rate"], 3)
    assert.isTrue(small.figures().every((figure) => reached(figure) === undefined))
  })

  it("of times reach a goal by being lower", () => {
    assert.isTrue(reached({ name: "p50", of: "this", unit: "ms", values: [14], goal: 15 }))
    assert.isFalse(reached({ name: "p50", of: "this", unit: "ms", values: [16], goal: 15 }))
  })

  it("are numbers: nothing is recorded that is none", () => {
    assert.throws(() => new Recorder().add("rate", "events/s", Number.NaN), "rate: NaN")
  })

  it("have no ratio to what was not measured", () => {
    const recorder = new Recorder()
    recorder.add("rate", "events/s", 1)
    recorder.ratio("of against", ["rate"], ["rate", "against"])
    assert.strictEqual(recorder.figures().length, 1)
  })
})

const recorder = new Recorder()
recorder.add("b", "events/s", 1)
for (const value of [40_000, 52_345, 60_000])
  recorder.add("a | b", "events/s", value, { goal: 6e4 })
for (const [part, value] of [
  ["main thread", 7],
  ["broker", 4.25]
] as const) {
  recorder.add(part, "µs", value, { sum: "a | b" })
}
const scenario: ScenarioResult = {
  name: "ingest",
  title: "Ingest <of events>",
  about: "",
  commit: "abc",
  seconds: 1,
  figures: recorder.figures()
}

describe("tables", () => {
  it("have numbers of three digits", () => {
    const shown = [0, 0.41834, 9.999, 41.25, 999.6, 52_345, 1_234_567].map(formatNumber)
    assert.deepStrictEqual(shown, ["0", "0.418", "10", "41.3", "1,000", "52,300", "1,230,000"])
  })

  it("say median, spread, runs and whether the goal is reached", () => {
    const table = figureTable(scenario.figures)!
    assert.deepStrictEqual(table.rows, [
      ["b", "1 events/s", "", "1", ""],
      ["a | b", "52,300 events/s", "40,000 to 60,000", "3", "60,000 events/s: missed"]
    ])
    assert.include(markdownTable(table), "| a \\| b | 52,300 events/s |")
    const lines = terminalTable(table).split("\n")
    assert.strictEqual(lines.length, 4)
    assert.strictEqual(lines[1]!.length, lines[3]!.length)
  })

  it("have parts in columns", () => {
    assert.deepStrictEqual(sumsOf(scenario.figures), {
      unit: "µs",
      parts: ["main thread", "broker"],
      rows: [{ name: "a | b", values: [7, 4.25] }]
    })
  })
})

describe("charts", () => {
  it("are one a unit and one of parts, with every number as text", () => {
    const charts = new Map(chartsOf(scenario))
    assert.deepStrictEqual([...charts.keys()], ["ingest-events-per-second", "ingest-parts"])
    assert.include(charts.get("ingest-events-per-second"), ">52,300</text>")
    assert.include(charts.get("ingest-parts"), ">11.3</text>")
  })

  it("are split by what names begin with, where there are many", () => {
    const many = new Recorder()
    for (const load of ["1M, idle", "1M, under load"]) {
      for (let n = 0; n < 6; n++) many.add(`${load}: question ${n}`, "ms", 10 + n)
    }
    for (const name of ["one: other", "another"]) many.add(name, "ms", 1)
    many.add("alone", "s", 1)
    for (const name of ["never", "nowhere"]) many.add(name, "streams", 0)
    const charts = new Map(chartsOf({ ...scenario, name: "lists", figures: many.figures() }))
    assert.sameMembers(
      [...charts.keys()],
      ["lists-milliseconds", "lists-milliseconds-1m-idle", "lists-milliseconds-1m-under-load"]
    )
    assert.include(charts.get("lists-milliseconds-1m-idle"), ">question 5</text>")
  })

  it("escape what they show, and stay within their width", () => {
    const chart = barChart({
      title: "<b>&",
      unit: "ms",
      format: formatNumber,
      bars: [
        { name: "x".repeat(200), value: 1, low: 1, high: 3, goal: 5 },
        { name: "none", value: 0, low: 0, high: 0 }
      ]
    })
    assert.include(chart, "&lt;b&gt;&amp;")
    assert.notMatch(chart, /NaN|Infinity|<b>/)
    const places = [...chart.matchAll(/ (?:x|x1|x2)="([\d.-]+)"/g)].map(([, x]) => Number(x))
    assert.isTrue(places.every((x) => x >= 0 && x <= 880))
  })
})

describe("pages", () => {
  it("take figures between their marks, again and again", () => {
    const begin = "<!-- Figures: written by npm run bench, not by hand. -->"
    const page = `# A\n\n${begin}\n<!-- End of the figures. -->\n\nB\n`
    const once = withFigures(page, "one")
    assert.strictEqual(withFigures(once, "one"), once)
    assert.match(withFigures(once, "two"), /^# A\n\n<!-- .* -->\n\ntwo\n\n<!-- .* -->\n\nB\n$/)
    assert.throws(() => withFigures("# A", "one"))
  })

  it("have lines of at most 100 characters", () => {
    const text = wrap("word ".repeat(60).trim())
    assert.isTrue(text.split("\n").every((line) => line.length <= 100))
    assert.strictEqual(text.replaceAll("\n", " "), "word ".repeat(60).trim())
  })
})

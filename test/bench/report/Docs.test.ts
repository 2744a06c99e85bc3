/** The figures of docs/speed.md are those of docs/speed.json, which a run of the benchmark left. */
import { globSync, readFileSync } from "node:fs"
import { basename } from "node:path"
import { assert, describe, it } from "vitest"
import { chartsOf } from "./Charts.ts"
import { DOCS_JSON, docsPage } from "./Files.ts"
import type { Results } from "./Results.ts"

const results = JSON.parse(readFileSync(DOCS_JSON, "utf8")) as Results
const charts = results.scenarios.flatMap(chartsOf)

describe("docs/speed.md", () => {
  it("has the figures of docs/speed.json, with the machine that they come from", () => {
    const page = readFileSync("docs/speed.md", "utf8")
    assert.strictEqual(page, docsPage(page, results))
    if (results.scenarios.length === 0) return
    assert.include(page.replaceAll("\n", " "), `on: ${results.machine.cpu}`)
  })

  it("has their charts, and no others", () => {
    assert.sameMembers(
      globSync("docs/speed/*.svg").map((path) => basename(path, ".svg")),
      charts.map(([name]) => name)
    )
    for (const [name, chart] of charts) {
      assert.strictEqual(readFileSync(`docs/speed/${name}.svg`, "utf8"), chart, name)
    }
  })

  it("shows no scenario that failed", () => {
    assert.deepStrictEqual(
      results.scenarios.filter(({ failed }) => failed !== undefined).map(({ name }) => name),
      []
    )
  })
})

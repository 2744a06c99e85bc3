/** The benchmark runs: a part of its scenarios, with small numbers, in processes as `npm run bench`. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"

const SCENARIOS = ["parts", "lists"]
/** Milliseconds after which it hangs. */
const MS_MAX = 580_000

interface Results {
  readonly scenarios: ReadonlyArray<{
    readonly name: string
    readonly figures: ReadonlyArray<{
      readonly name: string
      readonly values: ReadonlyArray<number>
    }>
  }>
}

const folder = mkdtempSync(join(tmpdir(), "alk-bench-test-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("measures, prints a table and writes numbers, a page and charts", () => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["test/bench/Bench.ts", "--quick", "--only", SCENARIOS.join(","), "--out", folder],
    { encoding: "utf8", timeout: MS_MAX }
  )
  assert.strictEqual(status, 0, stderr)
  const { scenarios } = JSON.parse(readFileSync(join(folder, "results.json"), "utf8")) as Results
  assert.deepStrictEqual(
    scenarios.map(({ name }) => name),
    SCENARIOS
  )
  const page = readFileSync(join(folder, "README.md"), "utf8")
  for (const { name, values } of scenarios.flatMap(({ figures }) => figures)) {
    assert.lengthOf(values, 1, name)
    assert.isAbove(values[0]!, 0, name)
    assert.include(stdout, name)
    assert.include(page, name)
  }
  const charts = readdirSync(folder).filter((file) => file.endsWith(".svg"))
  assert.isAbove(charts.length, SCENARIOS.length)
  for (const chart of charts) assert.include(page, chart)
})

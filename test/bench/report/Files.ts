/** The files that a run leaves behind, and the way of its results into docs/. */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { chartsOf } from "./Charts.ts"
import { reportText, resultsText, withFigures } from "./Markdown.ts"
import type { Results, ScenarioResult } from "./Results.ts"

const RESULTS = "results.json"

export const resultsJson = (results: Results): string => `${JSON.stringify(results, null, 2)}\n`

/** What a folder of an earlier run holds; undefined if nothing. */
export const readResults = (folder: string): Results | undefined => {
  const path = join(folder, RESULTS)
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Results) : undefined
}

const chartNames = (scenario: ScenarioResult): ReadonlyArray<string> =>
  chartsOf(scenario).map(([name]) => name)

const writeCharts = (folder: string, results: Results): void => {
  mkdirSync(folder, { recursive: true })
  for (const old of globSync(join(folder, "*.svg"))) rmSync(old)
  for (const [name, chart] of results.scenarios.flatMap(chartsOf)) {
    writeFileSync(join(folder, `${name}.svg`), chart)
  }
}

/** results.json, README.md and a chart for each unit of each scenario. */
export const writeResults = (folder: string, results: Results): void => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, RESULTS), resultsJson(results))
  writeFileSync(join(folder, "README.md"), reportText(results, { folder: "", of: chartNames }))
  writeCharts(folder, results)
}

const DOCS_PAGE = "docs/speed.md"
const DOCS_CHARTS = "docs/speed"
/** The numbers of docs/speed.md, as a run left them. */
export const DOCS_JSON = "docs/speed.json"

/** docs/speed.md with the figures of these results. */
export const docsPage = (page: string, results: Results): string =>
  withFigures(page, resultsText(results, "###", { folder: "speed/", of: chartNames }))

/** Puts the results of a run into docs/. */
export const writeDocs = (folder: string): void => {
  const results = readResults(folder)
  if (results === undefined) throw new Error(`${folder} has no ${RESULTS}: run npm run bench first`)
  const failed = results.scenarios.filter((scenario) => scenario.failed !== undefined)
  if (failed.length > 0) {
    throw new Error(
      `${failed.map(({ name }) => name).join(", ")} failed: run them again with --add`
    )
  }
  if (results.quick) throw new Error(`${folder} is of --quick, whose numbers say nothing`)
  writeFileSync(DOCS_JSON, resultsJson(results))
  writeFileSync(DOCS_PAGE, docsPage(readFileSync(DOCS_PAGE, "utf8"), results))
  writeCharts(DOCS_CHARTS, results)
}

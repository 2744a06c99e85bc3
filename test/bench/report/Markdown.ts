/** The report as Markdown: that of a run, and the figures of docs/speed.md. */
import { markdownTable, originText, tablesOf } from "./Format.ts"
import type { Results, ScenarioResult } from "./Results.ts"

/** Of a scenario, the names of its charts without `.svg`; `folder` leads to them from the page. */
export interface ChartLinks {
  readonly folder: string
  readonly of: (scenario: ScenarioResult) => ReadonlyArray<string>
}

const WIDTH = 100

/** Breaks a text into lines of at most 100 characters where words end. */
export const wrap = (text: string): string => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > WIDTH) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line].join("\n")
}

const scenarioText = (scenario: ScenarioResult, heading: string, charts: ChartLinks): string =>
  [
    `${heading} ${scenario.title}`,
    wrap(scenario.about),
    ...(scenario.failed === undefined ? [] : [`**Failed**: ${scenario.failed.split("\n")[0]}`]),
    ...tablesOf(scenario).map(markdownTable),
    ...charts.of(scenario).map((name) => `![${scenario.title}](${charts.folder}${name}.svg)`)
  ].join("\n\n")

/** Where and when, then scenario by scenario. `heading`: the hashes of a scenario's title. */
export const resultsText = (results: Results, heading: string, charts: ChartLinks): string =>
  results.scenarios.length === 0
    ? "No run has been put here yet."
    : [
        wrap(originText(results)),
        ...results.scenarios.map((scenario) => scenarioText(scenario, heading, charts))
      ].join("\n\n")

export const reportText = (results: Results, charts: ChartLinks): string =>
  `# alk bench\n\n${resultsText(results, "##", charts)}\n`

const BEGIN = "<!-- Figures: written by npm run bench, not by hand. -->"
const END = "<!-- End of the figures. -->"

/** The page with other figures between its two marks. */
export const withFigures = (page: string, figures: string): string => {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`the page lacks ${BEGIN} and ${END}`)
  return `${page.slice(0, begin + BEGIN.length)}\n\n${figures}\n\n${page.slice(end)}`
}

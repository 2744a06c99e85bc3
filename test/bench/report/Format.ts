/** Numbers, goals and tables as text: the same on the terminal and in Markdown. */
import { type Figure, type Machine, type Results, reached, type ScenarioResult } from "./Results.ts"
import { summarise } from "./Statistics.ts"

const DIGITS = 3

/** A number with three significant digits and commas: 52,300; 41.2; 0.418. */
export const formatNumber = (value: number): string => {
  if (value === 0) return "0"
  const digits = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(Math.abs(value))))
  const scale = 10 ** (DIGITS - 1 - Math.floor(Math.log10(Math.abs(value))))
  const rounded = Math.round(value * scale) / scale
  return rounded.toLocaleString("en-US", {
    minimumFractionDigits: 0,
    maximumFractionDigits: Math.min(digits, 6)
  })
}

const withUnit = (value: number, { unit }: Figure): string =>
  unit === "ratio" ? formatNumber(value) : `${formatNumber(value)} ${unit}`

export type Row = ReadonlyArray<string>

export interface Table {
  readonly head: Row
  readonly rows: ReadonlyArray<Row>
}

const nameOf = ({ name, of }: Figure): string => (of === "this" ? name : `${name} (against)`)

const goalOf = (figure: Figure): string => {
  if (figure.goal === undefined) return ""
  return `${withUnit(figure.goal, figure)}: ${reached(figure) ? "reached" : "missed"}`
}

/** The figures of a scenario that are no parts of a sum. */
export const figureTable = (figures: ReadonlyArray<Figure>): Table | undefined => {
  const shown = figures.filter(({ sum }) => sum === undefined)
  if (shown.length === 0) return undefined
  return {
    head: ["", "median", "lowest to highest", "runs", "goal"],
    rows: shown.map((figure) => {
      const { high, low, median, runs } = summarise(figure.values)
      const spread = runs === 1 ? "" : `${formatNumber(low)} to ${formatNumber(high)}`
      return [nameOf(figure), withUnit(median, figure), spread, String(runs), goalOf(figure)]
    })
  }
}

/** What is the sum of parts: a row a sum, a column a part. */
export interface Sums {
  readonly unit: string
  readonly parts: ReadonlyArray<string>
  readonly rows: ReadonlyArray<{ readonly name: string; readonly values: ReadonlyArray<number> }>
}

/** The medians of the parts; undefined if there are none. */
export const sumsOf = (figures: ReadonlyArray<Figure>): Sums | undefined => {
  const parts = figures.filter(({ sum }) => sum !== undefined)
  const first = parts[0]
  if (first === undefined) return undefined
  const names = [...new Set(parts.map(({ name }) => name))]
  const rowOf = (figure: Figure): string =>
    figure.of === "this" ? figure.sum! : `${figure.sum} (against)`
  const rows = [...new Set(parts.map(rowOf))].map((row) => ({
    name: row,
    values: names.map((name) => {
      const found = parts.find((figure) => figure.name === name && rowOf(figure) === row)
      return found === undefined ? 0 : summarise(found.values).median
    })
  }))
  return { unit: first.unit, parts: names, rows }
}

export const sumTable = ({ parts, rows, unit }: Sums): Table => ({
  head: [unit, ...parts, "sum"],
  rows: rows.map(({ name, values }) => [
    name,
    ...values.map((value) => formatNumber(value)),
    formatNumber(values.reduce((sum, value) => sum + value, 0))
  ])
})

/** The tables of a scenario, without those that have no rows. */
export const tablesOf = ({ figures }: ScenarioResult): ReadonlyArray<Table> => {
  const plain = figureTable(figures)
  const sums = sumsOf(figures)
  return [...(plain === undefined ? [] : [plain]), ...(sums === undefined ? [] : [sumTable(sums)])]
}

const cell = (text: string): string => text.replaceAll("|", "\\|")

export const markdownTable = ({ head, rows }: Table): string =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows]
    .map((row) => `| ${row.map(cell).join(" | ")} |`)
    .join("\n")

export const terminalTable = ({ head, rows }: Table): string => {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => row[column]!.length))
  )
  const line = (row: Row): string =>
    row
      .map((text, column) =>
        column === 0 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!)
      )
      .join("  ")
      .trimEnd()
  return [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join(
    "\n"
  )
}

/** The machine and what ran on it, in a sentence. */
export const machineText = (machine: Machine): string =>
  `${machine.cpu}, ${machine.cores} cores, ${machine.memory} GB of memory, Linux`
  + ` ${machine.kernel}, Node ${machine.node}, ClickHouse ${machine.clickhouse}, Kafka`
  + ` ${machine.kafka}, Java ${machine.java}; load average before the run ${machine.loadBefore}`

/** When, where and of which commit, in sentences. */
export const originText = ({ against, day, machine, quick, scenarios }: Results): string => {
  const commits = [...new Set(scenarios.map(({ commit }) => commit))].join(", ")
  return (
    `Measured on ${day} at commit ${commits}${against === undefined ? "" : ` against ${against}`}`
    + ` on: ${machineText(machine)}.`
    + (quick ? " A quick run: small numbers, for a look only." : "")
  )
}

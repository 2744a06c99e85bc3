/** Which charts a scenario has: one a unit, and one for sums of parts. */
import { barChart, stackChart } from "./Chart.ts"
import { formatNumber, sumsOf } from "./Format.ts"
import type { Figure, ScenarioResult, Unit } from "./Results.ts"
import { summarise } from "./Statistics.ts"

const FILE_PARTS: Readonly<Record<Unit, string>> = {
  "events/s": "events-per-second",
  "operations/s": "operations-per-second",
  "spans/s": "spans-per-second",
  "records/s": "records-per-second",
  "rows/s": "rows-per-second",
  "requests/s": "requests-per-second",
  "deliveries/s": "deliveries-per-second",
  "MB/s": "megabytes-per-second",
  ratio: "ratios",
  ms: "milliseconds",
  s: "seconds",
  µs: "microseconds",
  MB: "megabytes",
  streams: "streams"
}

const barOf = (figure: Figure) => {
  const { high, low, median } = summarise(figure.values)
  return {
    name: figure.of === "this" ? figure.name : `${figure.name} (against)`,
    value: median,
    low,
    high,
    other: figure.of === "against",
    ...(figure.goal === undefined ? {} : { goal: figure.goal })
  }
}

interface Group {
  /** Empty for what has no chart of its own. */
  readonly group: string
  readonly figures: ReadonlyArray<Figure>
}

/** Figures whose names begin alike, up to a colon, have a chart of their own from so many on. */
const GROUP_MIN = 6

const prefixOf = ({ name }: Figure): string => /^(.*?): /.exec(name)?.[1] ?? ""

const groupsOf = (figures: ReadonlyArray<Figure>): ReadonlyArray<Group> => {
  const counts = Map.groupBy(figures, prefixOf)
  const isOwn = (figure: Figure): boolean =>
    prefixOf(figure) !== "" && counts.get(prefixOf(figure))!.length >= GROUP_MIN
  const rest = figures.filter((figure) => !isOwn(figure))
  const own = [...counts].filter(([, members]) => isOwn(members[0]!))
  return [
    ...(rest.length === 0 ? [] : [{ group: "", figures: rest }]),
    ...own.map(([group, members]) => ({
      group,
      figures: members.map((one) => ({ ...one, name: one.name.slice(group.length + 2) }))
    }))
  ]
}

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")

/** Sums that are more than so many times the smallest one get a chart of their own. */
const SCALE_MAX = 12

const stacksOf = ({ figures, name, title }: ScenarioResult) => {
  const sums = sumsOf(figures)
  if (sums === undefined) return []
  const sumOf = ({ values }: { readonly values: ReadonlyArray<number> }): number =>
    values.reduce((sum, value) => sum + value, 0)
  const most = SCALE_MAX * Math.min(...sums.rows.map(sumOf))
  const chart = (rows: typeof sums.rows) =>
    stackChart({ title, unit: sums.unit, parts: sums.parts, rows, format: formatNumber })
  const larger = sums.rows.filter((row) => sumOf(row) > most)
  return [
    [`${name}-parts`, chart(sums.rows.filter((row) => sumOf(row) <= most))] as const,
    ...(larger.length === 0 ? [] : [[`${name}-parts-larger`, chart(larger)] as const])
  ]
}

/** File names without `.svg`, and the pictures. One bar alone is no chart, nor are bars of nothing. */
export const chartsOf = (scenario: ScenarioResult): ReadonlyArray<readonly [string, string]> => {
  const { figures, name, title } = scenario
  const plain = figures.filter(({ sum }) => sum === undefined)
  const units = [...new Set(plain.map(({ unit }) => unit))]
  const charts = units.flatMap((unit) =>
    groupsOf(plain.filter((figure) => figure.unit === unit)).flatMap(
      ({ group, figures: grouped }) => {
        const bars = grouped.map(barOf)
        if (bars.length === 1 || bars.every(({ high }) => high === 0)) return []
        const file = [name, FILE_PARTS[unit], ...(group === "" ? [] : [slug(group)])].join("-")
        const heading = group === "" ? title : `${title}: ${group}`
        return [[file, barChart({ title: heading, unit, bars, format: formatNumber })] as const]
      }
    )
  )
  return [...charts, ...stacksOf(scenario)]
}

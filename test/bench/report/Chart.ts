/**
 * Bar charts as SVG without any library: one bar a row with lowest, highest and goal, or bars made
 * of parts. Colours follow the reader's light or dark scheme; every bar has its number in text.
 */

export interface Bar {
  readonly name: string
  readonly value: number
  readonly low: number
  readonly high: number
  readonly goal?: number
  /** Drawn in the second colour: the program that is compared with. */
  readonly other?: boolean
}

export interface BarChart {
  readonly title: string
  readonly unit: string
  readonly bars: ReadonlyArray<Bar>
  /** A value as text, without its unit. */
  readonly format: (value: number) => string
}

export interface StackChart {
  readonly title: string
  readonly unit: string
  readonly parts: ReadonlyArray<string>
  readonly rows: ReadonlyArray<{ readonly name: string; readonly values: ReadonlyArray<number> }>
  readonly format: (value: number) => string
}

const WIDTH = 880
const MARGIN = 16
const ROW = 24
const BAR = 14
/** Pixels of a character of the 12 pixel font, on the safe side. */
const CHARACTER = 6.7
const LABEL_MAX = 420
const NUMBER_WIDTH = 90
const TITLE_HEIGHT = 44
const LEGEND_ROW = 20

/** Hues that stay apart for the colour-blind, with a lighter form for a dark ground. */
const COLOURS: ReadonlyArray<readonly [light: string, dark: string]> = [
  ["#0b62a4", "#58a6ff"],
  ["#c2570c", "#f0883e"],
  ["#2c7a4b", "#56d364"],
  ["#8e3b8e", "#d2a8ff"],
  ["#9a6b00", "#e3b341"],
  ["#b42346", "#ff7b9c"],
  ["#3f7f8c", "#76e3ea"],
  ["#6b6b6b", "#b1bac4"],
  ["#5b4bb7", "#a5a0ff"],
  ["#8a5a3c", "#d9a066"]
]

const STYLE = `
  .ground { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
  .line { stroke: #1f2328 } .goal { stroke: #b42346 } .grid { stroke: #d1d9e0 }
  text { font: 12px system-ui, sans-serif } .title { font-size: 14px; font-weight: 600 }
${COLOURS.map(([light], index) => `  .c${index} { fill: ${light} }`).join("\n")}
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 }
    .line { stroke: #f0f6fc } .goal { stroke: #ff7b9c } .grid { stroke: #3d444d }
${COLOURS.map(([, dark], index) => `    .c${index} { fill: ${dark} }`).join("\n")}
  }`

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const pixels = (value: number): string => value.toFixed(1)

const textAt = (x: number, y: number, content: string, more = 'class="text"'): string =>
  `<text x="${pixels(x)}" y="${pixels(y)}" ${more}>${escaped(content)}</text>`

const barAt = (x: number, y: number, width: number, colour: number): string =>
  `<rect x="${pixels(x)}" y="${pixels(y)}" width="${pixels(Math.max(0, width))}" height="${BAR}"`
  + ` class="c${colour % COLOURS.length}"/>`

const lineAt = (from: readonly [number, number], to: readonly [number, number], kind: string) =>
  `<line x1="${pixels(from[0])}" y1="${pixels(from[1])}" x2="${pixels(to[0])}"`
  + ` y2="${pixels(to[1])}" class="${kind}"/>`

/** A name that fits its place; the whole of it is the row's tooltip. */
const shortened = (name: string): string => {
  const most = Math.floor(LABEL_MAX / CHARACTER)
  return name.length <= most ? name : `${name.slice(0, most - 1)}…`
}

const labelWidth = (names: ReadonlyArray<string>): number =>
  Math.min(LABEL_MAX, Math.max(...names.map((name) => name.length * CHARACTER)))

const svg = (height: number, title: string, unit: string, content: ReadonlyArray<string>): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}"`
      + ` height="${height}" role="img">`,
    `<title>${escaped(title)}, ${escaped(unit)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${height}"/>`,
    textAt(MARGIN, 24, title, 'class="text title"'),
    textAt(WIDTH - MARGIN, 24, unit, 'class="quiet" text-anchor="end"'),
    ...content,
    "</svg>\n"
  ].join("\n")

/** Where the bars begin, and pixels a unit of the scale. */
const scaleOf = (names: ReadonlyArray<string>, most: number) => {
  const left = MARGIN + labelWidth(names) + 10
  const room = WIDTH - MARGIN - NUMBER_WIDTH - left
  return { left, perUnit: most > 0 ? room / most : 0 }
}

/** Bars with the span from lowest to highest as a line, and the goal as a red mark. */
export const barChart = ({ bars, format, title, unit }: BarChart): string => {
  const names = bars.map(({ name }) => name)
  const most = Math.max(...bars.flatMap(({ goal = 0, high, value }) => [goal, high, value]))
  const { left, perUnit } = scaleOf(names, most)
  const height = TITLE_HEIGHT + bars.length * ROW + MARGIN
  const rows = bars.map((bar, row) => {
    const top = TITLE_HEIGHT + row * ROW
    const middle = top + BAR / 2
    const [low, high] = [left + bar.low * perUnit, left + bar.high * perUnit]
    const goal = left + (bar.goal ?? 0) * perUnit
    const end = Math.max(high, left + bar.value * perUnit)
    // The number keeps clear of the mark of the goal.
    const number = goal > end - 4 && goal < end + NUMBER_WIDTH - 20 ? goal : end
    return [
      `<g><title>${escaped(bar.name)}: ${format(bar.value)} ${escaped(unit)}</title>`,
      textAt(left - 8, middle + 4, shortened(bar.name), 'class="text" text-anchor="end"'),
      barAt(left, top, bar.value * perUnit, bar.other ? 1 : 0),
      ...(bar.high > bar.low ? [lineAt([low, middle], [high, middle], "line")] : []),
      ...(bar.goal === undefined ? [] : [lineAt([goal, top - 3], [goal, top + BAR + 3], "goal")]),
      textAt(number + 6, middle + 4, format(bar.value)),
      "</g>"
    ].join("")
  })
  return svg(height, title, unit, [
    lineAt([left, TITLE_HEIGHT - 4], [left, height - MARGIN + 4], "grid"),
    ...rows
  ])
}

/** The names of the parts with their colours, in lines. */
const legend = (parts: ReadonlyArray<string>): readonly [lines: number, content: string] => {
  let [x, line] = [MARGIN, 0]
  const entries = parts.map((part, index) => {
    const width = 24 + part.length * CHARACTER
    if (x + width > WIDTH - MARGIN) [x, line] = [MARGIN, line + 1]
    const y = TITLE_HEIGHT - 4 + line * LEGEND_ROW
    const entry =
      `<rect x="${pixels(x)}" y="${pixels(y)}" width="10" height="10"`
      + ` class="c${index % COLOURS.length}"/>${textAt(x + 15, y + 9, part)}`
    x += width + 8
    return entry
  })
  return [line + 1, entries.join("\n")]
}

/** Bars that are sums of parts. */
export const stackChart = ({ format, parts, rows, title, unit }: StackChart): string => {
  const sums = rows.map(({ values }) => values.reduce((sum, value) => sum + value, 0))
  const names = rows.map(({ name }) => name)
  const { left, perUnit } = scaleOf(names, Math.max(...sums))
  const [lines, entries] = legend(parts)
  const begin = TITLE_HEIGHT + lines * LEGEND_ROW
  const height = begin + rows.length * ROW + MARGIN
  const bars = rows.map(({ name, values }, row) => {
    const top = begin + row * ROW
    let x = left
    const segments = values.map((value, part) => {
      const segment = barAt(x, top, value * perUnit, part)
      x += value * perUnit
      return `<g><title>${escaped(parts[part]!)}: ${format(value)}</title>${segment}</g>`
    })
    return [
      textAt(left - 8, top + BAR / 2 + 4, shortened(name), 'class="text" text-anchor="end"'),
      ...segments,
      textAt(x + 6, top + BAR / 2 + 4, format(sums[row]!))
    ].join("")
  })
  return svg(height, title, unit, [entries, ...bars])
}

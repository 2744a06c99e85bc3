/**
 * Charts as inline SVG, with a text that says the same. Pure: numbers in, markup out.
 */
import { type Html, html, nothing } from "./Html.ts"
import { count, counted } from "./ShownText.ts"
import type { Bar, Timeline } from "./Timeline.ts"

/** Units of the drawing; it is scaled to the width of the column. */
const WIDTH = 680
const HEIGHT = 190
const LEFT = 46
const RIGHT = 6
const TOP = 10
const BOTTOM = 24
/** Lines above the zero line. */
const TICKS_MAX = 5
const LABELS_MAX = 6

const totalOf = ({ error, failure, success }: Bar): number => success + failure + error

/** Values of the horizontal lines from 0 up, in equal whole steps; the last is `most` or more. */
export const axisOf = (most: number): ReadonlyArray<number> => {
  const least = Math.max(1, most / TICKS_MAX)
  const power = 10 ** Math.floor(Math.log10(least))
  const factor = [1, 2, 5, 10].find((one) => one * power >= least) ?? 10
  const step = factor * power
  const steps = Math.max(1, Math.ceil(most / step))
  return Array.from({ length: steps + 1 }, (_, index) => index * step)
}

const fixed = (value: number): string => value.toFixed(1)

const gridLine = (value: number, y: number): Html =>
  html`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${fixed(y)}" y2="${fixed(y)}"/>
    <text class="tick" x="${LEFT - 6}" y="${fixed(y + 3)}" text-anchor="end">${count(value)}</text>`

/** Half of the width that a label takes at most. */
const LABEL_HALF = 30

/** A label below its bar; at the edges it ends there instead of being cut. */
const label = (x: number, text: string): Html => {
  const atEnd = x + LABEL_HALF > WIDTH - RIGHT
  const place = atEnd ? WIDTH - RIGHT : x
  return html`<text class="tick" x="${fixed(place)}" y="${HEIGHT - 8}"
    text-anchor="${atEnd ? "end" : "middle"}">${text}</text>`
}

/** Bars by time, stacked by outcome. */
export const timelineChart = ({ bars, unit }: Timeline): Html => {
  if (bars.length === 0) return nothing
  const ticks = axisOf(Math.max(...bars.map(totalOf)))
  const top = ticks.at(-1)!
  const height = HEIGHT - TOP - BOTTOM
  const slot = (WIDTH - LEFT - RIGHT) / bars.length
  const width = Math.min(slot * 0.72, 26)
  const yOf = (value: number) => TOP + height * (1 - value / top)
  const labelEvery = Math.ceil(bars.length / LABELS_MAX)
  const drawn = bars.map((bar, index) => {
    const x = LEFT + slot * index + (slot - width) / 2
    const piece = (className: string, from: number, value: number) =>
      value === 0
        ? nothing
        : html`<rect class="${className}" x="${fixed(x)}" width="${fixed(width)}" y="${fixed(
            yOf(from + value)
          )}" height="${fixed(Math.max(0.6, (height * value) / top))}"/>`
    const name = index % labelEvery === 0 ? label(x + width / 2, bar.label) : nothing
    const { error, failure, success } = bar
    return html`${piece("success", 0, success)}${piece("failure", success, failure)}${piece(
      "error",
      success + failure,
      error
    )}${name}`
  })
  return html`<svg class="chart" role="img" aria-label="${timelineText({ bars, unit })}"
    viewBox="0 0 ${WIDTH} ${HEIGHT}">${ticks.map((tick) => gridLine(tick, yOf(tick)))}${drawn}</svg>
  <p class="legend"><span class="swatch success"></span>success
    <span class="swatch failure"></span>failure
    <span class="swatch error"></span>error</p>`
}

/** What the chart shows, in a sentence. */
export const timelineText = ({ bars, unit }: Timeline): string => {
  const first = bars[0]
  const last = bars.at(-1)
  if (first === undefined || last === undefined) return "No events."
  const busiest = bars.reduce((most, bar) => (totalOf(bar) > totalOf(most) ? bar : most), first)
  const most = `${counted(totalOf(busiest), "event")} in ${busiest.label}`
  if (bars.length === 1) return `Events by ${unit} and outcome: ${most}.`
  const empty = bars.filter((bar) => totalOf(bar) === 0).length
  return (
    `Events by ${unit} and outcome, ${first.label} to ${last.label}: `
    + `${counted(bars.length, unit)}, ${count(empty)} without events; the most, ${most}.`
  )
}

/**
 * Tables of a report: a caption, a header that is repeated on every page, rows that stay whole.
 * Knows columns and cells, not what is in them.
 */
import { FIELD_LENGTH_MAX } from "./EventLine.ts"
import type { Groups } from "./EventSurvey.ts"
import { type Html, type HtmlPart, html, nothing } from "./Html.ts"
import { count, counted, cut, shown } from "./ShownText.ts"

export interface Column {
  readonly title: string
  /** Percent of the width. */
  readonly width: number
  readonly numeric?: boolean
}

export interface Table {
  readonly caption: HtmlPart
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<ReadonlyArray<HtmlPart>>
  readonly className?: string
  /** Class of a row by its index from 0; none if empty. */
  readonly rowClass?: (index: number) => string
}

const cell = (column: Column | undefined, content: HtmlPart): Html =>
  column?.numeric === true ? html`<td class="number">${content}</td>` : html`<td>${content}</td>`

const head = ({ numeric, title, width }: Column): Html =>
  html`<th scope="col" class="${numeric === true ? "number" : "words"}"
    style="width:${width}%">${title}</th>`

const line = (columns: Table["columns"], cells: ReadonlyArray<HtmlPart>, className: string): Html =>
  html`<tr${className === "" ? nothing : html` class="${className}"`}>${cells.map(
    (content, index) => cell(columns[index], content)
  )}</tr>`

export const table = ({
  caption,
  className = "",
  columns,
  rowClass = () => "",
  rows
}: Table): Html =>
  html`<table class="${className}"><caption>${caption}</caption>
    <thead><tr>${columns.map(head)}</tr></thead>
    <tbody>${rows.map((cells, index) => line(columns, cells, rowClass(index)))}</tbody>
  </table>`

/** Names and values side by side. */
export const facts = (
  pairs: ReadonlyArray<readonly [string, HtmlPart]>,
  className = "facts"
): Html =>
  html`<table class="${className}"><tbody>${pairs.map(
    ([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`
  )}</tbody></table>`

/** `12.5 %`; an exact zero and an exact whole are said as such. */
export const share = (part: number, whole: number): string => {
  if (whole === 0) return "–"
  if (part === 0 || part === whole) return `${part === 0 ? 0 : 100} %`
  const percent = (100 * part) / whole
  return percent < 0.1 ? "< 0.1 %" : percent > 99.9 ? "> 99.9 %" : `${percent.toFixed(1)} %`
}

/** Counts by one field with bars. */
export const groupTable = (
  caption: string,
  name: string,
  found: Groups | undefined,
  total: number
): Html => {
  if (found === undefined) {
    return html`<p class="none">${caption}: there are more different ones than a report counts.</p>`
  }
  const { groups, other } = found
  const largest = Math.max(1, ...groups.map((group) => group.count))
  const bar = (value: number) =>
    html`<span class="bar" style="width:${((100 * value) / largest).toFixed(1)}%"></span>`
  const rows = groups.map((group) => [
    shown(cut(group.key, FIELD_LENGTH_MAX)),
    bar(group.count),
    count(group.count),
    share(group.count, total)
  ])
  const rest =
    other === 0 ? [] : [[html`<i>all others</i>`, nothing, count(other), share(other, total)]]
  return table({
    caption,
    className: "groups",
    columns: [
      { title: name, width: 40 },
      { title: "Share", width: 32 },
      { title: "Events", width: 15, numeric: true },
      { title: "%", width: 13, numeric: true }
    ],
    rows: [...rows, ...rest]
  })
}

/** Says how much of a list is on the page and how much does not. */
export const extent = (shownRows: number, total: number, noun: string, where: string): Html =>
  shownRows === total
    ? html`<p class="extent">All ${counted(total, noun)} shown.</p>`
    : html`<p class="extent"><strong>${counted(shownRows, noun)} of ${count(total)} shown; ${count(
        total - shownRows
      )} left out</strong> ${where}</p>`

/** Characters that fit into a line of a command; what is longer may break anywhere. */
const UNBROKEN_LENGTH_MAX = 80

/** A line of a command breaks between its words, and behind the & of a query. */
const unbroken = (piece: string): Html => {
  if (piece.trim() === "" || piece.length > UNBROKEN_LENGTH_MAX) return html`${piece}`
  const rest = piece.endsWith("&") ? html`<wbr>` : nothing
  return html`<span class="unbroken">${piece}</span>${rest}`
}

/** Lines for a shell, as they are to be typed. */
export const command = (...lines: ReadonlyArray<string>): Html => {
  const pieces = lines.join("\n").match(/\s+|[^\s&]*&|[^\s&]+/gu) ?? []
  return html`<code class="command">${pieces.map(unbroken)}</code>`
}

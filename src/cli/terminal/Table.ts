/** Tables for a terminal: columns as wide as what is in them, cut to the width that there is. */

export interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string
  readonly isNumber?: boolean
  /** Cut only where there is no room with the others at their narrowest, as what a part says misleads. */
  readonly isWhole?: boolean
}

const GAP = "  "
/** Characters that a column keeps when there is too little room. */
const NARROWEST = 8
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/**
 * The text without what would move the cursor, colour the terminal or turn its direction: what is in
 * the log was written by others.
 */
export const plain = (text: string): string => text.replace(CONTROL, "\ufffd")

/** Columns that a character takes: East Asian wide ones and emoji two, combining ones none. */
const widthOfCharacter = (character: string): number => {
  if (/\p{Mark}|\u200d|\ufe0f/u.test(character)) return 0
  return /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
    character
  )
    ? 2
    : 1
}

/** Columns of a terminal that a text takes. */
export const widthOf = (text: string): number => {
  let width = 0
  for (const character of text) width += widthOfCharacter(character)
  return width
}

/** The text, with an ellipsis at its end where it has more columns than that. */
export const cut = (text: string, width: number): string => {
  if (widthOf(text) <= width) return text
  let kept = ""
  let used = 0
  for (const character of text) {
    const next = widthOfCharacter(character)
    if (used + next > width - 1) break
    kept += character
    used += next
  }
  return `${kept}…`
}

/** The text with spaces up to a width. */
export const pad = (text: string, width: number, isRight = false): string => {
  const spaces = " ".repeat(Math.max(0, width - widthOf(text)))
  return isRight ? spaces + text : text + spaces
}

/** A time to its minute; empty without one. */
export const minute = (time: string | undefined): string =>
  time?.slice(0, 16).replace("T", " ") ?? ""

/** The column to take from: the widest that may be cut, then the widest of all; -1 for none. */
const widestOf = (widths: ReadonlyArray<number>, isWhole: ReadonlyArray<boolean>): number => {
  const cuttable = widths.map((width, at) => (isWhole[at] ? 0 : width))
  const from = Math.max(...cuttable) > NARROWEST ? cuttable : widths
  const widest = Math.max(...from)
  return widest > NARROWEST ? from.indexOf(widest) : -1
}

/** Takes from columns as long as they need more than there is. */
const fitted = (
  widths: ReadonlyArray<number>,
  isWhole: ReadonlyArray<boolean>,
  room: number
): ReadonlyArray<number> => {
  const fitting = [...widths]
  let excess = fitting.reduce((sum, one) => sum + one, 0) - room
  for (; excess > 0; excess--) {
    const at = widestOf(fitting, isWhole)
    if (at < 0) break
    fitting[at] = fitting[at]! - 1
  }
  return fitting
}

/**
 * Writes a table page by page: gives what prints a page. Columns are as wide as what has come so far
 * needs, so nothing that fits is cut; where a later page needs more, the head is printed again.
 * `width` is that of the terminal.
 */
export const tablePages = <Row>(
  columns: ReadonlyArray<Column<Row>>,
  width: number
): ((rows: ReadonlyArray<Row>) => string) => {
  let natural = columns.map(({ title }) => widthOf(title))
  const isWhole = columns.map((column) => column.isWhole === true)
  let isBegun = false
  return (rows) => {
    const cells = rows.map((row) => columns.map(({ text }) => plain(text(row))))
    const needed = natural.map((before, at) =>
      Math.max(before, ...cells.map((line) => widthOf(line[at]!)))
    )
    const hasHead = !isBegun || needed.some((one, at) => one > natural[at]!)
    natural = needed
    isBegun = true
    const widths = fitted(natural, isWhole, width - GAP.length * (columns.length - 1))
    const line = (texts: ReadonlyArray<string>): string =>
      `${texts
        .map((text, at) => pad(cut(text, widths[at]!), widths[at]!, columns[at]!.isNumber))
        .join(GAP)
        .trimEnd()}\n`
    const head = hasHead ? line(columns.map(({ title }) => title)) : ""
    return head + cells.map(line).join("")
  }
}

/** The lines of a table with its head. `width` is that of the terminal. */
export const table = <Row>(
  columns: ReadonlyArray<Column<Row>>,
  rows: ReadonlyArray<Row>,
  width: number
): string => tablePages(columns, width)(rows)

/** Names and values under each other. */
export const details = (entries: ReadonlyArray<readonly [string, string]>): string => {
  const width = Math.max(...entries.map(([name]) => widthOf(name)))
  return entries.map(([name, value]) => `${pad(name, width)}${GAP}${plain(value)}\n`).join("")
}

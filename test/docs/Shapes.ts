/**
 * Whether a command prints what its page shows. Numbers, times and ids may differ, and so may the
 * widths of columns; `…` stands for anything up to the end of its line, or for any lines.
 */

const LINES = "…"

/** A line with signs in the place of what differs from run to run. */
const shapeOf = (line: string): string =>
  line
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?Z?)?/g, "TIME")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}/g, "ID")
    .replaceAll(/(?:\d+ min )?\d[\d,.]* (?:µs|ms|s)(?=\s|$)/g, "DURATION")
    .replaceAll(/\d[\d,.]*/g, "0")
    .replaceAll(/[\u2500-\u259f]+/g, "─")
    .replaceAll(/\s+/g, " ")
    .trim()

const fits = (expected: string, line: string): boolean => {
  const [beginning = "", rest] = shapeOf(expected).split(LINES)
  if (rest === undefined) return shapeOf(line) === beginning
  // An id may be cut in the page where its beginning alone is shown.
  return shapeOf(line).startsWith(beginning.replace(/\S+$/, ""))
}

const fitAt = (expected: ReadonlyArray<string>, lines: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = expected
  if (first === undefined) return true
  if (first.trim() === LINES) {
    return lines.some((_, index) => fitAt(rest, lines.slice(index))) || rest.length === 0
  }
  return lines[0] !== undefined && fits(first, lines[0]) && fitAt(rest, lines.slice(1))
}

/** True if the lines that the page shows are somewhere in what was printed, one after the other. */
export const showsPrinted = (shown: string, printed: string): boolean => {
  const lines = printed.split("\n").filter((line) => line.trim() !== "")
  const expected = shown.split("\n").filter((line) => line.trim() !== "")
  return lines.some((_, index) => fitAt(expected, lines.slice(index)))
}

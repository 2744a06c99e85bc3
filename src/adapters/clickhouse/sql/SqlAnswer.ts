/**
 * Answers to statements of clients as JSON, NDJSON and CSV, written from ClickHouse's format
 * JSONCompact: each column by its name, which has to be its own, and integers beyond 2^53, which most
 * readers of JSON would round, as texts. Step by step, since an answer may have 64 MiB.
 */
import { BYTE_ORDER_MARK, CSV_LINE_END, csvCell, csvText } from "../../../domain/CsvText.ts"
import { parseJson } from "../../../domain/json/Json.ts"
import { lineText } from "../../../domain/json/LineText.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import {
  SQL_BYTES_MAX,
  type SqlAnswer,
  type SqlColumn,
  type SqlForm,
  SqlRefused
} from "../../../ports/SqlStore.ts"
import { TOO_LARGE } from "./SqlFailure.ts"

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const OPENING = new Set([0x5b, 0x7b])
const CLOSING = new Set([0x5d, 0x7d])
/** Space, tab, CR and LF. */
const isBlank = (byte: number | undefined): boolean => byte !== undefined && byte <= 0x20

/** Characters of a piece of the answer, about. */
const PIECE_CHARACTERS = 262_144

const skipBlank = (json: Buffer, at: number): number => {
  let next = at
  while (isBlank(json[next])) next += 1
  return next
}

const CUT_OFF = "the answer of the store is cut off"

const endOfText = (json: Buffer, at: number): number => {
  for (let end = at; ; ) {
    end = json.indexOf(QUOTE, end + 1)
    if (end === -1) throw new Error(CUT_OFF)
    let before = end - 1
    while (json[before] === BACKSLASH) before -= 1
    if ((end - before) % 2 === 1) return end + 1
  }
}

/** Where the value that begins at a place ends. */
const endOfValue = (json: Buffer, at: number): number => {
  for (let [next, depth] = [at, 0]; ; ) {
    const byte = json[next]
    if (byte === undefined) throw new Error(CUT_OFF)
    if (byte === QUOTE) next = endOfText(json, next)
    else if (depth === 0 && (byte === COMMA || CLOSING.has(byte) || isBlank(byte))) return next
    else {
      if (OPENING.has(byte)) depth += 1
      if (CLOSING.has(byte)) depth -= 1
      next += 1
    }
    if (depth === 0 && (byte === QUOTE || CLOSING.has(byte))) return next
  }
}

/** The places of the elements of an array that begins at a place, and of the values of an object. */
function* elementsAt(
  json: Buffer,
  at: number
): Generator<readonly [from: number, to: number], void> {
  for (let next = skipBlank(json, at + 1); !CLOSING.has(json[next]!); ) {
    const end = endOfValue(json, next)
    yield [next, end]
    next = skipBlank(json, end)
    if (json[next] === COMMA) next = skipBlank(json, next + 1)
  }
}

const textAt = (json: Buffer, [from, to]: readonly [number, number]): string =>
  json.toString("utf8", from, to)

/** Beside the rows, what there is. */
interface Members {
  readonly columns: ReadonlyArray<SqlColumn>
  /** Where the array of the rows begins. */
  readonly rows: number
  /** Where that of the totals begins, if there are any. */
  readonly totals: number | undefined
  /** Counts, by their names. */
  readonly counts: ReadonlyMap<string, string>
}

const COLON = 0x3a

const membersOf = (json: Buffer): Members => {
  const places = new Map<string, readonly [number, number]>()
  for (let at = skipBlank(json, skipBlank(json, 0) + 1); json[at] === QUOTE; ) {
    const end = endOfText(json, at)
    const from = skipBlank(json, json.indexOf(COLON, end) + 1)
    const to = endOfValue(json, from)
    places.set(textAt(json, [at + 1, end - 1]), [from, to])
    at = skipBlank(json, to)
    if (json[at] === COMMA) at = skipBlank(json, at + 1)
  }
  const counts = [...places].filter(([name]) => name.startsWith("rows"))
  return {
    columns: parseJson(textAt(json, places.get("meta")!)) as unknown as ReadonlyArray<SqlColumn>,
    rows: places.get("data")![0],
    totals: places.get("totals")?.[0],
    counts: new Map(counts.map(([name, place]) => [name, textAt(json, place)]))
  }
}

/** The refusal of an answer in which a name means two columns: a row of JSON would hold one of them. */
export const sameNames = (columns: ReadonlyArray<SqlColumn>): SqlRefused | undefined => {
  const names = columns.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice === undefined) return undefined
  const message = `two columns have the name ${twice}: give one of them another by AS, as in x AS y`
  return new SqlRefused({ message })
}

/** Types whose values may be integers that a double can't hold. */
const WIDE = /Int(64|128|256)\b/
const NUMBER = /^(Nullable\(|LowCardinality\()*(U?Int|Float|BFloat|Decimal)/

/** Texts, and integers of so many digits that stand outside of them and are no part of a fraction. */
const TEXT_OR_INTEGER = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/gs

/** The JSON of a value of a type with wide integers; those beyond 2^53 become texts. */
const exact = (json: string): string =>
  json.length < 16
    ? json
    : json.replaceAll(TEXT_OR_INTEGER, (found) =>
        found.startsWith('"') || Number.isSafeInteger(Number(found)) ? found : `"${found}"`
      )

type Cell = (json: string) => string

const jsonCell = ({ type }: SqlColumn): Cell => (WIDE.test(type) ? exact : (json) => json)

const tableCell = ({ type }: SqlColumn): Cell => {
  const ofText = NUMBER.test(type) ? csvCell : csvText
  return (json) => {
    if (json === "null") return ""
    return json.startsWith('"') ? ofText(String(parseJson(json))) : csvCell(json)
  }
}

type Line = (cells: Iterator<string>) => string

const objectLine = (columns: ReadonlyArray<SqlColumn>): Line => {
  const members = columns.map(
    (column) => [`${JSON.stringify(column.name)}:`, jsonCell(column)] as const
  )
  return (cells) => `{${members.map(([name, of]) => name + of(cells.next().value)).join(",")}}`
}

const tableLine = (columns: ReadonlyArray<SqlColumn>): Line => {
  const cellsOf = columns.map(tableCell)
  return (cells) => cellsOf.map((of) => of(cells.next().value)).join(",")
}

function* cellsAt(json: Buffer, at: number): Generator<string, string> {
  for (const place of elementsAt(json, at)) yield textAt(json, place)
  return "null"
}

/** What stands before, between and behind the lines. */
interface Form {
  readonly line: Line
  readonly before: string
  readonly between: string
  readonly behind: string
}

const jsonForm = (json: Buffer, { columns, counts, totals }: Members): Form => {
  const line = objectLine(columns)
  const meta = JSON.stringify(columns.map(({ name, type }) => ({ name, type })))
  const rest = [
    ...(totals === undefined ? [] : [`"totals":${line(cellsAt(json, totals))}`]),
    ...[...counts].map(([name, count]) => `${JSON.stringify(name)}:${count}`)
  ]
  return {
    line,
    before: `{"meta":${meta},"data":[\n`,
    between: ",\n",
    behind: `\n],${rest.join(",")}}\n`
  }
}

const formOf = (json: Buffer, members: Members, { bom, format }: SqlForm): Form => {
  const { columns } = members
  if (format === "json") return jsonForm(json, members)
  if (format === "ndjson") {
    const object = objectLine(columns)
    const line: Line = (cells) => lineText(object(cells))
    return { line, before: "", between: "\n", behind: "\n" }
  }
  const header = columns.map(({ name }) => csvText(name)).join(",")
  return {
    line: tableLine(columns),
    before: `${bom === true ? BYTE_ORDER_MARK : ""}${header}${CSV_LINE_END}`,
    between: CSV_LINE_END,
    behind: CSV_LINE_END
  }
}

/** The answer in a form, or why it has no such form; throws where the JSON is not whole. */
export function* writtenAnswer(json: Buffer, form: SqlForm): Sliced<SqlAnswer | SqlRefused> {
  const members = membersOf(json)
  const refusal = sameNames(members.columns)
  if (refusal !== undefined) return refusal
  const { before, behind, between, line } = formOf(json, members, form)
  const pieces: Array<Buffer> = []
  let text = before
  let bytes = 0
  let isFirst = true
  for (const [from] of elementsAt(json, members.rows)) {
    text += `${isFirst ? "" : between}${line(cellsAt(json, from))}`
    isFirst = false
    if (text.length > PIECE_CHARACTERS) {
      const piece = Buffer.from(text)
      pieces.push(piece)
      bytes += piece.length
      text = ""
      if (bytes > SQL_BYTES_MAX) return new SqlRefused({ message: TOO_LARGE })
    }
    yield
  }
  const end = isFirst && form.format !== "json" ? "" : behind
  pieces.push(Buffer.from(text + end))
  return { bytes: Buffer.concat(pieces), columns: members.columns }
}

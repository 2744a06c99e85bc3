/** What ClickHouse says of a statement that it can't run, in words for the author of the statement. */
import {
  SQL_BYTES_MAX,
  SQL_MEMORY_MAX,
  SQL_ROWS_MAX,
  SQL_SECONDS_MAX
} from "../../../ports/SqlStore.ts"
import { placeOf, tokensOf } from "./SqlTokens.ts"

const MIB = 1_048_576

/** Exception codes of ClickHouse that are no fault of the statement. */
const NO_FAULT = new Set([
  "74",
  "75",
  "76",
  "202",
  "209",
  "210",
  "236",
  "242",
  "243",
  "252",
  "279",
  "497",
  "516",
  "999",
  "1000"
])

const sizes = `${SQL_ROWS_MAX.toLocaleString("en-US")} rows or ${SQL_BYTES_MAX / MIB} MiB`
export const TOO_LARGE = `the answer has more than ${sizes}: add a LIMIT`
export const TABLE_TOO_LARGE = `the table has more than ${sizes}: narrow it down, ask for fewer fields, or go on by after_sequence`

const TOO_SLOW = `it takes more than ${SQL_SECONDS_MAX} s: narrow it down, by time for example`

const LIMITS: Readonly<Record<string, string>> = {
  "159": TOO_SLOW,
  "160": TOO_SLOW,
  "241": `it takes more than ${SQL_MEMORY_MAX / MIB} MiB of memory: group by less, or narrow it down`,
  "396": TOO_LARGE
}

const CONVERSION =
  "a value can't be converted: use the function that gives NULL instead, as toInt64OrNull"
const TYPES = "an argument has a type that doesn't fit: convert it, by toString(x) for example"

/** In words of ours: those of ClickHouse repeat values of the data, and the text of the views. */
const FAULTS: Readonly<Record<string, string>> = {
  "6": CONVERSION,
  "27": CONVERSION,
  "32": CONVERSION,
  "36": "an argument has a value that it can't have",
  "38": CONVERSION,
  "41": CONVERSION,
  "42": "a function has too many arguments, or too few",
  "43": TYPES,
  "44": "an argument has to be a constant, or can't be one",
  "46": "ClickHouse has no such function: some names need their capitals, as toString",
  "47": "there is no such column",
  "48": "ClickHouse can't do this",
  "53": TYPES,
  "69": "an argument is out of its bounds",
  "70": CONVERSION,
  "72": CONVERSION,
  "80": "these clauses don't go together",
  "117": CONVERSION,
  "125": "a subquery in the place of a value gives more than one row",
  "153": "a division by zero: use intDivOrZero, or nullIf(x, 0)",
  "184": "an aggregate function has no place here: neither inside of another one, nor in WHERE",
  "207": "this name can be several columns: write the table before it",
  "215": "a column has to be in GROUP BY, or inside of an aggregate function",
  "258": "the sides of a set operation have different columns",
  "321": CONVERSION,
  "376": CONVERSION,
  "386": "values of types that don't fit stand in one place: convert them",
  "403": "this ON can't be used: write a.x = b.y",
  "407": CONVERSION,
  "427": "the regular expression can't be read",
  "628": "FETCH needs ORDER BY",
  "675": CONVERSION,
  "676": CONVERSION
}

/** What a message gives in quotes, and the function that it is about. */
const MENTIONED = /[`']([A-Za-z_][\w.]*)[`']|[Ff]unction ([A-Za-z_]\w*)/g

/** The first of what a message mentions that the statement itself says, and its place. */
const mentionOf = (message: string, sql: string): string | undefined => {
  const tokens = tokensOf(sql).filter(({ kind }) => kind === "word" || kind === "name")
  for (const [, quoted, called] of message.matchAll(MENTIONED)) {
    const name = (quoted ?? called)!.split(".").at(-1)!
    const token = tokens.find(({ text }) => text === name)
    if (token !== undefined) return `${placeOf(sql, token.at)}: ${name}`
  }
  return undefined
}

/** No memory is left for any statement. */
const isOfAll = (code: string, message: string): boolean =>
  code === "241" && message.includes("(total)")

/** Which limit a statement of ours has met; undefined for another failure. */
export const limitOf = (cause: unknown): string | undefined => {
  const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown }
  return isOfAll(String(code), String(message)) ? undefined : LIMITS[String(code)]
}

/** Why a statement of a client failed; undefined for a failure of the store itself. */
export const reasonOf = (cause: unknown, sql: string): string | undefined => {
  const { code, message, type } = cause as {
    readonly code?: unknown
    readonly message?: unknown
    readonly type?: unknown
  }
  if (typeof type !== "string" || typeof message !== "string") return undefined
  const number = String(code)
  if (NO_FAULT.has(number) || isOfAll(number, message)) return undefined
  const limit = LIMITS[number]
  if (limit !== undefined) return limit
  const fault = FAULTS[number] ?? `ClickHouse refuses it (${type})`
  const mention = mentionOf(message, sql)
  return mention === undefined ? fault : `${mention}: ${fault}`
}

/** What ClickHouse says of a statement that it can't run, in words for the author of the statement. */
import {
  SQL_BYTES_MAX,
  SQL_MEMORY_MAX,
  SQL_ROWS_MAX,
  SQL_SECONDS_MAX
} from "../../../ports/SqlStore.ts"

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

/** Characters of a message at most. */
const MESSAGE_LENGTH_MAX = 500

/** Where a message goes on about the inside of the statement, the views among it. */
const REST =
  /([:.]? (in scope|while executing|while processing|in query)\b|\. Expected one of|\. \(|\(version |Stack trace).*$/is

/** No memory is left for anybody. */
const isOfAll = (code: string, message: string): boolean =>
  code === "241" && message.includes("(total)")

/** Which limit a statement of ours has met; undefined for another failure. */
export const limitOf = (cause: unknown): string | undefined => {
  const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown }
  return isOfAll(String(code), String(message)) ? undefined : LIMITS[String(code)]
}

/** Undefined for a failure of the store itself. */
export const reasonOf = (cause: unknown): string | undefined => {
  const { code, message, type } = cause as {
    readonly code?: unknown
    readonly message?: unknown
    readonly type?: unknown
  }
  if (typeof type !== "string" || typeof message !== "string") return undefined
  const number = String(code)
  if (NO_FAULT.has(number) || isOfAll(number, message)) return undefined
  return LIMITS[number] ?? message.replace(REST, "").trim().slice(0, MESSAGE_LENGTH_MAX)
}

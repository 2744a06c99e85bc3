/** Searches in the texts of an event, as ClickHouse conditions. */
import { withoutCase } from "../../../domain/events/SearchText.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { ErasedEvents } from "./ErasedEvents.ts"
import { SEARCH_LEFT } from "./SearchText.ts"

/** Texts that hold this one. */
export const holding = (column: string, text: string, bind: Parameters): string =>
  `${column} LIKE ${bind.string(`%${text.replace(/[\\%_]/g, "\\$&")}%`)}`

/**
 * No stored text holds U+0000, which separates the texts of the search column. The column is in
 * lower case, where a sigma has two forms.
 */
export const searchCondition = (q: string, bind: Parameters, marks: ErasedEvents): string => {
  if (q.includes("\0")) return "false"
  const wanted = withoutCase(q)
  const hasSigma = wanted.includes("σ")
  const inText = (text: string) =>
    `position(${hasSigma ? `replaceAll(${text}, 'ς', 'σ')` : text}, ${bind.string(wanted)}) > 0`
  const found = hasSigma ? inText("search") : holding("search", wanted, bind)
  return `${found} AND ${marks.unless(inText(SEARCH_LEFT))}`
}

/**
 * A filter of the domain as a ClickHouse condition that means the same. Every value is a bound
 * parameter. Knows nothing of paging.
 */
import { filterFields } from "../../../domain/events/EventFields.ts"
import {
  type EventFilter,
  type MetadataCondition,
  metadataPathCandidates,
  withoutCase
} from "../../../domain/events/EventFilter.ts"
import { NESTING_MAX } from "../../../domain/json/StrictJson.ts"
import { withFloatDigits } from "../client/JsonColumns.ts"
import type { Parameters } from "../client/Parameters.ts"

/** Numbers that ClickHouse prints as RFC 8785 does, so that their text is found in the column. */
const PLAIN_NUMBER = /^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,10})?$/
const PLAIN_NUMBER_MIN = 0.001

/** Characters that no writer of JSON escapes. */
const UNESCAPED_RUN = /[^"\\/\u0000-\u001f\u007f\u2028\u2029]+/g

const longestRun = (value: string): string =>
  (value.match(UNESCAPED_RUN) ?? []).reduce(
    (longest, run) => (run.length > longest.length ? run : longest),
    ""
  )

/** The number whose RFC 8785 text is `value`. */
const numberOf = (value: string): number | undefined => {
  const number = Number(value)
  return Number.isFinite(number) && String(number) === value ? number : undefined
}

/**
 * JSON texts that `value` matches: the string, and the number, boolean or null written like it. A
 * run of digits beyond 64 bits is made a double as in the column.
 */
const matchingTexts = (value: string): ReadonlyArray<string> => [
  JSON.stringify(value),
  ...(value === "true" || value === "false" || value === "null" ? [value] : []),
  ...(numberOf(value) === undefined ? [] : [/^-?[0-9]{19,}$/.test(value) ? `${value}e0` : value])
]

/**
 * A text that every row which matches holds in its metadata column; it spares the parser most rows.
 * Empty where there is none.
 */
const neededText = (value: string): string => {
  const number = numberOf(value)
  const plain =
    number === undefined
    || number === 0
    || (PLAIN_NUMBER.test(value) && Math.abs(number) >= PLAIN_NUMBER_MIN)
  return plain ? longestRun(value) : ""
}

/** The value at the first path that exists, as JSON; empty if none does. */
const firstFound = (path: string, bind: Parameters): string | undefined => {
  const found = metadataPathCandidates(path).map(
    (keys) => `JSONExtractRaw(metadata, ${keys.map((key) => bind.string(key)).join(", ")})`
  )
  return found.length > 1 ? `arrayFirst(text -> text != '', [${found.join(", ")}])` : found[0]
}

/**
 * The elements of the array in `text` and of the arrays in it. Each turn opens one level, so as
 * many as there are brackets are enough; most arrays have one.
 */
const elements =
  "arrayFold((found, level) -> arrayFlatten(arrayMap(element ->"
  + ` if(startsWith(element, '['), JSONExtractArrayRaw(${withFloatDigits("element")}), [element]),`
  + ` found)), range(least(countSubstrings(text, '['), ${NESTING_MAX})), [text])`

const metadataCondition = ({ path, value }: MetadataCondition, bind: Parameters): string => {
  const found = firstFound(path, bind)
  if (found === undefined) return "false"
  // Written by the function that writes the column's values, so equal values are equal texts.
  const wanted = matchingTexts(value)
    .map((text) => `JSONExtractRaw(${bind.string(`{"v":${text}}`)}, 'v')`)
    .join(", ")
  const needed = neededText(value)
  const prefilter =
    needed === "" ? "metadata != ''" : `position(metadata, ${bind.string(needed)}) > 0`
  return (
    `${prefilter} AND arrayExists(text -> if(startsWith(text, '['),`
    + ` hasAny(${elements}, [${wanted}]),`
    + ` has([${wanted}], text)), [${found}])`
  )
}

/**
 * No stored text holds U+0000, which separates the texts of the search column. The column is in
 * lower case, where a sigma has two forms.
 */
const searchCondition = (q: string, bind: Parameters): string => {
  if (q.includes("\0")) return "false"
  const wanted = withoutCase(q)
  const searched = wanted.includes("σ") ? "replaceAll(search, 'ς', 'σ')" : "search"
  return `position(${searched}, ${bind.string(wanted)}) > 0`
}

/** True if every event of the tenant satisfies the filter. */
export const isUnfiltered = ({ metadata, ...conditions }: EventFilter): boolean =>
  metadata.length === 0 && Object.values(conditions).every((value) => value === undefined)

/** The rows of the tenant that satisfy the filter. */
export const filterCondition = (
  tenantId: string,
  filter: EventFilter,
  bind: Parameters
): string => {
  // Chains begin with 1: what is stored below is no event, and verification reports it.
  const conditions = [bind.tenant(tenantId), "sequence_number >= 1"]
  for (const {
    filter: { key },
    name
  } of filterFields) {
    const value = filter[key]
    if (value !== undefined) conditions.push(`${name} = ${bind.string(value)}`)
  }
  if (filter.actionPrefix !== undefined) {
    conditions.push(`startsWith(action, ${bind.string(filter.actionPrefix)})`)
  }
  if (filter.from !== undefined) conditions.push(`timestamp >= ${bind.time(filter.from)}`)
  if (filter.to !== undefined) conditions.push(`timestamp <= ${bind.time(filter.to)}`)
  if (filter.fromSequence !== undefined) {
    conditions.push(`sequence_number >= ${bind.integer(filter.fromSequence)}`)
  }
  if (filter.toSequence !== undefined) {
    conditions.push(`sequence_number <= ${bind.integer(filter.toSequence)}`)
  }
  for (const condition of filter.metadata) conditions.push(metadataCondition(condition, bind))
  if (filter.q !== undefined) conditions.push(searchCondition(filter.q, bind))
  return conditions.join(" AND ")
}

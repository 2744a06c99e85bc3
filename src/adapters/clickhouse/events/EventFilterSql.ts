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
import { IS_ERASED } from "./EventText.ts"
import { SEARCH_LEFT } from "./SearchText.ts"

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

/** A pattern of LIKE for texts that hold this one: the index of the column finds them. */
const holding = (column: string, text: string, bind: Parameters): string =>
  `${column} LIKE ${bind.string(`%${text.replace(/[\\%_]/g, "\\$&")}%`)}`

/** Tokens of a condition at most: more of them narrow it down no further. */
const TOKENS_MAX = 8

/**
 * The condition that a text is in the column as a whole value. Its words are words of the column,
 * which the index has, while a part of a word has to be sought in all of them.
 */
const holdingValue = (column: string, text: string, bind: Parameters): string => {
  const words = text.match(/[\w\u0080-\uffff]+/g) ?? []
  const tokens = [...new Set(words)].filter((word) => /^[A-Za-z0-9]+$/.test(word))
  if (tokens.length === 0) return holding(column, text, bind)
  return [
    ...tokens.slice(0, TOKENS_MAX).map((token) => `hasToken(${column}, '${token}')`),
    `position(${column}, ${bind.string(text)}) > 0`
  ].join(" AND ")
}

/** Metadata that simdjson reads, see withFloatDigits. */
const READABLE = `if(match(metadata, '[0-9]{19}'), ${withFloatDigits("metadata")}, metadata)`

/** The value at the first path that exists, as JSON; empty if none does. */
const firstFound = (path: string, bind: Parameters): string | undefined => {
  const found = metadataPathCandidates(path).map(
    (keys) => `JSONExtractRaw(${READABLE}, ${keys.map((key) => bind.string(key)).join(", ")})`
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

/** Reads the marks of erased events, which is apart from what reads by an index of texts. */
interface Marks {
  /** Condition for the rows that are not marked, or that are left by another condition. */
  readonly unless: (left?: string) => string
}

/**
 * A marked row still holds its details in the columns that are searched, until it is purged. ClickHouse
 * 26.7 gives wrong answers where one read takes its rows from an index of texts and a column from a
 * patch, so the marks are read for themselves.
 */
const marksOf = (table: string, tenant: string): Marks => ({
  unless: (left) =>
    `sequence_number NOT IN (SELECT sequence_number FROM ${table} WHERE ${tenant} AND ${IS_ERASED}`
    + ` AND body = ''${left === undefined ? "" : ` AND NOT (${left})`})`
})

const metadataCondition = (
  { path, value }: MetadataCondition,
  bind: Parameters,
  marks: Marks
): string => {
  const found = firstFound(path, bind)
  if (found === undefined) return "false"
  // Written by the function that writes the column's values, so equal values are equal texts.
  const wanted = matchingTexts(value)
    .map((text) => `JSONExtractRaw(${bind.string(`{"v":${text}}`)}, 'v')`)
    .join(", ")
  const needed = neededText(value)
  const prefilter =
    needed === ""
      ? "metadata != ''"
      : needed === value
        ? holdingValue("metadata", needed, bind)
        : holding("metadata", needed, bind)
  return (
    `${prefilter} AND ${marks.unless()} AND arrayExists(text -> if(startsWith(text, '['),`
    + ` hasAny(${elements}, [${wanted}]),`
    + ` has([${wanted}], text)), [${found}])`
  )
}

/**
 * No stored text holds U+0000, which separates the texts of the search column. The column is in
 * lower case, where a sigma has two forms.
 */
const searchCondition = (q: string, bind: Parameters, marks: Marks): string => {
  if (q.includes("\0")) return "false"
  const wanted = withoutCase(q)
  const hasSigma = wanted.includes("σ")
  const inText = (text: string) =>
    `position(${hasSigma ? `replaceAll(${text}, 'ς', 'σ')` : text}, ${bind.string(wanted)}) > 0`
  const found = hasSigma ? inText("search") : holding("search", wanted, bind)
  return `${found} AND ${marks.unless(inText(SEARCH_LEFT))}`
}

/** True if no row is found by an index of texts: then all columns can be read with the condition. */
export const isUnindexed = ({ actorId, metadata, q, resourceId }: EventFilter): boolean =>
  metadata.length === 0 && [actorId, q, resourceId].every((value) => value === undefined)

/** True if the filter is about more than places in the chain. */
export const isOfColumns = ({ fromSequence, toSequence, ...filter }: EventFilter): boolean =>
  filter.metadata.length > 0
  || Object.entries(filter).some(([name, value]) => name !== "metadata" && value !== undefined)

/** Chains begin with 1: what is stored below is no event, and verification reports it. */
const IS_EVENT = "sequence_number >= 1"
export const IS_NO_EVENT: string = `NOT (${IS_EVENT})`

/** The rows of the tenant in the table that satisfy the filter; reads no column that is patched. */
export const filterCondition = (
  table: string,
  tenantId: string,
  filter: EventFilter,
  bind: Parameters,
  isEvent: string = IS_EVENT
): string => {
  const tenant = bind.tenant(tenantId)
  const marks = marksOf(table, tenant)
  const conditions = [tenant, isEvent]
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
  for (const condition of filter.metadata) {
    conditions.push(metadataCondition(condition, bind, marks))
  }
  if (filter.q !== undefined) conditions.push(searchCondition(filter.q, bind, marks))
  return conditions.join(" AND ")
}

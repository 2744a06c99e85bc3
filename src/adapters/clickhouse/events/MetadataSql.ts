/** Conditions on values in metadata, as ClickHouse conditions. */
import type { MetadataCondition } from "../../../domain/events/EventFilter.ts"
import {
  metadataPathCandidates,
  metadataPathParts,
  metadataPathSegments
} from "../../../domain/events/MetadataPath.ts"
import type { Question } from "../../../domain/events/where/Expression.ts"
import { quote } from "../../../domain/json/CanonicalJson.ts"
import { NESTING_MAX } from "../../../domain/json/Json.ts"
import { withFloatDigits } from "../client/JsonColumns.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { ErasedEvents } from "./ErasedEvents.ts"
import { holding } from "./SearchSql.ts"

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

/** Metadata that simdjson reads, see withFloatDigits. */
const READABLE = `if(match(metadata, '[0-9]{19}'), ${withFloatDigits("metadata")}, metadata)`

/** The value in a JSON object at the first path that exists, as JSON; empty if none does. */
const firstFound = (path: string, bind: Parameters, json: string): string | undefined => {
  const found = metadataPathCandidates(path).map(
    (keys) => `JSONExtractRaw(${json}, ${keys.map((key) => bind.string(key)).join(", ")})`
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

const present = (texts: string): string => `arrayFilter(text -> text != '', ${texts})`

/** What is found at a path in the objects of the lists among some texts. */
const inLists = (texts: string, path: string, bind: Parameters): string => {
  const items = `arrayFlatten(arrayMap(text -> if(startsWith(text, '['), ${elements}, []), ${texts}))`
  const found = firstFound(path, bind, withFloatDigits("item"))!
  return present(`arrayMap(item -> if(startsWith(item, '{'), ${found}, ''), ${items})`)
}

/**
 * The values at the path as JSON, several for a path through lists: an array, whose texts are empty
 * where there is no value. Undefined for a path of too many keys.
 */
const foundTexts = (path: string, bind: Parameters): string | undefined => {
  const whole = firstFound(path, bind, READABLE)
  if (whole === undefined) return undefined
  const [first = "", ...others] = metadataPathParts(path)
  if (first === path) return `[${whole}]`
  const list = `[${firstFound(first, bind, READABLE)!}]`
  const walked = others.reduce((texts, part) => inLists(texts, part, bind), list)
  return `if(${whole} != '', [${whole}], ${walked})`
}

export const metadataCondition = (
  { path, value }: MetadataCondition,
  bind: Parameters,
  marks: ErasedEvents
): string => {
  const found = foundTexts(path, bind)
  if (found === undefined) return "false"
  // Written by the function that writes the column's values, so equal values are equal texts.
  const wanted = matchingTexts(value)
    .map((text) => `JSONExtractRaw(${bind.string(`{"v":${text}}`)}, 'v')`)
    .join(", ")
  const needed = neededText(value)
  const prefilter = needed === "" ? "metadata != ''" : holding("metadata", needed, bind)
  return (
    `${prefilter} AND ${marks.unless()} AND arrayExists(text -> if(startsWith(text, '['),`
    + ` hasAny(${elements}, [${wanted}]),`
    + ` has([${wanted}], text)), ${found})`
  )
}

/** A text that every row with a value at the path holds in its metadata: a piece of its last key. */
const keyHeld = (path: string, bind: Parameters): string => {
  const last = metadataPathSegments(metadataPathParts(path).at(-1)!).at(-1)!
  const needed = longestRun(last)
  return needed === "" ? "metadata != ''" : holding("metadata", needed, bind)
}

/** Whether an element, as JSON, answers the question. */
const elementHolds = (question: Exclude<Question, { readonly is: string }>, bind: Parameters) => {
  if ("exists" in question) return "element != ''"
  if ("startsWith" in question) {
    const wanted = `JSONExtractRaw(${bind.string(`{"v":${quote(question.startsWith)}}`)}, 'v')`
    return `startsWith(element, substring(${wanted}, 1, length(${wanted}) - 1))`
  }
  const wanted = `CAST(${bind.string(question.value)} AS Float64)`
  return `${IS_NUMBER} AND ${ELEMENT_NUMBER} ${question.sign} ${wanted}`
}

/** The number that an element is; only for those that are one. */
const ELEMENT_NUMBER = `JSONExtractFloat(${withFloatDigits("element")})`
const IS_NUMBER = "match(element, '^-?[0-9]')"

/** The text of an element by which a filter finds it: a string as it is, the rest as JSON. */
const elementText = `if(startsWith(element, '"'), JSONExtractString(concat('[', element, ']'), 1), element)`

/** The value at the path as a text: a string as it is, the rest as JSON; NULL where there is none. */
export const metadataText = (path: string, bind: Parameters): string => {
  const found = foundTexts(path, bind)
  if (found === undefined) return "CAST(NULL, 'Nullable(String)')"
  const one = `if(${found}[1] = '', NULL, arrayMap(element -> ${elementText}, ${found})[1])`
  if (metadataPathParts(path).length === 1) return one
  const list = `if(empty(${found}), NULL, concat('[', arrayStringConcat(${found}, ','), ']'))`
  return `if(${firstFound(path, bind, READABLE)!} != '', ${one}, ${list})`
}

/**
 * The texts of the values at the path, those of a list each once, for the rows that meet the condition:
 * that there is a value.
 */
export const metadataTexts = (
  path: string,
  bind: Parameters,
  marks: ErasedEvents
): { readonly condition: string; readonly expression: string } => {
  const found = foundTexts(path, bind)
  if (found === undefined) return { condition: "false", expression: "[]::Array(String)" }
  const values = `arrayMap(text -> if(startsWith(text, '['), ${elements}, [text]), ${found})`
  return {
    condition: `${keyHeld(path, bind)} AND ${marks.unless()} AND arrayExists(text -> text != '', ${found})`,
    expression: `arrayDistinct(arrayMap(element -> ${elementText}, arrayFlatten(${values})))`
  }
}

/** The numbers at the path, those of a list too, of any row: a list that is empty where there are none. */
export const metadataNumbers = (path: string, bind: Parameters, marks: ErasedEvents): string => {
  const found = foundTexts(path, bind)
  if (found === undefined) return "[]::Array(Float64)"
  const has = `${keyHeld(path, bind)} AND ${marks.unless()}`
  const values = `arrayMap(text -> if(startsWith(text, '['), ${elements}, [text]), ${found})`
  return (
    `arrayMap(element -> ${ELEMENT_NUMBER}, arrayFilter(element -> ${IS_NUMBER},`
    + ` if(${has}, arrayFlatten(${values}), [])))`
  )
}

/** The condition that a value at the path, or an element of a list there, answers the question. */
export const metadataHolds = (
  path: string,
  question: Exclude<Question, { readonly is: string }>,
  bind: Parameters,
  marks: ErasedEvents
): string => {
  const found = foundTexts(path, bind)
  if (found === undefined) return "false"
  const values = "exists" in question ? "[text]" : `if(startsWith(text, '['), ${elements}, [text])`
  return (
    `${keyHeld(path, bind)} AND ${marks.unless()} AND arrayExists(text ->`
    + ` arrayExists(element -> ${elementHolds(question, bind)}, ${values}), ${found})`
  )
}

/**
 * The query language of the API as far as the console edits it: conditions `field:value,value` that a
 * click on a value adds and takes away. What a person has typed beside them stays as it is. Pure.
 */

/** A value as an expression has it: in quotes if it must be. */
export const whereValue = (value: string): string =>
  /^[^\s()",*\\]+$/.test(value) && !/^(?:AND|OR|NOT)$/.test(value)
    ? value
    : `"${value.replaceAll(/["\\]/g, "\\$&")}"`

/** Pieces of a text between separators that are in no quotes and no brackets. */
const split = (text: string, isSeparator: (character: string) => boolean): Array<string> => {
  const pieces = [""]
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    const last = pieces.length - 1
    if (character === "\\") {
      pieces[last] += text.slice(at, at + 2)
      at += 1
    } else if (!isQuoted && depth === 0 && isSeparator(character)) {
      pieces.push("")
    } else {
      if (character === '"') isQuoted = !isQuoted
      if (!isQuoted && character === "(") depth += 1
      if (!isQuoted && character === ")") depth -= 1
      pieces[last] += character
    }
  }
  return pieces
}

const termsOf = (where: string): Array<string> =>
  split(where, (character) => /\s/.test(character)).filter((term) => term !== "")

/** True if one more condition would belong to the last alternative alone. */
export const hasAlternatives = (where: string): boolean => termsOf(where).includes("OR")

const readValue = (text: string): string =>
  (text.startsWith('"') && text.endsWith('"') && text.length > 1
    ? text.slice(1, -1)
    : text
  ).replaceAll(/\\([^])/g, "$1")

const OPERATORS = new Set(["NOT", "AND", "OR"])

/** Place and texts of the condition that lists values of a field; undefined without one. */
const conditionOf = (
  where: string,
  field: string
):
  | { readonly terms: Array<string>; readonly at: number; readonly texts: Array<string> }
  | undefined => {
  if (hasAlternatives(where)) return undefined
  const terms = termsOf(where)
  const at = terms.findIndex(
    (term, place) => term.startsWith(`${field}:`) && terms[place - 1] !== "NOT"
  )
  if (at === -1) return undefined
  const texts = split(terms[at]!.slice(field.length + 1), (character) => character === ",")
  // `field:*` and `field:a*` ask for more than their text.
  return texts.some((text) => !text.startsWith('"') && /(?<!\\)\*$/.test(text))
    ? undefined
    : { terms, at, texts }
}

/** The values of a field that the expression lists. */
export const chosenValues = (where: string, field: string): ReadonlySet<string> =>
  new Set(conditionOf(where, field)?.texts.map(readValue) ?? [])

/** The expression with a condition more. */
export const withCondition = (where: string, condition: string): string => {
  const before = where.trim()
  if (before === "") return condition
  return hasAlternatives(before) ? `(${before}) ${condition}` : `${before} ${condition}`
}

/** Adds a value of a field to the expression, or takes it away if it is listed there. */
export const toggleValue = (where: string, field: string, value: string): string => {
  const found = conditionOf(where, field)
  if (found === undefined) return withCondition(where, `${field}:${whereValue(value)}`)
  const { at, terms, texts } = found
  const isListed = texts.some((text) => readValue(text) === value)
  const left = isListed
    ? texts.filter((text) => readValue(text) !== value)
    : [...texts, whereValue(value)]
  const replaced = left.length === 0 ? [] : [`${field}:${left.join(",")}`]
  return terms
    .toSpliced(at, 1, ...replaced)
    .filter((term, place, all) => !OPERATORS.has(term) || isOperatorBetween(all, place))
    .join(" ")
}

/** AND between two terms, NOT before one: what a removed term leaves behind goes with it. */
const isOperatorBetween = (terms: ReadonlyArray<string>, place: number): boolean => {
  const next = terms[place + 1]
  const hasNext = next !== undefined && next !== "AND"
  return terms[place] === "NOT" ? hasNext : hasNext && place > 0
}

/** Fields of the language, for completion. */
export const whereFields = [
  "action",
  "actor_id",
  "actor_type",
  "actor_email",
  "resource_id",
  "resource_type",
  "resource_name",
  "outcome",
  "timestamp",
  "created_at",
  "sequence_number",
  "id",
  "hash",
  "prev_hash",
  "content_hash",
  "metadata."
] as const

/** The word that the cursor is in, and where it begins. */
export const wordBefore = (
  text: string,
  cursor: number
): { readonly word: string; readonly start: number } => {
  const pieces = split(text.slice(0, cursor), (character) => /[\s]/.test(character))
  const word = pieces.at(-1)!.replace(/^[-(]+/, "")
  return { word, start: cursor - word.length }
}

/** The expression without the word between two places, and without what only negates it. */
export const restOf = (text: string, start: number, end: number): string =>
  `${text.slice(0, start).replace(/(?:-|\bNOT\s+)$/, "")}${text.slice(end)}`.trim()

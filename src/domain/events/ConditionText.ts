/**
 * Conditions as parameters of the API write them: a sign at the end of a name, several values with
 * commas, `*` for what starts with a text.
 */
import { Result } from "effect"
import type { Comparison } from "./where/Expression.ts"

/** Name, sign and values of a condition. */
export interface ConditionText {
  /** Of the field, or `metadata.` and the path. */
  readonly name: string
  readonly sign: "=" | "!=" | Comparison
  readonly values: string
}

/** One of the values. */
export interface ValueText {
  readonly text: string
  /** A `*` follows it. */
  readonly isOpen: boolean
}

/** A character of a name: one with a `\` before it belongs to no sign. */
const LETTER = String.raw`(?:\\[\\!<>=]|[^\\]|\\(?![\\!<>=]))`
/** A name, its sign and, where there was no `=` outside of it, the value. */
const SIGNED = new RegExp(`^(${LETTER}*?)(!=?|[<>]=?)$`, "s")
const UNEQUAL = new RegExp(`^(${LETTER}*?)!=(.+)$`, "s")
const COMPARED = new RegExp(`^(${LETTER}*?)([<>]=?)([^<>=!]+)$`, "s")

const nameOf = (text: string): string => text.replace(/\\([\\!<>=])/g, "$1")

/** A sign at the end of a name, before the `=` that ends the name in a query. */
const beforeEqual = (sign: string): ConditionText["sign"] =>
  sign.startsWith("!") ? "!=" : (`${sign[0]}=` as ">=" | "<=")

/**
 * What the name and the text of a parameter mean. In a query the first `=` ends the name, so
 * `amount>=5` is `5` under the name `amount>`, and `amount>5` is a name without a text; with the
 * sign percent-encoded `amount>=5` is one too.
 */
export const readCondition = (name: string, text: string): ConditionText => {
  if (text === "") {
    const [, unequal, excluded] = UNEQUAL.exec(name) ?? []
    if (unequal !== undefined) return { name: nameOf(unequal), sign: "!=", values: excluded! }
    const [, compared, sign, bound] = COMPARED.exec(name) ?? []
    if (compared !== undefined) {
      return { name: nameOf(compared), sign: sign as Comparison, values: bound! }
    }
  }
  const [, signed, sign] = SIGNED.exec(name) ?? []
  return signed === undefined
    ? { name: nameOf(name), sign: "=", values: text }
    : { name: nameOf(signed), sign: beforeEqual(sign!), values: text }
}

/** The values of a text, or what is wrong with it; of a list, a comma is between two of them. */
export const readValues = (
  text: string,
  isList: boolean
): Result.Result<ReadonlyArray<ValueText>, string> => {
  const values: Array<ValueText> = []
  let value = ""
  let isOpen = false
  const ends = () => {
    if (value === "" && !isOpen) return false
    values.push({ text: value, isOpen })
    value = ""
    isOpen = false
    return true
  }
  for (const [letter] of text.matchAll(/\\[\\,*]|[^]/g)) {
    if (letter === "," && isList) {
      if (!ends()) return Result.fail(EMPTY_VALUE)
    } else if (isOpen) {
      return Result.fail(OPEN_INSIDE)
    } else if (letter === "*") {
      isOpen = true
    } else {
      value += letter.length === 2 && letter[0] === "\\" ? letter[1] : letter
    }
  }
  return ends() ? Result.succeed(values) : Result.fail(EMPTY_VALUE)
}

const EMPTY_VALUE = "has an empty value; a comma that is part of a value is written \\,"
const OPEN_INSIDE = "may have * only at the end of a value; a * that is part of it is written \\*"

/** A text of one value, as a list of values has it. */
export const listedValue = (value: string): string => value.replace(/[\\,*]/g, "\\$&")

/** A text of one value, where there is no list. */
export const singleValue = (value: string): string => value.replace(/[\\*]/g, "\\$&")

/** The name of a parameter whose last characters are no sign. */
export const parameterName = (name: string): string => name.replace(/[\\!<>=]/g, "\\$&")

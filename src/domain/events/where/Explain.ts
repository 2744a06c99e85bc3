/** An expression in words, so that a person sees how a text of the language was read. */
import type { Comparison, Condition, Expression } from "./Expression.ts"

const comparisons: Readonly<Record<Comparison, string>> = {
  ">": "is more than",
  ">=": "is at least",
  "<": "is less than",
  "<=": "is at most"
}
const ofTimes: Readonly<Record<Comparison, string>> = {
  ">": "is after",
  ">=": "is at or after",
  "<": "is before",
  "<=": "is at or before"
}

const quoted = (text: string): string => `“${text}”`

const isTime = (condition: Condition): boolean =>
  "field" in condition && (condition.field === "timestamp" || condition.field === "created_at")

/** Without a fraction that says nothing. */
const timeText = (text: string): string => text.replace(/\.?0*Z$/, "Z")

const subjectOf = (condition: Condition): string =>
  "field" in condition ? condition.field : `metadata.${condition.metadata}`

const explainCondition = (condition: Condition): string => {
  const subject = subjectOf(condition)
  if ("exists" in condition) return `${subject} is there`
  if ("startsWith" in condition) return `${subject} starts with ${quoted(condition.startsWith)}`
  const text = (value: string) => (isTime(condition) ? timeText(value) : value)
  if ("is" in condition) return `${subject} is ${quoted(text(condition.is))}`
  const signs = isTime(condition) ? ofTimes : comparisons
  return `${subject} ${signs[condition.sign]} ${text(condition.value)}`
}

/** `a is “x” or “y”` of conditions that ask one subject for one of several values. */
const oneOfValues = (parts: ReadonlyArray<Expression>): string | undefined => {
  const asked = parts.filter((part) => "is" in part)
  const [first] = asked
  if (first === undefined || asked.length !== parts.length) return undefined
  const subject = subjectOf(first)
  return asked.every((part) => subjectOf(part) === subject)
    ? `${subject} is ${asked.map(({ is }) => quoted(is)).join(" or ")}`
    : undefined
}

const isJoined = (expression: Expression): boolean =>
  "and" in expression || ("or" in expression && oneOfValues(expression.or) === undefined)

const bracketed = (expression: Expression): string => {
  const text = explainWhere(expression)
  return isJoined(expression) ? `(${text})` : text
}

export const explainWhere = (expression: Expression): string => {
  if ("and" in expression) return expression.and.map(bracketed).join(" and ")
  if ("or" in expression) {
    return oneOfValues(expression.or) ?? expression.or.map(bracketed).join(" or ")
  }
  if ("not" in expression) return `not (${explainWhere(expression.not)})`
  if ("search" in expression) return `any text contains ${quoted(expression.search)}`
  return explainCondition(expression)
}

/** An expression as a text of the language that means the same, whatever the time. */
import type { Condition, Expression } from "./Expression.ts"

/** Texts that need no quotes as a value. */
const PLAIN = /^[^\s()",*\\]+$/

const quoted = (text: string): string => `"${text.replace(/["\\]/g, "\\$&")}"`

const valueText = (text: string): string => (PLAIN.test(text) ? text : quoted(text))

/** Characters that would end a name. */
const nameText = (name: string): string => name.replace(/[\s()",:=!<>*\\]/g, "\\$&")

const conditionText = (condition: Condition): string => {
  const name = "field" in condition ? condition.field : `metadata.${nameText(condition.metadata)}`
  if ("exists" in condition) return `${name}:*`
  if ("is" in condition) return `${name}:${valueText(condition.is)}`
  if ("startsWith" in condition) return `${name}:${quoted(condition.startsWith)}*`
  return `${name}${condition.sign}${valueText(condition.value)}`
}

const bracketed = (expression: Expression): string => {
  const text = printWhere(expression)
  return "and" in expression || "or" in expression ? `(${text})` : text
}

export const printWhere = (expression: Expression): string => {
  if ("and" in expression) return expression.and.map(bracketed).join(" ")
  if ("or" in expression) return expression.or.map(bracketed).join(" OR ")
  if ("not" in expression) return `NOT ${bracketed(expression.not)}`
  if ("search" in expression) return quoted(expression.search)
  return conditionText(expression)
}

/** What an expression means: which events it is true of. The live stream asks this, lists ask SQL. */
import type { JsonValue } from "../../json/Json.ts"
import type { AuditEvent } from "../AuditEvent.ts"
import { memberAt } from "../EventFields.ts"
import { elementsOf, isScalarEqual, valueIn } from "../MetadataPath.ts"
import { matchesSearch } from "../SearchText.ts"
import {
  type Comparison,
  type Condition,
  type Expression,
  type Question,
  whereFields
} from "./Expression.ts"

const isOrdered = <A extends number | string>(left: A, sign: Comparison, right: A): boolean => {
  switch (sign) {
    case ">":
      return left > right
    case ">=":
      return left >= right
    case "<":
      return left < right
    case "<=":
      return left <= right
  }
}

const holdsOfElement = (element: JsonValue, question: Question): boolean => {
  if ("is" in question) return isScalarEqual(element, question.is)
  if ("startsWith" in question) {
    return typeof element === "string" && element.startsWith(question.startsWith)
  }
  if ("exists" in question) return true
  return typeof element === "number" && isOrdered(element, question.sign, Number(question.value))
}

const holdsOfMetadata = (event: AuditEvent, path: string, question: Question): boolean => {
  const found = event.metadata === undefined ? undefined : valueIn(event.metadata, path)
  if (found === undefined) return false
  return "exists" in question || elementsOf(found).some((one) => holdsOfElement(one, question))
}

/** Canonical times sort as texts. */
const holdsOfField = (
  event: AuditEvent,
  { field, ...question }: Extract<Condition, { readonly field: unknown }>
): boolean => {
  const value = memberAt(event, whereFields[field].path)
  if (value === undefined) return false
  if ("exists" in question) return true
  if ("is" in question) return String(value) === question.is
  if ("startsWith" in question) return String(value).startsWith(question.startsWith)
  return typeof value === "number"
    ? isOrdered(value, question.sign, Number(question.value))
    : isOrdered(String(value), question.sign, question.value)
}

/** True if the stored event is one that the expression means. */
export const holds = (expression: Expression, event: AuditEvent): boolean => {
  if ("and" in expression) return expression.and.every((one) => holds(one, event))
  if ("or" in expression) return expression.or.some((one) => holds(one, event))
  if ("not" in expression) return !holds(expression.not, event)
  if ("search" in expression) return matchesSearch(expression.search, event)
  return "field" in expression
    ? holdsOfField(event, expression)
    : holdsOfMetadata(event, expression.metadata, expression)
}

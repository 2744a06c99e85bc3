/** What an expression means: which events it is true of. The live stream asks this, lists ask SQL. */
import { memberAt, whereFields } from "../EventFields.ts"
import { allOf, askedPath, type Predicate } from "../FilteredEvent.ts"
import type { Elements } from "../MetadataPath.ts"
import { searchFor } from "../SearchText.ts"
import type { Comparison, Condition, Expression, Question } from "./Expression.ts"

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

const ofElements = (question: Question): ((elements: Elements) => boolean) => {
  if ("exists" in question) return () => true
  if ("is" in question) return ({ texts }) => texts.has(question.is)
  if ("startsWith" in question) {
    return ({ strings }) => strings.some((text) => text.startsWith(question.startsWith))
  }
  const value = Number(question.value)
  return ({ numbers }) => numbers.some((number) => isOrdered(number, question.sign, value))
}

const ofMetadata = (path: string, question: Question): Predicate => {
  const [asked, holds] = [askedPath(path), ofElements(question)]
  return (of) => {
    const elements = of.elementsAt(asked)
    return elements !== undefined && holds(elements)
  }
}

/** Canonical times sort as texts. */
const ofValue = (question: Question): ((value: unknown) => boolean) => {
  if ("exists" in question) return () => true
  if ("is" in question) return (value) => String(value) === question.is
  if ("startsWith" in question) return (value) => String(value).startsWith(question.startsWith)
  const number = Number(question.value)
  return (value) =>
    typeof value === "number"
      ? isOrdered(value, question.sign, number)
      : isOrdered(String(value), question.sign, question.value)
}

const ofField = ({
  field,
  ...question
}: Extract<Condition, { readonly field: unknown }>): Predicate => {
  const [{ path }, holds] = [whereFields[field], ofValue(question)]
  return ({ event }) => {
    const value = memberAt(event, path)
    return value !== undefined && holds(value)
  }
}

/** Whether a stored event is one that the expression means. */
export const meaningOf = (expression: Expression): Predicate => {
  if ("and" in expression) return allOf(expression.and.map(meaningOf))
  if ("or" in expression) {
    const any = expression.or.map(meaningOf)
    return (of) => any.some((holds) => holds(of))
  }
  if ("not" in expression) {
    const holds = meaningOf(expression.not)
    return (of) => !holds(of)
  }
  if ("search" in expression) {
    const isIn = searchFor(expression.search)
    return ({ searched }) => isIn(searched)
  }
  return "field" in expression ? ofField(expression) : ofMetadata(expression.metadata, expression)
}

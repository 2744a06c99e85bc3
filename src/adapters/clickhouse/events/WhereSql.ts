/** An expression of `where` as a ClickHouse condition that means the same as Matches.ts in the domain. */

import type { WhereField } from "../../../domain/events/EventFields.ts"
import type { Condition, Expression, Question } from "../../../domain/events/where/Expression.ts"
import { quote } from "../../../domain/json/CanonicalJson.ts"
import type { Parameters } from "../client/Parameters.ts"
import { columnValue, type DetailField, isDetail } from "./CountedSql.ts"
import type { ErasedEvents } from "./ErasedEvents.ts"
import { metadataCondition, metadataHolds } from "./MetadataSql.ts"
import { searchCondition } from "./SearchSql.ts"

/** A JSON text without its last quote: how the texts of all strings begin that begin with it. */
const jsonPrefix = (text: string): string => quote(text).slice(0, -1)

/** A detail of the event that a column holds as JSON, empty where it is absent. */
const detailHolds = (
  field: DetailField,
  question: Question,
  bind: Parameters,
  marks: ErasedEvents
): string => {
  const holds = (condition: string): string => `(${condition} AND ${marks.unless()})`
  if ("is" in question) return holds(`${field} = ${bind.string(quote(question.is))}`)
  return "startsWith" in question
    ? holds(`startsWith(${field}, ${bind.string(jsonPrefix(question.startsWith))})`)
    : holds(`${field} != ''`)
}

const ofNumber = (field: WhereField, question: Question, value: (text: string) => string) => {
  if ("is" in question) return `${field} = ${value(question.is)}`
  if ("sign" in question) return `${field} ${question.sign} ${value(question.value)}`
  return "true"
}

const fieldHolds = (
  { field, ...question }: Extract<Condition, { readonly field: unknown }>,
  bind: Parameters,
  marks: ErasedEvents
): string => {
  if (isDetail(field)) return detailHolds(field, question, bind, marks)
  switch (field) {
    case "sequence_number":
      return ofNumber(field, question, (text) => bind.integer(Number(text)))
    case "timestamp":
    case "created_at":
      return ofNumber(field, question, (text) => bind.time(text))
    default:
      if ("is" in question) return `${columnValue(field)} = ${bind.string(question.is)}`
      return "startsWith" in question
        ? `startsWith(${columnValue(field)}, ${bind.string(question.startsWith)})`
        : "true"
  }
}

/** The condition, in brackets where it needs them. */
export const whereSql = (expression: Expression, bind: Parameters, marks: ErasedEvents): string => {
  const each = (parts: ReadonlyArray<Expression>) => parts.map((one) => whereSql(one, bind, marks))
  if ("and" in expression) return `(${each(expression.and).join(" AND ")})`
  if ("or" in expression) return `(${each(expression.or).join(" OR ")})`
  if ("not" in expression) return `NOT ${whereSql(expression.not, bind, marks)}`
  if ("search" in expression) return `(${searchCondition(expression.search, bind, marks)})`
  if ("field" in expression) return `(${fieldHolds(expression, bind, marks)})`
  const { metadata: path, ...question } = expression
  return "is" in question
    ? `(${metadataCondition({ path, value: question.is }, bind, marks)})`
    : `(${metadataHolds(path, question, bind, marks)})`
}

/** What a value asks of a field or of metadata, and which values can be asked for. */
import { Result } from "effect"
import { canonicalize } from "../../json/CanonicalJson.ts"
import { type WhereField, whereFields } from "../EventFields.ts"
import type { Comparison, Expression, Question, Subject } from "./Expression.ts"
import { type TimeSpan, timeSpanOf } from "./TimeText.ts"

export interface ConditionValue {
  readonly text: string
  /** A `*` follows it. */
  readonly isOpen: boolean
  /** It is a `*` alone. */
  readonly isAny: boolean
}

/** The expression, or what is wrong with the value: the end of a sentence about the subject. */
type ValueCondition = Result.Result<Expression, string>

/** Characters of a value that a message repeats. */
const QUOTE_LENGTH_MAX = 80

const shown = (text: string): string =>
  JSON.stringify(text.length > QUOTE_LENGTH_MAX ? `${text.slice(0, QUOTE_LENGTH_MAX)}…` : text)

export const combined = (kind: "and" | "or", parts: ReadonlyArray<Expression>): Expression =>
  parts.length === 1 ? parts[0]! : kind === "and" ? { and: parts } : { or: parts }

/** The expression for a span of time: a day is more than a moment. */
const timeQuestion = (
  sign: Comparison | undefined,
  { first, last }: TimeSpan
): ReadonlyArray<Question> => {
  switch (sign) {
    case ">":
      return [{ sign, value: last }]
    case ">=":
      return [{ sign, value: first }]
    case "<":
      return [{ sign, value: first }]
    case "<=":
      return [{ sign, value: last }]
    default:
      return first === last
        ? [{ is: first }]
        : [
            { sign: ">=", value: first },
            { sign: "<=", value: last }
          ]
  }
}

const askedOfText = (
  field: WhereField,
  values: ReadonlyArray<string> | undefined,
  sign: Comparison | undefined,
  { isOpen, text }: ConditionValue
): ValueCondition => {
  if (sign !== undefined) return Result.fail("is a text, which has no order: use = or !=")
  if (isOpen) return Result.succeed({ field, startsWith: text })
  return values === undefined || values.includes(text)
    ? Result.succeed({ field, is: text })
    : Result.fail(`must be one of ${values.join(", ")}, not ${shown(text)}`)
}

const askedOfInteger = (
  field: WhereField,
  sign: Comparison | undefined,
  { text }: ConditionValue
): ValueCondition => {
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text))) {
    return Result.fail(`must be an integer from 0 on, not ${shown(text)}`)
  }
  const value = String(Number(text))
  return Result.succeed(sign === undefined ? { field, is: value } : { field, sign, value })
}

const askedOfTime = (
  field: WhereField,
  sign: Comparison | undefined,
  { text }: ConditionValue,
  now: string
): ValueCondition => {
  const span = timeSpanOf(text, now)
  if (span === undefined) return Result.fail(`${NO_TIME}, not ${shown(text)}`)
  const questions = timeQuestion(sign, span).map((question) => ({ field, ...question }))
  return Result.succeed(combined("and", questions))
}

/** What is said of a text that is no time. */
export const NO_TIME =
  "must be an RFC 3339 date-time from 1970 to 2261, a date, or a time from now such as -24h"

const askedOfMetadata = (
  metadata: string,
  sign: Comparison | undefined,
  { isOpen, text }: ConditionValue
): ValueCondition => {
  if (sign === undefined) {
    return Result.succeed({ metadata, ...(isOpen ? { startsWith: text } : { is: text }) })
  }
  const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)
  return isNumber && Number.isFinite(Number(text))
    ? Result.succeed({ metadata, sign, value: canonicalize(Number(text)) })
    : Result.fail(`is compared with a number, as in metadata.amount>10000, not ${shown(text)}`)
}

/** What a value asks of a subject; without a sign, whether it is equal. */
export const conditionOf = (
  subject: Subject,
  sign: Comparison | undefined,
  value: ConditionValue,
  now: string
): ValueCondition => {
  if (value.isOpen && sign !== undefined) return Result.fail("is compared with a value without *")
  if (value.isAny) return Result.succeed({ ...subject, exists: true })
  if ("metadata" in subject) return askedOfMetadata(subject.metadata, sign, value)
  const { field } = subject
  const known = whereFields[field]
  if (known.kind === "text") return askedOfText(field, known.values, sign, value)
  if (value.isOpen) return Result.fail("is no text, so no * can follow its values")
  return known.kind === "integer"
    ? askedOfInteger(field, sign, value)
    : askedOfTime(field, sign, value, now)
}

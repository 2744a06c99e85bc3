/**
 * The parameters that narrow events, shared by the list, the statistics and the stream, and their
 * translation into the domain's filter.
 */
import { Result } from "effect"
import { defined } from "../../domain/Defined.ts"
import { type WhereField, whereFields, whereNames } from "../../domain/events/EventFields.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import { combined } from "../../domain/events/where/ConditionValue.ts"
import { type Expression, WHERE_LENGTH_MAX } from "../../domain/events/where/Expression.ts"
import { WhereError } from "../../domain/events/where/Parse.ts"
import { printWhere } from "../../domain/events/where/Print.ts"
import { momentFromNow } from "../../domain/events/where/TimeText.ts"
import { expressionOf, fixedWhere, whereWithMoments } from "../../domain/events/where/Where.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { invalid } from "../messages/ApiError.ts"
import {
  type GivenCondition,
  integerParameter,
  type Parameter,
  refuseInverted,
  TIME_PATTERN,
  type TimedParameter,
  textParameter,
  timeParameter,
  type ValuesOf
} from "../messages/QueryParameters.ts"
import { readConditions, VALUES_MAX } from "./FilterConditions.ts"

/** Characters of `q` at most. */
export const SEARCH_LENGTH_MAX = 256

/**
 * Bytes of a filter as JSON at most: it becomes part of statements, several times, and of the events
 * that say what was exported.
 */
export const FILTER_BYTES_MAX = 16_384

const examples: Partial<Record<WhereField, string>> = {
  actor_id: "user_42",
  action: "document.*",
  resource_type: "document"
}

/** What can be said with a parameter of each kind. */
const forms = {
  text:
    "one of several values with commas between them, or repeated; `name!=` for none of them. `*` "
    + "after a value asks for what starts with it, `*` alone for what is there. Commas, `*` and "
    + "`\\` in a value have a `\\` before them.",
  integer: "one of several numbers; also with `!=`, `>`, `>=`, `<` and `<=`.",
  time:
    "a date-time, a date (the day in UTC) or a time from now such as `-24h`; also with `!=`, `>`, "
    + "`>=`, `<` and `<=`."
}

/** The schema of one value of each kind. */
const itemsOf = {
  text: { type: "string", minLength: 1 },
  integer: { type: "integer", format: "int64", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  time: { type: "string", pattern: TIME_PATTERN }
}

/** No comma is part of a time. */
const momentsOfValues = (values: string, now: string): string =>
  values
    .split(",")
    .map((text) => momentFromNow(text, now) ?? text)
    .join(",")

/** Fields that conditions are on, by the name of their parameter. */
export const conditionParameters = Object.fromEntries(
  whereNames.map((field): readonly [string, TimedParameter] => {
    const { kind, path, values } = whereFields[field]
    const items = values === undefined ? itemsOf[kind] : { type: "string", enum: values }
    return [
      field,
      {
        description: `\`${path.join(".")}\`: ${forms[kind]}`,
        schema: { type: "array", items, minItems: 1, maxItems: VALUES_MAX },
        ...(examples[field] === undefined ? {} : { example: [examples[field]] }),
        ...(kind === "time" ? { withMoments: momentsOfValues } : {})
      }
    ]
  })
)

const whereText = textParameter({
  description:
    "An expression, combined with the other filters: `outcome:failure,error actor:u_1* "
    + 'metadata.amount>10000 -action:login.* "free text"`. Conditions combine with AND, OR, NOT and '
    + "brackets; docs/query.md has the grammar.",
  example: "outcome!=success timestamp>=-24h",
  maxLength: WHERE_LENGTH_MAX
})

/** The value is the expression with the times that it means now. */
const whereParameter: Parameter<string> = {
  ...whereText,
  parse: (text, now = currentTime()) => {
    try {
      return Result.succeed(fixedWhere(text, now))
    } catch (error) {
      if (error instanceof WhereError) return Result.fail(error.message)
      throw error
    }
  },
  withMoments: whereWithMoments
}

/** What narrows events beside the conditions. */
export const filterParameters = {
  from: timeParameter("Inclusive lower bound on `timestamp`.", "first"),
  to: timeParameter("Inclusive upper bound on `timestamp`.", "last"),
  from_sequence: integerParameter({
    minimum: 0,
    description: "Inclusive lower bound on `sequence_number`."
  }),
  to_sequence: integerParameter({
    minimum: 0,
    description: "Inclusive upper bound on `sequence_number`."
  }),
  q: textParameter({
    description:
      "Case-insensitive substring of action, actor.id, actor.email, resource.id, resource.type, "
      + "resource.name or any string in metadata.",
    maxLength: SEARCH_LENGTH_MAX
  }),
  where: whereParameter
}

/** What a route says of a filter, where it has none because it covers every event of a range. */
export const unfilteredHints = (what: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...Object.keys(conditionParameters), ...Object.keys(filterParameters), "metadata."].map(
      (name) => [
        name,
        `${what} covers every event of a range; filters are parameters of GET /v1/events and of the `
          + "exports"
      ]
    )
  )

type FilterValues = ValuesOf<typeof filterParameters>

/** Expressions and one that was given, all of which have to be true. */
const joined = (
  expressions: ReadonlyArray<Expression>,
  where: string | undefined
): string | undefined => {
  if (expressions.length === 0) return where
  const given = where === undefined ? { and: [] } : expressionOf(where)
  const parts = "and" in given ? given.and : [given]
  return printWhere(combined("and", [...expressions, ...parts]))
}

/** Throws the ApiError that names the longest part of a filter that is too long. */
const refuseLong = (
  filter: EventFilter,
  conditions: ReadonlyArray<GivenCondition>,
  where: string | undefined,
  whole: string
): void => {
  const bytes = Buffer.byteLength(JSON.stringify(filter))
  if (bytes <= FILTER_BYTES_MAX) return
  const parts = conditions.map(({ label, name, values }) => ({
    label,
    length: name.length + values.length
  }))
  const written = {
    label: whole === "filters" ? "filters.where" : "where",
    length: where?.length ?? 0
  }
  const longest = parts.reduce((most, one) => (one.length > most.length ? one : most), written)
  const most = `the most is ${FILTER_BYTES_MAX}`
  throw invalid(longest.label, `is too long: all filters take ${bytes} bytes, ${most}`)
}

/**
 * The filter that the parameters mean at a time; throws the ApiError that names the parameter, or
 * `whole` where it is about all conditions on metadata.
 */
export const toFilter = (
  values: FilterValues,
  conditions: ReadonlyArray<GivenCondition>,
  now: string,
  whole = "metadata"
): EventFilter => {
  const { from, from_sequence: fromSequence, q, to, to_sequence: toSequence } = values
  refuseInverted(["from", "to"], from, to)
  refuseInverted(["from_sequence", "to_sequence"], fromSequence, toSequence)
  const { exact, expressions, metadata } = readConditions(conditions, now, whole)
  const where = joined(expressions, values.where)
  const bounds = { from, to, fromSequence, toSequence }
  const filter = { ...exact, ...defined({ ...bounds, q, where }), metadata }
  refuseLong(filter, conditions, values.where, whole)
  return filter
}

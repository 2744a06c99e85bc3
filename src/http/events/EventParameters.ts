/**
 * The parameters that narrow events, shared by the list, the statistics and the stream, and their
 * translation into the domain's filter. Knows nothing of how a filter is applied.
 */
import { Result } from "effect"
import {
  type FilterField,
  type FilterValue,
  filterFields
} from "../../domain/events/EventFields.ts"
import type { EventFilter, MetadataCondition } from "../../domain/events/EventFilter.ts"
import { WHERE_LENGTH_MAX } from "../../domain/events/where/Expression.ts"
import { WhereError } from "../../domain/events/where/Parse.ts"
import { fixedWhere } from "../../domain/events/where/Where.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { invalid } from "../messages/ApiError.ts"
import {
  choiceParameter,
  dateTimeParameter,
  integerParameter,
  type Parameter,
  refuseInverted,
  textParameter,
  type ValuesOf
} from "../messages/QueryParameters.ts"

/** Characters of `q` at most. */
export const SEARCH_LENGTH_MAX = 256

type ExactParameters = {
  readonly [F in FilterField as F["name"]]: Parameter<FilterValue<F>>
}

/** A parameter for each field that a filter can ask for. */
const exactParameters = Object.fromEntries(
  filterFields.map(({ filter, name }) => [
    name,
    "values" in filter ? choiceParameter(filter.values, filter) : textParameter(filter)
  ])
) as unknown as ExactParameters

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
  parse: (text) => {
    try {
      return Result.succeed(fixedWhere(text, currentTime()))
    } catch (error) {
      if (error instanceof WhereError) return Result.fail(error.message)
      throw error
    }
  }
}

/** Every condition but those on metadata. */
export const filterParameters = {
  ...exactParameters,
  from: dateTimeParameter("Inclusive lower bound on `timestamp`, RFC 3339."),
  to: dateTimeParameter("Inclusive upper bound on `timestamp`, RFC 3339."),
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
    [...Object.keys(filterParameters), "metadata."].map((name) => [
      name,
      `${what} covers every event of a range; filters are parameters of GET /v1/events and of the `
        + "exports"
    ])
  )

type FilterValues = ValuesOf<typeof filterParameters>

const actionCondition = (action: string): Pick<EventFilter, "action" | "actionPrefix"> => {
  const star = action.indexOf("*")
  if (star === -1) return { action }
  if (star !== action.length - 1 || !action.endsWith(".*") || action.length < 3) {
    throw invalid("action", "may have * only at the end, after a dot, as in document.*")
  }
  return { actionPrefix: action.slice(0, -1) }
}

/** The filter that the parameters mean; throws the ApiError that names the parameter. */
export const toFilter = (
  values: FilterValues,
  metadata: ReadonlyArray<MetadataCondition>
): EventFilter => {
  const {
    action,
    from,
    from_sequence: fromSequence,
    q,
    to,
    to_sequence: toSequence,
    where
  } = values
  refuseInverted(["from", "to"], from, to)
  refuseInverted(["from_sequence", "to_sequence"], fromSequence, toSequence)
  const exact = Object.fromEntries(
    filterFields.map(({ filter: { key }, name }) => [key, values[name]])
  )
  const given = Object.entries({ ...exact, from, to, fromSequence, toSequence, q, where }).filter(
    ([name, value]) => value !== undefined && name !== "action"
  )
  return {
    ...Object.fromEntries(given),
    ...(action === undefined ? {} : actionCondition(action)),
    metadata
  }
}

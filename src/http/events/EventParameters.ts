/**
 * The parameters that narrow events, shared by the list, the statistics and the stream, and their
 * translation into the domain's filter. Knows nothing of how a filter is applied.
 */

import type { EventFilter, MetadataCondition } from "../../domain/events/EventFilter.ts"
import { invalid } from "../messages/ApiError.ts"
import {
  choiceParameter,
  dateTimeParameter,
  integerParameter,
  refuseInverted,
  textParameter,
  type ValuesOf
} from "../messages/QueryParameters.ts"

/** Characters of `q` at most. */
export const SEARCH_LENGTH_MAX = 256

/** Every condition but those on metadata. */
export const filterParameters = {
  id: textParameter({ description: "Exact event id." }),
  actor_id: textParameter({ description: "Exact `actor.id`.", example: "user_42" }),
  actor_type: choiceParameter(["human", "agent", "system"], {
    description: "Exact `actor.type`."
  }),
  action: textParameter({
    description:
      "Exact action, or everything below a prefix: `document.*`. The `*` stands only after a "
      + "dot, at the end.",
    example: "document.*"
  }),
  resource_id: textParameter({ description: "Exact `resource.id`." }),
  resource_type: textParameter({ description: "Exact `resource.type`.", example: "document" }),
  outcome: choiceParameter(["success", "failure", "error"], { description: "Exact outcome." }),
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
  })
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

/** Without the members that are undefined. */
type Defined<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> }
const defined = <T extends object>(members: T): Defined<T> =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined)
  ) as Defined<T>

/** The filter that the parameters mean; throws the ApiError that names the parameter. */
export const toFilter = (
  values: FilterValues,
  metadata: ReadonlyArray<MetadataCondition>
): EventFilter => {
  refuseInverted(["from", "to"], values.from, values.to)
  refuseInverted(["from_sequence", "to_sequence"], values.from_sequence, values.to_sequence)
  return {
    ...defined({
      id: values.id,
      actorId: values.actor_id,
      actorType: values.actor_type,
      resourceId: values.resource_id,
      resourceType: values.resource_type,
      outcome: values.outcome,
      from: values.from,
      to: values.to,
      fromSequence: values.from_sequence,
      toSequence: values.to_sequence,
      q: values.q
    }),
    ...(values.action === undefined ? {} : actionCondition(values.action)),
    metadata
  }
}

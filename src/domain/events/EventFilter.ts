/**
 * What the event list, the statistics, the exports and the live stream can be narrowed by. The
 * store turns a filter into SQL, the live feed asks `matcherOf`; both must choose the same events.
 */
import { listedValue, parameterName, singleValue } from "./ConditionText.ts"
import { type ExactConditions, filterFields, memberAt } from "./EventFields.ts"
import { allOf, askedPath, type Predicate } from "./FilteredEvent.ts"
import { meaningOf } from "./where/Matches.ts"
import { expressionOf } from "./where/Where.ts"

export interface MetadataCondition {
  /** Path below `metadata`, dots walk nested objects; a key that holds the dots is tried first. */
  readonly path: string
  readonly value: string
}

/** Every condition is optional, all of them are combined with AND. */
export interface EventFilter extends ExactConditions {
  /** Everything below it; ends with a dot. Not together with `action`. */
  readonly actionPrefix?: string
  /** Inclusive bounds on `timestamp`, canonical microsecond form. */
  readonly from?: string
  readonly to?: string
  /** Inclusive bounds on `sequence_number`. */
  readonly fromSequence?: number
  readonly toSequence?: number
  readonly metadata: ReadonlyArray<MetadataCondition>
  /** Case-insensitive substring of the searchable texts. */
  readonly q?: string
  /** An expression of its own, see where/Where.ts; its times are fixed. */
  readonly where?: string
}

export const emptyFilter: EventFilter = { metadata: [] }

/** A condition as the parameter of the API that asks for it. */
export type NamedCondition = readonly [name: string, value: string]

/** The conditions of a filter that are not bounds, as parameters of the API. */
export const conditionsOf = (filter: EventFilter): ReadonlyArray<NamedCondition> => {
  const { actionPrefix, metadata, q, where } = filter
  const exact = filterFields.flatMap(({ filter: { key }, name }): ReadonlyArray<NamedCondition> => {
    const value = filter[key]
    return value === undefined ? [] : [[name, listedValue(value)]]
  })
  return [
    ...exact,
    ...(actionPrefix === undefined ? [] : [["action", `${listedValue(actionPrefix)}*`] as const]),
    ...(q === undefined ? [] : [["q", q] as const]),
    ...metadata.map(
      ({ path, value }) => [`metadata.${parameterName(path)}`, singleValue(value)] as const
    ),
    ...(where === undefined ? [] : [["where", where] as const])
  ]
}

const ofMetadata = ({ path, value }: MetadataCondition): Predicate => {
  const asked = askedPath(path)
  return (of) => of.elementsAt(asked)?.texts.has(value) === true
}

const ofFields =
  (filter: EventFilter): Predicate =>
  ({ event }) => {
    for (const {
      filter: { key },
      path
    } of filterFields) {
      const wanted = filter[key]
      if (wanted !== undefined && wanted !== memberAt(event, path)) return false
    }
    return filter.actionPrefix === undefined || event.action.startsWith(filter.actionPrefix)
  }

/** Canonical times sort as texts. */
const withinBounds =
  (filter: EventFilter): Predicate =>
  ({ event }) =>
    (filter.from === undefined || event.timestamp >= filter.from)
    && (filter.to === undefined || event.timestamp <= filter.to)
    && (filter.fromSequence === undefined || event.sequence_number >= filter.fromSequence)
    && (filter.toSequence === undefined || event.sequence_number <= filter.toSequence)

/** Whether a stored event satisfies every condition of the filter. */
export const matcherOf = (filter: EventFilter): Predicate =>
  allOf([
    ofFields(filter),
    withinBounds(filter),
    ...filter.metadata.map(ofMetadata),
    ...(filter.q === undefined ? [] : [meaningOf({ search: filter.q })]),
    ...(filter.where === undefined ? [] : [meaningOf(expressionOf(filter.where))])
  ])

/**
 * What a body says of the events that it covers: bounds of time and conditions, by the names of the
 * event list's parameters. Knows neither share links nor exports.
 */
import { Result } from "effect"
import { defined } from "../../domain/Defined.ts"
import { readCondition } from "../../domain/events/ConditionText.ts"
import { conditionsOf, type EventFilter } from "../../domain/events/EventFilter.ts"
import { METADATA_PREFIX } from "../../domain/events/MetadataPath.ts"
import type { JsonObject, JsonValue } from "../../domain/json/Json.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { invalid } from "../messages/ApiError.ts"
import type { GivenCondition } from "../messages/QueryParameters.ts"
import { whatWasMeant } from "../messages/UnknownParameter.ts"
import { conditionParameters, filterParameters, toFilter } from "./EventParameters.ts"

type FilterName = keyof typeof filterParameters

/** What `filters` takes: the bounds of time are given beside it. */
const filterNames = [
  ...Object.keys(conditionParameters),
  ...Object.keys(filterParameters).filter((name) => name !== "from" && name !== "to"),
  "metadata.<path>"
]

const isFilterName = (name: string): name is FilterName => Object.hasOwn(filterParameters, name)

/** Integers may also be sent as text, as in a query; nothing else may be a number. */
const readValue = (name: FilterName, field: string, value: JsonValue): unknown => {
  const isInteger = filterParameters[name].schema["type"] === "integer"
  if (value === "" || !(typeof value === "string" || (isInteger && typeof value === "number"))) {
    throw invalid(
      field,
      `must be ${isInteger ? "an integer, or a string with one" : "a string that is not empty"}`
    )
  }
  const parsed: Result.Result<unknown, string> = filterParameters[name].parse(String(value))
  if (Result.isFailure(parsed)) throw invalid(field, parsed.failure)
  return parsed.success
}

/**
 * The conditions of a member, one for each text. A name ends with its whole sign: in a query the
 * name `amount>` with a value is `>=`, while in an object it would look like `>`, so it is refused.
 */
const conditionsIn = (name: string, value: JsonValue): ReadonlyArray<GivenCondition> => {
  const label = `filters.${name}`
  const { name: subject, sign } = readCondition(name, "x")
  const isOrder = sign !== "=" && sign !== "!="
  if (isOrder && !name.endsWith("=")) {
    throw invalid(label, `ends with ${name}=, or is said in where, as in ${name}5`)
  }
  if (Array.isArray(value) && value.length === 0) throw invalid(label, "is an empty array")
  const mayBeNumber = isOrder || subject === "sequence_number"
  return (Array.isArray(value) ? value : [value]).map((one: JsonValue) => {
    if (one === "" || !(typeof one === "string" || (mayBeNumber && typeof one === "number"))) {
      const kind = mayBeNumber ? "a number or a string" : "a string that is not empty"
      throw invalid(label, `must be ${kind}, or an array of them`)
    }
    if (String(one).includes("\0")) throw invalid(label, "holds the character U+0000")
    return { label, name: subject, sign, values: String(one) }
  })
}

const isConditionName = (name: string): boolean => {
  const { name: subject } = readCondition(name, "x")
  return Object.hasOwn(conditionParameters, subject) || subject.startsWith(METADATA_PREFIX)
}

const filtersOf = (object: JsonObject): JsonObject => {
  const filters = object["filters"] ?? {}
  if (typeof filters === "object" && !Array.isArray(filters)) return filters as JsonObject
  throw invalid("filters", "must be an object of parameters of the event list")
}

/** What a body covers, by its members from, to and filters; throws the ApiError that names the field. */
export const scopeOf = (object: JsonObject): EventFilter => {
  const values: Record<string, unknown> = {}
  const conditions: Array<GivenCondition> = []
  for (const name of ["from", "to"] as const) {
    const value = object[name] ?? undefined
    if (value !== undefined) values[name] = readValue(name, name, value)
  }
  for (const [name, value] of Object.entries(filtersOf(object))) {
    const field = `filters.${name}`
    if (value === null) continue
    if (isConditionName(name)) {
      conditions.push(...conditionsIn(name, value))
    } else if (!isFilterName(name) || name === "from" || name === "to") {
      const meant = whatWasMeant(name, filterNames)
      throw invalid(
        field,
        `is not a filter of the event list; from and to are given beside filters; ${meant}`
      )
    } else {
      values[name] = readValue(name, field, value)
    }
  }
  return toFilter(values, conditions, currentTime(), "filters")
}

/** The same as answers show it: `null` is an open bound. */
export const shownScope = (filter: EventFilter) => ({
  from: filter.from ?? null,
  to: filter.to ?? null,
  filters: {
    ...Object.fromEntries(conditionsOf(filter)),
    ...defined({
      from_sequence: filter.fromSequence?.toString(),
      to_sequence: filter.toSequence?.toString()
    })
  }
})

/**
 * Conditions of a request, read into what a filter holds: a single exact value as the condition
 * that the store finds fastest, every other one as a part of the expression in `where`, so that
 * there is one meaning.
 */
import { Result } from "effect"
import { readValues, type ValueText } from "../../domain/events/ConditionText.ts"
import { filterFields, type WhereField } from "../../domain/events/EventFields.ts"
import type { EventFilter, MetadataCondition } from "../../domain/events/EventFilter.ts"
import { METADATA_PREFIX } from "../../domain/events/MetadataPath.ts"
import { combined, conditionOf } from "../../domain/events/where/ConditionValue.ts"
import {
  type Condition,
  type Expression,
  type Subject,
  WHERE_CONDITIONS_MAX
} from "../../domain/events/where/Expression.ts"
import { printWhere } from "../../domain/events/where/Print.ts"
import { invalid } from "../messages/ApiError.ts"
import {
  type GivenCondition,
  METADATA_CONDITIONS_MAX,
  metadataPath
} from "../messages/QueryParameters.ts"

/** Values of conditions in one request at most, those of `where` aside. */
export const VALUES_MAX = WHERE_CONDITIONS_MAX

/** One value of a condition. */
interface GivenValue {
  readonly given: GivenCondition
  readonly text: string
  readonly expression: Expression
}

/** What is asked of one subject. */
interface FieldConditions {
  readonly wanted: Map<string, GivenValue>
  readonly excluded: Map<string, GivenValue>
  readonly compared: Map<string, GivenValue>
}

/** The parts of a filter that conditions can be. */
interface ParsedFilter {
  readonly exact: Partial<EventFilter>
  readonly metadata: ReadonlyArray<MetadataCondition>
  /** All of them have to be true. */
  readonly expressions: ReadonlyArray<Expression>
}

const subjectOf = ({ label, name }: GivenCondition): Subject =>
  name.startsWith(METADATA_PREFIX)
    ? { metadata: metadataPath(label, name) }
    : { field: name as WhereField }

const valuesOf = (given: GivenCondition): ReadonlyArray<ValueText> => {
  const { label, name, sign, values } = given
  const isList = !name.startsWith(METADATA_PREFIX) && (sign === "=" || sign === "!=")
  const read = readValues(values, isList)
  if (Result.isFailure(read)) throw invalid(label, read.failure)
  return withWhole(given, read.success)
}

/** Fields whose values are texts of clients, in which commas are usual: names of LDAP are ids. */
const MAY_HOLD_COMMAS = new Set<string>([
  "id",
  "actor_id",
  "actor_email",
  "resource_id",
  "resource_type",
  "resource_name"
] satisfies ReadonlyArray<WhereField>)

/** Values of a text at most that is one value as well. */
const COMMAS_READ_MAX = 16

/**
 * The text with its commas as one value beside those between them, so that an id that is sent as
 * it is in the event is found.
 */
const withWhole = (
  { name, values }: GivenCondition,
  between: ReadonlyArray<ValueText>
): ReadonlyArray<ValueText> =>
  MAY_HOLD_COMMAS.has(name) && between.length > 1 && between.length <= COMMAS_READ_MAX
    ? [...between, { text: values, isOpen: false }]
    : between

/** Texts in which a plus sign was probably meant came as a space. */
const plusHint = (text: string): string => (/\d \d|^ \d/.test(text) ? "; write + as %2B" : "")

const askedBy = (
  given: GivenCondition,
  subject: Subject,
  { isOpen, text }: ValueText,
  now: string
): GivenValue => {
  const { label, sign } = given
  const comparison = sign === "=" || sign === "!=" ? undefined : sign
  const asked = conditionOf(
    subject,
    comparison,
    { text, isOpen, isAny: isOpen && text === "" },
    now
  )
  if (Result.isFailure(asked)) throw invalid(label, `${asked.failure}${plusHint(text)}`)
  return { given, text: `${text}${isOpen ? "*" : ""}`, expression: asked.success }
}

const take = ({ compared, excluded, wanted }: FieldConditions, asked: GivenValue): void => {
  const { label, sign } = asked.given
  const values = sign === "=" ? wanted : sign === "!=" ? excluded : compared
  if (values === compared && compared.has(sign)) throw invalid(label, "is given more than once")
  values.set(values === compared ? sign : printWhere(asked.expression), asked)
}

/** Throws ApiError where a value is both asked for and excluded. */
const refuseContradiction = ({ excluded, wanted }: FieldConditions): void => {
  for (const [key, { given, text }] of excluded) {
    const other = wanted.get(key)
    if (other === undefined) continue
    const value = JSON.stringify(text)
    const problem = `excludes ${value}, which ${other.given.label} asks for; leave out one of them`
    throw invalid(given.label, problem, "invalid_range")
  }
}

/** Throws ApiError where no number or time can be between two bounds. A list in metadata can be. */
const refuseEmptyRange = ({ compared }: FieldConditions): void => {
  const all = [...compared.values()].filter(({ expression }) => "field" in expression)
  const boundOf = ({ expression, given }: GivenValue): number | string => {
    const { value } = expression as Condition & { readonly value: string }
    return given.name === "sequence_number" ? Number(value) : value
  }
  for (const lower of all.filter(({ given }) => given.sign.startsWith(">"))) {
    const upper = all.find(
      (other) => other.given.sign.startsWith("<") && boundOf(lower) > boundOf(other)
    )
    if (upper !== undefined) {
      throw invalid(lower.given.label, `is after ${upper.given.label}`, "invalid_range")
    }
  }
}

const keys = new Map<string, string>(filterFields.map(({ filter: { key }, name }) => [name, key]))

/** A condition of a filter for a single value that has one. */
const exactOf = (expression: Expression): Partial<EventFilter> | undefined => {
  if (!("field" in expression)) return undefined
  const { field } = expression
  const key = keys.get(field)
  if ("is" in expression && key !== undefined) return { [key]: expression.is }
  const isPrefix = field === "action" && "startsWith" in expression
  return isPrefix && expression.startsWith.endsWith(".")
    ? { actionPrefix: expression.startsWith }
    : undefined
}

const readAsks = (asks: FieldConditions): ParsedFilter => {
  refuseContradiction(asks)
  refuseEmptyRange(asks)
  const wanted = [...asks.wanted.values()].map(({ expression }) => expression)
  const excluded = [...asks.excluded.values()].map(({ expression }) => expression)
  const compared = [...asks.compared.values()].map(({ expression }) => expression)
  const rest = [...(excluded.length === 0 ? [] : [{ not: combined("or", excluded) }]), ...compared]
  const only = wanted.length === 1 ? wanted[0]! : undefined
  if (only !== undefined && "metadata" in only && "is" in only) {
    const metadata = [{ path: only.metadata, value: only.is }]
    return { exact: {}, metadata, expressions: rest }
  }
  const exact = only === undefined ? undefined : exactOf(only)
  if (exact !== undefined) return { exact, metadata: [], expressions: rest }
  const any = wanted.length === 0 ? [] : [combined("or", wanted)]
  return { exact: {}, metadata: [], expressions: [...any, ...rest] }
}

/**
 * What conditions mean at a time; throws the ApiError that names the condition. `whole` is the field
 * of an error about all of them on metadata.
 */
export const readConditions = (
  conditions: ReadonlyArray<GivenCondition>,
  now: string,
  whole: string
): ParsedFilter => {
  const bySubject = new Map<string, FieldConditions>()
  let count = 0
  let onMetadata = 0
  for (const given of conditions) {
    const subject = subjectOf(given)
    const asks = bySubject.get(given.name) ?? {
      wanted: new Map(),
      excluded: new Map(),
      compared: new Map()
    }
    bySubject.set(given.name, asks)
    for (const value of valuesOf(given)) {
      take(asks, askedBy(given, subject, value, now))
      count += 1
      if (count > VALUES_MAX) {
        throw invalid(given.label, `is too much: conditions have at most ${VALUES_MAX} values`)
      }
      if ("metadata" in subject) onMetadata += 1
    }
  }
  if (onMetadata > METADATA_CONDITIONS_MAX) {
    throw invalid(whole, `more than ${METADATA_CONDITIONS_MAX} conditions on metadata`)
  }
  const read = [...bySubject.values()].map(readAsks)
  return {
    exact: Object.assign({}, ...read.map(({ exact }) => exact)),
    metadata: read.flatMap(({ metadata }) => metadata),
    expressions: read.flatMap(({ expressions }) => expressions)
  }
}

/**
 * What the event list, the statistics, the exports and the live stream can be narrowed by. The
 * store turns a filter into SQL, the live feed calls `matches`; both must choose the same events.
 */
import { canonicalize } from "../json/CanonicalJson.ts"
import { isObject } from "../json/Json.ts"
import type { JsonObject, JsonValue } from "../json/StrictJson.ts"
import type { AuditEvent } from "./AuditEvent.ts"
import { type ExactConditions, filterFields, memberAt } from "./EventFields.ts"

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
}

export const emptyFilter: EventFilter = { metadata: [] }

/** A condition as the parameter of the API that asks for it. */
export type NamedCondition = readonly [name: string, value: string]

/** The conditions of a filter that are no bounds, as parameters of the API. */
export const conditionsOf = (filter: EventFilter): ReadonlyArray<NamedCondition> => {
  const { actionPrefix, metadata, q } = filter
  const exact = filterFields.flatMap(({ filter: { key }, name }): ReadonlyArray<NamedCondition> => {
    const value = filter[key]
    return value === undefined ? [] : [[name, value]]
  })
  return [
    ...exact,
    ...(actionPrefix === undefined ? [] : [["action", `${actionPrefix}*`] as const]),
    ...(q === undefined ? [] : [["q", q] as const]),
    ...metadata.map(({ path, value }) => [`metadata.${path}`, value] as const)
  ]
}

/** Segments that a metadata path may have: with n of them 2^(n-1) places have to be looked at. */
export const METADATA_PATH_SEGMENTS_MAX = 6

/** Segments of a metadata path. */
export const metadataPathSegments = (path: string): ReadonlyArray<string> => path.split(".")

const candidates = (segments: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  if (segments.length === 0) return [[]]
  const found: Array<ReadonlyArray<string>> = []
  for (let length = segments.length; length > 0; length--) {
    const key = segments.slice(0, length).join(".")
    for (const rest of candidates(segments.slice(length))) found.push([key, ...rest])
  }
  return found
}

/**
 * The key paths that a metadata path can mean, in the order in which they are tried: the longest
 * key first at each object. The first that exists decides. For `a.b.c`: `[a.b.c]`, `[a.b, c]`,
 * `[a, b.c]`, `[a, b, c]`. None for more than METADATA_PATH_SEGMENTS_MAX segments.
 */
export const metadataPathCandidates = (path: string): ReadonlyArray<ReadonlyArray<string>> => {
  const segments = metadataPathSegments(path)
  return segments.length > METADATA_PATH_SEGMENTS_MAX ? [] : candidates(segments)
}

const valueAt = (metadata: JsonObject, keys: ReadonlyArray<string>): JsonValue | undefined => {
  let value: JsonValue | undefined = metadata
  for (const key of keys) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

const isScalarEqual = (value: JsonValue, text: string): boolean =>
  typeof value === "string"
    ? value === text
    : (typeof value !== "object" || value === null) && canonicalize(value) === text

/** An array matches if an element does, at any depth of arrays; objects in it are not looked into. */
const isValueEqual = (value: JsonValue, text: string): boolean =>
  Array.isArray(value)
    ? value.some((element: JsonValue) => isValueEqual(element, text))
    : isScalarEqual(value, text)

const matchesMetadata = (metadata: JsonObject, { path, value }: MetadataCondition): boolean => {
  for (const keys of metadataPathCandidates(path)) {
    const found = valueAt(metadata, keys)
    if (found === undefined) continue
    return isValueEqual(found, value)
  }
  return false
}

const collectStrings = (value: JsonValue, into: Array<string>): void => {
  if (typeof value === "string") into.push(value)
  else if (Array.isArray(value)) for (const element of value) collectStrings(element, into)
  else if (isObject(value)) for (const key in value) collectStrings(value[key]!, into)
}

/**
 * The text without its case. Lower-casing writes a capital sigma at the end of a word as ς: the start
 * of a word, searched for in capitals, would not be found in it.
 */
export const withoutCase = (text: string): string => text.toLowerCase().replaceAll("ς", "σ")

/** Between searchable texts; none of them holds it, since U+0000 can't be stored. */
const SEPARATOR = "\u0000"

/**
 * The texts that `q` looks in, without their case and joined by U+0000: action, actor.id, actor.email,
 * resource.id, .type, .name and every string value in metadata (keys are not among them).
 */
export const searchText = ({ action, actor, metadata, resource }: AuditEvent): string => {
  const texts = [action, actor.id, resource.id, resource.type]
  if (actor.email !== undefined) texts.push(actor.email)
  if (resource.name !== undefined) texts.push(resource.name)
  if (metadata !== undefined) collectStrings(metadata, texts)
  return withoutCase(texts.join(SEPARATOR))
}

const matchesFields = (filter: EventFilter, event: AuditEvent): boolean => {
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
const matchesBounds = (filter: EventFilter, event: AuditEvent): boolean =>
  (filter.from === undefined || event.timestamp >= filter.from)
  && (filter.to === undefined || event.timestamp <= filter.to)
  && (filter.fromSequence === undefined || event.sequence_number >= filter.fromSequence)
  && (filter.toSequence === undefined || event.sequence_number <= filter.toSequence)

const matchesSearch = (q: string, event: AuditEvent): boolean =>
  !q.includes(SEPARATOR) && searchText(event).includes(withoutCase(q))

/** True if the stored event satisfies every condition of the filter. */
export const matches = (filter: EventFilter, event: AuditEvent): boolean =>
  matchesFields(filter, event)
  && matchesBounds(filter, event)
  && filter.metadata.every((condition) => matchesMetadata(event.metadata ?? {}, condition))
  && (filter.q === undefined || matchesSearch(filter.q, event))

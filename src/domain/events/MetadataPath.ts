/**
 * Values in metadata by path: dots walk nested objects, a key that holds the dots is tried first. The
 * store finds the same values by SQL.
 */
import { canonicalize } from "../json/CanonicalJson.ts"
import { isObject, type JsonObject, type JsonValue } from "../json/Json.ts"

/** Before a path, where it stands among the names of fields. */
export const METADATA_PREFIX = "metadata."

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

/** Finds the value at a path; undefined if there is none. */
export const valueFinder = (path: string): ((metadata: JsonObject) => JsonValue | undefined) => {
  const candidates = metadataPathCandidates(path)
  return (metadata) => {
    for (const keys of candidates) {
      const found = valueAt(metadata, keys)
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** What can be asked of a value, or of the elements of a list and of the lists in it. */
export interface Elements {
  /** Strings as they are, numbers, booleans and null as their JSON text. */
  readonly texts: ReadonlySet<string>
  readonly strings: ReadonlyArray<string>
  readonly numbers: ReadonlyArray<number>
}

const collect = (
  value: JsonValue,
  into: {
    readonly texts: Set<string>
    readonly strings: Array<string>
    readonly numbers: Array<number>
  }
): void => {
  if (Array.isArray(value)) {
    for (const element of value) collect(element, into)
    return
  }
  if (isObject(value)) return
  into.texts.add(typeof value === "string" ? value : canonicalize(value))
  if (typeof value === "string") into.strings.push(value)
  if (typeof value === "number") into.numbers.push(value)
}

export const elementsOf = (value: JsonValue): Elements => {
  const elements = { texts: new Set<string>(), strings: [], numbers: [] }
  collect(value, elements)
  return elements
}

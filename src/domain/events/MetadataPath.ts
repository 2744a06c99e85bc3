/**
 * Values in metadata by path: dots walk nested objects, a key that holds the dots is tried first; `[]`
 * behind a key walks the list there, as in `tags[].v`. The store finds the same values by SQL.
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

const LIST = "[]"

/**
 * The paths between lists: of `a.b[].c` those of a list and of what is asked of its elements. One path
 * for what walks no list; a list at the end needs no mark, as its elements are asked anyway.
 */
export const metadataPathParts = (path: string): ReadonlyArray<string> =>
  (path.endsWith(LIST) ? path.slice(0, -LIST.length) : path).split(`${LIST}.`)

type Finder = (metadata: JsonObject) => JsonValue | undefined

/** Finds the value at a path, of a path through lists a list; undefined if there is none. */
export const valueFinder = (path: string): Finder => {
  const whole = keyFinder(path)
  // A key may have the mark in it.
  if (!path.includes(LIST)) return whole
  if (metadataPathSegments(path).length > METADATA_PATH_SEGMENTS_MAX) return () => undefined
  const [first, ...others] = metadataPathParts(path).map(keyFinder)
  return (metadata) => {
    const found = whole(metadata)
    if (found !== undefined || others.length === 0) return found ?? first!(metadata)
    const all = others.reduce(elementsFound, [first!(metadata) ?? null])
    return all.length === 0 ? undefined : all
  }
}

/** What is found in the objects of some lists. */
const elementsFound = (lists: ReadonlyArray<JsonValue>, find: Finder): ReadonlyArray<JsonValue> =>
  lists
    .filter((list) => Array.isArray(list))
    .flatMap((list) => list.flat(Infinity) as ReadonlyArray<JsonValue>)
    .map((element) => (isObject(element) ? find(element) : undefined))
    .filter((found) => found !== undefined)

const keyFinder = (path: string): Finder => {
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

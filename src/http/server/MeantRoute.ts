/**
 * Which route was meant by an address that nothing has: with too many slashes, in capitals, below the
 * path of a proxy or of another product, twice, without its version, or mistyped.
 */
import { editDistance } from "../../domain/NearestName.ts"
import { isPage } from "../console/ConsolePaths.ts"
import { ApiError } from "../messages/ApiError.ts"
import { isWildcard, routeTable, type TableRoute } from "./RouteTable.ts"

/** Segments of an address at most, and characters of one, that are compared with routes. */
const SEGMENTS_MAX = 16
const SEGMENT_LENGTH_MAX = 64
/** Mistakes in all segments together. */
const MISTAKES_MAX = 2
/** Letters from which on a segment may have more than one. */
const LONG_SEGMENT = 4
/** What may be missing at the beginning. */
const BEGINNINGS: ReadonlyArray<ReadonlyArray<string>> = [["v1"], ["api"], ["api", "v1"]]

/** The segments of a path, without empty ones and dots. */
const segmentsOf = (path: string): ReadonlyArray<string> => {
  const segments: Array<string> = []
  for (const segment of path.toLowerCase().split("/")) {
    if (segment === "..") segments.pop()
    else if (segment !== "" && segment !== ".") segments.push(segment)
  }
  return segments
}

/** The path as it may have been meant: longer at its beginning, or shorter; the nearer, the earlier. */
const readings = (path: string): ReadonlyArray<ReadonlyArray<string>> => {
  const segments = segmentsOf(path)
  if (segments.length > SEGMENTS_MAX) return []
  const longer = BEGINNINGS.map((beginning) => [...beginning, ...segments])
  return [segments, ...longer, ...segments.slice(1).map((_, at) => segments.slice(at + 1))]
}

/** Mistakes of a segment; Infinity if there are too many. */
const mistakesIn = (given: string, segment: string): number => {
  if (isWildcard(segment) || given === segment) return 0
  const most = segment.length < LONG_SEGMENT ? 1 : MISTAKES_MAX
  const isFar = Math.abs(given.length - segment.length) > most
  if (isFar || given.length > SEGMENT_LENGTH_MAX) return Infinity
  const mistakes = editDistance(given, segment)
  return mistakes > most ? Infinity : mistakes
}

const mistakesOf = (given: ReadonlyArray<string>, { segments }: TableRoute): number => {
  // The first of a template is the empty text before its slash.
  if (given.length !== segments.length - 1) return Infinity
  let mistakes = 0
  for (let at = 0; at < given.length && mistakes <= MISTAKES_MAX; at++) {
    mistakes += mistakesIn(given[at]!, segments[at + 1]!)
  }
  return mistakes
}

const nearest = (
  given: ReadonlyArray<ReadonlyArray<string>>,
  routes: ReadonlyArray<TableRoute>
): TableRoute | undefined => {
  let fewest = MISTAKES_MAX + 1
  let found: TableRoute | undefined
  for (const reading of given) {
    for (const route of routes) {
      const mistakes = mistakesOf(reading, route)
      if (mistakes >= fewest) continue
      fewest = mistakes
      found = route
    }
    if (fewest === 0) break
  }
  return found
}

/** Those that answer programs. */
const known = routeTable.filter(({ template }) => !isPage(template))

/** `/v1/events/:id` as documents write it. */
const shown = (template: string): string => template.replaceAll(/:(\w+)/g, "{$1}")

/**
 * The address of the route that was probably meant, `/v1/events/{id}`: of one with this method, if there
 * is one. It holds nothing of what was sent.
 */
export const meantRoute = (method: string, path: string): string | undefined => {
  const given = readings(path)
  const routes = known.filter(({ methods }) => methods.includes(method))
  const found = nearest(given, routes) ?? nearest(given, known)
  return found === undefined ? undefined : shown(found.template)
}

/** The error of an address that nothing has. */
export const noSuchRoute = (meant?: string): ApiError =>
  new ApiError({
    code: "not_found",
    message: `there is no such route; ${meant === undefined ? "" : `did you mean ${meant}? `}see /docs`
  })

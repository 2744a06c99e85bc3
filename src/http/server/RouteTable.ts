/**
 * Which paths exist and which methods they have: what tells an unknown route (404) from a wrong
 * method (405), and gives logs and metrics a name that holds nothing of the client's.
 */
import { HttpApi } from "effect/http-api"
import { Api } from "../Api.ts"
import { consolePaths } from "../console/ConsolePaths.ts"
import { guidePaths } from "../docs/GuidePaths.ts"
import { opsPaths } from "../operations/OpsContract.ts"

/** A path and its methods. */
export interface Route {
  /** `/v1/events/:id`; a `*` at its end takes the rest of the path, slashes and all. */
  readonly template: string
  readonly methods: ReadonlyArray<string>
}

/** The name of a path that is no route, for logs and metrics. */
export const UNKNOWN_ROUTE = "unknown"

const contractRoutes = (): ReadonlyArray<readonly [method: string, template: string]> => {
  const routes: Array<readonly [string, string]> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => routes.push([endpoint.method, endpoint.path])
  })
  return routes
}

/** A route and its template, taken apart. */
export interface TableRoute extends Route {
  readonly segments: ReadonlyArray<string>
}

const build = (): ReadonlyArray<TableRoute> => {
  const byTemplate = new Map<string, Set<string>>()
  const pages = [...opsPaths, ...consolePaths, ...guidePaths].map((path) => ["GET", path] as const)
  const all = [...contractRoutes(), ...pages]
  for (const [method, template] of all) {
    const methods = byTemplate.get(template) ?? new Set()
    byTemplate.set(template, methods.add(method))
    if (method === "GET") methods.add("HEAD")
  }
  return [...byTemplate]
    .map(([template, methods]) => ({
      template,
      methods: [...methods].sort(),
      segments: template.split("/")
    }))
    .sort((left, right) => wildcards(left.segments) - wildcards(right.segments))
}

const REST = "*"
export const isWildcard = (segment: string): boolean => segment.startsWith(":") || segment === REST
const wildcards = (segments: ReadonlyArray<string>): number => segments.filter(isWildcard).length

const isAsLong = (pattern: ReadonlyArray<string>, path: ReadonlyArray<string>): boolean =>
  pattern.at(-1) === REST ? pattern.length <= path.length : pattern.length === path.length

const matches = (pattern: ReadonlyArray<string>, path: ReadonlyArray<string>): boolean =>
  isAsLong(pattern, path)
  && pattern.every((segment, at) => (isWildcard(segment) ? path[at] !== "" : segment === path[at]))

/** Those with the fewest wildcards come first. */
export const routeTable = build()

/**
 * The routes of a path: those with the fewest wildcards. What a literal names, no wildcard takes, so
 * `/v1/events/batch` is never the event of that id.
 */
const routesOf = (path: string): ReadonlyArray<TableRoute> => {
  const segments = path.split("/")
  const found = routeTable.filter((route) => matches(route.segments, segments))
  const fewest = wildcards(found[0]?.segments ?? [])
  return found.filter((route) => wildcards(route.segments) === fewest)
}

/**
 * The path of a request: of a POST with a slash too many, that of the route without it. Where an id
 * may be missing, the address has to be right.
 */
export const takenPath = (method: string, path: string): string => {
  if (method !== "POST" || routesOf(path).length > 0) return path
  const meant = `/${path.split("/").filter(Boolean).join("/")}`
  const isRoute = ({ methods, template }: TableRoute) =>
    template === meant && methods.includes(method)
  return routeTable.some(isRoute) ? meant : path
}

/** The route that this method of the path belongs to; without the method, the path's first one. */
export const findRoute = (method: string, path: string): Route | undefined => {
  const found = routesOf(path)
  return found.find((route) => route.methods.includes(method)) ?? found[0]
}

/** Every method that the path has: the value of `Allow`. */
export const allowedMethods = (path: string): ReadonlyArray<string> =>
  [...new Set(routesOf(path).flatMap(({ methods }) => methods))].sort()

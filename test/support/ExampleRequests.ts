/**
 * The requests that the OpenAPI document shows, as its reference page sends them: bodies, parameters
 * and headers that have an example, a default or a list of values. Asks nothing itself.
 */

/** Part of a JSON document. */
type Json = any

/** A method of a path. */
export interface DocumentedOperation {
  readonly method: string
  /** `/v1/events/{id}` */
  readonly path: string
  readonly operation: Json
}

/** A request as it stands. */
export interface ExampleRequest extends DocumentedOperation {
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** A value to be sent as JSON; undefined: no body. */
  readonly body: unknown
  /** Name of the security scheme; undefined: no key is needed. */
  readonly scheme: string | undefined
}

/** Every operation, in an order in which what they name exists: what ends or erases comes last. */
export const operationsOf = (document: Json): ReadonlyArray<DocumentedOperation> =>
  Object.entries<Json>(document.paths)
    .flatMap(([path, item]) =>
      Object.entries<Json>(item).map(([method, operation]) => ({ method, operation, path }))
    )
    .sort((left, right) => rank(left) - rank(right))

const rank = ({ method, path }: DocumentedOperation): number => {
  if (method === "delete") return 9
  if (path.endsWith("/erase")) return 8
  if (path.endsWith("/end")) return path.includes("spans") ? 6 : 7
  if (method !== "post") return 5
  return path.includes("{") ? 3 : 1
}

/** Every example of a body, those of its alternatives too; one undefined where there is no body. */
export const bodiesOf = (document: Json, operation: Json): ReadonlyArray<unknown> => {
  const content = operation.requestBody?.content?.["application/json"]
  if (content === undefined) return [undefined]
  const resolved = (schema: Json): Json =>
    schema?.$ref === undefined
      ? schema
      : document.components.schemas[schema.$ref.replace("#/components/schemas/", "")]
  const of = (one: Json) => resolved(one).examples ?? []
  const schema = resolved(content.schema)
  return [...of(schema), ...(schema.oneOf ?? []).flatMap(of)]
}

/** One query per parameter that has an example, and one with all that are required. */
export const queriesOf = (operation: Json): ReadonlyArray<string> => {
  const query = operation.parameters.filter((parameter: Json) => parameter.in === "query")
  const pair = ({ example, name }: Json): string =>
    typeof example === "object" && !Array.isArray(example)
      ? new URLSearchParams(example).toString()
      : `${name}=${encodeURIComponent(String(example))}`
  const required = query.filter((parameter: Json) => parameter.required).map(pair)
  const optional = query
    .filter(({ example, required }: Json) => !required && example !== undefined)
    .map((parameter: Json) => [...required, pair(parameter)])
  return [required, ...optional].map((pairs) => pairs.join("&"))
}

/** What the reference page fills in for a parameter; undefined: it leaves it out. */
const shownValue = ({ schema }: Json): unknown =>
  schema.default ?? schema.enum?.[0] ?? schema.examples?.[0]

const shownIn = (operation: Json, place: string): Array<[name: string, value: string]> =>
  operation.parameters
    .filter((parameter: Json) => parameter.in === place && shownValue(parameter) !== undefined)
    .map((parameter: Json) => [parameter.name, String(shownValue(parameter))])

const targetsOf = ({ operation, path }: DocumentedOperation): ReadonlyArray<string> => {
  const values = new Map(shownIn(operation, "path"))
  const filled = path.replace(/\{(\w+)\}/g, (whole, name: string) =>
    encodeURIComponent(values.get(name) ?? whole)
  )
  const shown = new URLSearchParams(shownIn(operation, "query")).toString()
  const queries = new Set([shown, ...queriesOf(operation)])
  return [...queries].map((query) => (query === "" ? filled : `${filled}?${query}`))
}

/** Every request that an operation shows: each body, and each query with the first body. */
export const exampleRequestsOf = (
  document: Json,
  documented: DocumentedOperation
): ReadonlyArray<ExampleRequest> => {
  const { operation } = documented
  const headers = Object.fromEntries(shownIn(operation, "header"))
  const [scheme] = Object.keys(operation.security?.[0] ?? {})
  const [target = "", ...others] = targetsOf(documented)
  const bodies = bodiesOf(document, operation)
  const request = { ...documented, headers, scheme }
  return [
    ...bodies.map((body) => ({ ...request, target, body })),
    ...others.map((other) => ({ ...request, target: other, body: bodies[0] }))
  ]
}

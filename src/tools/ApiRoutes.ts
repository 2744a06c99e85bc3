/**
 * The routes of the API as one TypeScript interface, out of the OpenAPI document: of each its path
 * and query parameters, its body and its answer, by the names of the schemas.
 */
import { type Fields, parseJson } from "../domain/json/Json.ts"

/** Where the client imports them from. */
export const API_ROUTES_FILE = "src/client/gen/Routes.d.ts"

const JSON_TYPE = "application/json"
const REFERENCE = "#/components/schemas/"

interface Parameter {
  readonly name: string
  readonly in: "query" | "path" | "header"
  readonly required?: boolean
  readonly description?: string
  readonly schema: Fields
}

type Content = Readonly<Record<string, { readonly schema: Fields }>>

interface Operation {
  readonly summary?: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const union = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ")

const scalars: Readonly<Record<string, string>> = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean"
}

/** The type of a schema: a name of the API's types, or what parameters are made of. */
const typeOf = (schema: Fields, names: Set<string>): string => {
  const { $ref: reference, enum: values, items, oneOf, type } = schema
  if (typeof reference === "string") {
    const name = reference.slice(REFERENCE.length)
    names.add(name)
    return name
  }
  if (Array.isArray(oneOf)) return union(oneOf.map((one: Fields) => typeOf(one, names)))
  if (Array.isArray(values)) return union(values.map((value) => JSON.stringify(value)))
  if (type === "array") {
    const item = typeOf(items as Fields, names)
    return `${item} | ReadonlyArray<${item}>`
  }
  if (type === "object") return "Readonly<Record<string, unknown>>"
  return scalars[String(type)] ?? "unknown"
}

/** Conditions: each member of a family is a parameter, and a sign may be at the end of a name. */
const conditionsOf = (family: string): string =>
  `readonly [path: \`${family}.\${string}\`]: QueryValue\n`
  + "      /** `!=`, `>=` or `<=` the value: the sign is the end of the name. */\n"
  + `      readonly [condition: \`\${string}\${"!" | ">" | "<"}\`]: QueryValue`

const keyOf = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name))

const memberOf = ({ name, required, schema }: Parameter, names: Set<string>): string =>
  schema["type"] === "object"
    ? conditionsOf(name)
    : `readonly ${keyOf(name)}${required === true ? "" : "?"}: ${typeOf(schema, names)}`

const objectOf = (
  parameters: ReadonlyArray<Parameter>,
  place: Parameter["in"],
  names: Set<string>
): string => {
  const members = parameters.filter((one) => one.in === place).map((one) => memberOf(one, names))
  return members.length === 0 ? "Nothing" : `{\n      ${members.join("\n      ")}\n    }`
}

/** What a client of JSON gets; of an answer that is none of it the text. Bytes are no answer. */
const answerOf = (responses: Operation["responses"], names: Set<string>): string =>
  union(
    Object.entries(responses)
      .filter(([status]) => status.startsWith("2"))
      .map(([, { content = {} }]) => {
        const [first] = Object.keys(content)
        if (first === undefined) return "undefined"
        const json = content[JSON_TYPE]
        if (json !== undefined) return typeOf(json.schema, names)
        return /^text\/|ndjson|yaml/.test(first) ? "string" : "never"
      })
  )

const bodyOf = ({ requestBody: body }: Operation, names: Set<string>): string => {
  const json = body?.content[JSON_TYPE]
  return json === undefined ? "undefined" : typeOf(json.schema, names)
}

const routeOf = (
  method: string,
  path: string,
  operation: Operation,
  names: Set<string>
): string => {
  const { parameters = [], requestBody, responses, summary } = operation
  const isOptional = requestBody !== undefined && requestBody.required !== true
  const lines = [
    ...(summary === undefined ? [] : [`  /** ${summary}. */`]),
    `  "${method.toUpperCase()} ${path}": {`,
    `    path: ${objectOf(parameters, "path", names)}`,
    `    query: ${objectOf(parameters, "query", names)}`,
    `    body: ${bodyOf(operation, names)}${isOptional ? " | undefined" : ""}`,
    `    answer: ${answerOf(responses, names)}`,
    "  }"
  ]
  return lines.join("\n")
}

/** The declarations of a document. */
export const apiRoutes = (openApi: string): string => {
  const { paths } = parseJson(openApi) as Document
  const names = new Set<string>()
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => routeOf(method, path, operation, names))
  )
  return `/** Made of the OpenAPI document by: npm run generate */
import type {
  ${[...names].sort().join(",\n  ")}
} from "./Api.d.ts"

/** A value of a parameter; several values are asked for as alternatives. */
export type QueryValue = string | number | boolean | ReadonlyArray<string | number | boolean>

/** No members. */
export type Nothing = Readonly<Record<never, never>>

/** Every route by method and path. */
export interface Routes {
${routes.join("\n")}
}
`
}

/**
 * What the OpenAPI document says about one operation beyond its schemas: texts, the headers that the
 * handler reads by itself, and those of its answers.
 */
import type { Context } from "effect"
import { OpenApi } from "effect/http-api"
import { defined } from "../messages/Defined.ts"

/** A request header that a handler reads. */
export interface HeaderParameter {
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly example?: unknown
}

/** Everything that the schemas of an endpoint don't say. */
export interface OperationText {
  readonly id: string
  readonly summary: string
  readonly description: string
  /** The body may be missing. */
  readonly optionalBody?: true
  readonly headers?: Readonly<Record<string, HeaderParameter>>
  /** Per status, header name and what it says. */
  readonly responseHeaders?: Readonly<Record<number, Readonly<Record<string, string>>>>
}

/** The header of every 201 whose resource can be read by itself. */
export const createdHeaders = { Location: "Where to read what was made." }

type Json = Record<string, any>

const parameterOf = (name: string, { description, example, schema }: HeaderParameter): Json => ({
  name,
  in: "header",
  required: false,
  description,
  schema,
  ...defined({ example })
})

/** Those of the path come first, those of the query last. */
const withHeaderParameters = (
  parameters: ReadonlyArray<Json>,
  headers: OperationText["headers"]
): ReadonlyArray<Json> => {
  const { path = [], query = [] } = Object.groupBy(parameters, (one) => String(one["in"]))
  const named = Object.entries(headers ?? {})
  return [...path, ...named.map(([name, header]) => parameterOf(name, header)), ...query]
}

const withHeaders = (responses: Json, headers: OperationText["responseHeaders"]): Json => {
  const described: Json = { ...responses }
  for (const [status, byName] of Object.entries(headers ?? {})) {
    const entries = Object.entries(byName).map(([name, description]) => [
      name,
      { description, schema: { type: "string" } }
    ])
    described[status] = { ...described[status], headers: Object.fromEntries(entries) }
  }
  return described
}

/** The annotations of an endpoint: what is said of it. */
export const operation = (text: OperationText): Context.Context<never> =>
  OpenApi.annotations({
    identifier: text.id,
    summary: text.summary,
    description: text.description,
    transform: (spec) => ({
      ...spec,
      parameters: withHeaderParameters(spec["parameters"] as ReadonlyArray<Json>, text.headers),
      ...(text.optionalBody === true
        ? { requestBody: { ...(spec["requestBody"] as Json), required: false } }
        : {}),
      responses: withHeaders(spec["responses"] as Json, text.responseHeaders)
    })
  })

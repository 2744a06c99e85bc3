/**
 * What the OpenAPI document says about one operation beyond its schemas: texts, the parameters that
 * the handler reads by itself, and the headers of its answers.
 */
import { Context } from "effect"
import { OpenApi } from "effect/http-api"
import { KnownQuery } from "../messages/KnownQuery.ts"
import type { Parameters, QueryTable } from "../messages/QueryParameters.ts"

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
  /** Every other parameter is refused. */
  readonly query?: Parameters
  /** The body may be missing. */
  readonly optionalBody?: true
  /** `metadata.<path>` conditions are read too. */
  readonly metadata?: boolean
  /** What the refusal of an unknown parameter says, where more is to say than the nearest name. */
  readonly hints?: QueryTable["hints"]
  readonly headers?: Readonly<Record<string, HeaderParameter>>
  /** Per status, header name and what it says. */
  readonly responseHeaders?: Readonly<Record<number, Readonly<Record<string, string>>>>
}

/** The header of every 201 whose resource can be read by itself. */
export const createdHeaders = { Location: "Where to read what was made." }

type Json = Record<string, any>

const parameterOf = (
  place: "query" | "header",
  name: string,
  described: HeaderParameter & { readonly required?: true }
): Json => ({
  name,
  in: place,
  required: described.required === true,
  description: described.description,
  schema: described.schema,
  ...(described.example === undefined ? {} : { example: described.example })
})

/** OpenAPI can't name `metadata.<path>`; an exploded object is the nearest it has. */
const metadataParameter: Json = {
  name: "metadata",
  in: "query",
  required: false,
  description:
    "Conditions on metadata, each a parameter of its own: `metadata.<path>=<value>`. Dots walk "
    + "nested objects, a key that holds the dots is tried first; at most 6 segments. Strings are "
    + "compared as they are, numbers, booleans and null by their JSON text, an array matches if "
    + "one of its elements does, as does an array in it. Dots don't walk into the objects of an "
    + "array, and an object matches nothing.",
  style: "form",
  explode: true,
  schema: {
    type: "object",
    propertyNames: { pattern: "^metadata\\..", maxLength: 256 },
    additionalProperties: { type: "string", minLength: 1 }
  },
  example: { "metadata.ip": "203.0.113.9" }
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

const tableOf = ({ hints, metadata, query }: OperationText): QueryTable => ({
  parameters: query ?? {},
  ...(metadata === undefined ? {} : { metadata }),
  ...(hints === undefined ? {} : { hints })
})

const described = (text: OperationText): Context.Context<never> =>
  OpenApi.annotations({
    identifier: text.id,
    summary: text.summary,
    description: text.description,
    transform: (spec) => ({
      ...spec,
      parameters: [
        ...(spec["parameters"] as ReadonlyArray<Json>),
        ...Object.entries(text.headers ?? {}).map(([name, header]) =>
          parameterOf("header", name, header)
        ),
        ...Object.entries(text.query ?? {}).map(([name, parameter]) =>
          parameterOf("query", name, parameter)
        ),
        ...(text.metadata === true ? [metadataParameter] : [])
      ],
      ...(text.optionalBody === true
        ? { requestBody: { ...(spec["requestBody"] as Json), required: false } }
        : {}),
      responses: withHeaders(spec["responses"] as Json, text.responseHeaders)
    })
  })

/** The annotations of an endpoint: what is said of it, and which query parameters it knows. */
export const operation = (text: OperationText): Context.Context<never> =>
  Context.add(described(text), KnownQuery, tableOf(text))

/**
 * What the OpenAPI document says about one operation beyond its schemas: texts, the headers that the
 * handler reads by itself, and those of its answers.
 */
import { Context } from "effect"
import { type HttpApiEndpoint, OpenApi } from "effect/http-api"
import { defined } from "../../domain/Defined.ts"
import type { Scope } from "../../domain/registry/RegistryEntry.ts"
import { RequiredScope } from "../server/Authorization.ts"

/** A request header that a handler reads. */
export interface HeaderParameter {
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly example?: unknown
}

/** Everything that the schemas of an endpoint don't say. */
export interface OperationText {
  /** Of these a key needs one. A route for the admin token or a share link has none. */
  readonly scopes?: ReadonlyArray<Scope>
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

/** An endpoint with what is said of it. Its name is the id of the operation. */
export const operation =
  ({ description, headers, optionalBody, responseHeaders, scopes = [], summary }: OperationText) =>
  <Endpoint extends { readonly identifier: string }>(endpoint: Endpoint): Endpoint => {
    const annotations = OpenApi.annotations({
      identifier: endpoint.identifier,
      summary,
      description,
      transform: (spec) => ({
        ...spec,
        parameters: withHeaderParameters(spec["parameters"] as ReadonlyArray<Json>, headers),
        ...(optionalBody === true
          ? { requestBody: { ...(spec["requestBody"] as Json), required: false } }
          : {}),
        responses: withHeaders(spec["responses"] as Json, responseHeaders)
      })
    })
    // Endpoints are invariant in their types, so none of them is a `Top`; annotations change none.
    const top = endpoint as unknown as HttpApiEndpoint.Top
    return top.annotateMerge(Context.add(annotations, RequiredScope, scopes)) as unknown as Endpoint
  }

/**
 * What the library's OpenAPI document lacks: headers and statuses that every route has, the routes
 * without a key, and schemas in the form that client generators understand (open objects, named
 * alternatives, `null` as a type). Knows schemas and operations, no feature.
 */
import { isObject } from "../../domain/json/Json.ts"
import { GUIDE_PATH } from "../docs/GuidePaths.ts"
import type { ErrorStatus } from "../messages/ApiError.ts"
import { opsDocument } from "../operations/OpsContract.ts"
import { describeStatus } from "./ContractErrors.ts"
import { EXPLODED_MARK, REQUIRED_MARK } from "./Requests.ts"

type Json = Record<string, any>

const header = (description: string, type = "string"): Json => ({
  description,
  schema: { type }
})

const requestId = { "X-Request-Id": header("The client's, or one that was made.") }

const retryAfter = { "Retry-After": header("Seconds to wait.", "integer") }

const rateLimit = {
  "RateLimit-Limit": header("Events per second, or streams, that the tenant may have.", "integer"),
  "RateLimit-Remaining": header("What is left of them for now.", "integer"),
  "RateLimit-Reset": header("Seconds until there are some again; of events only.", "integer")
}

const errorHeaders: Readonly<Record<string, Json>> = {
  401: { "WWW-Authenticate": header("`Bearer`") },
  429: { ...retryAfter, ...rateLimit },
  503: retryAfter
}

/** What every route answers that takes a credential, in the form of its 401. */
const COMMON_STATUSES = ["400", "429", "503"]
/** Characters of an id in a path at most: longer ones name nothing. */
const ID_LENGTH_MAX = 256

const mapValues = (object: Json, change: (value: any, key: string) => unknown): Json =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]))

/** A lower bound that only says that a double holds the integer exactly. */
const withoutSafeMinimum = ({ minimum, ...schema }: Json): Json => ({
  ...schema,
  ...(minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum })
})

/** Checks in `allOf` beside what they check. */
const merged = (schema: Json): Json => {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf) || allOf.some((part) => "$ref" in part)) return schema
  return Object.assign({}, withoutSafeMinimum(rest), ...allOf)
}

/** `anyOf` says too little: whether `null` is allowed, or which alternatives there are. */
const decided = (schema: Json): Json => {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const [value, ...others] = anyOf.filter(({ type }) => type !== "null")
  const nullable = others.length + 1 < anyOf.length
  if (nullable && others.length === 0 && typeof value.type === "string" && !value.properties) {
    return {
      ...value,
      ...rest,
      type: [value.type, "null"],
      ...(value.enum === undefined ? {} : { enum: [...value.enum, null] })
    }
  }
  return { ...rest, oneOf: anyOf }
}

/** An object schema that names no members allows any. */
const open = (schema: Json): Json => {
  const isFree =
    [schema["type"]].flat().includes("object")
    && schema["properties"] === undefined
    && schema["patternProperties"] === undefined
    && schema["additionalProperties"] === undefined
  return isFree ? { ...schema, additionalProperties: true } : schema
}

/** Answers may gain members: no object of names is closed, but for bodies that refuse them. */
const opened = (schema: Json): Json => {
  const { additionalProperties, ...rest } = schema
  return additionalProperties === false && schema["patternProperties"] === undefined ? rest : schema
}

const tidySchema = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(tidySchema)
  if (!isObject(schema)) return schema
  const inner = mapValues(schema, (value, key) =>
    key === "examples" || key === "enum" || key === "const"
      ? value
      : key === "properties" || key === "patternProperties"
        ? mapValues(value, tidySchema)
        : tidySchema(value)
  )
  return open(opened(decided(withoutSafeMinimum(merged(inner)))))
}

/** Alternatives that one member tells apart say so. */
const discriminated = (schemas: Json): Json => {
  const refOf = ({ $ref }: Json) => String($ref).replace("#/components/schemas/", "")
  return mapValues(schemas, (schema) => {
    const { oneOf } = schema
    if (!Array.isArray(oneOf) || !oneOf.every(({ $ref }) => $ref !== undefined)) return schema
    const named = oneOf.map((part) => [schemas[refOf(part)]?.properties?.op?.enum?.[0], part.$ref])
    return named.some(([op]) => op === undefined)
      ? schema
      : { ...schema, discriminator: { propertyName: "op", mapping: Object.fromEntries(named) } }
  })
}

const withoutStreamNotes = (content: Json): Json =>
  mapValues(content, ({ "x-effect-stream": _note, ...media }: Json) => ({
    ...media,
    ...(media["schema"] === undefined ? {} : { schema: tidySchema(media["schema"]) })
  }))

const completeResponse = (status: string, response: Json): Json => ({
  ...response,
  ...(Number(status) >= 400 ? { description: describeStatus(Number(status) as ErrorStatus) } : {}),
  ...(response["content"] === undefined
    ? {}
    : { content: withoutStreamNotes(response["content"]) }),
  headers: { ...requestId, ...errorHeaders[status], ...response["headers"] }
})

const completeResponses = (responses: Json): Json => {
  const refused = responses["401"]
  const missing =
    refused === undefined ? [] : COMMON_STATUSES.filter((status) => !responses[status])
  const all = { ...responses, ...Object.fromEntries(missing.map((status) => [status, refused])) }
  return mapValues(all, (response, status) => completeResponse(status, response))
}

/** The schema of a query's parameter is that of a text, with what the text means in `allOf`. */
const queryParameter = (name: string, meant: Json): Json => {
  const { [EXPLODED_MARK]: isExploded, [REQUIRED_MARK]: required = false, ...rest } = meant
  const { description, examples, ...schema } = rest
  return {
    name,
    in: "query",
    required,
    description,
    ...(isExploded === true ? { style: "form", explode: true } : {}),
    // Tools that send what a document shows take it from the schema.
    schema: required && examples !== undefined ? { ...schema, examples } : schema,
    ...(examples === undefined ? {} : { example: examples[0] })
  }
}

const completeParameter = (parameter: Json): Json => {
  const { in: place, name, schema } = parameter
  if (place === "query") return queryParameter(name, schema.allOf[0])
  return place !== "path" || schema.pattern !== undefined
    ? parameter
    : { ...parameter, schema: { minLength: 1, maxLength: ID_LENGTH_MAX, ...schema } }
}

/** The end of a path that takes all the rest, slashes too, and its parameter in the document. */
const REST_PATH = "/*"
const REST_PARAMETER = "index"

/** OpenAPI has no parameter with slashes: it is named, and marked as one. */
const namedRest = ([path, item]: [string, Json]): [string, Json] => {
  if (!path.endsWith(REST_PATH)) return [path, item]
  const named = (parameter: Json) =>
    parameter["name"] === "*"
      ? { ...parameter, name: REST_PARAMETER, "x-multi-segment": true }
      : parameter
  return [
    `${path.slice(0, -1)}{${REST_PARAMETER}}`,
    mapValues(item, (operation) => ({
      ...operation,
      parameters: operation.parameters.map(named)
    }))
  ]
}

const completeOperation = (operation: Json): Json => ({
  ...operation,
  parameters: operation["parameters"].map(completeParameter),
  ...(operation["requestBody"] === undefined
    ? {}
    : {
        requestBody: {
          ...operation["requestBody"],
          content: withoutStreamNotes(operation["requestBody"].content)
        }
      }),
  responses: completeResponses(operation["responses"])
})

/** Groups of one tag are described together. */
const mergedTags = (tags: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const merged = new Map<string, Json>()
  for (const tag of tags) {
    const name = tag["name"] as string
    const before = merged.get(name)
    const description = [before?.["description"], tag["description"]].filter(Boolean).join(" ")
    merged.set(name, { ...before, ...tag, description })
  }
  return [...merged.values()]
}

/** Operations that take a body with unknown fields: they are left out, or are OpenTelemetry's. */
const OPEN_BODIES: ReadonlySet<string> = new Set([
  "createEvent",
  "createEvents",
  "exportTraces",
  "exportLogs",
  "exportMetrics"
])

/** Names of the schemas that a schema is, or is one of. */
const namesOf = (schema: Json, schemas: Json): ReadonlyArray<string> => {
  const name = String(schema["$ref"] ?? "").replace("#/components/schemas/", "")
  const alternatives: ReadonlyArray<Json> = (schemas[name] ?? schema).oneOf ?? []
  const named = alternatives.flatMap((one) => namesOf(one, schemas))
  return name === "" ? named : [name, ...named]
}

/** Schemas of bodies that refuse fields that they don't have. */
const closedBodies = (paths: Json, schemas: Json): ReadonlySet<string> =>
  new Set(
    Object.values(paths)
      .flatMap((item) => Object.values(item as Json))
      .filter(({ operationId, requestBody }) => requestBody && !OPEN_BODIES.has(operationId))
      .flatMap(({ requestBody }) => Object.values(requestBody.content as Json))
      .flatMap(({ schema }) => namesOf(tidySchema(schema) as Json, schemas))
  )

/** The library's document, completed. */
export const complete = (spec: Json): Json => {
  const ops = opsDocument()
  const { components, tags } = spec
  const paths = Object.fromEntries(Object.entries<Json>(spec["paths"]).map(namedRest))
  const tidy = mapValues(components.schemas, tidySchema)
  const closed = closedBodies(paths, tidy)
  const schemas = mapValues(tidy, (schema, name) =>
    closed.has(name) && schema.properties !== undefined
      ? { ...schema, additionalProperties: false }
      : schema
  )
  return {
    ...spec,
    externalDocs: { url: GUIDE_PATH, description: "The guide" },
    tags: mergedTags([...tags, ...ops.tags]),
    components: {
      ...components,
      schemas: { ...discriminated(schemas), ...ops.schemas },
      securitySchemes: mapValues(components.securitySchemes, (scheme) => ({
        ...scheme,
        scheme: String(scheme.scheme).toLowerCase()
      }))
    },
    paths: {
      ...mapValues(paths, (item) => mapValues(item, completeOperation)),
      ...mapValues(ops.paths, (item) =>
        mapValues(item, (operation) => ({
          ...operation,
          responses: mapValues(operation.responses, (response) => ({
            ...response,
            headers: { ...requestId, ...response.headers }
          }))
        }))
      )
    }
  }
}

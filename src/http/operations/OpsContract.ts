/**
 * The routes that need no key, as the OpenAPI document shows them: landing page, documents, health,
 * metrics and public keys. Served by hand, so described by hand; a test compares the two.
 */
import { JSON_TYPE } from "../messages/MediaTypes.ts"

type Json = Record<string, any>

export const PUBLIC_KEYS_PATH = "/.well-known/alk-keys.json"

/**
 * Every path that needs no key; all of them are GET. They take no query parameters: the pages that
 * people open, `/` and `/docs`, ignore those in the address, the others refuse them.
 */
export const opsPaths = [
  "/",
  "/docs",
  "/openapi.json",
  "/asyncapi.yaml",
  "/healthz",
  "/readyz",
  "/metrics",
  PUBLIC_KEYS_PATH
] as const

const text = (description: string): Json => ({ type: "string", description })
const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })
const objectOf = (properties: Json, description: string, optional: Json = {}): Json => ({
  type: "object",
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
  description
})

const part = objectOf({ state: { type: "string", enum: ["ready", "not ready"] } }, "Of one part.")
const partitions = {
  type: "array",
  items: { type: "integer" },
  description: "Those that wait, if any do."
}
const partitioned = { ...part, properties: { ...part["properties"], partitions } }

const schemas: Json = {
  Landing: objectOf(
    {
      service: text("Name of the service."),
      version: text("Version of the API."),
      docs: text("Path of the reference page."),
      guide: text("Path of the guide."),
      openapi: text("Path of this document."),
      asyncapi: text("Path of the description of the topics."),
      health: text("Path of the liveness check."),
      ready: text("Path of the readiness check."),
      metrics: text("Path of the metrics."),
      keys: text("Path of the public keys.")
    },
    "Where everything is that needs no key."
  ),
  Health: objectOf(
    { status: { type: "string", enum: ["ok", "starting", "stopping"] } },
    "The process answers."
  ),
  Readiness: {
    ...objectOf(
      {
        status: { type: "string", enum: ["ready", "not ready", "stopping"] },
        kafka: {
          ...partitioned,
          required: ["state", "bootstrap"],
          properties: {
            ...partitioned.properties,
            bootstrap: text("Where the log is reached.")
          }
        },
        clickhouse: part,
        roles: { type: "array", items: { type: "string" }, description: "What this process does." },
        sequencer: partitioned,
        projection: partitioned,
        follower: {
          ...part,
          properties: { ...part["properties"], reason: text("Why it does not follow the log.") }
        }
      },
      "Whether a write would commit and a list would answer, part by part."
    ),
    required: ["status", "kafka", "clickhouse", "roles"]
  },
  PublicKeys: objectOf(
    {
      keys: {
        type: "array",
        items: objectOf(
          {
            kty: { type: "string", enum: ["OKP"] },
            crv: { type: "string", enum: ["Ed25519"] },
            x: text("The key, base64url."),
            kid: text("Names the key in checkpoints."),
            use: { type: "string", enum: ["sig"] },
            alg: { type: "string", enum: ["EdDSA"] },
            trusted: {
              type: "string",
              enum: ["root", "endorsed", "listed", "unendorsed"],
              description:
                "Why its signatures count: the service began with it, the key before it has "
                + "endorsed it, or the operator lists it. Those of an unendorsed key are refused."
            }
          },
          "A JSON Web Key (RFC 7517, RFC 8037), with what it counts for.",
          {
            endorsed_by: text("kid of the key before it."),
            endorsement: text("The statement of that key, as a C2SP signed note."),
            retired_at: text(
              "When it endorsed the next key. What it signed of a tree since that tree was handed "
                + "over is refused."
            )
          }
        )
      },
      vkeys: { type: "array", items: text("A key that counts, as C2SP writes it.") }
    },
    "The public keys of all checkpoints, old ones too."
  )
}

const cached = {
  "Cache-Control": { description: "How long to keep it.", schema: { type: "string" } }
}
const tagged = {
  ...cached,
  ETag: { description: "For `If-None-Match`.", schema: { type: "string" } }
}

interface OpsRoute {
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly type: string
  readonly schema: Json
  readonly headers?: Json
  /** What 503 means with the same body; without it, 503 only has the error body. */
  readonly unready?: string
  /** Takes whatever parameters an address has gathered. */
  readonly ignoresQuery?: true
  /** Answers 304 to who has it. */
  readonly conditional?: true
}

const routes: Readonly<Record<(typeof opsPaths)[number], OpsRoute>> = {
  "/": {
    id: "getLanding",
    summary: "Where everything is",
    description:
      "The paths that need no key. Browsers, which ask for `text/html` first, get the console here.",
    type: JSON_TYPE,
    schema: ref("Landing"),
    headers: cached,
    ignoresQuery: true
  },
  "/docs": {
    id: "getReference",
    summary: "Reference page",
    description: "This document for people; works without any other server.",
    type: "text/html",
    schema: { type: "string" },
    headers: tagged,
    conditional: true,
    ignoresQuery: true
  },
  "/openapi.json": {
    id: "getOpenApi",
    summary: "This document",
    description: "OpenAPI 3.1.0.",
    type: JSON_TYPE,
    schema: { type: "object", additionalProperties: true },
    headers: tagged,
    conditional: true
  },
  "/asyncapi.yaml": {
    id: "getAsyncApi",
    summary: "The topics",
    description: "AsyncAPI: what subscribers read from Kafka.",
    type: "application/yaml",
    schema: { description: "AsyncAPI 3.0.0." },
    headers: tagged,
    conditional: true
  },
  "/healthz": {
    id: "getHealth",
    summary: "Liveness",
    description: "Whether the process answers, whatever it depends on.",
    type: JSON_TYPE,
    schema: ref("Health")
  },
  "/readyz": {
    id: "getReadiness",
    summary: "Readiness",
    description: "200 only when a write would commit and a list would answer.",
    type: JSON_TYPE,
    schema: ref("Readiness"),
    unready: "A part is not ready, and the body says which; or the process starts or stops."
  },
  "/metrics": {
    id: "getMetrics",
    summary: "Metrics",
    description: "In the text format of Prometheus.",
    type: "text/plain",
    schema: { type: "string" }
  },
  [PUBLIC_KEYS_PATH]: {
    id: "getPublicKeys",
    summary: "Public keys",
    description: "The keys that signed checkpoints, as JWKS and as C2SP writes them.",
    type: JSON_TYPE,
    schema: ref("PublicKeys"),
    headers: cached
  }
}

const retryAfter = { description: "Seconds to wait.", schema: { type: "integer" } }

const refusedQuery = {
  description: "The route takes no query parameters.",
  content: { [JSON_TYPE]: { schema: ref("Error") } }
}

const ifNoneMatch = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "An `ETag` that the client has: 304 while it is the same.",
  schema: { type: "string" }
}

const STARTS_OR_STOPS = "The process starts or stops."

/** The error body, or what the route says of itself with the same status. */
const unavailableOf = ({ headers = {}, schema, unready }: OpsRoute): Json => ({
  description: unready ?? STARTS_OR_STOPS,
  headers: { ...headers, "Retry-After": retryAfter },
  content: {
    [JSON_TYPE]: {
      schema: unready === undefined ? ref("Error") : { oneOf: [schema, ref("Error")] }
    }
  }
})

const operationOf = (route: OpsRoute): Json => {
  const { conditional, description, headers = {}, id, ignoresQuery, schema, summary, type } = route
  const content = { [type]: { schema } }
  return {
    tags: ["Operations"],
    operationId: id,
    summary,
    description,
    security: [],
    parameters: conditional === true ? [ifNoneMatch] : [],
    responses: {
      200: { description: summary, headers, content },
      ...(conditional === true ? { 304: { description: "The client has it.", headers } } : {}),
      ...(ignoresQuery === true ? {} : { 400: refusedQuery }),
      503: unavailableOf(route)
    }
  }
}

/** The part of the document for these routes. */
export const opsDocument = () => ({
  tags: [{ name: "Operations", description: "Documents, health and keys; no key is needed." }],
  schemas,
  paths: Object.fromEntries(
    Object.entries(routes).map(([path, route]) => [path, { get: operationOf(route) }])
  )
})

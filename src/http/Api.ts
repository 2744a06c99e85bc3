/**
 * The whole contract in one place: every group of routes, and the OpenAPI 3.1.0 document that is
 * generated from them. A feature joins by adding its group here and its handlers in `Handlers`.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { AdminApi } from "./AdminContract.ts"
import type { ErrorStatus } from "./ApiError.ts"
import { ChainApi } from "./ChainContract.ts"
import { describeStatus } from "./ContractErrors.ts"
import { ErasureApi } from "./ErasureContract.ts"
import { ExportApi } from "./ExportContract.ts"
import { IngestApi } from "./IngestContract.ts"
import { OtlpApi } from "./OtlpContract.ts"
import { QueryApi } from "./QueryContract.ts"
import { ShareExportApi, ShareLinksApi } from "./ShareContract.ts"
import { StreamApi } from "./StreamContract.ts"
import { TraceApi } from "./TraceContract.ts"
import { VerifyApi } from "./VerifyContract.ts"

/** Version of the audit API, as the paths' `/v1` promises it. */
export const API_VERSION = "1.0.0"

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

const completeResponse = (status: string, response: Json): Json => ({
  ...response,
  ...(Number(status) >= 400 ? { description: describeStatus(Number(status) as ErrorStatus) } : {}),
  headers: { ...requestId, ...errorHeaders[status], ...response["headers"] }
})

const withoutStreamNotes = (response: Json): Json => {
  const content = response["content"] as Json | undefined
  if (content === undefined) return response
  const types = Object.entries(content).map(([type, media]) => {
    const { "x-effect-stream": _note, ...kept } = media as Json
    return [type, kept]
  })
  return { ...response, content: Object.fromEntries(types) }
}

const completeOperation = (operation: Json): Json => ({
  ...operation,
  responses: Object.fromEntries(
    Object.entries(operation["responses"] as Json).map(([status, response]) => [
      status,
      completeResponse(status, withoutStreamNotes(response as Json))
    ])
  )
})

/** Answers may gain members and requests may hold unknown ones: no schema is closed. */
const opened = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(opened)
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => key !== "additionalProperties" || value !== false)
      .map(([key, value]) => [key, opened(value)])
  )
}

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

const lowerCaseScheme = ([name, scheme]: [string, any]): [string, Json] => [
  name,
  { ...scheme, scheme: String(scheme["scheme"]).toLowerCase() }
]

/** What every operation has: headers of every answer, and the words for every status. */
const complete = (spec: Json): Json => ({
  ...spec,
  tags: mergedTags(spec["tags"] as ReadonlyArray<Json>),
  components: {
    ...spec["components"],
    schemas: opened(spec["components"]["schemas"]),
    securitySchemes: Object.fromEntries(
      Object.entries(spec["components"]["securitySchemes"] as Json).map(lowerCaseScheme)
    )
  },
  paths: Object.fromEntries(
    Object.entries(spec["paths"] as Json).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item as Json).map(([method, operation]) => [
          method,
          completeOperation(operation as Json)
        ])
      )
    ])
  )
})

const description = `A tamper-evident audit log: events form a SHA-256 hash chain per tenant.

Writes are asynchronous by default: 202 means durable, and the receipt says when the events are
chained and visible to the list. \`X-Service-Sync: true\` or \`?sync=true\` waits for that.

Errors are \`{"error": {"code", "message", "field"?, "request_id"}}\`, except on
\`POST /v1/events/batch\`, where \`error\` is the message and the rest stands beside it. A method
that a route doesn't have is answered 405 \`method_not_allowed\` with \`Allow\`, an unknown route
404 \`not_found\`. \`X-Request-Id\` is accepted or made, and echoed; \`traceparent\` is honoured.

Request bodies may be gzip, zstd or br (\`Content-Encoding\`), limits hold after decompression;
responses are compressed on request, the stream is not.

A query parameter that a route doesn't know, or that is repeated or empty, is refused with 400 on
every route; the message proposes the name that was probably meant. So is a field that a body
doesn't have, but for the items of \`/v1/events\` and \`/v1/events/batch\`: those are stored without
it, and the answer says so in \`warnings\`; what stands beside \`events\` is ignored.`

/** The contract: what isn't in here is neither served nor documented. */
export class Api extends HttpApi.make("alk")
  .add(IngestApi, ErasureApi)
  .add(QueryApi, VerifyApi, ChainApi, StreamApi)
  .add(ExportApi)
  .add(ShareLinksApi, ShareExportApi)
  .add(AdminApi)
  .add(TraceApi)
  .add(OtlpApi)
  .annotateMerge(
    OpenApi.annotations({
      title: "alk: Audit Log and Execution Trace Service",
      version: API_VERSION,
      description,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      servers: [{ url: "/" }],
      transform: complete
    })
  ) {}

/** The OpenAPI 3.1.0 document of the contract. */
export const openApiDocument = (): OpenApi.OpenAPISpec => OpenApi.fromApi(Api)

/** The document as `schemas/openapi.json` holds it. */
export const openApiText = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`

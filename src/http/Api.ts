/**
 * The whole contract in one place: every group of routes, and the OpenAPI 3.1.0 document that is
 * generated from them. A feature joins by adding its group here and its handlers in `Handlers`.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { AdminApi } from "./admin/AdminContract.ts"
import { PartitionsApi } from "./admin/PartitionsContract.ts"
import { QuarantineApi } from "./admin/QuarantineContract.ts"
import { RetentionApi } from "./admin/RetentionContract.ts"
import { ShareLinksApi } from "./admin/ShareContract.ts"
import { SharedApi } from "./admin/SharedContract.ts"
import { ChainApi } from "./chain/ChainContract.ts"
import { complete } from "./contract/OpenApiDocument.ts"
import { ErasureApi } from "./events/ErasureContract.ts"
import { IngestApi } from "./events/IngestContract.ts"
import { QueryApi } from "./events/QueryContract.ts"
import { StreamApi } from "./events/StreamContract.ts"
import { ExportApi } from "./exports/ExportContract.ts"
import { ExportJobsApi } from "./exports/jobs/JobContract.ts"
import { MeApi } from "./me/MeContract.ts"
import { OtlpApi } from "./otlp/OtlpContract.ts"
import { Refusals } from "./server/Refusals.ts"
import { SessionApi } from "./sessions/SessionContract.ts"
import { SqlApi } from "./sql/SqlContract.ts"
import { TraceApi } from "./traces/TraceContract.ts"
import { VerifyApi } from "./verification/VerifyContract.ts"

/** Version of the audit API, as the paths' `/v1` promises it. */
export const API_VERSION = "1.0.0"

const description = `A tamper-evident audit log: events form a SHA-256 hash chain per tenant.

Writes are asynchronous by default: 202 means durable, and the receipt says when the events are
chained and visible to the list. \`X-Service-Sync: true\` or \`?sync=true\` waits for that.

Errors are \`{"error": {"code", "message", "field"?, "request_id"}}\`, except on
\`POST /v1/events/batch\`, where \`error\` is the message and the rest is beside it. A method
that a route doesn't have is answered 405 \`method_not_allowed\` with \`Allow\`, an unknown route
404 \`not_found\` with the address that was probably meant. \`X-Request-Id\` is accepted or made, and
echoed; \`traceparent\` is honoured.

Request bodies may be gzip, zstd, br, deflate or zlib (\`Content-Encoding\`). Every frame or member of
one is read; one that breaks off, or that anything else follows, is refused. Limits hold after
decompression, and a body may inflate to 512 times its size, or to 1 MiB. A byte order mark before a
text is passed over. Responses are compressed on request, the stream is not.

A query parameter that a route doesn't know, or that is repeated or empty, is refused with 400 on
every route but \`/healthz\` and \`/readyz\`; the message proposes the name that was probably meant.
So is a field that a body doesn't have, but for the items of \`/v1/events\` and \`/v1/events/batch\`:
those are stored without it, and the answer says so in \`warnings\`. OTLP's own rules hold for exports
of OpenTelemetry.

Every route that takes a key may answer 400 (the request can't be read), 401, 429 (too many wrong
keys from one address, or a quota), and 503. What an object names here is what is known today: more
members may come, and clients pass over what they don't know.`

/** The contract: what isn't in here is neither served nor documented. */
export class Api extends HttpApi.make("alk")
  .add(IngestApi, ErasureApi)
  .add(QueryApi, SqlApi, VerifyApi, ChainApi, StreamApi)
  .add(ExportApi, ExportJobsApi)
  .add(ShareLinksApi, SharedApi)
  .add(MeApi, SessionApi)
  .add(AdminApi, PartitionsApi, RetentionApi, QuarantineApi)
  .add(TraceApi)
  .add(OtlpApi)
  .middleware(Refusals)
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

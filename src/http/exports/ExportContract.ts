/**
 * The routes that hand out documents: the evidence pack and the PDF. Says nothing of how they are
 * made.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { conditionParameters, filterParameters, toFilter } from "../events/EventParameters.ts"
import { PDF_TYPE, ZIP_TYPE } from "../messages/MediaTypes.ts"
import { booleanParameter } from "../messages/QueryParameters.ts"
import { Authorization } from "../server/Authorization.ts"

/** Query of `GET /v1/export/evidence-pack`, but for the conditions on metadata. */
export const packParameters = {
  ...filterParameters,
  pdf: booleanParameter({
    default: true,
    description: "Whether the PDF is in the pack; `false` where there is no Chromium to print it."
  })
}

/** The header by which a client says what it has. */
export const ifNoneMatch = {
  "If-None-Match": {
    description: "The `ETag` of an export that the client has: 304 while it would be the same.",
    schema: { type: "string" }
  }
}

const responseHeaders = {
  "Content-Disposition": "A file name made of tenant and time.",
  ETag: "Weak: over bounds, filters, the chain's head and the format."
}

/** The answer to a client that has it. */
export const Unchanged = HttpApiSchema.Empty(304).annotate({
  description: "The export would be the one that the client has."
})

const errors = errorsOf("object", 400, 401, 403, 429, 503)

const evidencePack = HttpApiEndpoint.get("exportEvidencePack", "/v1/export/evidence-pack", {
  query: queryOf(packParameters, {
    conditions: conditionParameters,
    read: ({ pdf: withPdf = true, ...values }, conditions, now) => ({
      filter: toFilter(values, conditions, now),
      withPdf
    })
  }),
  success: [
    Schema.Uint8Array.annotate({
      description: "A ZIP with the events, what proves them, and programs that check it offline."
    }).pipe(HttpApiSchema.asUint8Array({ contentType: ZIP_TYPE })),
    Unchanged
  ],
  error: errors
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Evidence pack",
    description:
      "Everything that an auditor needs to check a part of the log without the service, "
      + "streamed. Without bounds it covers what verification covers: the full supported "
      + "history, future-dated events included. The PDF and verification.json have identical "
      + "bounds.",
    headers: ifNoneMatch,
    responseHeaders: { 200: responseHeaders, 304: { ETag: responseHeaders.ETag } }
  })
)

const auditPdf = HttpApiEndpoint.get("exportPdf", "/v1/export/pdf", {
  query: queryOf(filterParameters, { conditions: conditionParameters, read: toFilter }),
  success: [
    Schema.Uint8Array.annotate({ description: "A PDF/1.x document, tagged." }).pipe(
      HttpApiSchema.asUint8Array({ contentType: PDF_TYPE })
    ),
    Unchanged
  ],
  error: errors
}).pipe(
  operation({
    scopes: ["read"],
    summary: "SOC 2 audit report",
    description:
      "The report for people: period, verdict, population, integrity, statistics, exceptions, "
      + "samples. 503 `pdf_unavailable` where there is no Chromium to print it.",
    headers: ifNoneMatch,
    responseHeaders: { 200: responseHeaders, 304: { ETag: responseHeaders.ETag } }
  })
)

/** The routes of the tag Export. */
export class ExportApi extends HttpApiGroup.make("Export")
  .add(evidencePack, auditPdf)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "Documents for auditors." })) {}

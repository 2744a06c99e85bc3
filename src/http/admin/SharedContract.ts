/**
 * The routes that the token of a share link opens: what it covers, the verdict on that, and its
 * documents. Says nothing of who may make a link.
 */
import { Context, Schema } from "effect"
import {
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity,
  OpenApi
} from "effect/http-api"
import { exampleCheckpoint } from "../../contracts/ExampleCheckpoint.ts"
import type { ShareLink as StoredLink } from "../../domain/registry/RegistryEntry.ts"
import { Checkpoint } from "../chain/ProofSchemas.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { VerifyReport } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { ifNoneMatch, packParameters, Unchanged } from "../exports/ExportContract.ts"
import { NDJSON_TYPE, PDF_TYPE, ZIP_TYPE } from "../messages/MediaTypes.ts"
import { VerifyLines } from "../verification/VerifySchemas.ts"
import { coverFields, exampleCover } from "./ShareContract.ts"

/** Verifications under way at once of one link, in each process: no tenant pays for its bearer. */
export const SHARED_CHECKS_MAX = 1

/** The link whose token the current request came with. */
export class CurrentShareLink extends Context.Service<CurrentShareLink, StoredLink>()(
  "alk/http/CurrentShareLink"
) {}

/** A share link's token as bearer. Cookies play no part. */
export class ShareAuthorization extends HttpApiMiddleware.Service<
  ShareAuthorization,
  { provides: CurrentShareLink }
>()("alk/http/ShareAuthorization", {
  security: {
    share_token: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotateMerge(
        OpenApi.annotations({ description: "The token of a share link, `shr_…`.", format: "shr_…" })
      )
    )
  }
}) {}

export const SharedScope = Schema.Struct({
  tenant: Schema.Struct({
    id: Schema.String,
    name: Schema.optionalKey(Schema.String)
  }).annotate({ description: "Whose log it is." }),
  ...coverFields,
  events: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "Events that it covers at this moment."
  }),
  checkpoint: Schema.optionalKey(Checkpoint),
  has_traces: Schema.Boolean.annotate({
    description:
      "Whether the execution traces of the period are covered too. They are not where the link has "
      + "conditions other than `from` and `to`: those select events."
  })
}).annotate({
  identifier: "SharedScope",
  description: "What a share link covers. Nothing in it names the link, its maker or its key.",
  examples: [
    {
      tenant: { id: "acme", name: "Acme Inc." },
      ...exampleCover,
      events: 42,
      checkpoint: exampleCheckpoint,
      has_traces: false
    }
  ]
})

const UNUSABLE =
  "401 for a token that is unknown, expired, revoked or used up. Of a link that has ended, the "
  + "header `WWW-Authenticate` says why to those who have its token: `error_description` is "
  + "`expired`, `revoked` or `used_up`."

const sharedScope = HttpApiEndpoint.get("getSharedScope", "/v1/share", {
  success: SharedScope,
  error: errorsOf("object", 400, 401, 429, 503)
}).pipe(
  operation({
    summary: "What a share link covers",
    description: `Uses nothing up. ${UNUSABLE}`
  })
)

const sharedVerification = HttpApiEndpoint.get("verifyShared", "/v1/share/verify", {
  success: [VerifyReport, VerifyLines],
  error: errorsOf("object", 400, 401, 406, 429, 503)
}).pipe(
  operation({
    summary: "Verify what a share link covers",
    description:
      "Recomputes the span of the chain that covers the bounds of the link, as `GET /v1/verify` "
      + `does, with lines of progress for \`Accept: ${NDJSON_TYPE}\`. Takes no parameters and uses `
      + `nothing up; ${SHARED_CHECKS_MAX} at a time for each link, else 429. The chain can only be `
      + "recomputed as a whole, so the report tells something of what the link does not cover: how "
      + "many events there are from the first to the last one of the span, how many of them were "
      + "erased, sequence numbers and hashes, and the head of the chain with its time. It tells no "
      + "content of them: `event_id` of a break is always null. Trace facts are verified where the "
      + `link covers them. ${UNUSABLE}`
  })
)

const documentErrors = errorsOf("object", 400, 401, 429, 503)

const sharedPdf = HttpApiEndpoint.get("exportSharedPdf", "/v1/share/export/pdf", {
  success: [
    Schema.Uint8Array.annotate({ description: "The report that the link covers." }).pipe(
      HttpApiSchema.asUint8Array({ contentType: PDF_TYPE })
    ),
    Unchanged
  ],
  error: documentErrors
}).pipe(
  operation({
    summary: "The document of a share link",
    description:
      "Takes no parameters: what it shows was fixed when the link was made. Each document counts "
      + `as one use; 304 and HEAD don't. ${UNUSABLE}`,
    headers: ifNoneMatch
  })
)

const sharedPack = HttpApiEndpoint.get("exportSharedPack", "/v1/share/export/evidence-pack", {
  query: queryOf({ pdf: packParameters.pdf }),
  success: [
    Schema.Uint8Array.annotate({
      description: "The evidence pack that the link covers, a ZIP."
    }).pipe(HttpApiSchema.asUint8Array({ contentType: ZIP_TYPE })),
    Unchanged
  ],
  error: documentErrors
}).pipe(
  operation({
    summary: "The evidence pack of a share link",
    description:
      "The events that the link covers with what proves them, as `GET /v1/export/evidence-pack` "
      + "makes it. Each pack counts as one use; 304 and HEAD don't. Of events of the span that the "
      + "link does not cover it holds the links: sequence number, time of writing and hashes. Where "
      + "the link has conditions other than `from` and `to` there are no execution traces in it, and "
      + "of the erasures those of events that are in it. "
      + UNUSABLE,
    headers: ifNoneMatch
  })
)

/** The routes of the tag Share that take a link's token. */
export class SharedApi extends HttpApiGroup.make("Shared")
  .add(sharedScope, sharedVerification, sharedPdf, sharedPack)
  .middleware(ShareAuthorization)
  .annotateMerge(OpenApi.annotations({ title: "Share", description: "" })) {}

/**
 * The routes of share links: made, listed and revoked with an API key, used with their own token.
 * Says nothing of how they are kept.
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
import { ENDED_LINK_KEPT_DAYS, ENDED_LINKS_MAX, LINKS_MAX } from "../../domain/registry/Registry.ts"
import type { ShareLink as StoredLink } from "../../domain/registry/RegistryEntry.ts"
import { integerInput, optionalInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { label, pageFields, Timestamp } from "../contract/ContractSchemas.ts"
import { createdHeaders, operation } from "../contract/Operation.ts"
import { conditionParameters, filterParameters } from "../events/EventParameters.ts"
import { ifNoneMatch, Unchanged } from "../exports/ExportContract.ts"
import { PDF_TYPE } from "../messages/MediaTypes.ts"
import { pageLinkHeader } from "../messages/Pages.ts"
import type { DescribedParameter } from "../messages/QueryParameters.ts"
import { Authorization } from "../server/Authorization.ts"
import { resourcePageQuery } from "./ResourcePages.ts"

/** Seconds that a link is valid: 7 days, unless it says otherwise, and 30 at most. */
export const EXPIRES_IN_DEFAULT = 7 * 86_400
export const EXPIRES_IN_MAX = 30 * 86_400
/** Uses of one link at most. */
export const USES_MAX = 1_000_000

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const linkFields = {
  id: Schema.String.annotate({ description: "Names the link; not its token." }),
  label: Schema.optionalKey(Schema.String),
  from: Schema.NullOr(Timestamp).annotate({ description: "null: from the start." }),
  to: Schema.NullOr(Timestamp).annotate({ description: "null: to the end, whenever it is used." }),
  filters: Schema.Record(Schema.String, Schema.String).annotate({
    description: "The conditions beside the bounds, as parameters of the event list."
  }),
  created_by: Schema.String.annotate({ description: "Id of the API key that made it." }),
  created_at: Timestamp,
  expires_at: Timestamp,
  max_uses: Schema.optionalKey(Count),
  uses: Schema.Int,
  revoked_at: Schema.optionalKey(Timestamp)
}

const exampleLink = {
  id: "lnk_019a8f3c-0000-7000-8000-000000000000",
  label: "for the auditor",
  from: "2026-01-01T00:00:00.000000Z",
  to: null,
  filters: { actor_id: "user_1" },
  created_by: "key_1",
  created_at: "2026-11-21T10:00:00.000000Z",
  expires_at: "2026-11-28T10:00:00.000000Z",
  uses: 0
}

export const ShareLink = Schema.Struct(linkFields).annotate({
  identifier: "ShareLink",
  description: "A share link without its token, which is not stored.",
  examples: [exampleLink]
})

/** A parameter of the event list as a member: integers as text too, and `null` for an absent one. */
const memberOf = (schema: Readonly<Record<string, unknown>>) => ({
  ...schema,
  type: schema["type"] === "integer" ? ["integer", "string", "null"] : [schema["type"], "null"],
  ...(schema["type"] === "integer" ? { pattern: "^[0-9]{1,15}$" } : {}),
  ...(Array.isArray(schema["enum"]) ? { enum: [...schema["enum"], null] } : {})
})

/** A condition as a member: the text of a parameter, or those of one that is repeated. */
const conditionMember = (value: object) => ({
  anyOf: [value, { type: "array", items: value }, { type: "null" }]
})

const { from: _from, to: _to, ...parameters } = filterParameters

/** The parameters by name, nothing else, and no number where text is due. */
const Filters = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter(() => true, {
    toJsonSchema: () => ({
      properties: {
        ...Object.fromEntries(
          Object.entries(conditionParameters).map(([name, { description, schema }]) => [
            name,
            { ...conditionMember(schema["items"] as object), description }
          ])
        ),
        ...Object.fromEntries(
          Object.entries(parameters).map(([name, { description, schema }]) => [
            name,
            { ...memberOf(schema), description }
          ])
        )
      },
      patternProperties: {
        "^metadata\\.|[!<>]=$": {
          ...conditionMember({ type: ["string", "number"] }),
          description:
            "A condition on metadata, or one with the sign `!=`, `>=` or `<=` at the end of its "
            + "name; a number after `>=` and `<=` only."
        }
      },
      additionalProperties: false
    })
  })
)

const boundOf = ({ description, schema }: DescribedParameter) =>
  Schema.String.check(Schema.isPattern(new RegExp(String(schema["pattern"]), "u"))).annotate({
    description
  })

export const ShareLinkInput = Schema.Struct({
  from: optionalInput(boundOf(filterParameters.from)),
  to: optionalInput(boundOf(filterParameters.to)),
  filters: optionalInput(Filters).annotateKey({
    description:
      "Conditions by the names of the event list's parameters, `metadata.<path>` included; not "
      + "from and to. A name may end with `!=`, `>=` or `<=`. Several values are an array, or have "
      + "commas between them."
  }),
  expires_in: optionalInput(integerInput(EXPIRES_IN_MAX)).annotateKey({
    description: `Seconds; ${EXPIRES_IN_DEFAULT} (7 days) unless given.`
  }),
  max_uses: optionalInput(integerInput(USES_MAX)),
  label: optionalInput(label)
}).annotate({
  identifier: "ShareLinkInput",
  examples: [{ from: "2026-01-01T00:00:00Z", filters: { actor_id: "user_1" }, max_uses: 3 }]
})

export const CreatedShareLink = Schema.Struct({
  ...linkFields,
  token: Schema.String.annotate({ description: "`shr_` and 256 random bits; shown here only." }),
  url: Schema.String.annotate({ description: "Where the token fetches the document." })
}).annotate({
  identifier: "CreatedShareLink",
  examples: [
    {
      ...exampleLink,
      token: "shr_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg",
      url: "https://alk.example/v1/share/export/pdf"
    }
  ]
})

export const ShareLinkList = Schema.Struct({
  links: Schema.Array(ShareLink),
  ...pageFields
}).annotate({
  identifier: "ShareLinkList",
  examples: [{ links: [exampleLink], total: 1, page: 1, page_size: 1_000 }]
})

/** The link whose token the current request came with. */
export class CurrentShareLink extends Context.Service<CurrentShareLink, StoredLink>()(
  "alk/http/CurrentShareLink"
) {}

/** A share link's token as bearer. */
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

const params = { id: Schema.String.annotate({ description: "Id of the link." }) }

const createLink = HttpApiEndpoint.post("createShareLink", "/v1/share/links", {
  payload: ShareLinkInput,
  success: CreatedShareLink.pipe(HttpApiSchema.status(201)),
  error: errorsOf("object", 400, 401, 403, 413, 415, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Make a share link",
    description:
      "What the link shows is fixed now; its bearer needs no API key and can change nothing of "
      + "it. It ends with the key that makes it: revoking that key revokes the link. Making, using "
      + "and revoking are logged in the chain of the tenant `_system`. 429 `rate_limited` where "
      + `the tenant has ${LINKS_MAX} links that can be used: revoke some.`,
    responseHeaders: { 201: createdHeaders }
  })
)

const listLinks = HttpApiEndpoint.get("listShareLinks", "/v1/share/links", {
  query: resourcePageQuery,
  success: ShareLinkList,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "List the share links",
    description:
      "Newest first; no tokens are shown. Links that have ended are listed for "
      + `${ENDED_LINK_KEPT_DAYS} days more, the newest ${ENDED_LINKS_MAX} of them.`,
    responseHeaders: pageLinkHeader
  })
)

const getLink = HttpApiEndpoint.get("getShareLink", "/v1/share/links/:id", {
  params,
  success: ShareLink,
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "One share link",
    description: "What it covers and how often it was used; its token is not shown."
  })
)

const revokeLink = HttpApiEndpoint.delete("revokeShareLink", "/v1/share/links/:id", {
  params,
  success: HttpApiSchema.NoContent.annotate({ description: "The link is revoked." }),
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Revoke a share link",
    description: "Takes effect within a second. 404 if it is revoked already."
  })
)

/** The routes of the tag Share that take an API key. */
export class ShareLinksApi extends HttpApiGroup.make("ShareLinks")
  .add(createLink, listLinks, getLink, revokeLink)
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Share", description: "Documents for people without a key." })
  ) {}

const sharePdf = HttpApiEndpoint.get("exportSharedPdf", "/v1/share/export/pdf", {
  success: [
    Schema.Uint8Array.annotate({ description: "The report that the link covers." }).pipe(
      HttpApiSchema.asUint8Array({ contentType: PDF_TYPE })
    ),
    Unchanged
  ],
  error: errorsOf("object", 400, 401, 429, 503)
}).pipe(
  operation({
    summary: "The document of a share link",
    description:
      "Takes no parameters: what it shows was fixed when the link was made. Each document counts "
      + "as one use; 304 and HEAD don't. 401 for a token that is unknown, expired, revoked or used "
      + "up; it opens no other route.",
    headers: ifNoneMatch
  })
)

/** The route of the tag Share that takes a link's token. */
export class ShareExportApi extends HttpApiGroup.make("ShareExport")
  .add(sharePdf)
  .middleware(ShareAuthorization)
  .annotateMerge(OpenApi.annotations({ title: "Share", description: "" })) {}

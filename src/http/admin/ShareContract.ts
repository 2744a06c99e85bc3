/**
 * The routes of share links that take an API key: made, listed and revoked. What their tokens open is
 * in SharedContract. Says nothing of how links are kept.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  ENDED_LINK_KEPT_DAYS,
  ENDED_LINKS_MAX,
  LINKS_MAX,
  type LinkEnd,
  linkEnds
} from "../../domain/registry/Registry.ts"
import { integerInput, optionalInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { label, pageFields, Timestamp } from "../contract/ContractSchemas.ts"
import { createdHeaders, operation } from "../contract/Operation.ts"
import { scopeFields, scopeInput } from "../events/ScopeSchemas.ts"
import { pageLinkHeader } from "../messages/Pages.ts"
import { Authorization } from "../server/Authorization.ts"
import { resourcePageQuery } from "./ResourcePages.ts"

/** Seconds that a link is valid: 7 days, unless it says otherwise, and 30 at most. */
export const EXPIRES_IN_DEFAULT = 7 * 86_400
export const EXPIRES_IN_MAX = 30 * 86_400
/** Uses of one link at most. */
export const USES_MAX = 1_000_000

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** What a link covers and until when: what its bearer may know of it, too. */
export const coverFields = {
  label: Schema.optionalKey(Schema.String),
  ...scopeFields("whenever it is used"),
  created_at: Timestamp,
  expires_at: Timestamp,
  max_uses: Schema.optionalKey(Count),
  uses: Schema.Int
}

const ends = Object.keys(linkEnds) as ReadonlyArray<LinkEnd>

const linkFields = {
  id: Schema.String.annotate({ description: "Names the link; not its token." }),
  ...coverFields,
  created_by: Schema.String.annotate({ description: "Id of the API key that made it." }),
  last_used_at: Schema.optionalKey(Timestamp).annotateKey({
    description: "When it was used last; absent if it was not, or not since this is kept."
  }),
  revoked_at: Schema.optionalKey(Timestamp),
  ended: Schema.optionalKey(Schema.Literals(ends)).annotateKey({
    description:
      "How it ended; absent while it can be used. `revoked` without `revoked_at`: with its key, which "
      + "is valid no more."
  })
}

export const exampleCover = {
  label: "for the auditor",
  from: "2026-01-01T00:00:00.000000Z",
  to: null,
  filters: { actor_id: "user_1" },
  created_at: "2026-11-21T10:00:00.000000Z",
  expires_at: "2026-11-28T10:00:00.000000Z",
  uses: 1
}

const exampleLink = {
  id: "lnk_019a8f3c-0000-7000-8000-000000000000",
  ...exampleCover,
  created_by: "key_1",
  last_used_at: "2026-11-22T08:15:00.000000Z"
}

export const ShareLink = Schema.Struct(linkFields).annotate({
  identifier: "ShareLink",
  description: "A share link without its token, which is not stored.",
  examples: [exampleLink]
})

export const ShareLinkInput = Schema.Struct({
  ...scopeInput,
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
  url: Schema.String.annotate({ description: "Where the token fetches the document." }),
  page_url: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "The page for people that the link opens. The token is behind `#`, which browsers send "
      + "nowhere. Absent where the console is off."
  })
}).annotate({
  identifier: "CreatedShareLink",
  examples: [
    {
      ...exampleLink,
      token: "shr_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg",
      url: "https://alk.example/v1/share/export/pdf",
      page_url: "https://alk.example/share#shr_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg"
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

const params = {
  id: Schema.String.annotate({ description: "Id of the link.", examples: [exampleLink.id] })
}

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
      + "it. It ends with the key that makes it, when that expires, is revoked or leaves the "
      + "configuration: `expires_at` is never later than the key's. Making, using and revoking are "
      + "logged in the chain of the tenant `_system`. 429 `rate_limited` where "
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
    description:
      "Takes effect within a second. With the key that made it, or with one that has the scope "
      + "`write` too, else 403. 404 if it is revoked already."
  })
)

/** The routes of the tag Share that take an API key. */
export class ShareLinksApi extends HttpApiGroup.make("ShareLinks")
  .add(createLink, listLinks, getLink, revokeLink)
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Share", description: "Documents for people without a key." })
  ) {}

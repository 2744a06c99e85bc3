/**
 * Serves those who make share links: reads what a link is to cover and shows links without their
 * hashes. What a token opens is served by SharedHandlers.
 */
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { defined } from "../../domain/Defined.ts"
import type { ShareLink } from "../../domain/registry/RegistryEntry.ts"
import { ShareLinks } from "../../services/administration/ShareLinks.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, objectOf, readAs } from "../contract/Bodies.ts"
import { scopeOf } from "../events/ScopeReader.ts"
import { createdAt, json } from "../messages/Answer.ts"
import { notFound, refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { HttpListener } from "../server/HttpListener.ts"
import { refusalOfForeign } from "../server/OwnThings.ts"
import { resourcePage } from "./ResourcePages.ts"
import { EXPIRES_IN_DEFAULT, ShareLinkInput } from "./ShareContract.ts"
import { coverOf } from "./ShareCover.ts"

const inputFields = Object.keys(ShareLinkInput.fields)
const { expires_in, label, max_uses } = ShareLinkInput.fields
const labelAndUses = Schema.Struct({ label, max_uses })
const validity = Schema.Struct({ expires_in })

const inputOf = (bytes: Buffer) => {
  const object = objectOf(bytes, inputFields, "a share link")
  const { label, max_uses } = readAs(labelAndUses, object)
  return {
    filter: scopeOf(object),
    expiresInSeconds: readAs(validity, object).expires_in ?? EXPIRES_IN_DEFAULT,
    ...defined({ label: label ?? undefined, maxUses: max_uses ?? undefined })
  }
}

/** Where the links are made, listed and found. */
const SHARE_LINKS_PATH = "/v1/share/links"

/** Where a token fetches its document, and where the page is that opens with it. */
const SHARE_EXPORT_PATH = "/v1/share/export/pdf"
const SHARE_PAGE_PATH = "/share"

/** The handlers of ShareLinksApi. */
export const layerShareLinksHandlers = HttpApiBuilder.group(
  Api,
  "ShareLinks",
  Effect.fnUntraced(function* (handlers) {
    const { hasConsole, publicUrl } = yield* ApiSettings
    const { url: ownUrl } = yield* HttpListener
    const links = yield* ShareLinks

    const shown = (link: ShareLink) => {
      const { created_by, id, last_used_at, revoked_at } = link
      const ended = links.endOf(link)
      return { id, ...coverOf(link), created_by, ...defined({ last_used_at, revoked_at, ended }) }
    }

    return handlers
      .handleRaw(
        "createShareLink",
        Effect.fnUntraced(function* ({ request }) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
          const input = yield* refusable(() => inputOf(bytes))
          const { link, token } = yield* links.create({ tenantId, keyId, ...input })
          // Never what the request says of the service's address: the token goes there.
          const base = publicUrl ?? ownUrl
          const pageUrl = hasConsole ? `${base}${SHARE_PAGE_PATH}#${token}` : undefined
          const headers = createdAt(publicUrl, SHARE_LINKS_PATH, link.id)
          const url = `${base}${SHARE_EXPORT_PATH}`
          const made = { ...shown(link), token, url, ...defined({ page_url: pageUrl }) }
          return json(made, { status: 201, headers })
        })
      )
      .handle(
        "listShareLinks",
        Effect.fnUntraced(function* ({ query, request }) {
          const { tenantId } = yield* CurrentPrincipal
          const all = yield* links.list(tenantId)
          return yield* resourcePage(request, publicUrl, query, "links", all, shown)
        })
      )
      .handle(
        "getShareLink",
        Effect.fnUntraced(function* ({ params: { id } }) {
          const { tenantId } = yield* CurrentPrincipal
          const link = yield* links.get(tenantId, id)
          return link === undefined ? yield* notFound("share link") : shown(link)
        })
      )
      .handle(
        "revokeShareLink",
        Effect.fnUntraced(function* ({ params: { id } }) {
          const caller = yield* CurrentPrincipal
          const { keyId, tenantId } = caller
          const link = yield* links.get(tenantId, id)
          if (link === undefined) return yield* notFound("share link")
          const refusal = refusalOfForeign(caller, link.created_by, "the link was made", "revoke")
          if (refusal !== undefined) return yield* refusal
          yield* links.revoke(tenantId, id, keyId)
          return HttpServerResponse.empty({ status: 204 })
        })
      )
  })
)

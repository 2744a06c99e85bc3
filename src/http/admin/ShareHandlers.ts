/**
 * Serves the share links: reads what a link is to cover and shows links without their hashes. Who
 * may use one is decided by `ShareLinks`.
 */
import { Effect, Layer, Redacted, Result, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { defined } from "../../domain/Defined.ts"
import { readCondition } from "../../domain/events/ConditionText.ts"
import { conditionsOf, type EventFilter } from "../../domain/events/EventFilter.ts"
import { METADATA_PREFIX } from "../../domain/events/MetadataPath.ts"
import type { JsonObject, JsonValue } from "../../domain/json/StrictJson.ts"
import type { ShareLink } from "../../domain/registry/RegistryEntry.ts"
import { ShareLinks } from "../../services/administration/ShareLinks.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, objectOf, readAs } from "../contract/Bodies.ts"
import { conditionParameters, filterParameters, toFilter } from "../events/EventParameters.ts"
import { ExportAnswers } from "../exports/ExportAnswers.ts"
import { createdAt, errorResponse, json } from "../messages/Answer.ts"
import { ApiError, invalid, notFound, refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { withKnownQuery } from "../messages/KnownQuery.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import type { GivenCondition } from "../messages/QueryParameters.ts"
import { readBody } from "../messages/RequestBody.ts"
import { whatWasMeant } from "../messages/UnknownParameter.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { FailedCredentials } from "../server/FailedCredentials.ts"
import { HttpListener } from "../server/HttpListener.ts"
import { resourcePage } from "./ResourcePages.ts"
import {
  CurrentShareLink,
  EXPIRES_IN_DEFAULT,
  ShareAuthorization,
  ShareLinkInput
} from "./ShareContract.ts"

type FilterName = keyof typeof filterParameters

/** What `filters` takes: the bounds of time are given beside it. */
const filterNames = [
  ...Object.keys(conditionParameters),
  ...Object.keys(filterParameters).filter((name) => name !== "from" && name !== "to"),
  "metadata.<path>"
]

const isFilterName = (name: string): name is FilterName => Object.hasOwn(filterParameters, name)

/** Integers may also be sent as text, as in a query; nothing else may be a number. */
const readValue = (name: FilterName, field: string, value: JsonValue): unknown => {
  const isInteger = filterParameters[name].schema["type"] === "integer"
  if (value === "" || !(typeof value === "string" || (isInteger && typeof value === "number"))) {
    throw invalid(
      field,
      `must be ${isInteger ? "an integer, or a string with one" : "a string that is not empty"}`
    )
  }
  const parsed: Result.Result<unknown, string> = filterParameters[name].parse(String(value))
  if (Result.isFailure(parsed)) throw invalid(field, parsed.failure)
  return parsed.success
}

/**
 * The conditions of a member, one for each text. A name ends with its whole sign: in a query the
 * name `amount>` with a value is `>=`, while in an object it would look like `>`, so it is refused.
 */
const conditionsIn = (name: string, value: JsonValue): ReadonlyArray<GivenCondition> => {
  const label = `filters.${name}`
  const { name: subject, sign } = readCondition(name, "x")
  const isOrder = sign !== "=" && sign !== "!="
  if (isOrder && !name.endsWith("=")) {
    throw invalid(label, `ends with ${name}=, or is said in where, as in ${name}5`)
  }
  if (Array.isArray(value) && value.length === 0) throw invalid(label, "is an empty array")
  const mayBeNumber = isOrder || subject === "sequence_number"
  return (Array.isArray(value) ? value : [value]).map((one: JsonValue) => {
    if (one === "" || !(typeof one === "string" || (mayBeNumber && typeof one === "number"))) {
      const kind = mayBeNumber ? "a number or a string" : "a string that is not empty"
      throw invalid(label, `must be ${kind}, or an array of them`)
    }
    if (String(one).includes("\0")) throw invalid(label, "holds the character U+0000")
    return { label, name: subject, sign, values: String(one) }
  })
}

const isConditionName = (name: string): boolean => {
  const { name: subject } = readCondition(name, "x")
  return Object.hasOwn(conditionParameters, subject) || subject.startsWith(METADATA_PREFIX)
}

const filtersOf = (object: JsonObject): JsonObject => {
  const filters = object["filters"] ?? {}
  if (typeof filters === "object" && !Array.isArray(filters)) return filters as JsonObject
  throw invalid("filters", "must be an object of parameters of the event list")
}

/** What the link covers; throws the ApiError that names the field. */
const filterOf = (object: JsonObject): EventFilter => {
  const values: Record<string, unknown> = {}
  const conditions: Array<GivenCondition> = []
  for (const name of ["from", "to"] as const) {
    const value = object[name] ?? undefined
    if (value !== undefined) values[name] = readValue(name, name, value)
  }
  for (const [name, value] of Object.entries(filtersOf(object))) {
    const field = `filters.${name}`
    if (value === null) continue
    if (isConditionName(name)) {
      conditions.push(...conditionsIn(name, value))
    } else if (!isFilterName(name) || name === "from" || name === "to") {
      const meant = whatWasMeant(name, filterNames)
      throw invalid(
        field,
        `is not a filter of the event list; from and to are given beside filters; ${meant}`
      )
    } else {
      values[name] = readValue(name, field, value)
    }
  }
  return toFilter(values, conditions, "filters")
}

const inputFields = Object.keys(ShareLinkInput.fields)
const { expires_in, label, max_uses } = ShareLinkInput.fields
const labelAndUses = Schema.Struct({ label, max_uses })
const validity = Schema.Struct({ expires_in })

const inputOf = (bytes: Buffer) => {
  const object = objectOf(bytes, inputFields, "a share link")
  const { label, max_uses } = readAs(labelAndUses, object)
  return {
    filter: filterOf(object),
    expiresInSeconds: readAs(validity, object).expires_in ?? EXPIRES_IN_DEFAULT,
    ...defined({ label: label ?? undefined, maxUses: max_uses ?? undefined })
  }
}

const shown = (link: ShareLink) => {
  const { filter, hash: _hash, tenant_id: _tenant, ...rest } = link
  return {
    ...rest,
    from: filter.from ?? null,
    to: filter.to ?? null,
    filters: {
      ...Object.fromEntries(conditionsOf(filter)),
      ...defined({
        from_sequence: filter.fromSequence?.toString(),
        to_sequence: filter.toSequence?.toString()
      })
    }
  }
}

/** Where the links are made, listed and found. */
const SHARE_LINKS_PATH = "/v1/share/links"

/** Where a token fetches its document. */
export const SHARE_EXPORT_PATH = "/v1/share/export/pdf"

/** The handlers of ShareLinksApi. */
export const layerShareLinksHandlers = HttpApiBuilder.group(
  Api,
  "ShareLinks",
  Effect.fnUntraced(function* (handlers) {
    const { publicUrl } = yield* ApiSettings
    const { url: ownUrl } = yield* HttpListener
    const links = yield* ShareLinks

    return handlers
      .handleRaw(
        "createShareLink",
        Effect.fnUntraced(function* ({ request }) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
          const input = yield* refusable(() => inputOf(bytes))
          const { link, token } = yield* links.create({ tenantId, keyId, ...input })
          // Never what the request says of the service's address: the token goes there.
          const url = `${publicUrl ?? ownUrl}${SHARE_EXPORT_PATH}`
          const headers = createdAt(publicUrl, SHARE_LINKS_PATH, link.id)
          return json({ ...shown(link), token, url }, { status: 201, headers })
        })
      )
      .handle(
        "listShareLinks",
        Effect.fnUntraced(function* ({ query, request }) {
          const { tenantId } = yield* CurrentPrincipal
          const all = yield* links.list(tenantId)
          return resourcePage(request, publicUrl, query, "links", all, shown)
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
          const { keyId, tenantId } = yield* CurrentPrincipal
          const link = yield* links.get(tenantId, id)
          if (link === undefined) return yield* notFound("share link")
          yield* links.revoke(tenantId, id, keyId)
          return HttpServerResponse.empty({ status: 204 })
        })
      )
  })
)

/** 401 without the token of a link that can be used now. */
export const layerShareAuthorization: Layer.Layer<
  ShareAuthorization,
  never,
  ShareLinks | FailedCredentials
> = Layer.effect(
  ShareAuthorization,
  Effect.gen(function* () {
    const links = yield* ShareLinks
    const failed = yield* FailedCredentials
    return ShareAuthorization.of({
      share_token: (handler, { credential, endpoint }) => {
        const token = Redacted.value(credential)
        return links.find(token).pipe(
          Effect.matchEffect({
            onFailure: ({ message }) => {
              const refusal = new ApiError({
                code: "unauthenticated",
                message: `${message}; send its token as Authorization: Bearer shr_…`
              })
              if (token === "") return errorResponse(refusal)
              return Effect.flatMap(failed.refusal(refusal), errorResponse)
            },
            onSuccess: (link) =>
              Effect.provideService(withKnownQuery(endpoint, handler), CurrentShareLink, link)
          })
        )
      }
    })
  })
)

/** The handlers of ShareExportApi. */
export const layerShareExportHandlers = HttpApiBuilder.group(
  Api,
  "ShareExport",
  Effect.fnUntraced(function* (handlers) {
    const answers = yield* ExportAnswers
    const links = yield* ShareLinks
    const { url: ownUrl } = yield* HttpListener

    return handlers.handleRaw(
      "exportSharedPdf",
      Effect.fnUntraced(function* ({ request }) {
        const link = yield* CurrentShareLink
        // Counted when there is something to hand out; the last use goes to the first that takes it.
        const permit = links
          .use(link)
          .pipe(
            Effect.catchTag("Unauthenticated", ({ message }) =>
              Effect.fail(new ApiError({ code: "unauthenticated", message }))
            )
          )
        const { filter, id, tenant_id: tenantId } = link
        const askedBy = { kind: "share link" as const, id }
        return yield* answers.pdf(request, { tenantId, filter, askedBy, ownUrl, permit })
      })
    )
  })
)

/**
 * Serves the share links: reads what a link is to cover and shows links without their hashes. Who
 * may use one is decided behind `ShareLinks`.
 */
import { Effect, Layer, Redacted, Result } from "effect"
import { HttpServerResponse, type HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { EventFilter, MetadataCondition } from "../domain/EventFilter.ts"
import type { ShareLink } from "../domain/Registry.ts"
import type { JsonObject, JsonValue } from "../domain/StrictJson.ts"
import { conditionsOf } from "../exports/ExportScope.ts"
import { ShareLinks } from "../pipeline/ShareLinks.ts"
import { BODY_BYTES_MAX, labelOf, objectOf } from "./AdminHandlers.ts"
import { answering, errorResponse, json } from "./Answer.ts"
import { Api } from "./Api.ts"
import { ApiError, invalid, notFound, refusable } from "./ApiError.ts"
import { ApiSettings } from "./ApiSettings.ts"
import { CurrentPrincipal } from "./Authorization.ts"
import { filterParameters, toFilter } from "./EventParameters.ts"
import { ExportAnswers } from "./ExportAnswers.ts"
import { withKnownQuery } from "./KnownQuery.ts"
import { JSON_TYPE } from "./MediaTypes.ts"
import { METADATA_CONDITIONS_MAX, metadataCondition } from "./QueryParameters.ts"
import { readBody } from "./RequestBody.ts"
import {
  CurrentShareLink,
  EXPIRES_IN_DEFAULT,
  EXPIRES_IN_MAX,
  ShareAuthorization,
  USES_MAX
} from "./ShareContract.ts"
import { whatWasMeant } from "./UnknownParameter.ts"

const INPUT_FIELDS = ["from", "to", "filters", "expires_in", "max_uses", "label"]
const METADATA_PREFIX = "metadata."

type FilterName = keyof typeof filterParameters

/** What `filters` takes: the bounds of time stand beside it. */
const filterNames = [
  ...Object.keys(filterParameters).filter((name) => name !== "from" && name !== "to"),
  "metadata.<path>"
]

const isFilterName = (name: string): name is FilterName => Object.hasOwn(filterParameters, name)

const readValue = (name: FilterName, field: string, value: JsonValue): unknown => {
  if ((typeof value !== "string" && typeof value !== "number") || value === "") {
    throw invalid(field, "must be a string that is not empty, or an integer")
  }
  const parsed: Result.Result<unknown, string> = filterParameters[name].parse(String(value))
  if (Result.isFailure(parsed)) throw invalid(field, parsed.failure)
  return parsed.success
}

const filtersOf = (object: JsonObject): JsonObject => {
  const filters = object["filters"] ?? {}
  if (typeof filters === "object" && !Array.isArray(filters)) return filters as JsonObject
  throw invalid("filters", "must be an object of parameters of the event list")
}

/** What the link covers; throws the ApiError that names the field. */
const filterOf = (object: JsonObject): EventFilter => {
  const values: Record<string, unknown> = {}
  const metadata: Array<MetadataCondition> = []
  for (const name of ["from", "to"] as const) {
    const value = object[name] ?? undefined
    if (value !== undefined) values[name] = readValue(name, name, value)
  }
  for (const [name, value] of Object.entries(filtersOf(object))) {
    const field = `filters.${name}`
    if (value === null) continue
    if (name.startsWith(METADATA_PREFIX)) {
      if (typeof value !== "string") throw invalid(field, "must be a string")
      metadata.push(metadataCondition(name, value))
    } else if (!isFilterName(name) || name === "from" || name === "to") {
      const meant = whatWasMeant(name, filterNames)
      throw invalid(field, `is not a filter of the event list; from and to stand beside; ${meant}`)
    } else {
      values[name] = readValue(name, field, value)
    }
  }
  if (metadata.length > METADATA_CONDITIONS_MAX) {
    throw invalid("filters", `more than ${METADATA_CONDITIONS_MAX} conditions on metadata`)
  }
  return toFilter(values, metadata)
}

const integerOf = (object: JsonObject, field: string, maximum: number): number | undefined => {
  const value = object[field] ?? undefined
  if (value === undefined) return undefined
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= maximum) {
    return value
  }
  throw invalid(field, `must be an integer from 1 to ${maximum}`)
}

const inputOf = (bytes: Buffer) => {
  const object = objectOf(bytes, INPUT_FIELDS, "a share link")
  const label = labelOf(object, "label")
  const maxUses = integerOf(object, "max_uses", USES_MAX)
  return {
    filter: filterOf(object),
    expiresInSeconds: integerOf(object, "expires_in", EXPIRES_IN_MAX) ?? EXPIRES_IN_DEFAULT,
    ...(maxUses === undefined ? {} : { maxUses }),
    ...(label === undefined ? {} : { label })
  }
}

const shown = (link: ShareLink) => {
  const { filter, hash: _hash, tenant_id: _tenant, ...rest } = link
  return {
    ...rest,
    from: filter.from ?? null,
    to: filter.to ?? null,
    filters: {
      ...conditionsOf(filter),
      ...(filter.fromSequence === undefined ? {} : { from_sequence: String(filter.fromSequence) }),
      ...(filter.toSequence === undefined ? {} : { to_sequence: String(filter.toSequence) })
    }
  }
}

/** Where a token fetches its document. */
export const SHARE_EXPORT_PATH = "/v1/share/export/pdf"

/** The handlers of ShareLinksApi. */
export const layerShareLinksHandlers = HttpApiBuilder.group(
  Api,
  "ShareLinks",
  Effect.fnUntraced(function*(handlers) {
    const { publicUrl } = yield* ApiSettings
    const links = yield* ShareLinks
    /** The address that the client has used itself, unless another one is configured. */
    const baseOf = (request: HttpServerRequest.HttpServerRequest): string =>
      publicUrl ?? `http://${request.headers["host"] ?? ""}`

    return handlers
      .handleRaw(
        "createShareLink",
        answering(
          Effect.fnUntraced(function*({ request }) {
            const { keyId, tenantId } = yield* CurrentPrincipal
            const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
            const input = yield* refusable(() => inputOf(bytes))
            const { link, token } = yield* links.create({ tenantId, keyId, ...input })
            const url = `${baseOf(request)}${SHARE_EXPORT_PATH}`
            // A token must not stay in a cache.
            const headers = { "cache-control": "no-store" }
            return json({ ...shown(link), token, url }, { status: 201, headers })
          })
        )
      )
      .handleRaw(
        "listShareLinks",
        answering(
          Effect.fnUntraced(function*() {
            const { tenantId } = yield* CurrentPrincipal
            return json({ links: (yield* links.list(tenantId)).map(shown) })
          })
        )
      )
      .handleRaw(
        "getShareLink",
        answering(
          Effect.fnUntraced(function*({ params: { id } }) {
            const { tenantId } = yield* CurrentPrincipal
            const link = yield* links.get(tenantId, id)
            return link === undefined ? yield* notFound("share link") : json(shown(link))
          })
        )
      )
      .handleRaw(
        "revokeShareLink",
        answering(
          Effect.fnUntraced(function*({ params: { id } }) {
            const { keyId, tenantId } = yield* CurrentPrincipal
            const link = yield* links.get(tenantId, id)
            if (link === undefined) return yield* notFound("share link")
            yield* links.revoke(tenantId, id, keyId)
            return HttpServerResponse.empty({ status: 204 })
          })
        )
      )
  })
)

/** 401 without the token of a link that can be used now. */
export const layerShareAuthorization: Layer.Layer<ShareAuthorization, never, ShareLinks> =
  Layer.effect(
    ShareAuthorization,
    Effect.map(ShareLinks, (links) =>
      ShareAuthorization.of({
        share_token: (handler, { credential, endpoint }) =>
          links.find(Redacted.value(credential)).pipe(
            Effect.matchEffect({
              onFailure: ({ message }): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
                errorResponse(
                  new ApiError({
                    code: "unauthenticated",
                    message: `${message}; send its token as Authorization: Bearer shr_…`
                  })
                ),
              onSuccess: (link) =>
                Effect.provideService(withKnownQuery(endpoint, handler), CurrentShareLink, link)
            })
          )
      })
    )
  )

/** The handlers of ShareExportApi. */
export const layerShareExportHandlers = HttpApiBuilder.group(
  Api,
  "ShareExport",
  Effect.fnUntraced(function*(handlers) {
    const answers = yield* ExportAnswers
    const links = yield* ShareLinks

    return handlers.handleRaw(
      "exportSharedPdf",
      answering(
        Effect.fnUntraced(function*({ request }) {
          const link = yield* CurrentShareLink
          // Counted when there is something to hand out; whoever was faster to the last use has it.
          const permit = links
            .use(link)
            .pipe(
              Effect.catchTag("Unauthenticated", ({ message }) =>
                Effect.fail(new ApiError({ code: "unauthenticated", message }))
              )
            )
          const { filter, id: actorId, tenant_id: tenantId } = link
          return yield* answers.pdf(request, { tenantId, filter, actorId, permit })
        })
      )
    )
  })
)

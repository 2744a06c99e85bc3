/**
 * Serves the admin routes: checks what is asked for and shows tenants and keys without their
 * hashes. Who may be created and revoked is decided by the single writer behind `Keys`.
 */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Keys } from "../../actors/follower/Keys.ts"
import { defined } from "../../domain/Defined.ts"
import { type ApiKeyPrefix, isClientId, isTenantId } from "../../domain/Identifiers.ts"
import { isObject } from "../../domain/json/Json.ts"
import { type JsonObject, type JsonValue, parseStrict } from "../../domain/json/StrictJson.ts"
import { unknownField } from "../../domain/NearestName.ts"
import { type ApiKey, type Scope, scopes } from "../../domain/registry/RegistryEntry.ts"
import { Api } from "../Api.ts"
import { LABEL_LENGTH_MAX } from "../contract/ContractSchemas.ts"
import { createdAt, json } from "../messages/Answer.ts"
import { ApiError, invalid, notFound, refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { resourcePage } from "./ResourcePages.ts"

/** Bytes of a body of the admin routes at most. */
export const BODY_BYTES_MAX = 65_536
/** Characters of an unknown field's name that an error repeats. */
const FIELD_LENGTH_MAX = 128
const TENANT_FIELDS = ["id", "name"]
const KEY_FIELDS = ["scopes", "prefix", "label"]
const keyPrefixes: ReadonlyArray<ApiKeyPrefix> = ["alk_live_", "svc_live_"]

/** Throws ApiError for the first name that is not known. */
export const refuseUnknown = (
  names: ReadonlyArray<string>,
  known: ReadonlyArray<string>,
  what: string
): void => {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw invalid(unknown.slice(0, FIELD_LENGTH_MAX), unknownField(unknown, known, what))
}

/** The JSON object in a body, whose members are known; throws ApiError. */
export const objectOf = (bytes: Buffer, known: ReadonlyArray<string>, what: string): JsonObject => {
  const read = parseStrict(bytes)
  if ("problem" in read) {
    const { code, message } = read.problem
    throw new ApiError({
      code: code === "invalid_json" ? "invalid_json" : "invalid_request",
      message
    })
  }
  const { value } = read
  if (isObject(value)) {
    refuseUnknown(Object.keys(value), known, what)
    return value as JsonObject
  }
  throw invalid("body", "must be a JSON object")
}

export const labelOf = (object: JsonObject, field: string): string | undefined => {
  const value = object[field] ?? undefined
  if (value === undefined) return undefined
  if (typeof value === "string" && value !== "" && [...value].length <= LABEL_LENGTH_MAX) {
    return value
  }
  throw invalid(field, `must be a string of 1 to ${LABEL_LENGTH_MAX} characters`)
}

const tenantOf = (object: JsonObject) => {
  const { id } = object
  if (typeof id !== "string" || !isTenantId(id)) {
    throw invalid("id", "must be of the form [a-z0-9][a-z0-9_-]{0,62}")
  }
  return { id, ...defined({ name: labelOf(object, "name") }) }
}

const isScope = (value: JsonValue): value is Scope =>
  (scopes as ReadonlyArray<JsonValue>).includes(value)

const scopesOf = (value: JsonValue | undefined): ReadonlyArray<Scope> => {
  if (Array.isArray(value) && value.length > 0 && value.every(isScope)) {
    return scopes.filter((scope) => value.includes(scope))
  }
  throw invalid("scopes", `must be a list with one or more of ${scopes.join(", ")}`)
}

const prefixOf = (value: JsonValue | undefined): ApiKeyPrefix => {
  if (value === undefined || value === null) return "alk_live_"
  const prefix = keyPrefixes.find((known) => known === value)
  if (prefix === undefined) throw invalid("prefix", `must be one of ${keyPrefixes.join(", ")}`)
  return prefix
}

const keyOf = (object: JsonObject) => {
  const label = labelOf(object, "label")
  return {
    scopes: scopesOf(object["scopes"]),
    prefix: prefixOf(object["prefix"]),
    ...defined({ label })
  }
}

/** What is shown of a key: never its hash. */
const shownKey = ({ created_at, hint, id, label, revoked_at, scopes, tenant_id }: ApiKey) => ({
  id,
  tenant_id,
  scopes,
  ...defined({ label }),
  hint,
  created_at,
  ...defined({ revoked_at })
})

const readObject = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  known: ReadonlyArray<string>,
  what: string
) {
  const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
  return yield* refusable(() => objectOf(bytes, known, what))
})

const TENANTS_PATH = "/v1/admin/tenants"

/** Newest first; of two that are as old, the later in the order of ids. */
const newestFirst = (keys: ReadonlyArray<ApiKey>): ReadonlyArray<ApiKey> =>
  keys.toSorted((left, right) =>
    left.created_at === right.created_at
      ? left.id < right.id
        ? 1
        : -1
      : left.created_at < right.created_at
        ? 1
        : -1
  )

/** The handlers of AdminApi. */
export const layerAdminHandlers = HttpApiBuilder.group(
  Api,
  "Admin",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* Keys
    const { publicUrl } = yield* ApiSettings

    const keysOf = Effect.fnUntraced(function* (tenantId: string) {
      return (yield* keys.keysOf(tenantId)) ?? (yield* notFound("tenant"))
    })
    const keyIn = Effect.fnUntraced(function* (tenantId: string, keyId: string) {
      const known = (yield* keysOf(tenantId)).find(({ id }) => id === keyId)
      return known ?? (yield* notFound("key"))
    })

    return handlers
      .handleRaw(
        "createTenant",
        Effect.fnUntraced(function* ({ request }) {
          const object = yield* readObject(request, TENANT_FIELDS, "a tenant")
          const tenant = yield* keys.createTenant(yield* refusable(() => tenantOf(object)))
          const headers = createdAt(publicUrl, TENANTS_PATH, tenant.id)
          return json(tenant, { status: 201, headers })
        })
      )
      .handle(
        "listTenants",
        Effect.fnUntraced(function* ({ query, request }) {
          const all = yield* keys.tenants
          return resourcePage(request, publicUrl, query, "tenants", all, (tenant) => tenant)
        })
      )
      .handle(
        "getTenant",
        Effect.fnUntraced(function* ({ params: { tenant: tenantId } }) {
          const tenant = (yield* keys.tenants).find(({ id }) => id === tenantId)
          return tenant ?? (yield* notFound("tenant"))
        })
      )
      .handleRaw(
        "createKey",
        Effect.fnUntraced(function* ({ params: { tenant: tenantId }, request }) {
          yield* keysOf(tenantId)
          const object = yield* readObject(request, KEY_FIELDS, "a key")
          const wanted = yield* refusable(() => keyOf(object))
          const { key, secret } = yield* keys.createKey({ tenantId, ...wanted })
          const { created_at, id, label, scopes } = key
          return json(
            {
              id,
              key: secret,
              tenant_id: tenantId,
              scopes,
              label,
              created_at
            },
            { status: 201, headers: createdAt(publicUrl, `${TENANTS_PATH}/${tenantId}/keys`, id) }
          )
        })
      )
      .handle(
        "listKeys",
        Effect.fnUntraced(function* ({ params: { tenant }, query, request }) {
          const known = newestFirst(yield* keysOf(tenant))
          const page = yield* query
          return resourcePage(request, publicUrl, page, "keys", known, shownKey)
        })
      )
      .handle("getKey", ({ params: { key, tenant } }) => Effect.map(keyIn(tenant, key), shownKey))
      .handle("revokeKey", ({ params: { key, tenant } }) =>
        // The writer knows newer keys than this process may, but takes only what can be an id.
        isTenantId(tenant) && isClientId(key)
          ? Effect.as(keys.revokeKey(tenant, key), HttpServerResponse.empty({ status: 204 }))
          : notFound("key")
      )
  })
)

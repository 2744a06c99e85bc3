/**
 * Serves the admin routes: checks what is asked for and shows tenants and keys without their
 * hashes. Who may be created and revoked is decided by the single writer of the registry.
 */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Keys, type ListedKey } from "../../actors/follower/Keys.ts"
import { defined } from "../../domain/Defined.ts"
import { isClientId, isTenantId } from "../../domain/Identifiers.ts"
import { scopes } from "../../domain/registry/RegistryEntry.ts"
import { deletedText } from "../../domain/registry/Retention.ts"
import { formatMicros, nowMicros, parseTimestamp } from "../../domain/Timestamp.ts"
import { Retentions } from "../../services/retention/Retentions.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, bodyOf } from "../contract/Bodies.ts"
import { KEY_LASTS_MAX, KeyInput, TenantInput } from "../contract/ContractSchemas.ts"
import { createdAt, json } from "../messages/Answer.ts"
import { ApiError, invalid, notFound, refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { resourcePage } from "./ResourcePages.ts"

const readTenant = bodyOf(TenantInput, "a tenant")
const readKey = bodyOf(KeyInput, "a key")

/** What is shown of a key: never its hash. */
const shownKey = (key: ListedKey) => ({
  id: key.id,
  tenant_id: key.tenant_id,
  scopes: key.scopes,
  hint: key.hint,
  created_at: key.created_at,
  ...defined({
    label: key.label,
    expires_at: key.expires_at,
    last_used_at: key.last_used_at,
    revoked_at: key.revoked_at
  })
})

/** When a new key is to expire, if ever; throws ApiError. */
const expiryOf = ({ expires_at, expires_in }: typeof KeyInput.Type): string | undefined => {
  const now = nowMicros()
  const afterSeconds = (seconds: number) => formatMicros(now + seconds * 1_000_000)
  const seconds = expires_in ?? undefined
  const given = expires_at ?? undefined
  if (given === undefined) {
    return seconds === undefined ? undefined : afterSeconds(seconds)
  }
  if (seconds !== undefined) {
    throw invalid("expires_at", "is sent instead of expires_in, not beside it")
  }
  const expiry = parseTimestamp(given)
  const isNear = (time: string) => time > formatMicros(now) && time <= afterSeconds(KEY_LASTS_MAX)
  if (expiry === undefined || !isNear(expiry)) {
    throw invalid("expires_at", "must be an RFC 3339 date-time to come, at most 10 years from now")
  }
  return expiry
}

const readInput = <A>(
  request: HttpServerRequest.HttpServerRequest,
  inputOf: (bytes: Buffer) => A
): Effect.Effect<A, ApiError> =>
  Effect.flatMap(readBody(request, [JSON_TYPE], BODY_BYTES_MAX), ({ bytes }) =>
    refusable(() => inputOf(bytes))
  )

const TENANTS_PATH = "/v1/admin/tenants"

/** Newest first; of two that are as old, the later in the order of ids. */
const newestFirst = (keys: ReadonlyArray<ListedKey>): ReadonlyArray<ListedKey> =>
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
    const retentions = yield* Retentions
    const { publicUrl } = yield* ApiSettings

    /** A tenant that was deleted is no unknown one. */
    const refuseDeleted = Effect.fnUntraced(function* (tenantId: string) {
      const tombstone = yield* retentions.tombstone(tenantId)
      if (tombstone === undefined) return
      return yield* new ApiError({ code: "tenant_deleted", message: deletedText(tombstone) })
    })
    const keysOf = Effect.fnUntraced(function* (tenantId: string) {
      yield* refuseDeleted(tenantId)
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
          const { id, name } = yield* readInput(request, readTenant)
          const tenant = yield* keys.createTenant({ id, ...defined({ name: name ?? undefined }) })
          const headers = createdAt(publicUrl, TENANTS_PATH, tenant.id)
          return json(tenant, { status: 201, headers })
        })
      )
      .handle(
        "listTenants",
        Effect.fnUntraced(function* ({ query, request }) {
          const all = yield* keys.tenants
          return yield* resourcePage(request, publicUrl, query, "tenants", all, (tenant) => tenant)
        })
      )
      .handle(
        "getTenant",
        Effect.fnUntraced(function* ({ params: { tenant: tenantId } }) {
          yield* refuseDeleted(tenantId)
          const tenant = (yield* keys.tenants).find(({ id }) => id === tenantId)
          return tenant ?? (yield* notFound("tenant"))
        })
      )
      .handleRaw(
        "createKey",
        Effect.fnUntraced(function* ({ params: { tenant: tenantId }, request }) {
          yield* keysOf(tenantId)
          const { expiresAt, input } = yield* readInput(request, (bytes) => {
            const read = readKey(bytes)
            return { input: read, expiresAt: expiryOf(read) }
          })
          const { key, secret } = yield* keys.createKey({
            tenantId,
            scopes: scopes.filter((scope) => input.scopes.includes(scope)),
            prefix: input.prefix ?? "alk_live_",
            ...defined({ label: input.label ?? undefined, expiresAt })
          })
          const headers = createdAt(publicUrl, `${TENANTS_PATH}/${tenantId}/keys`, key.id)
          return json({ ...shownKey(key), key: secret }, { status: 201, headers })
        })
      )
      .handle(
        "listKeys",
        Effect.fnUntraced(function* ({ params: { tenant }, query, request }) {
          const known = newestFirst(yield* keysOf(tenant))
          const page = yield* query
          return yield* resourcePage(request, publicUrl, page, "keys", known, shownKey)
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

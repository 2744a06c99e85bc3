/**
 * Serves the admin routes: checks what is asked for and shows tenants and keys without their
 * hashes. Who may be created and revoked is decided by the single writer of the registry.
 */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Keys } from "../../actors/follower/Keys.ts"
import { defined } from "../../domain/Defined.ts"
import { isClientId, isTenantId } from "../../domain/Identifiers.ts"
import { type ApiKey, scopes } from "../../domain/registry/RegistryEntry.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, bodyOf } from "../contract/Bodies.ts"
import { KeyInput, TenantInput } from "../contract/ContractSchemas.ts"
import { createdAt, json } from "../messages/Answer.ts"
import { type ApiError, notFound, refusable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { resourcePage } from "./ResourcePages.ts"

const readTenant = bodyOf(TenantInput, "a tenant")
const readKey = bodyOf(KeyInput, "a key")

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

const readInput = <A>(
  request: HttpServerRequest.HttpServerRequest,
  inputOf: (bytes: Buffer) => A
): Effect.Effect<A, ApiError> =>
  Effect.flatMap(readBody(request, [JSON_TYPE], BODY_BYTES_MAX), ({ bytes }) =>
    refusable(() => inputOf(bytes))
  )

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
          const input = yield* readInput(request, readKey)
          const { key, secret } = yield* keys.createKey({
            tenantId,
            scopes: scopes.filter((scope) => input.scopes.includes(scope)),
            prefix: input.prefix ?? "alk_live_",
            ...defined({ label: input.label ?? undefined })
          })
          const { created_at, id, label } = key
          return json(
            {
              id,
              key: secret,
              tenant_id: tenantId,
              scopes: key.scopes,
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

/**
 * The admin routes: tenants and their API keys. Says nothing of how they are kept.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { KEYS_MAX } from "../../domain/registry/Registry.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import {
  ApiKey,
  CreatedKey,
  KeyInput,
  KeyList,
  Tenant,
  TenantInput,
  TenantList
} from "../contract/ContractSchemas.ts"
import { createdHeaders, operation } from "../contract/Operation.ts"
import { pageLinkHeader } from "../messages/Pages.ts"
import { AdminAuthorization } from "../server/Authorization.ts"
import { lateResourcePageQuery, resourcePageQuery } from "./ResourcePages.ts"

// The tenant that the example of a body makes.
const tenant = Schema.String.annotate({ description: "Id of the tenant.", examples: ["initech"] })
const key = Schema.String.annotate({
  description: "Id of the key.",
  examples: ["key_01980d2c-7a5b-7c3e-9d41-0f6a2b8c4d5e"]
})

const createTenant = HttpApiEndpoint.post("createTenant", "/v1/admin/tenants", {
  payload: TenantInput,
  success: Tenant.pipe(HttpApiSchema.status(201)),
  error: errorsOf("object", 400, 401, 409, 410, 413, 415, 503)
}).pipe(
  operation({
    summary: "Create a tenant",
    description:
      "409 `id_conflict` if there is one with this id, 410 `tenant_deleted` if there was.",
    responseHeaders: { 201: createdHeaders }
  })
)

const getTenant = HttpApiEndpoint.get("getTenant", "/v1/admin/tenants/:tenant", {
  params: { tenant },
  success: Tenant,
  error: errorsOf("object", 401, 404, 410, 429, 503)
}).pipe(operation({ summary: "One tenant", description: "Its name and its start." }))

const listTenants = HttpApiEndpoint.get("listTenants", "/v1/admin/tenants", {
  query: resourcePageQuery,
  success: TenantList,
  error: errorsOf("object", 400, 401, 429, 503)
}).pipe(
  operation({
    summary: "List the tenants",
    description: "By id.",
    responseHeaders: pageLinkHeader
  })
)

const createKey = HttpApiEndpoint.post("createKey", "/v1/admin/tenants/:tenant/keys", {
  params: { tenant },
  payload: KeyInput,
  success: CreatedKey.pipe(HttpApiSchema.status(201)),
  error: errorsOf("object", 400, 401, 404, 410, 413, 415, 429, 503)
}).pipe(
  operation({
    summary: "Create an API key",
    description:
      "The key is shown in this answer only; its SHA-256 is kept. From `expires_at` on it is refused, "
      + "its streams are closed and the sessions of browsers that signed in with it end; its share "
      + "links have ends of their own. 429 `rate_limited` where the tenant has "
      + `${KEYS_MAX} keys that are neither revoked nor expired: revoke some.`,
    responseHeaders: { 201: createdHeaders }
  })
)

const getKey = HttpApiEndpoint.get("getKey", "/v1/admin/tenants/:tenant/keys/:key", {
  params: { tenant, key },
  success: ApiKey,
  error: errorsOf("object", 401, 404, 410, 429, 503)
}).pipe(
  operation({
    summary: "One API key",
    description: "Revoked and expired ones too; neither the key nor its hash is shown."
  })
)

const listKeys = HttpApiEndpoint.get("listKeys", "/v1/admin/tenants/:tenant/keys", {
  params: { tenant },
  // An unknown tenant is refused first.
  query: lateResourcePageQuery,
  success: KeyList,
  error: errorsOf("object", 400, 401, 404, 410, 429, 503)
}).pipe(
  operation({
    summary: "List a tenant's API keys",
    description: "Newest first, revoked and expired ones too; neither keys nor hashes are shown.",
    responseHeaders: pageLinkHeader
  })
)

const revokeKey = HttpApiEndpoint.delete("revokeKey", "/v1/admin/tenants/:tenant/keys/:key", {
  params: { tenant, key },
  success: HttpApiSchema.NoContent.annotate({ description: "The key is revoked." }),
  error: errorsOf("object", 401, 404, 410, 503)
}).pipe(
  operation({
    summary: "Revoke an API key",
    description:
      "Takes effect within a second; open streams of the key are closed, and the share links that "
      + "were made with it are revoked with it. The log of this act in the chain of the tenant "
      + "`_system` says how many and which. 404 if it is revoked already."
  })
)

/** The routes that take the admin token. */
export class AdminApi extends HttpApiGroup.make("Admin")
  .add(createTenant, listTenants, getTenant, createKey, listKeys, getKey, revokeKey)
  .middleware(AdminAuthorization)
  .annotateMerge(OpenApi.annotations({ description: "Tenants and their API keys." })) {}

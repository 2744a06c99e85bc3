/**
 * The admin routes: tenants and their API keys. Says nothing of how they are kept.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AdminAuthorization } from "./Authorization.ts"
import { errorsOf } from "./ContractErrors.ts"
import {
  CreatedKey,
  KeyInput,
  KeyList,
  Tenant,
  TenantInput,
  TenantList
} from "./ContractSchemas.ts"
import { operation } from "./Operation.ts"

const tenant = Schema.String.annotate({ description: "Id of the tenant." })

const createTenant = HttpApiEndpoint.post("createTenant", "/v1/admin/tenants", {
  payload: TenantInput,
  success: Tenant.pipe(HttpApiSchema.status(201)),
  error: errorsOf("object", 400, 401, 409, 413, 415, 503)
}).annotateMerge(
  operation({
    id: "createTenant",
    summary: "Create a tenant",
    description: "409 `id_conflict` if there is one with this id."
  })
)

const listTenants = HttpApiEndpoint.get("listTenants", "/v1/admin/tenants", {
  success: TenantList,
  error: errorsOf("object", 401, 503)
}).annotateMerge(
  operation({ id: "listTenants", summary: "List the tenants", description: "By id." })
)

const createKey = HttpApiEndpoint.post("createKey", "/v1/admin/tenants/:tenant/keys", {
  params: { tenant },
  payload: KeyInput,
  success: CreatedKey.pipe(HttpApiSchema.status(201)),
  error: errorsOf("object", 400, 401, 404, 413, 415, 503)
}).annotateMerge(
  operation({
    id: "createKey",
    summary: "Create an API key",
    description: "The key is shown in this answer only; its SHA-256 is kept."
  })
)

const listKeys = HttpApiEndpoint.get("listKeys", "/v1/admin/tenants/:tenant/keys", {
  params: { tenant },
  success: KeyList,
  error: errorsOf("object", 401, 404, 503)
}).annotateMerge(
  operation({
    id: "listKeys",
    summary: "List a tenant's API keys",
    description: "Revoked ones too; neither keys nor hashes are shown."
  })
)

const revokeKey = HttpApiEndpoint.delete("revokeKey", "/v1/admin/tenants/:tenant/keys/:key", {
  params: { tenant, key: Schema.String.annotate({ description: "Id of the key." }) },
  success: HttpApiSchema.NoContent.annotate({ description: "The key is revoked." }),
  error: errorsOf("object", 401, 404, 503)
}).annotateMerge(
  operation({
    id: "revokeKey",
    summary: "Revoke an API key",
    description: "Takes effect within a second; open streams of the key are closed."
  })
)

/** The routes that take the admin token. */
export class AdminApi extends HttpApiGroup.make("Admin")
  .add(createTenant, listTenants, createKey, listKeys, revokeKey)
  .middleware(AdminAuthorization)
  .annotateMerge(OpenApi.annotations({ description: "Tenants and their API keys." })) {}

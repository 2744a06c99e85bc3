/**
 * The records of `alk.registry`: tenants and API keys. No secret stands in them, only hashes of
 * secrets. The topic is compacted, the newest record of a key is what holds.
 */
import { Schema } from "effect"
import type { ApiKey, Tenant } from "../domain/Registry.ts"
import { form, noHeaders, sha256, tenant, text, time } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

const KEY_ID = "[A-Za-z0-9_-]+"

export const TenantValue = exactly<Tenant>()(
  Schema.Struct({
    id: tenant("The tenant's id, for ever."),
    name: Schema.optionalKey(Schema.String.annotate({ description: "For people." })),
    created_at: time("When it was created.")
  }).annotate({ identifier: "Tenant" })
)

export const ApiKeyValue = exactly<ApiKey>()(
  Schema.Struct({
    id: form(new RegExp(`^${KEY_ID}$`, "u"), "Names the key; not the key itself."),
    tenant_id: tenant("Whose key it is."),
    scopes: Schema.Array(Schema.Literals(["read", "write"])),
    label: Schema.optionalKey(Schema.String.annotate({ description: "For people." })),
    hint: text("The first characters of the key, enough to recognise it."),
    hash: sha256("SHA-256 of the whole key."),
    created_at: time("When it was created."),
    revoked_at: Schema.optionalKey(time("From when on it is invalid."))
  }).annotate({ identifier: "ApiKey" })
)

export const tenantRecord: RecordContract = {
  name: "registry-tenant",
  topic: "registry",
  title: "Tenant",
  description: "A tenant. Written by the sequencer of the tenant _system only.",
  key: form(/^tenant\/[a-z0-9][a-z0-9_-]{0,62}$/u, "`tenant/<id>`"),
  headers: noHeaders,
  value: TenantValue
}

export const apiKeyRecord: RecordContract = {
  name: "registry-api-key",
  topic: "registry",
  title: "API key",
  description:
    "An API key: what it may do, and the hash that it is recognised by. Written by the sequencer " +
    "of the tenant _system only; a revoked key is kept with revoked_at.",
  key: form(new RegExp(`^key/${KEY_ID}$`, "u"), "`key/<id>`"),
  headers: noHeaders,
  value: ApiKeyValue
}

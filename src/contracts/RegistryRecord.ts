/**
 * The records of `alk.registry`: tenants, API keys, share links and the public keys of checkpoints.
 * No secret stands in them, only hashes of secrets. The topic is compacted, the newest record of a
 * key is what holds.
 */
import { Schema } from "effect"
import type { EventFilter } from "../domain/events/EventFilter.ts"
import type { ApiKey, ShareLink, SigningKey, Tenant } from "../domain/registry/Registry.ts"
import { form, macHeaders, natural, sequence, sha256, tenant, text, time } from "./Forms.ts"
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

const FilterValue = exactly<EventFilter>()(
  Schema.Struct({
    id: Schema.optionalKey(Schema.String),
    actorId: Schema.optionalKey(Schema.String),
    actorType: Schema.optionalKey(Schema.Literals(["human", "agent", "system"])),
    action: Schema.optionalKey(Schema.String),
    actionPrefix: Schema.optionalKey(Schema.String),
    resourceId: Schema.optionalKey(Schema.String),
    resourceType: Schema.optionalKey(Schema.String),
    outcome: Schema.optionalKey(Schema.Literals(["success", "failure", "error"])),
    from: Schema.optionalKey(time("Inclusive bound on timestamp.")),
    to: Schema.optionalKey(time("Inclusive bound on timestamp.")),
    fromSequence: Schema.optionalKey(natural("Inclusive bound.")),
    toSequence: Schema.optionalKey(natural("Inclusive bound.")),
    metadata: Schema.Array(Schema.Struct({ path: Schema.String, value: Schema.String })),
    q: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "EventFilter", description: "Conditions, combined with AND." })
)

export const ShareLinkValue = exactly<ShareLink>()(
  Schema.Struct({
    id: form(new RegExp(`^${KEY_ID}$`, "u"), "Names the link; not its token."),
    tenant_id: tenant("Whose events it shows."),
    label: Schema.optionalKey(Schema.String.annotate({ description: "For people." })),
    filter: FilterValue,
    hash: sha256("SHA-256 of the whole token."),
    created_by: text("Id of the API key that made it."),
    created_at: time("When it was made."),
    expires_at: time("From when on it is invalid."),
    max_uses: Schema.optionalKey(sequence("How often it may be used.")),
    uses: natural("How often it was used."),
    revoked_at: Schema.optionalKey(time("From when on it is invalid."))
  }).annotate({ identifier: "ShareLink" })
)

export const SigningKeyValue = exactly<SigningKey>()(
  Schema.Struct({
    key_id: form(/^[0-9a-f]{8}$/u, "As C2SP derives it from name and key."),
    vkey: text("The public key as C2SP writes it."),
    public_key: text("Base64 of the 32 bytes of the Ed25519 public key."),
    added_at: time("When it was published."),
    root: Schema.optionalKey(
      Schema.Boolean.annotate({
        description:
          "True for the first key of the service, which needs no endorsement. Absent where a "
          + "version without endorsements has written it."
      })
    ),
    endorsement: Schema.optionalKey(
      text(
        "Statement of the key before it, a C2SP signed note: alk-key-endorsement-v1, service, key "
          + "id, this vkey, time; one a line."
      )
    )
  }).annotate({ identifier: "SigningKey" })
)

export const shareLinkRecord: RecordContract = {
  name: "registry-share-link",
  topic: "registry",
  title: "Share link",
  description:
    "A link that lets its bearer fetch one document; its scope was fixed when it was made. "
    + "Written by the sequencer of the tenant _system only. Some time after its end a record "
    + "without a value removes it.",
  key: form(new RegExp(`^link/${KEY_ID}$`, "u"), "`link/<id>`"),
  headers: macHeaders,
  value: ShareLinkValue
}

export const signingKeyRecord: RecordContract = {
  name: "registry-signing-key",
  topic: "registry",
  title: "Signing key",
  description: "A public key that signs, or has signed, checkpoints.",
  key: form(/^signing_key\/[0-9a-f]{8}$/u, "`signing_key/<key_id>`"),
  headers: macHeaders,
  value: SigningKeyValue
}

export const tenantRecord: RecordContract = {
  name: "registry-tenant",
  topic: "registry",
  title: "Tenant",
  description: "A tenant. Written by the sequencer of the tenant _system only.",
  key: form(/^tenant\/[a-z0-9][a-z0-9_-]{0,62}$/u, "`tenant/<id>`"),
  headers: macHeaders,
  value: TenantValue
}

export const apiKeyRecord: RecordContract = {
  name: "registry-api-key",
  topic: "registry",
  title: "API key",
  description:
    "An API key: what it may do, and the hash that it is recognised by. Written by the sequencer "
    + "of the tenant _system only; a revoked key is kept with revoked_at.",
  key: form(new RegExp(`^key/${KEY_ID}$`, "u"), "`key/<id>`"),
  headers: macHeaders,
  value: ApiKeyValue
}

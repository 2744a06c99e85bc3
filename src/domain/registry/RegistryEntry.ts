/**
 * The records of `alk.registry`: tenants, API keys, share links and the public keys of checkpoints,
 * and the operations on them. They hold hashes of secrets only; the secrets themselves are shown once
 * and kept nowhere.
 */
import { Schema } from "effect"
import { type FilterField, type FilterValue, filterFields } from "../events/EventFields.ts"
import { form, natural, sequence, sha256, tenant, text, time } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import { RecordUnreadable } from "../json/RecordFields.ts"

export const scopes = ["read", "write"] as const
export type Scope = (typeof scopes)[number]

const ID = /^[A-Za-z0-9_-]+$/u
const optional = Schema.optionalKey
const label = optional(Schema.String.annotate({ description: "For people." }))

export const Tenant = Schema.Struct({
  id: tenant("The tenant's id, for ever."),
  name: label,
  created_at: time("When it was created.")
}).annotate({ identifier: "Tenant" })
export type Tenant = typeof Tenant.Type

export const ApiKey = Schema.Struct({
  id: form(ID, "Names the key; not the key itself."),
  tenant_id: tenant("Whose key it is."),
  scopes: Schema.Array(Schema.Literals(scopes)),
  label,
  hint: text("The first characters of the key, enough to recognise it."),
  hash: sha256("SHA-256 of the whole key."),
  created_at: time("When it was created."),
  revoked_at: optional(time("From when on it is invalid."))
}).annotate({ identifier: "ApiKey" })
export type ApiKey = typeof ApiKey.Type

/** The conditions of a filter that ask for one value of a field. */
const exactConditions = Object.fromEntries(
  filterFields.map(({ filter }) => [
    filter.key,
    optional("values" in filter ? Schema.Literals(filter.values) : Schema.String)
  ])
) as {
  readonly [F in FilterField as F["filter"]["key"]]: Schema.optionalKey<
    Schema.Codec<FilterValue<F>>
  >
}

/** What EventFilter says. */
const Filter = Schema.Struct({
  ...exactConditions,
  actionPrefix: optional(Schema.String),
  from: optional(time("Inclusive bound on timestamp.")),
  to: optional(time("Inclusive bound on timestamp.")),
  fromSequence: optional(natural("Inclusive bound.")),
  toSequence: optional(natural("Inclusive bound.")),
  metadata: Schema.Array(Schema.Struct({ path: Schema.String, value: Schema.String })),
  q: optional(Schema.String),
  where: optional(Schema.String)
}).annotate({ identifier: "EventFilter", description: "Conditions, combined with AND." })

/** A link that lets its bearer fetch one document; what it covers was fixed when it was made. */
export const ShareLink = Schema.Struct({
  id: form(ID, "Names the link; not its token."),
  tenant_id: tenant("Whose events it shows."),
  label,
  filter: Filter,
  hash: sha256("SHA-256 of the whole token."),
  created_by: text("Id of the API key that made it."),
  created_at: time("When it was made."),
  expires_at: time("From when on it is invalid."),
  max_uses: optional(sequence("How often it may be used.")),
  uses: natural("How often it was used."),
  revoked_at: optional(time("From when on it is invalid."))
}).annotate({ identifier: "ShareLink" })
export type ShareLink = typeof ShareLink.Type

/** A public key that signs, or has signed, checkpoints. */
export const SigningKey = Schema.Struct({
  key_id: form(/^[0-9a-f]{8}$/u, "As C2SP derives it from name and key."),
  vkey: text("The public key as C2SP writes it."),
  public_key: form(/^[A-Za-z0-9+/]+={0,2}$/u, "Base64 of the 32 bytes of the Ed25519 public key."),
  added_at: time("When it was published."),
  root: optional(
    Schema.Boolean.annotate({
      description:
        "True for the first key of the service, which needs no endorsement. Absent where a "
        + "version without endorsements has written it."
    })
  ),
  endorsement: optional(
    text(
      "Statement of the key before it, a C2SP signed note: alk-key-endorsement-v1, service, key "
        + "id, this vkey, time; one a line."
    )
  )
}).annotate({ identifier: "SigningKey" })
export type SigningKey = typeof SigningKey.Type

export const RegistryOperation = Schema.Union([
  Schema.Struct({ op: Schema.Literal("create_link"), link: ShareLink }),
  Schema.Struct({
    op: Schema.Literal("revoke_link"),
    tenant_id: tenant("Whose link it is."),
    link_id: text("Id of the link."),
    revoked_at: time("From when on it is invalid.")
  }),
  Schema.Struct({
    op: Schema.Literal("use_link"),
    tenant_id: tenant("Whose link it is."),
    link_id: text("Id of the link."),
    used_at: time("When it was used; decides whether it has expired.")
  }),
  Schema.Struct({ op: Schema.Literal("add_signing_key"), signing_key: SigningKey }),
  Schema.Struct({ op: Schema.Literal("create_tenant"), tenant: Tenant }),
  Schema.Struct({
    op: Schema.Literal("create_key"),
    key: ApiKey,
    tenant: optional(Tenant).annotateKey({
      description: "A tenant that the configuration knows and the registry may not know yet."
    })
  }),
  Schema.Struct({
    op: Schema.Literal("revoke_key"),
    tenant_id: tenant("Whose key it is."),
    key_id: text("Id of the key."),
    revoked_at: time("From when on it is invalid."),
    key: optional(ApiKey).annotateKey({
      description: "A key from the configuration, which the registry has never seen."
    })
  })
]).annotate({ description: "The operation of a command of the kind registry." })
export type RegistryOperation = typeof RegistryOperation.Type

/** Records of `alk.registry`: key `<kind>/<id>`, value the JSON of what the kind names. */
export type RegistryEntry =
  | { readonly kind: "tenant"; readonly tenant: Tenant }
  | { readonly kind: "key"; readonly key: ApiKey }
  | { readonly kind: "link"; readonly link: ShareLink }
  | { readonly kind: "signing_key"; readonly signing_key: SigningKey }

const entityOf = (entry: RegistryEntry): Tenant | ApiKey | ShareLink | SigningKey => {
  switch (entry.kind) {
    case "tenant":
      return entry.tenant
    case "key":
      return entry.key
    case "link":
      return entry.link
    case "signing_key":
      return entry.signing_key
  }
}

/** By the kind: a newer version may have added a member `key_id` to any of the others. */
const idOf = (entry: RegistryEntry): string => {
  switch (entry.kind) {
    case "tenant":
      return entry.tenant.id
    case "key":
      return entry.key.id
    case "link":
      return entry.link.id
    case "signing_key":
      return entry.signing_key.key_id
  }
}

export const registryKey = (entry: RegistryEntry): string => `${entry.kind}/${idOf(entry)}`

/** The JSON of an entry. */
export const registryValue = (entry: RegistryEntry): string => JSON.stringify(entityOf(entry))

/** What removes an entry: a record without a value. */
export interface RegistryRemoval {
  readonly kind: "removed"
  /** Key of the entry's record. */
  readonly key: string
}

export type RegistryChange = RegistryEntry | RegistryRemoval

/** The key and the value of the record that a change is. */
export const registryRecord = (
  change: RegistryChange
): { readonly key: string; readonly value: string | null } =>
  change.kind === "removed"
    ? { key: change.key, value: null }
    : { key: registryKey(change), value: registryValue(change) }

const readers = {
  tenant: recordDecoder(Tenant, "tenant"),
  key: recordDecoder(ApiKey, "key"),
  link: recordDecoder(ShareLink, "link"),
  signing_key: recordDecoder(SigningKey, "signing_key")
}
const isKind = (kind: string): kind is keyof typeof readers => Object.hasOwn(readers, kind)

/**
 * What a record of `alk.registry` changes; undefined for kinds of newer versions.
 * @throws RecordUnreadable for what no version has written
 */
export const readRegistryRecord = (
  key: Buffer | null,
  value: Buffer | null
): RegistryChange | undefined => {
  const name = key?.toString() ?? ""
  const at = name.indexOf("/")
  if (at <= 0) throw new RecordUnreadable("its key is not <kind>/<id>")
  const kind = name.slice(0, at)
  if (!isKind(kind)) return undefined
  if (value === null) return { kind: "removed", key: name }
  const entry = { kind, [kind]: readers[kind](value) } as unknown as RegistryEntry
  if (registryKey(entry) === name) return entry
  const id = kind === "signing_key" ? "key_id" : "id"
  throw new RecordUnreadable(`${kind}: ${id} is not that of its record's key`)
}

/**
 * Tenants, API keys, share links and the public keys of checkpoints: their records on
 * `alk.registry`, and what may be done to them. Holds hashes of secrets only; the secrets themselves
 * are shown once and kept nowhere.
 */
import type { EventFilter } from "./EventFilter.ts"
import { parseJson } from "./Json.ts"

export type Scope = "read" | "write"

export const scopes: ReadonlyArray<Scope> = ["read", "write"]

export interface Tenant {
  readonly id: string
  readonly name?: string
  /** Canonical microsecond form. */
  readonly created_at: string
}

export interface ApiKey {
  readonly id: string
  readonly tenant_id: string
  readonly scopes: ReadonlyArray<Scope>
  readonly label?: string
  /** `alk_live_` or `svc_live_` and the first characters, enough to recognise a key. */
  readonly hint: string
  /** SHA-256 of the whole key, 64 hex digits. */
  readonly hash: string
  readonly created_at: string
  readonly revoked_at?: string
}

/** A link that lets its bearer fetch one document; what it covers was fixed when it was made. */
export interface ShareLink {
  readonly id: string
  readonly tenant_id: string
  readonly label?: string
  /** What the document covers, bounds on the events' timestamps included. */
  readonly filter: EventFilter
  /** SHA-256 of the token, 64 hex digits. */
  readonly hash: string
  /** Id of the API key that made it. */
  readonly created_by: string
  readonly created_at: string
  /** From then on it is invalid. */
  readonly expires_at: string
  readonly max_uses?: number
  readonly uses: number
  readonly revoked_at?: string
}

/** A public key that signs, or has signed, checkpoints. */
export interface SigningKey {
  /** 8 hex digits. */
  readonly key_id: string
  /** As C2SP writes it. */
  readonly vkey: string
  /** Base64 of the 32 bytes. */
  readonly public_key: string
  readonly added_at: string
}

export type RegistryOperation =
  | { readonly op: "create_link"; readonly link: ShareLink }
  | {
      readonly op: "revoke_link"
      readonly tenant_id: string
      readonly link_id: string
      readonly revoked_at: string
    }
  | {
      readonly op: "use_link"
      readonly tenant_id: string
      readonly link_id: string
      /** Canonical microsecond form; decides whether it has expired. */
      readonly used_at: string
    }
  | { readonly op: "add_signing_key"; readonly signing_key: SigningKey }
  | { readonly op: "create_tenant"; readonly tenant: Tenant }
  | {
      readonly op: "create_key"
      readonly key: ApiKey
      /** A tenant that the configuration knows and the registry may not know yet. */
      readonly tenant?: Tenant
    }
  | {
      readonly op: "revoke_key"
      readonly tenant_id: string
      readonly key_id: string
      readonly revoked_at: string
      /** A key from the configuration, which the registry has never seen. */
      readonly key?: ApiKey
    }

/** Records of `alk.registry`: key `<kind>/<id>`, value the JSON of what the kind names. */
export type RegistryEntry =
  | { readonly kind: "tenant"; readonly tenant: Tenant }
  | { readonly kind: "key"; readonly key: ApiKey }
  | { readonly kind: "link"; readonly link: ShareLink }
  | { readonly kind: "signing_key"; readonly signing_key: SigningKey }

export const registryKey = (entry: RegistryEntry): string => {
  switch (entry.kind) {
    case "tenant":
      return `tenant/${entry.tenant.id}`
    case "key":
      return `key/${entry.key.id}`
    case "link":
      return `link/${entry.link.id}`
    case "signing_key":
      return `signing_key/${entry.signing_key.key_id}`
  }
}

/** The JSON of an entry. */
export const registryValue = (entry: RegistryEntry): string => {
  switch (entry.kind) {
    case "tenant":
      return JSON.stringify(entry.tenant)
    case "key":
      return JSON.stringify(entry.key)
    case "link":
      return JSON.stringify(entry.link)
    case "signing_key":
      return JSON.stringify(entry.signing_key)
  }
}

/** Read a record of `alk.registry`; undefined for kinds of newer versions. */
export const toRegistryEntry = (key: string, value: string): RegistryEntry | undefined => {
  const kind = key.slice(0, key.indexOf("/"))
  switch (kind) {
    case "tenant":
      return { kind, tenant: parseJson(value) as Tenant }
    case "key":
      return { kind, key: parseJson(value) as ApiKey }
    case "link":
      return { kind, link: parseJson(value) as ShareLink }
    case "signing_key":
      return { kind, signing_key: parseJson(value) as SigningKey }
    default:
      return undefined
  }
}

/** Everything that `alk.registry` says, by id. */
export interface Registry {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly links: ReadonlyMap<string, ShareLink>
  readonly signingKeys: ReadonlyMap<string, SigningKey>
}

export const emptyRegistry: Registry = {
  tenants: new Map(),
  keys: new Map(),
  links: new Map(),
  signingKeys: new Map()
}

export const withEntries = (
  registry: Registry,
  entries: ReadonlyArray<RegistryEntry>
): Registry => {
  if (entries.length === 0) return registry
  const tenants = new Map(registry.tenants)
  const keys = new Map(registry.keys)
  const links = new Map(registry.links)
  const signingKeys = new Map(registry.signingKeys)
  for (const entry of entries) {
    switch (entry.kind) {
      case "tenant":
        tenants.set(entry.tenant.id, entry.tenant)
        break
      case "key":
        keys.set(entry.key.id, entry.key)
        break
      case "link":
        links.set(entry.link.id, entry.link)
        break
      case "signing_key":
        signingKeys.set(entry.signing_key.key_id, entry.signing_key)
    }
  }
  return { tenants, keys, links, signingKeys }
}

export type RegistryDecision =
  | { readonly granted: true; readonly entries: ReadonlyArray<RegistryEntry> }
  | { readonly granted: false; readonly code: "id_conflict" | "not_found"; readonly message: string }

const refused = (code: "id_conflict" | "not_found", message: string): RegistryDecision => ({
  granted: false,
  code,
  message
})

/** Why a link can't be used at this time, or undefined if it can. */
export const linkRefusal = (link: ShareLink, now: string): string | undefined => {
  if (link.revoked_at !== undefined) return "it was revoked"
  if (link.expires_at <= now) return "it has expired"
  return link.max_uses !== undefined && link.uses >= link.max_uses ? "it is used up" : undefined
}

const linkOf = (
  registry: Registry,
  { link_id, tenant_id }: { readonly link_id: string; readonly tenant_id: string }
): ShareLink | undefined => {
  const link = registry.links.get(link_id)
  return link?.tenant_id === tenant_id ? link : undefined
}

/** The links that end with a key if it is revoked at this time. */
export const linksEndingWith = (
  registry: Registry,
  keyId: string,
  now: string
): ReadonlyArray<ShareLink> =>
  [...registry.links.values()].filter(
    ({ created_by, expires_at, revoked_at }) =>
      created_by === keyId && revoked_at === undefined && expires_at > now
  )

/** True for a link whose key was revoked before it was made, or before keys ended their links. */
export const isOfRevokedKey = (registry: Registry, { created_by }: ShareLink): boolean =>
  registry.keys.get(created_by)?.revoked_at !== undefined

/** The single writer's verdict: what an operation changes, or why it may not. */
export const decide = (registry: Registry, operation: RegistryOperation): RegistryDecision => {
  switch (operation.op) {
    case "create_link": {
      const { link } = operation
      if (isOfRevokedKey(registry, link)) {
        return refused("not_found", `key ${link.created_by} is revoked`)
      }
      return registry.links.has(link.id)
        ? refused("id_conflict", `share link ${link.id} exists already`)
        : { granted: true, entries: [{ kind: "link", link }] }
    }
    case "revoke_link": {
      const link = linkOf(registry, operation)
      if (link === undefined || link.revoked_at !== undefined) {
        return refused("not_found", `there is no share link ${operation.link_id} to revoke`)
      }
      const revoked = { ...link, revoked_at: operation.revoked_at }
      return { granted: true, entries: [{ kind: "link", link: revoked }] }
    }
    case "use_link": {
      const link = linkOf(registry, operation)
      if (link === undefined || isOfRevokedKey(registry, link)) {
        return refused("not_found", "the share link can't be used: it is unknown or revoked")
      }
      const refusal = linkRefusal(link, operation.used_at)
      if (refusal !== undefined) {
        return refused("not_found", `the share link can't be used: ${refusal}`)
      }
      const used = { ...link, uses: link.uses + 1 }
      return { granted: true, entries: [{ kind: "link", link: used }] }
    }
    case "add_signing_key": {
      const { signing_key } = operation
      return registry.signingKeys.has(signing_key.key_id)
        ? refused("id_conflict", `signing key ${signing_key.key_id} is published already`)
        : { granted: true, entries: [{ kind: "signing_key", signing_key }] }
    }
    case "create_tenant": {
      const { tenant } = operation
      return registry.tenants.has(tenant.id)
        ? refused("id_conflict", `tenant ${tenant.id} exists already`)
        : { granted: true, entries: [{ kind: "tenant", tenant }] }
    }
    case "create_key": {
      const { key, tenant } = operation
      const known = registry.tenants.has(key.tenant_id)
      if (!known && tenant?.id !== key.tenant_id) {
        return refused("not_found", `there is no tenant ${key.tenant_id}`)
      }
      if (registry.keys.has(key.id)) {
        return refused("id_conflict", `key ${key.id} exists already`)
      }
      const made: RegistryEntry = { kind: "key", key }
      return {
        granted: true,
        entries: known || tenant === undefined ? [made] : [{ kind: "tenant", tenant }, made]
      }
    }
    case "revoke_key": {
      const key = registry.keys.get(operation.key_id) ?? operation.key
      if (key === undefined || key.tenant_id !== operation.tenant_id) {
        return refused("not_found", `tenant ${operation.tenant_id} has no key ${operation.key_id}`)
      }
      if (key.revoked_at !== undefined) {
        return refused("not_found", `key ${operation.key_id} is revoked already`)
      }
      // With the key end the links that were made with it, in the same act.
      const { revoked_at } = operation
      return {
        granted: true,
        entries: [
          { kind: "key", key: { ...key, revoked_at } },
          ...linksEndingWith(registry, key.id, revoked_at).map(
            (link): RegistryEntry => ({ kind: "link", link: { ...link, revoked_at } })
          )
        ]
      }
    }
  }
}

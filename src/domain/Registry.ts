/**
 * Tenants and API keys: their records on `alk.registry`, and what may be done to them. Holds hashes
 * of secrets only; the secrets themselves are shown once and kept nowhere.
 */
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

export type RegistryOperation =
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

/** Records of `alk.registry`: key `tenant/<id>` or `key/<id>`, value the JSON of the entry. */
export type RegistryEntry =
  | { readonly kind: "tenant"; readonly tenant: Tenant }
  | { readonly kind: "key"; readonly key: ApiKey }

export const registryKey = (entry: RegistryEntry): string =>
  entry.kind === "tenant" ? `tenant/${entry.tenant.id}` : `key/${entry.key.id}`

/** Everything that `alk.registry` says, by id. */
export interface Registry {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
}

export const emptyRegistry: Registry = { tenants: new Map(), keys: new Map() }

export const withEntries = (
  registry: Registry,
  entries: ReadonlyArray<RegistryEntry>
): Registry => {
  if (entries.length === 0) return registry
  const tenants = new Map(registry.tenants)
  const keys = new Map(registry.keys)
  for (const entry of entries) {
    if (entry.kind === "tenant") tenants.set(entry.tenant.id, entry.tenant)
    else keys.set(entry.key.id, entry.key)
  }
  return { tenants, keys }
}

export type RegistryDecision =
  | { readonly granted: true; readonly entries: ReadonlyArray<RegistryEntry> }
  | { readonly granted: false; readonly code: "id_conflict" | "not_found"; readonly message: string }

const refused = (code: "id_conflict" | "not_found", message: string): RegistryDecision => ({
  granted: false,
  code,
  message
})

/** The single writer's verdict: what an operation changes, or why it may not. */
export const decide = (registry: Registry, operation: RegistryOperation): RegistryDecision => {
  switch (operation.op) {
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
      return {
        granted: true,
        entries: [{ kind: "key", key: { ...key, revoked_at: operation.revoked_at } }]
      }
    }
  }
}

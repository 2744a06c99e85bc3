/**
 * `Keys` at work: who a token belongs to, by the registry and the configuration, and the acts of
 * the administrator, written through the sequencer like everything else and logged in the chain of
 * the system tenant.
 */
import { timingSafeEqual } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { ADMIN_KEY_ID, Keys, type Principal, Unauthenticated } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { defined } from "../../domain/Defined.ts"
import { newApiKey, SYSTEM_TENANT, sha256Hex, uuidv7 } from "../../domain/Identifiers.ts"
import { linksEndingWith } from "../../domain/registry/Registry.ts"
import type {
  ApiKey,
  RegistryOperation,
  Scope,
  ShareLink,
  Tenant
} from "../../domain/registry/RegistryEntry.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { type SystemAct, SystemAuditLog } from "./SystemAuditLog.ts"

/** A key that the configuration makes known: the secret is hashed at once. */
export interface BootstrapKey {
  readonly key: Redacted.Redacted
  readonly tenantId: string
  readonly scopes: ReadonlyArray<Scope>
}

export interface KeySettings {
  readonly adminToken: Redacted.Redacted | undefined
  readonly bootstrapKeys: ReadonlyArray<BootstrapKey>
}

/** Characters of a key that are kept to recognise it: the prefix and four more. */
const HINT_LENGTH = 13

const hintOf = (key: string): string => `${key.slice(0, HINT_LENGTH)}…`

const bootstrapKey = ({ key, scopes, tenantId }: BootstrapKey, createdAt: string): ApiKey => {
  const hash = sha256Hex(Redacted.value(key))
  return {
    id: `key_cfg_${hash.slice(0, 16)}`,
    tenant_id: tenantId,
    scopes,
    label: "from ALK_BOOTSTRAP_KEYS",
    hint: hintOf(Redacted.value(key)),
    hash,
    created_at: createdAt
  }
}

/** Compares two digests in hex in constant time. */
export const sameHash = (left: string, right: string): boolean =>
  timingSafeEqual(Buffer.from(left, "hex"), Buffer.from(right, "hex"))

/** Ids of ended links that the log of a revocation names: 22 KB of the 32 that its metadata has. */
const NAMED_LINKS_MAX = 500

/** What the log says of the links that end with a key, as this process knows them. */
const endedLinks = (links: ReadonlyArray<ShareLink>) =>
  links.length === 0
    ? {}
    : {
        share_links_revoked: links.length,
        share_links: links.slice(0, NAMED_LINKS_MAX).map(({ id }) => id)
      }

/** What the log says of an administrator's act. */
const describe = (
  operation: Extract<
    RegistryOperation,
    { readonly op: "create_tenant" | "create_key" | "revoke_key" }
  >,
  links: ReadonlyArray<ShareLink>
): SystemAct => {
  switch (operation.op) {
    case "create_tenant":
      return {
        actor: ADMIN_KEY_ID,
        action: "tenant.created",
        resource: { type: "tenant", id: operation.tenant.id },
        metadata: {}
      }
    case "create_key": {
      const { id, label, scopes, tenant_id } = operation.key
      return {
        actor: ADMIN_KEY_ID,
        action: "api_key.created",
        resource: { type: "api_key", id },
        metadata: { tenant_id, scopes, ...defined({ label }) }
      }
    }
    case "revoke_key":
      return {
        actor: ADMIN_KEY_ID,
        action: "api_key.revoked",
        resource: { type: "api_key", id: operation.key_id },
        metadata: { tenant_id: operation.tenant_id, ...endedLinks(links) }
      }
  }
}

/** The keys of the configuration; a revocation in the registry overrides it. */
class ConfiguredKeys {
  readonly #view: RegistryView["Service"]
  readonly #keys: ReadonlyArray<ApiKey>
  readonly #byHash: ReadonlyMap<string, ApiKey>

  constructor(view: RegistryView["Service"], keys: ReadonlyArray<BootstrapKey>) {
    const startedAt = currentTime()
    this.#view = view
    this.#keys = keys.map((key) => bootstrapKey(key, startedAt))
    this.#byHash = new Map(this.#keys.map((key) => [key.hash, key]))
  }

  find(keyId: string): ApiKey | undefined {
    return this.#keys.find(({ id }) => id === keyId)
  }

  /** A key of the configuration or of the registry. */
  ofHash(hash: string): ApiKey | undefined {
    const own = this.#byHash.get(hash)
    const registry = this.#view.registry()
    return own === undefined ? registry.keyOfHash(hash) : (registry.key(own.id) ?? own)
  }

  /** Those of the registry included. */
  ofTenant(tenantId: string): ReadonlyArray<ApiKey> {
    const registry = this.#view.registry()
    const own = this.#keys.map((key) => registry.keys.get(key.id) ?? key)
    const all = new Map([...own, ...registry.keysOf(tenantId)].map((key) => [key.id, key]))
    return [...all.values()].filter((key) => key.tenant_id === tenantId)
  }

  /** Those of the registry included, by id. */
  get tenants(): ReadonlyArray<Tenant> {
    const known = new Map(this.#view.registry().tenants)
    for (const { created_at, tenant_id } of this.#keys) {
      if (!known.has(tenant_id)) known.set(tenant_id, { id: tenant_id, created_at })
    }
    return [...known.values()].sort((left, right) => (left.id < right.id ? -1 : 1))
  }
}

const make = Effect.fnUntraced(function* ({ adminToken, bootstrapKeys }: KeySettings) {
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const adminHash = adminToken && sha256Hex(Redacted.value(adminToken))
  const configured = new ConfiguredKeys(view, bootstrapKeys)
  const isAdmin = (token: string): boolean =>
    adminHash !== undefined && sameHash(adminHash, sha256Hex(token))
  const authenticate: Keys["Service"]["authenticate"] = (token) =>
    Effect.suspend((): Effect.Effect<Principal, Unauthenticated> => {
      if (isAdmin(token)) {
        return Effect.succeed({ tenantId: SYSTEM_TENANT, keyId: ADMIN_KEY_ID, scopes: ["read"] })
      }
      const hash = sha256Hex(token)
      const key = configured.ofHash(hash)
      if (key === undefined || !sameHash(key.hash, hash) || key.revoked_at !== undefined) {
        return Effect.fail(
          new Unauthenticated({ message: "the API key is missing, unknown or revoked" })
        )
      }
      return Effect.succeed({ tenantId: key.tenant_id, keyId: key.id, scopes: key.scopes })
    })

  const act = (operation: Parameters<typeof describe>[0], links: ReadonlyArray<ShareLink> = []) =>
    auditLog.record(operation, describe(operation, links))

  return Keys.of({
    authenticate,
    isAdmin,
    revoked: (keyId) =>
      view.until((registry) => registry.keys.get(keyId)?.revoked_at !== undefined),
    tenants: Effect.sync(() => configured.tenants),
    keysOf: (tenantId) =>
      Effect.sync(() =>
        configured.tenants.some(({ id }) => id === tenantId)
          ? configured.ofTenant(tenantId)
          : undefined
      ),
    createTenant: ({ id, name }) => {
      const tenant: Tenant = { id, created_at: currentTime(), ...defined({ name }) }
      return act({ op: "create_tenant", tenant }).pipe(Effect.as(tenant))
    },
    createKey: ({ label, prefix, scopes, tenantId }) =>
      Effect.suspend(() => {
        const made = newApiKey(prefix)
        const key: ApiKey = {
          id: `key_${uuidv7()}`,
          tenant_id: tenantId,
          scopes,
          ...defined({ label }),
          hint: hintOf(made),
          hash: sha256Hex(made),
          created_at: currentTime()
        }
        const tenant = configured.tenants.find(({ id }) => id === tenantId)
        return act({ op: "create_key", key, ...defined({ tenant }) }).pipe(
          Effect.as({ key, secret: made })
        )
      }),
    revokeKey: (tenantId, keyId) =>
      Effect.suspend(() => {
        const revoked_at = currentTime()
        return act(
          {
            op: "revoke_key",
            tenant_id: tenantId,
            key_id: keyId,
            revoked_at,
            ...defined({ key: configured.find(keyId) })
          },
          linksEndingWith(view.registry(), { id: keyId, tenant_id: tenantId }, revoked_at)
        )
      })
  })
})

/** Keys of the registry, of the configuration, and the admin token. */
export const layerKeys = (
  settings: KeySettings
): Layer.Layer<Keys, never, RegistryView | SystemAuditLog> => Layer.effect(Keys, make(settings))

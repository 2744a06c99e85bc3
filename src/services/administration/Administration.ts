/**
 * `Keys` at work: who a token belongs to, by the registry and the configuration, and the acts of
 * the administrator, written through the sequencer like everything else and logged in the chain of
 * the system tenant.
 */
import { timingSafeEqual } from "node:crypto"
import { Duration, Effect, Layer, Redacted } from "effect"
import { Heads } from "../../actors/follower/Heads.ts"
import {
  ADMIN_KEY_ID,
  Keys,
  type ListedKey,
  type Principal,
  Unauthenticated
} from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { defined } from "../../domain/Defined.ts"
import { newApiKey, SYSTEM_TENANT, sha256Hex, uuidv7 } from "../../domain/Identifiers.ts"
import { keyRefusal, linksEndingWith } from "../../domain/registry/Registry.ts"
import type {
  ApiKey,
  RegistryOperation,
  Scope,
  ShareLink,
  Tenant
} from "../../domain/registry/RegistryEntry.ts"
import { deletedText } from "../../domain/registry/Retention.ts"
import { currentTime, microsOf } from "../../domain/Timestamp.ts"
import { KeyUses } from "./KeyUses.ts"
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
      const { expires_at, id, label, scopes, tenant_id } = operation.key
      return {
        actor: ADMIN_KEY_ID,
        action: "api_key.created",
        resource: { type: "api_key", id },
        metadata: { tenant_id, scopes, ...defined({ label, expires_at }) }
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

  /** A key of the configuration or of the registry; a revocation in the latter wins. */
  ofId(id: string): ApiKey | undefined {
    return this.#view.registry().key(id) ?? this.find(id)
  }

  /** A key of the configuration or of the registry. */
  ofHash(hash: string): ApiKey | undefined {
    const own = this.#byHash.get(hash)
    const registry = this.#view.registry()
    return own === undefined ? registry.keyOfHash(hash) : (registry.key(own.id) ?? own)
  }

  /** Those of the registry included, with the times of their use. */
  ofTenant(tenantId: string): ReadonlyArray<ListedKey> {
    const registry = this.#view.registry()
    const own = this.#keys.map((key) => registry.keys.get(key.id) ?? key)
    const all = new Map([...own, ...registry.keysOf(tenantId)].map((key) => [key.id, key]))
    return [...all.values()]
      .filter((key) => key.tenant_id === tenantId)
      .map((key) => ({ ...key, ...defined({ last_used_at: registry.keyUse(key.id)?.used_at }) }))
  }

  /** Those of the registry included, by id. */
  get tenants(): ReadonlyArray<Tenant> {
    const known = new Map(this.#view.registry().tenants)
    for (const { created_at, tenant_id } of this.#keys) {
      if (!known.has(tenant_id)) known.set(tenant_id, { id: tenant_id, created_at })
    }
    for (const id of this.#view.registry().tombstones.keys()) known.delete(id)
    return [...known.values()].sort((left, right) => (left.id < right.id ? -1 : 1))
  }
}

const admin: Principal = { tenantId: SYSTEM_TENANT, keyId: ADMIN_KEY_ID, scopes: ["read"] }

const principalOf = ({ id, scopes, tenant_id }: ApiKey): Principal => ({
  tenantId: tenant_id,
  keyId: id,
  scopes
})

/** Why a key is not valid now, or undefined if it is. Most have no end to look at. */
const refusalNow = (key: ApiKey): string | undefined =>
  key.expires_at === undefined && key.revoked_at === undefined
    ? undefined
    : keyRefusal(key, currentTime())

/** What is said of a key that is refused: the holder of an expired one may learn since when. */
const refused = (key: ApiKey | undefined): Unauthenticated =>
  new Unauthenticated({
    message:
      key?.expires_at === undefined || key.revoked_at !== undefined
        ? "the API key is missing, unknown or revoked"
        : `the API key has expired at ${key.expires_at}; ask for a new one`
  })

/** The end of what a principal may do. */
const endIn =
  (view: RegistryView["Service"], configured: ConfiguredKeys): Keys["Service"]["ended"] =>
  ({ keyId, session, tenantId }) =>
    Effect.suspend(() => {
      const revoked = view.until(
        (registry) =>
          registry.keys.get(keyId)?.revoked_at !== undefined
          || registry.tombstone(tenantId) !== undefined
          || (session !== undefined && registry.session(session.id)?.ended_at !== undefined)
      )
      const ends = [session?.expiresAt, configured.ofId(keyId)?.expires_at]
      const [end] = ends.filter((one) => one !== undefined).sort()
      if (end === undefined) return revoked
      const left = microsOf(end) - microsOf(currentTime())
      return Effect.raceFirst(revoked, Effect.sleep(Duration.millis(Math.max(0, left / 1_000))))
    })

/** A tenant with records, or with a key of the configuration that may write some, stays where it is. */
const spreadingOf = (heads: Heads["Service"], configured: ConfiguredKeys) =>
  Effect.fnUntraced(function* (id: string) {
    if (configured.tenants.some((known) => known.id === id)) return {}
    const ends = yield* Effect.all([heads.head(id), heads.traceHead(id)])
    return ends.every((head) => head === undefined) ? { spread: true } : {}
  })

/** A new key, and what the registry keeps of it. */
const madeKey = ({
  expiresAt,
  label,
  prefix,
  scopes,
  tenantId
}: Parameters<Keys["Service"]["createKey"]>[0]) => {
  const secret = newApiKey(prefix)
  const key: ApiKey = {
    id: `key_${uuidv7()}`,
    tenant_id: tenantId,
    scopes,
    ...defined({ label }),
    hint: hintOf(secret),
    hash: sha256Hex(secret),
    created_at: currentTime(),
    ...defined({ expires_at: expiresAt })
  }
  return { key, secret }
}

const make = Effect.fnUntraced(function* ({ adminToken, bootstrapKeys }: KeySettings) {
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const uses = yield* KeyUses
  const adminHash = adminToken && sha256Hex(Redacted.value(adminToken))
  const configured = new ConfiguredKeys(view, bootstrapKeys)
  const spreading = spreadingOf(yield* Heads, configured)
  const isAdmin = (token: string): boolean =>
    adminHash !== undefined && sameHash(adminHash, sha256Hex(token))
  const authenticate: Keys["Service"]["authenticate"] = (token) =>
    Effect.suspend((): Effect.Effect<Principal, Unauthenticated> => {
      if (isAdmin(token)) return Effect.succeed(admin)
      const hash = sha256Hex(token)
      const key = configured.ofHash(hash)
      if (key === undefined || !sameHash(key.hash, hash)) return Effect.fail(refused(undefined))
      if (refusalNow(key) !== undefined) return Effect.fail(refused(key))
      const tombstone = view.registry().tombstone(key.tenant_id)
      // Keys of the registry have gone with their tenant.
      if (tombstone !== undefined) {
        return Effect.fail(new Unauthenticated({ message: deletedText(tombstone) }))
      }
      uses.note(key.id)
      return Effect.succeed(principalOf(key))
    })

  const known: Keys["Service"]["known"] = (keyId) => {
    if (keyId === ADMIN_KEY_ID) {
      return adminHash === undefined
        ? undefined
        : { principal: admin, hash: adminHash, expiresAt: undefined }
    }
    const key = configured.ofId(keyId)
    if (key === undefined || refusalNow(key) !== undefined) return undefined
    if (view.registry().tombstone(key.tenant_id) !== undefined) return undefined
    return { principal: principalOf(key), hash: key.hash, expiresAt: key.expires_at }
  }

  const act = (operation: Parameters<typeof describe>[0], links: ReadonlyArray<ShareLink> = []) =>
    auditLog.record(operation, describe(operation, links))

  return Keys.of({
    authenticate,
    isAdmin,
    known,
    ended: endIn(view, configured),
    tenants: Effect.sync(() => configured.tenants),
    keysOf: (tenantId) =>
      Effect.sync(() =>
        configured.tenants.some(({ id }) => id === tenantId)
          ? configured.ofTenant(tenantId)
          : undefined
      ),
    createTenant: Effect.fnUntraced(function* ({ id, name }) {
      const tenant: Tenant = { id, created_at: currentTime(), ...defined({ name }) }
      yield* act({ op: "create_tenant", tenant, ...(yield* spreading(id)) })
      return view.registry().tenant(id) ?? tenant
    }),
    createKey: (request) =>
      Effect.suspend(() => {
        const made = madeKey(request)
        const tenant = configured.tenants.find(({ id }) => id === request.tenantId)
        return Effect.as(act({ op: "create_key", key: made.key, ...defined({ tenant }) }), made)
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
): Layer.Layer<Keys, never, Heads | KeyUses | RegistryView | SystemAuditLog> =>
  Layer.effect(Keys, make(settings))

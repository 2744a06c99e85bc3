/**
 * `Keys` at work: who a token belongs to, by the registry and the configuration, and the acts of the
 * administrator, written through the sequencer like everything else and logged in the chain of the
 * system tenant.
 */
import { timingSafeEqual } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { RegistryView } from "../actors/Follower.ts"
import {
  AdminRefused,
  AdminTimedOut,
  Keys,
  Unauthenticated,
  type Principal
} from "../actors/Keys.ts"
import { Receipts } from "../actors/Receipts.ts"
import type { Command, PreparedEvent } from "../domain/Command.ts"
import {
  makeReceiptId,
  newApiKey,
  sha256Hex,
  SYSTEM_TENANT,
  uuidv7
} from "../domain/Identifiers.ts"
import type { ApiKey, RegistryOperation, Scope, Tenant } from "../domain/Registry.ts"
import { formatMicros, nowMicros } from "../domain/Timestamp.ts"
import { LogUnavailable } from "../ports/EventLog.ts"
import { CommandLog } from "./CommandLog.ts"
import { prepareItem } from "./Prepare.ts"

/** A key that the configuration makes known: the secret is hashed at once. */
export interface BootstrapKey {
  readonly key: Redacted.Redacted
  readonly tenantId: string
  readonly scopes: ReadonlyArray<Scope>
}

export interface KeySettings {
  readonly secret: Redacted.Redacted
  readonly adminToken: Redacted.Redacted | undefined
  readonly bootstrapKeys: ReadonlyArray<BootstrapKey>
}

/** Time that an administrative act waits for the sequencer. */
const DECISION_TIMEOUT = "10 seconds"
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

const sameHash = (left: string, right: string): boolean =>
  timingSafeEqual(Buffer.from(left, "hex"), Buffer.from(right, "hex"))

/** The audit event of an administrative act, in the chain of the system tenant. */
const systemEvent = (
  secret: string,
  action: string,
  resource: { readonly type: string; readonly id: string },
  metadata: Record<string, unknown>,
  now: string
): PreparedEvent => {
  const prepared = prepareItem(
    {
      actor: { id: "admin", type: "system" },
      action,
      resource,
      outcome: "success",
      metadata
    },
    { index: 0, mode: "single", tenantId: SYSTEM_TENANT, acceptedAt: now, secret }
  )
  if ("error" in prepared) throw new Error(`a system event is invalid: ${prepared.error.message}`)
  return prepared.ok
}

const describe = (
  operation: RegistryOperation
): {
  readonly action: string
  readonly resource: { readonly type: string; readonly id: string }
  readonly metadata: Record<string, unknown>
} => {
  switch (operation.op) {
    case "create_tenant":
      return {
        action: "tenant.created",
        resource: { type: "tenant", id: operation.tenant.id },
        metadata: {}
      }
    case "create_key": {
      const { id, label, scopes, tenant_id } = operation.key
      return {
        action: "api_key.created",
        resource: { type: "api_key", id },
        metadata: { tenant_id, scopes, ...(label === undefined ? {} : { label }) }
      }
    }
    case "revoke_key":
      return {
        action: "api_key.revoked",
        resource: { type: "api_key", id: operation.key_id },
        metadata: { tenant_id: operation.tenant_id }
      }
  }
}

const make = Effect.fnUntraced(function*(settings: KeySettings) {
  const view = yield* RegistryView
  const commands = yield* CommandLog
  const receipts = yield* Receipts
  const secret = Redacted.value(settings.secret)
  const adminHash =
    settings.adminToken === undefined ? undefined : sha256Hex(Redacted.value(settings.adminToken))
  const startedAt = formatMicros(nowMicros())
  const configured = settings.bootstrapKeys.map((key) => bootstrapKey(key, startedAt))

  /** A revocation in the registry stands above the configuration. */
  const configuredKeys = (): ReadonlyArray<ApiKey> =>
    configured.map((key) => view.registry().keys.get(key.id) ?? key)
  let index: { readonly of: unknown; readonly byHash: Map<string, ApiKey> } | undefined
  const byHash = (): Map<string, ApiKey> => {
    const registry = view.registry()
    if (index?.of !== registry) {
      const all = [...registry.keys.values(), ...configuredKeys()]
      index = { of: registry, byHash: new Map(all.map((key) => [key.hash, key])) }
    }
    return index.byHash
  }
  const isAdmin = (token: string): boolean =>
    adminHash !== undefined && sameHash(adminHash, sha256Hex(token))
  const authenticate: Keys["Service"]["authenticate"] = (token) =>
    Effect.suspend((): Effect.Effect<Principal, Unauthenticated> => {
      if (isAdmin(token)) {
        return Effect.succeed({ tenantId: SYSTEM_TENANT, keyId: "admin", scopes: ["read"] })
      }
      const hash = sha256Hex(token)
      const key = byHash().get(hash)
      if (key === undefined || !sameHash(key.hash, hash) || key.revoked_at !== undefined) {
        return Effect.fail(
          new Unauthenticated({ message: "the API key is missing, unknown or revoked" })
        )
      }
      return Effect.succeed({ tenantId: key.tenant_id, keyId: key.id, scopes: key.scopes })
    })

  const tenants = (): ReadonlyArray<Tenant> => {
    const known = new Map(view.registry().tenants)
    for (const { created_at, tenant_id } of configured) {
      if (!known.has(tenant_id)) known.set(tenant_id, { id: tenant_id, created_at })
    }
    return [...known.values()].sort((left, right) => (left.id < right.id ? -1 : 1))
  }

  const act = Effect.fnUntraced(function*(operation: RegistryOperation) {
    const now = formatMicros(nowMicros())
    const { action, metadata, resource } = describe(operation)
    const attempt = crypto.randomUUID()
    const command: Command = {
      kind: "registry",
      tenantId: SYSTEM_TENANT,
      receiptId: makeReceiptId(secret, SYSTEM_TENANT, uuidv7()),
      attempt,
      receivedAt: now,
      events: [systemEvent(secret, action, resource, metadata, now)],
      errors: [],
      warnings: [],
      operation
    }
    const decided = yield* receipts.expect(attempt)
    yield* commands.submit(command).pipe(
      Effect.catchTag(["CommandLogBusy", "CommandTooLarge"], (cause) =>
        Effect.fail(new LogUnavailable({ operation: "administer", cause }))
      )
    )
    const decision = yield* decided.pipe(
      Effect.timeoutOrElse({
        duration: DECISION_TIMEOUT,
        orElse: () =>
          Effect.fail(
            new AdminTimedOut({ message: "no sequencer decided in time; it may still happen" })
          )
      })
    )
    if (decision.kind !== "outcome") return yield* Effect.die("a registry command has no key")
    const { error, status } = decision.receipt
    if (status === "failed") {
      const code = error?.code === "not_found" ? "not_found" : "id_conflict"
      return yield* new AdminRefused({ code, message: error?.message ?? "refused" })
    }
    yield* view.caughtUp
  })

  return Keys.of({
    authenticate,
    isAdmin,
    revoked: (keyId) =>
      view.until((registry) => registry.keys.get(keyId)?.revoked_at !== undefined),
    tenants: Effect.sync(tenants),
    keysOf: (tenantId) =>
      Effect.sync(() => {
        if (!tenants().some(({ id }) => id === tenantId)) return undefined
        const known = new Map(
          [...configuredKeys(), ...view.registry().keys.values()].map((key) => [key.id, key])
        )
        return [...known.values()].filter((key) => key.tenant_id === tenantId)
      }),
    createTenant: ({ id, name }) => {
      const created_at = formatMicros(nowMicros())
      const tenant: Tenant = { id, created_at, ...(name === undefined ? {} : { name }) }
      return act({ op: "create_tenant", tenant }).pipe(Effect.as(tenant))
    },
    createKey: ({ label, prefix, scopes, tenantId }) =>
      Effect.suspend(() => {
        const made = newApiKey(prefix)
        const key: ApiKey = {
          id: `key_${uuidv7()}`,
          tenant_id: tenantId,
          scopes,
          ...(label === undefined ? {} : { label }),
          hint: hintOf(made),
          hash: sha256Hex(made),
          created_at: formatMicros(nowMicros())
        }
        const tenant = tenants().find(({ id }) => id === tenantId)
        const operation: RegistryOperation = {
          op: "create_key",
          key,
          ...(tenant === undefined ? {} : { tenant })
        }
        return act(operation).pipe(Effect.as({ key, secret: made }))
      }),
    revokeKey: (tenantId, keyId) => {
      const own = configured.find(({ id }) => id === keyId)
      return act({
        op: "revoke_key",
        tenant_id: tenantId,
        key_id: keyId,
        revoked_at: formatMicros(nowMicros()),
        ...(own === undefined ? {} : { key: own })
      })
    }
  })
})

/** Keys of the registry, of the configuration, and the admin token. */
export const layerKeys = (
  settings: KeySettings
): Layer.Layer<Keys, never, RegistryView | CommandLog | Receipts> =>
  Layer.effect(Keys, make(settings))

/**
 * Who may do what: tenants and API keys as `alk.registry` has them, the keys of the configuration
 * and the admin token. Compares hashes only; every process follows the registry by itself.
 */
import { Context, type Effect, Schema } from "effect"
import type { ApiKey, Scope, Tenant } from "../../domain/registry/RegistryEntry.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"

/** Names the admin token where others are named by the id of their key. */
export const ADMIN_KEY_ID = "admin"

export interface Principal {
  readonly tenantId: string
  /** Id of the API key, ADMIN_KEY_ID for the admin token. Never the key itself. */
  readonly keyId: string
  readonly scopes: ReadonlyArray<Scope>
  /** The session that the key is used through, if it is one. */
  readonly session?: SessionOfPrincipal
}

/** A session as far as what it may do depends on it. */
export interface SessionOfPrincipal {
  readonly id: string
  readonly expiresAt: string
}

/** A key that is valid now, without its secret. */
export interface KnownKey {
  readonly principal: Principal
  /** SHA-256 of the whole key. */
  readonly hash: string
  /** From when on it is invalid; undefined: it does not expire. */
  readonly expiresAt: string | undefined
}

/** A key, valid or not, and a time at which it was used, at most an hour before the last one. */
export interface ListedKey extends ApiKey {
  readonly last_used_at?: string
}

/** The credential is missing, unknown, expired or revoked. */
export class Unauthenticated extends Schema.TaggedError<Unauthenticated>()("Unauthenticated", {
  message: Schema.String
}) {}

/** The single writer refused an administrative act. */
export class AdminRefused extends Schema.TaggedError<AdminRefused>()("AdminRefused", {
  code: Schema.Literals([
    "id_conflict",
    "not_found",
    "limit_reached",
    "legal_hold",
    "tenant_deleted"
  ]),
  message: Schema.String
}) {}

/** The act was written but not decided in time; it may still happen. */
export class AdminTimedOut extends Schema.TaggedError<AdminTimedOut>()("AdminTimedOut", {
  message: Schema.String
}) {}

type AdminFailure = AdminRefused | AdminTimedOut | LogUnavailable

export interface CreatedKey {
  readonly key: ApiKey
  /** The key itself: shown once, kept nowhere. */
  readonly secret: string
}

export class Keys extends Context.Service<
  Keys,
  {
    /**
     * The principal of a bearer token: an API key, or the admin token (tenant `_system`, read).
     */
    authenticate(token: string): Effect.Effect<Principal, Unauthenticated>
    /** True if this is the admin token. Constant time. */
    isAdmin(token: string): boolean
    /** The key of this id, ADMIN_KEY_ID for the admin token; undefined if it is not valid. */
    known(keyId: string): KnownKey | undefined
    /**
     * Succeeds when the key is revoked or expires, the session ends or expires, or the tenant is
     * deleted; never before.
     */
    ended(holder: Pick<Principal, "keyId" | "session" | "tenantId">): Effect.Effect<void>
    readonly tenants: Effect.Effect<ReadonlyArray<Tenant>>
    /** undefined: there is no such tenant. */
    keysOf(tenantId: string): Effect.Effect<ReadonlyArray<ListedKey> | undefined>
    createTenant(tenant: {
      readonly id: string
      readonly name?: string
    }): Effect.Effect<Tenant, AdminFailure>
    createKey(key: {
      readonly tenantId: string
      readonly scopes: ReadonlyArray<Scope>
      readonly label?: string
      readonly expiresAt?: string
      readonly prefix: "alk_live_" | "svc_live_"
    }): Effect.Effect<CreatedKey, AdminFailure>
    /** The share links that were made with the key are revoked with it. */
    revokeKey(tenantId: string, keyId: string): Effect.Effect<void, AdminFailure>
  }
>()("alk/Keys") {}

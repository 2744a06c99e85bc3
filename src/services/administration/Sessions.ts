/**
 * Sessions of the console: a browser gets a token of its own for a key and never keeps the key. A
 * session ends with its key, at sign-out, after a while and, sooner, when it is not used.
 *
 * The registry knows a session by its id, with the hash of token and key together: without the token,
 * what is stored can't even be compared with guesses at a key. When a session was last used is in the
 * token itself, under a MAC, so that reading writes nothing.
 */
import { Context, Effect, Layer, type Redacted, Schema } from "effect"
import {
  ADMIN_KEY_ID,
  Keys,
  type KnownKey,
  type Principal,
  Unauthenticated
} from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { newSessionToken, sha256Hex } from "../../domain/Identifiers.ts"
import type { Session } from "../../domain/registry/RegistryEntry.ts"
import { isOpen, openSessions, SESSIONS_MAX } from "../../domain/registry/Sessions.ts"
import { currentTime, formatMicros, microsOf } from "../../domain/Timestamp.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import { sameHash } from "./Administration.ts"
import { KeyUses } from "./KeyUses.ts"
import { newSessionId, sessionTokens } from "./SessionTokens.ts"
import { type SystemActFailure, SystemAuditLog } from "./SystemAuditLog.ts"

/** Seconds that a session lasts, and that it lasts without being used. */
export interface SessionLimits {
  readonly lasts: number
  readonly idle: number
}

const HOUR = 3_600
/** Of a session with an API key. */
export const SESSION_LIMITS: SessionLimits = { lasts: 12 * HOUR, idle: HOUR }
/** Of a session with the admin token. */
export const ADMIN_SESSION_LIMITS: SessionLimits = { lasts: HOUR, idle: HOUR / 4 }
/** Seconds that a sign-in code is valid. */
export const CODE_LASTS = 600
/** Seconds of use after which a token is replaced by one that says so. */
const RENEWED_AFTER = 60

/** The tenant has as many open sessions as it may have. */
export class TooManySessions extends Schema.TaggedError<TooManySessions>()("TooManySessions", {
  limit: Schema.Int
}) {}

/** A session that can be used now. */
export interface OpenSession {
  readonly session: Session
  readonly limits: SessionLimits
  readonly principal: Principal
}

export interface StartedSession extends OpenSession {
  /** What the browser sends from now on: shown once, kept nowhere. */
  readonly token: string
}

/** What only the browser is to know. */
interface Own {
  readonly own: string
}

export interface FoundSession extends OpenSession {
  /** Replaces the token that was sent; undefined: it is young enough. */
  readonly renewed: string | undefined
}

type StartFailure = Unauthenticated | TooManySessions | SystemActFailure

export class Sessions extends Context.Service<
  Sessions,
  {
    /** Signs in with an API key or the admin token. */
    start(key: string): Effect.Effect<StartedSession, StartFailure>
    /** Signs in with a code, which works once. */
    startWithCode(code: string): Effect.Effect<StartedSession, StartFailure>
    /** A code that signs in once with this key, within CODE_LASTS; undefined: no such key. */
    codeFor(keyId: string): string | undefined
    /** The session of a token, if it is of this kind and can be used now. */
    find(
      kind: SessionKind,
      token: string
    ): Effect.Effect<FoundSession, Unauthenticated | LogUnavailable>
    /** Signs out. */
    end(session: Session): Effect.Effect<void, SystemActFailure>
  }
>()("alk/Sessions") {}

/** Whose session: of an API key, or of the admin token. A browser may have both. */
export type SessionKind = "session" | "admin"

export const sessionKindOf = (keyId: string): SessionKind =>
  keyId === ADMIN_KEY_ID ? "admin" : "session"

const ended = new Unauthenticated({ message: "the session has ended: sign in again" })
const codeUsed = new Unauthenticated({
  message: "the sign-in code is unknown, expired or used: sign in with an API key"
})

const limitsOf = (keyId: string): SessionLimits =>
  keyId === ADMIN_KEY_ID ? ADMIN_SESSION_LIMITS : SESSION_LIMITS

const openOf = (session: Session, { scopes, tenantId }: Principal): OpenSession => {
  const { expires_at, id, key_id } = session
  return {
    session,
    limits: limitsOf(key_id),
    principal: { tenantId, keyId: key_id, scopes, session: { id, expiresAt: expires_at } }
  }
}

/** How a session is made: logged and registered, or neither. */
const starting = (
  view: RegistryView["Service"],
  auditLog: SystemAuditLog["Service"],
  { expiresAt, hash, principal }: KnownKey,
  id: string,
  signedInWith: "key" | "code"
) =>
  Effect.suspend((): Effect.Effect<Omit<StartedSession, "token"> & Own, StartFailure> => {
    const { keyId, tenantId } = principal
    const created_at = currentTime()
    if (openSessions(view.registry().sessionsOf(tenantId), created_at) >= SESSIONS_MAX) {
      return Effect.fail(new TooManySessions({ limit: SESSIONS_MAX }))
    }
    const own = newSessionToken()
    const lastsUntil = formatMicros(microsOf(created_at) + limitsOf(keyId).lasts * 1_000_000)
    const session: Session = {
      id,
      tenant_id: tenantId,
      key_id: keyId,
      hash: sha256Hex(`${own}.${hash}`),
      created_at,
      expires_at: expiresAt !== undefined && expiresAt < lastsUntil ? expiresAt : lastsUntil
    }
    const { expires_at } = session
    return auditLog
      .record(
        { op: "create_session", session },
        {
          actor: keyId,
          action: "session.started",
          resource: { type: "session", id },
          metadata: { tenant_id: tenantId, signed_in_with: signedInWith, expires_at }
        }
      )
      .pipe(Effect.as({ ...openOf(session, principal), own }))
  })

const make = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
  const keys = yield* Keys
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const uses = yield* KeyUses
  const tokens = sessionTokens(secret)

  const start = (keyId: string, id: string, signedInWith: "key" | "code") => {
    const known = keys.known(keyId)
    if (known === undefined) return Effect.fail(ended)
    return Effect.map(
      starting(view, auditLog, known, id, signedInWith),
      ({ own, ...open }): StartedSession => ({ ...open, token: tokens.token(id, own) })
    )
  }

  /** A session that another process has just made may not be known here yet. */
  const registered = (id: string) =>
    Effect.suspend(() => {
      const session = view.registry().session(id)
      return session === undefined
        ? Effect.map(view.caughtUp, () => view.registry().session(id))
        : Effect.succeed(session)
    })

  return Sessions.of({
    start: (key) =>
      Effect.flatMap(keys.authenticate(key), ({ keyId }) => start(keyId, newSessionId(), "key")),
    startWithCode: (code) =>
      Effect.suspend((): Effect.Effect<StartedSession, StartFailure> => {
        const read = tokens.readCode(code)
        if (read === undefined) return Effect.fail(codeUsed)
        // One code is one session: the registry refuses a second one of the same id.
        return Effect.catchTag(start(read.keyId, read.id, "code"), "AdminRefused", (refused) =>
          Effect.fail(refused.code === "id_conflict" ? codeUsed : refused)
        )
      }),
    codeFor: (keyId) =>
      keys.known(keyId) === undefined ? undefined : tokens.code(keyId, CODE_LASTS),
    find: Effect.fnUntraced(function* (kind, token) {
      const read = tokens.readToken(token)
      if (read === undefined) return yield* ended
      const { id, own, unused } = read
      const session = yield* registered(id)
      if (session === undefined || !isOpen(session, currentTime())) return yield* ended
      if (sessionKindOf(session.key_id) !== kind) return yield* ended
      const known = keys.known(session.key_id)
      if (known === undefined) return yield* ended
      if (!sameHash(session.hash, sha256Hex(`${own}.${known.hash}`))) return yield* ended
      const open = openOf(session, known.principal)
      if (unused > open.limits.idle) return yield* ended
      if (session.key_id !== ADMIN_KEY_ID) uses.note(session.key_id)
      return { ...open, renewed: unused >= RENEWED_AFTER ? tokens.token(id, own) : undefined }
    }),
    end: ({ id, key_id, tenant_id }) =>
      auditLog
        .record(
          { op: "end_session", session_id: id, ended_at: currentTime() },
          {
            actor: key_id,
            action: "session.ended",
            resource: { type: "session", id },
            metadata: { tenant_id }
          }
        )
        // Another request was faster.
        .pipe(Effect.catchTag("AdminRefused", () => Effect.void))
  })
})

/** `secret` is `ALK_SECRET`. */
export const layerSessions = (
  secret: Redacted.Redacted
): Layer.Layer<Sessions, never, Keys | KeyUses | RegistryView | SystemAuditLog> =>
  Layer.effect(Sessions, make(secret))

/**
 * Share links: made, listed, used and revoked. What a link covers is fixed when it is made; whether
 * it may still be used is decided by the single writer, so that two uses can't race for the last.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { Unauthenticated } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { defined } from "../../domain/Defined.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import { newShareToken, sha256Hex, uuidv7 } from "../../domain/Identifiers.ts"
import {
  isOfRevokedKey,
  LINKS_MAX,
  linkRefusal,
  usableLinks
} from "../../domain/registry/Registry.ts"
import type { ShareLink } from "../../domain/registry/RegistryEntry.ts"
import { currentTime, formatMicros, microsOf } from "../../domain/Timestamp.ts"
import { sameHash } from "./Administration.ts"
import { type SystemActFailure, SystemAuditLog } from "./SystemAuditLog.ts"

/** The tenant has as many usable links as it may have. */
export class TooManyLinks extends Schema.TaggedError<TooManyLinks>()("TooManyLinks", {
  limit: Schema.Int
}) {}

export interface NewLink {
  readonly tenantId: string
  /** Id of the API key that makes it. */
  readonly keyId: string
  readonly filter: EventFilter
  readonly expiresInSeconds: number
  readonly maxUses?: number
  readonly label?: string
}

export interface CreatedLink {
  readonly link: ShareLink
  /** Shown once, kept nowhere. */
  readonly token: string
}

export class ShareLinks extends Context.Service<
  ShareLinks,
  {
    create(link: NewLink): Effect.Effect<CreatedLink, TooManyLinks | SystemActFailure>
    /** Newest first; the expired and revoked ones too, until they are purged. */
    list(tenantId: string): Effect.Effect<ReadonlyArray<ShareLink>>
    get(tenantId: string, id: string): Effect.Effect<ShareLink | undefined>
    revoke(tenantId: string, id: string, keyId: string): Effect.Effect<void, SystemActFailure>
    /** The link of a token, if it can be used now. Uses nothing up. */
    find(token: string): Effect.Effect<ShareLink, Unauthenticated>
    /** Count one use; fails if another one was faster to the last, or the link has ended since. */
    use(link: ShareLink): Effect.Effect<void, Unauthenticated | SystemActFailure>
  }
>()("alk/ShareLinks") {}

const unusable = (): Unauthenticated =>
  new Unauthenticated({ message: "the share link is unknown, expired, revoked or used up" })

const make = Effect.gen(function* () {
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const own = (tenantId: string): ReadonlyArray<ShareLink> => [...view.registry().linksOf(tenantId)]

  return ShareLinks.of({
    create: ({ expiresInSeconds, filter, keyId, label, maxUses, tenantId }) =>
      Effect.suspend((): Effect.Effect<CreatedLink, TooManyLinks | SystemActFailure> => {
        const token = newShareToken()
        const created_at = currentTime()
        if (usableLinks(view.registry(), tenantId, created_at) >= LINKS_MAX)
          return Effect.fail(new TooManyLinks({ limit: LINKS_MAX }))
        const link: ShareLink = {
          id: `lnk_${uuidv7()}`,
          tenant_id: tenantId,
          ...defined({ label }),
          filter,
          hash: sha256Hex(token),
          created_by: keyId,
          created_at,
          expires_at: formatMicros(microsOf(created_at) + expiresInSeconds * 1_000_000),
          ...defined({ max_uses: maxUses }),
          uses: 0
        }
        return auditLog
          .record(
            { op: "create_link", link },
            {
              actor: keyId,
              action: "share_link.created",
              resource: { type: "share_link", id: link.id },
              metadata: {
                tenant_id: tenantId,
                expires_at: link.expires_at,
                ...defined({ max_uses: maxUses, label })
              }
            }
          )
          .pipe(Effect.as({ link, token }))
      }),
    list: (tenantId) =>
      Effect.sync(() =>
        [...own(tenantId)].sort((left, right) => (left.created_at < right.created_at ? 1 : -1))
      ),
    get: (tenantId, id) => Effect.sync(() => own(tenantId).find((link) => link.id === id)),
    revoke: (tenantId, id, keyId) =>
      auditLog.record(
        { op: "revoke_link", tenant_id: tenantId, link_id: id, revoked_at: currentTime() },
        {
          actor: keyId,
          action: "share_link.revoked",
          resource: { type: "share_link", id },
          metadata: { tenant_id: tenantId }
        }
      ),
    find: (token) =>
      Effect.suspend(() => {
        const hash = sha256Hex(token)
        const link = view.registry().linkOfHash(hash)
        return link === undefined
          || !sameHash(link.hash, hash)
          || isOfRevokedKey(view.registry(), link)
          || linkRefusal(link, currentTime()) !== undefined
          ? Effect.fail(unusable())
          : Effect.succeed(link)
      }),
    use: ({ id, tenant_id }) =>
      auditLog
        .record(
          { op: "use_link", tenant_id, link_id: id, used_at: currentTime() },
          {
            actor: id,
            action: "share_link.used",
            resource: { type: "share_link", id },
            metadata: { tenant_id }
          }
        )
        .pipe(Effect.catchTag("AdminRefused", () => Effect.fail(unusable())))
  })
})

export const layerShareLinks: Layer.Layer<ShareLinks, never, RegistryView | SystemAuditLog> =
  Layer.effect(ShareLinks, make)

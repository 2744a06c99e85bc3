/**
 * Share links: made, listed, used and revoked. What a link covers is fixed when it is made; whether
 * it may still be used is decided by the single writer, so that two uses can't race for the last.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { ADMIN_KEY_ID, Keys, type KnownKey } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { defined } from "../../domain/Defined.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import { newShareToken, sha256Hex, uuidv7 } from "../../domain/Identifiers.ts"
import { LINKS_MAX, type LinkEnd, linkEnd, linkEnds } from "../../domain/registry/Registry.ts"
import type { ShareLink } from "../../domain/registry/RegistryEntry.ts"
import { currentTime, formatMicros, microsOf } from "../../domain/Timestamp.ts"
import { sameHash } from "./Administration.ts"
import { type SystemActFailure, SystemAuditLog } from "./SystemAuditLog.ts"

/** The tenant has as many usable links as it may have. */
export class TooManyLinks extends Schema.TaggedError<TooManyLinks>()("TooManyLinks", {
  limit: Schema.Int
}) {}

/** A link that can't be used. `end` says why to those who have its token; the others learn nothing. */
export class LinkUnusable extends Schema.TaggedError<LinkUnusable>()("LinkUnusable", {
  message: Schema.String,
  end: Schema.optionalKey(Schema.Literals(Object.keys(linkEnds) as ReadonlyArray<LinkEnd>))
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
    /** How a link has ended, by itself or with its key; undefined while it can be used. */
    endOf(link: ShareLink): LinkEnd | undefined
    revoke(tenantId: string, id: string, keyId: string): Effect.Effect<void, SystemActFailure>
    /** The link of a token, if it can be used now. Uses nothing up. */
    find(token: string): Effect.Effect<ShareLink, LinkUnusable>
    /** Count one use; fails if another one was faster to the last, or the link has ended since. */
    use(link: ShareLink): Effect.Effect<void, LinkUnusable | SystemActFailure>
  }
>()("alk/ShareLinks") {}

const unknown = new LinkUnusable({
  message: "the share link is unknown, expired, revoked or used up"
})

/** Whatever has ended the key that made a link has revoked it. */
const endOf = (keys: Keys["Service"], link: ShareLink): LinkEnd | undefined =>
  linkEnd(link, currentTime())
  ?? (keys.known(link.created_by) === undefined ? "revoked" : undefined)

/** Why a link that is known can't be used now; undefined if it can. */
const unusable = (keys: Keys["Service"], link: ShareLink): LinkUnusable | undefined => {
  const end = endOf(keys, link)
  return end === undefined
    ? undefined
    : new LinkUnusable({ message: `the share link can't be used: ${linkEnds[end]}`, end })
}

/** The admin token has no id of its own: its links are found by its hash too, and end with it. */
const hashOfAdmins = (token: string, key: KnownKey | undefined): string =>
  sha256Hex(`${token}.${key?.hash ?? ""}`)

/** The end of a link of `seconds`, which the key doesn't outlive. */
const expiryOf = (createdAt: string, seconds: number, key: KnownKey | undefined): string => {
  const asked = formatMicros(microsOf(createdAt) + seconds * 1_000_000)
  return key?.expiresAt !== undefined && key.expiresAt < asked ? key.expiresAt : asked
}

const linkOf = (asked: NewLink, token: string, key: KnownKey | undefined): ShareLink => {
  const created_at = currentTime()
  return {
    id: `lnk_${uuidv7()}`,
    tenant_id: asked.tenantId,
    ...defined({ label: asked.label }),
    filter: asked.filter,
    hash: asked.keyId === ADMIN_KEY_ID ? hashOfAdmins(token, key) : sha256Hex(token),
    created_by: asked.keyId,
    created_at,
    expires_at: expiryOf(created_at, asked.expiresInSeconds, key),
    ...defined({ max_uses: asked.maxUses }),
    uses: 0
  }
}

const make = Effect.gen(function* () {
  const view = yield* RegistryView
  const keys = yield* Keys
  const auditLog = yield* SystemAuditLog
  const own = (tenantId: string): ReadonlyArray<ShareLink> => [...view.registry().linksOf(tenantId)]

  const revoke: ShareLinks["Service"]["revoke"] = (tenantId, id, keyId) =>
    auditLog.record(
      { op: "revoke_link", tenant_id: tenantId, link_id: id, revoked_at: currentTime() },
      {
        actor: keyId,
        action: "share_link.revoked",
        resource: { type: "share_link", id },
        metadata: { tenant_id: tenantId }
      }
    )

  /**
   * The sequencer counts the links of keys that have left the configuration, which it does not know
   * of: one of them is revoked where it takes the last place.
   */
  const makeRoom = Effect.fnUntraced(function* (tenantId: string, keyId: string) {
    const now = currentTime()
    const counted = own(tenantId).filter((link) => linkEnd(link, now) === undefined)
    if (counted.length < LINKS_MAX) return
    const ended = counted.find((link) => endOf(keys, link) !== undefined)
    if (ended === undefined) return yield* new TooManyLinks({ limit: LINKS_MAX })
    // Refused if it was revoked meanwhile.
    yield* Effect.catchTag(revoke(tenantId, ended.id, keyId), "AdminRefused", () => Effect.void)
  })

  return ShareLinks.of({
    create: (asked) =>
      Effect.suspend((): Effect.Effect<CreatedLink, TooManyLinks | SystemActFailure> => {
        const token = newShareToken()
        const { keyId, tenantId } = asked
        const link = linkOf(asked, token, keys.known(keyId))
        const { expires_at, label, max_uses } = link
        const made = auditLog.record(
          { op: "create_link", link },
          {
            actor: keyId,
            action: "share_link.created",
            resource: { type: "share_link", id: link.id },
            metadata: { tenant_id: tenantId, expires_at, ...defined({ max_uses, label }) }
          }
        )
        return Effect.as(Effect.andThen(makeRoom(tenantId, keyId), made), { link, token })
      }),
    list: (tenantId) =>
      Effect.sync(() =>
        [...own(tenantId)].sort((left, right) => (left.created_at < right.created_at ? 1 : -1))
      ),
    get: (tenantId, id) => Effect.sync(() => own(tenantId).find((link) => link.id === id)),
    endOf: (link) => endOf(keys, link),
    revoke,
    find: (token) =>
      Effect.suspend(() => {
        const hashes = [sha256Hex(token), hashOfAdmins(token, keys.known(ADMIN_KEY_ID))]
        const link = hashes
          .map((hash) => view.registry().linkOfHash(hash))
          .find((found, at) => found !== undefined && sameHash(found.hash, hashes[at] ?? ""))
        if (link === undefined) return Effect.fail(unknown)
        const refusal = unusable(keys, link)
        return refusal === undefined ? Effect.succeed(link) : Effect.fail(refusal)
      }),
    use: (link) => {
      const { id, tenant_id } = link
      return auditLog
        .record(
          { op: "use_link", tenant_id, link_id: id, used_at: currentTime() },
          {
            actor: id,
            action: "share_link.used",
            resource: { type: "share_link", id },
            metadata: { tenant_id }
          }
        )
        .pipe(
          Effect.catchTag("AdminRefused", () => {
            return Effect.fail(unusable(keys, view.registry().link(id) ?? link) ?? unknown)
          })
        )
    }
  })
})

export const layerShareLinks: Layer.Layer<ShareLinks, never, Keys | RegistryView | SystemAuditLog> =
  Layer.effect(ShareLinks, make)

/**
 * Tenants, API keys, share links and the public keys of checkpoints: what may be done to them, and
 * what is known of them. Their records are in RegistryEntry.
 */

import { openEndorsement } from "../chain/KeyLine.ts"
import type { LineKey } from "../chain/KeyStandings.ts"
import type { PrunedPoint } from "../chain/PrunedPoint.ts"
import { formatMicros, microsOf } from "../Timestamp.ts"
import { type RegistryDecision, refused } from "./Decision.ts"
import {
  type ApiKey,
  type DataVersion,
  type KeyUse,
  PARTITIONS_ID,
  type Partitions,
  type QuarantineAct,
  type RegistryEntry,
  type RegistryOperation,
  type RegistryRemoval,
  registryKey,
  type Session,
  type ShareLink,
  type SigningKey,
  type Tenant
} from "./RegistryEntry.ts"
import { decideRetention, deletedText, type RetentionReader } from "./Retention.ts"
import { isRetentionOperation, type Retention, type Tombstone } from "./RetentionEntry.ts"
import { endedSession, openSessions, SESSIONS_MAX, tooManySessions } from "./Sessions.ts"

/** The published keys as a line; those of a version without endorsements are roots. */
export const lineKeysOf = (keys: Iterable<SigningKey>): ReadonlyArray<LineKey> =>
  [...keys].map(({ endorsement, root, vkey }) => ({
    vkey,
    root: root ?? endorsement === undefined,
    ...(endorsement === undefined ? {} : { endorsement })
  }))

/** Everything on `alk.registry`, by id. Its entries are replaced, never changed. */
export interface Registry extends RegistryReader {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly keyUses: ReadonlyMap<string, KeyUse>
  readonly links: ReadonlyMap<string, ShareLink>
  readonly sessions: ReadonlyMap<string, Session>
  readonly signingKeys: ReadonlyMap<string, SigningKey>
  readonly quarantineActs: ReadonlyMap<string, QuarantineAct>
  /** By tenant. */
  readonly retentions: ReadonlyMap<string, Retention>
  /** By tree. */
  readonly prunedPoints: ReadonlyMap<string, PrunedPoint>
  /** By tenant. */
  readonly tombstones: ReadonlyMap<string, Tombstone>
  /** The key with this hash, and the link with this hash of its token. */
  keyOfHash(hash: string): ApiKey | undefined
  linkOfHash(hash: string): ShareLink | undefined
}

/** What a decision reads. */
export interface RegistryReader extends RetentionReader {
  key(id: string): ApiKey | undefined
  link(id: string): ShareLink | undefined
  session(id: string): Session | undefined
  signingKey(id: string): SigningKey | undefined
  quarantineAct(id: string): QuarantineAct | undefined
  dataVersion(): DataVersion | undefined
  partitions(): Partitions | undefined
  allSigningKeys(): Iterable<SigningKey>
}

/** Links of one tenant that can be used, and keys that are valid, at the same time. */
export const LINKS_MAX = 1_000
export const KEYS_MAX = 1_000
/** Days that a link which has ended is still listed. */
export const ENDED_LINK_KEPT_DAYS = 30
const DAY_MICROS = 86_400_000_000
/** Links of one tenant that have ended and are still listed, the newest of them. */
export const ENDED_LINKS_MAX = 1_000

/** How a link can have ended, and what is said of it. */
export const linkEnds = {
  revoked: "it was revoked",
  expired: "it has expired",
  used_up: "it is used up"
} as const
export type LinkEnd = keyof typeof linkEnds

/** How a link has ended at this time; undefined while it can be used. */
export const linkEnd = (link: ShareLink, now: string): LinkEnd | undefined => {
  if (link.revoked_at !== undefined) return "revoked"
  if (link.expires_at <= now) return "expired"
  return link.max_uses !== undefined && link.uses >= link.max_uses ? "used_up" : undefined
}

/** Why a link can't be used at this time, or undefined if it can. */
export const linkRefusal = (link: ShareLink, now: string): string | undefined => {
  const end = linkEnd(link, now)
  return end === undefined ? undefined : linkEnds[end]
}

/** The link after one use more. Clocks of processes differ: the latest use is the last one. */
const usedLink = (link: ShareLink, usedAt: string): ShareLink => {
  const before = link.last_used_at ?? ""
  return { ...link, uses: link.uses + 1, last_used_at: usedAt > before ? usedAt : before }
}

/** How many of a tenant's links can be used at this time. */
const usableLinks = (
  registry: Pick<RegistryReader, "linksOf">,
  tenantId: string,
  now: string
): number => {
  let count = 0
  for (const link of registry.linksOf(tenantId)) if (linkRefusal(link, now) === undefined) count++
  return count
}

/** Why a link over the limit is refused; `limit` is LINKS_MAX. */
export const tooManyLinks = (limit: number): string =>
  `this tenant has ${limit} share links that can be used, the most allowed; revoke some`

/** Why a key is not valid at this time, or undefined if it is. */
export const keyRefusal = (
  { expires_at, revoked_at }: Pick<ApiKey, "expires_at" | "revoked_at">,
  now: string
): string | undefined => {
  if (revoked_at !== undefined) return "is revoked"
  return expires_at !== undefined && expires_at <= now ? `has expired at ${expires_at}` : undefined
}

/** The same of a key that may be unknown here, as those of the configuration are. */
const refusalOfKey = (registry: RegistryReader, keyId: string, now: string): string | undefined => {
  const key = registry.key(keyId)
  const refusal = key && keyRefusal(key, now)
  return refusal && `key ${keyId} ${refusal}`
}

const validKeys = (registry: RegistryReader, tenantId: string, now: string): number => {
  let count = 0
  for (const key of registry.keysOf(tenantId)) if (keyRefusal(key, now) === undefined) count++
  return count
}

/** When a link that can't be used any more has ended. */
const endOf = ({ expires_at, revoked_at }: ShareLink): string =>
  revoked_at !== undefined && revoked_at < expires_at ? revoked_at : expires_at

/**
 * Links that ended more than ENDED_LINK_KEPT_DAYS ago, or are not among the newest ENDED_LINKS_MAX
 * ended ones of their tenant: at most `limit` of them. Their history is in the chain of the system
 * tenant.
 */
export const linksToPurge = (
  registry: Pick<Registry, "links">,
  now: string,
  limit: number
): ReadonlyArray<RegistryRemoval> => {
  const before = formatMicros(microsOf(now) - ENDED_LINK_KEPT_DAYS * DAY_MICROS)
  const leaving: Array<ShareLink> = []
  const kept: Array<ShareLink> = []
  for (const link of registry.links.values()) {
    if (linkRefusal(link, now) === undefined) continue
    if (endOf(link) <= before) leaving.push(link)
    else kept.push(link)
  }
  for (const own of Map.groupBy(kept, ({ tenant_id }) => tenant_id).values()) {
    if (own.length <= ENDED_LINKS_MAX) continue
    own.sort((left, right) => (left.created_at < right.created_at ? -1 : 1))
    leaving.push(...own.slice(0, own.length - ENDED_LINKS_MAX))
  }
  return leaving
    .slice(0, limit)
    .map((link) => ({ kind: "removed", key: registryKey({ kind: "link", link }) }))
}

const linkOf = (
  registry: RegistryReader,
  { link_id, tenant_id }: { readonly link_id: string; readonly tenant_id: string }
): ShareLink | undefined => {
  const link = registry.link(link_id)
  return link?.tenant_id === tenant_id ? link : undefined
}

/** The links that end with a key if it is revoked at this time. */
export const linksEndingWith = (
  registry: RegistryReader,
  key: Pick<ApiKey, "id" | "tenant_id">,
  now: string
): ReadonlyArray<ShareLink> =>
  [...registry.linksOf(key.tenant_id)].filter(
    ({ created_by, expires_at, revoked_at }) =>
      created_by === key.id && revoked_at === undefined && expires_at > now
  )

/** True if one of the keys has endorsed this one, and none before it. */
const isEndorsed = (
  keys: ReadonlyArray<SigningKey>,
  { endorsement, vkey }: SigningKey
): boolean => {
  if (endorsement === undefined) return false
  return keys.some((key) => {
    const names = (note: string | undefined) =>
      note === undefined ? undefined : openEndorsement(note, key.vkey)?.nextVkey
    if (key.vkey === vkey || names(endorsement) !== vkey) return false
    return keys.every((other) => other.vkey === vkey || names(other.endorsement) === undefined)
  })
}

/** The first key is the root; a later one counts once the key before it has endorsed it. */
const decideSigningKey = (registry: RegistryReader, wanted: SigningKey): RegistryDecision => {
  const { endorsement, root: _claimed, ...key } = wanted
  const keys = [...registry.allSigningKeys()]
  const known = registry.signingKey(key.key_id)
  const isNews = isEndorsed(keys, wanted) && known?.endorsement === undefined
  if (known !== undefined && (!isNews || known.root !== false)) {
    return refused("id_conflict", `signing key ${key.key_id} is published already`)
  }
  const signing_key: SigningKey = {
    ...key,
    ...(known === undefined ? {} : { added_at: known.added_at }),
    root: keys.length === 0,
    ...(isNews ? { endorsement: endorsement! } : {})
  }
  return { granted: true, entries: [{ kind: "signing_key", signing_key }] }
}

const decideSession = (
  registry: RegistryReader,
  operation: Extract<RegistryOperation, { readonly op: "create_session" | "end_session" }>
): RegistryDecision => {
  if (operation.op === "end_session") {
    const { ended_at, session_id } = operation
    const entry = endedSession(registry.session(session_id), ended_at)
    return entry === undefined
      ? refused("not_found", `there is no session ${session_id} to end`)
      : { granted: true, entries: [entry] }
  }
  const { session } = operation
  const { created_at, id, key_id, tenant_id } = session
  const refusal = refusalOfKey(registry, key_id, created_at)
  if (refusal !== undefined) return refused("not_found", refusal)
  if (registry.session(id) !== undefined) {
    return refused("id_conflict", `session ${id} exists already`)
  }
  return openSessions(registry.sessionsOf(tenant_id), created_at) >= SESSIONS_MAX
    ? refused("limit_reached", tooManySessions(SESSIONS_MAX))
    : { granted: true, entries: [{ kind: "session", session }] }
}

/** A command in quarantine is settled once: a second replay would be another copy of it. */
const decideQuarantined = (
  registry: RegistryReader,
  quarantine_act: QuarantineAct
): RegistryDecision => {
  const known = registry.quarantineAct(quarantine_act.id)
  return known === undefined
    ? { granted: true, entries: [{ kind: "quarantine_act", quarantine_act }] }
    : refused("id_conflict", `${known.id} was ${known.state} at ${known.settled_at}`)
}

/** Uses later than those that are known: processes report them in any order. */
const newerUses = (
  registry: RegistryReader,
  uses: ReadonlyArray<KeyUse>
): ReadonlyArray<RegistryEntry> => {
  const latest = new Map<string, KeyUse>()
  for (const use of uses) {
    const known = latest.get(use.key_id) ?? registry.keyUse(use.key_id)
    if (known === undefined || use.used_at > known.used_at) latest.set(use.key_id, use)
  }
  return [...latest.values()].map((key_use) => ({ kind: "key_use", key_use }))
}

const decideUse = (
  registry: RegistryReader,
  operation: Extract<RegistryOperation, { readonly op: "use_link" }>
): RegistryDecision => {
  const link = linkOf(registry, operation)
  const ofKey = link && refusalOfKey(registry, link.created_by, operation.used_at)
  if (link === undefined || ofKey !== undefined) {
    return refused("not_found", "the share link can't be used: it is unknown or revoked")
  }
  const refusal = linkRefusal(link, operation.used_at)
  if (refusal !== undefined) return refused("not_found", `the share link can't be used: ${refusal}`)
  const used = usedLink(link, operation.used_at)
  return { granted: true, entries: [{ kind: "link", link: used }] }
}

const newerVersion = (
  registry: RegistryReader,
  data_version: DataVersion
): ReadonlyArray<RegistryEntry> =>
  data_version.version > (registry.dataVersion()?.version ?? 0)
    ? [{ kind: "data_version", data_version }]
    : []

/**
 * A growth goes on step by step, and is repeated from any of them. A second one begins only when the
 * first has come to its end.
 */
const decideGrowth = (
  registry: RegistryReader,
  operation: Extract<RegistryOperation, { readonly op: "grow_partitions" }>
): RegistryDecision => {
  const { changed_at, data_version, from, step, to } = operation
  const { counts, growing_to, topics } = registry.partitions() ?? {
    counts: [from],
    topics: from,
    growing_to: undefined
  }
  const spread = counts.at(-1)!
  const write = (next: Pick<Partitions, "counts" | "topics" | "growing_to">): RegistryDecision => ({
    granted: true,
    entries: [
      ...newerVersion(registry, data_version),
      { kind: "partitions", partitions: { id: PARTITIONS_ID, ...next, changed_at } }
    ]
  })
  const done: RegistryDecision = { granted: true, entries: [] }
  const underWay = growing_to ?? (topics > spread ? topics : undefined)
  if (underWay !== undefined && underWay !== to) {
    return refused(
      "id_conflict",
      `a growth to ${underWay} partitions is under way: finish it first`
    )
  }
  if (underWay === undefined && to < spread) {
    return refused("id_conflict", `the topics have ${spread} partitions and never get fewer`)
  }
  switch (step) {
    case "begin":
      return underWay === to || spread === to ? done : write({ counts, topics, growing_to: to })
    case "open":
      if (growing_to === to) return write({ counts, topics: to })
      return topics === to ? done : refused("not_found", "no growth has begun")
    case "spread":
      if (spread === to) return done
      return topics === to
        ? write({ counts: [...counts, to], topics })
        : refused("not_found", "the topics are not there yet")
  }
}

/** A tenant without records is placed over the partitions of now, any other one stays. */
const placed = (registry: RegistryReader, tenant: Tenant, isFree: boolean): Tenant => {
  const { partitions: _claimed, ...own } = tenant
  const { counts } = registry.partitions() ?? { counts: [] }
  return isFree && counts.length > 1 ? { ...own, partitions: counts.at(-1)! } : own
}

const decideTenant = (
  registry: RegistryReader,
  operation: Extract<RegistryOperation, { readonly op: "create_tenant" }>
): RegistryDecision => {
  const { spread = false, tenant } = operation
  const tombstone = registry.tombstone(tenant.id)
  if (tombstone !== undefined) return refused("tenant_deleted", deletedText(tombstone))
  if (registry.tenant(tenant.id) !== undefined) {
    return refused("id_conflict", `tenant ${tenant.id} exists already`)
  }
  return { granted: true, entries: [{ kind: "tenant", tenant: placed(registry, tenant, spread) }] }
}

/** What an operation changes, or why it is refused. */
export const decide = (
  registry: RegistryReader,
  operation: RegistryOperation
): RegistryDecision => {
  if (isRetentionOperation(operation)) return decideRetention(registry, operation)
  switch (operation.op) {
    case "create_link": {
      const { link } = operation
      const refusal = refusalOfKey(registry, link.created_by, link.created_at)
      if (refusal !== undefined) return refused("not_found", refusal)
      if (registry.link(link.id) !== undefined) {
        return refused("id_conflict", `share link ${link.id} exists already`)
      }
      return usableLinks(registry, link.tenant_id, link.created_at) >= LINKS_MAX
        ? refused("limit_reached", tooManyLinks(LINKS_MAX))
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
    case "use_link":
      return decideUse(registry, operation)
    case "create_session":
    case "end_session":
      return decideSession(registry, operation)
    case "settle_quarantined":
      return decideQuarantined(registry, operation.quarantine_act)
    case "note_data_version":
      return { granted: true, entries: newerVersion(registry, operation.data_version) }
    case "grow_partitions":
      return decideGrowth(registry, operation)
    case "add_signing_key":
      return decideSigningKey(registry, operation.signing_key)
    case "create_tenant":
      return decideTenant(registry, operation)
    case "create_key": {
      const { key, tenant } = operation
      const tombstone = registry.tombstone(key.tenant_id)
      if (tombstone !== undefined) return refused("tenant_deleted", deletedText(tombstone))
      const known = registry.tenant(key.tenant_id) !== undefined
      if (!known && tenant?.id !== key.tenant_id) {
        return refused("not_found", `there is no tenant ${key.tenant_id}`)
      }
      if (registry.key(key.id) !== undefined) {
        return refused("id_conflict", `key ${key.id} exists already`)
      }
      if (validKeys(registry, key.tenant_id, key.created_at) >= KEYS_MAX) {
        return refused(
          "limit_reached",
          `tenant ${key.tenant_id} has ${KEYS_MAX} keys that are neither revoked nor expired, the `
            + "most allowed; revoke some"
        )
      }
      const made: RegistryEntry = { kind: "key", key }
      return {
        granted: true,
        entries:
          known || tenant === undefined
            ? [made]
            : [{ kind: "tenant", tenant: placed(registry, tenant, false) }, made]
      }
    }
    case "use_keys":
      return { granted: true, entries: newerUses(registry, operation.uses) }
    case "revoke_key": {
      const key = registry.key(operation.key_id) ?? operation.key
      if (key === undefined || key.tenant_id !== operation.tenant_id) {
        return refused("not_found", `tenant ${operation.tenant_id} has no key ${operation.key_id}`)
      }
      if (key.revoked_at !== undefined) {
        return refused("not_found", `key ${operation.key_id} is revoked already`)
      }
      // The links that were made with the key end with it.
      const { revoked_at } = operation
      return {
        granted: true,
        entries: [
          { kind: "key", key: { ...key, revoked_at } },
          ...linksEndingWith(registry, key, revoked_at).map(
            (link): RegistryEntry => ({ kind: "link", link: { ...link, revoked_at } })
          )
        ]
      }
    }
  }
}

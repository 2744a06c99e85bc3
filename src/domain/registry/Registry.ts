/**
 * Tenants, API keys, share links and the public keys of checkpoints: what may be done to them, and
 * what is known of them. Their records are in RegistryEntry.
 */
import { type LineKey, openEndorsement } from "../chain/KeyLine.ts"
import { RecordUnreadable } from "../json/RecordFields.ts"
import { formatMicros, microsOf } from "../Timestamp.ts"
import {
  type ApiKey,
  type RegistryChange,
  type RegistryEntry,
  type RegistryOperation,
  type RegistryRemoval,
  registryKey,
  type ShareLink,
  type SigningKey,
  type Tenant
} from "./RegistryEntry.ts"

/** The published keys as a line; those of a version without endorsements are roots. */
export const lineKeysOf = (keys: Iterable<SigningKey>): ReadonlyArray<LineKey> =>
  [...keys].map(({ endorsement, root, vkey }) => ({
    vkey,
    root: root ?? endorsement === undefined,
    ...(endorsement === undefined ? {} : { endorsement })
  }))

/**
 * Refuses a record that says less than an earlier one: a copy of a genuine record would make a revoked
 * key valid again.
 * @throws RecordUnreadable
 */
export const checkNotOlder = (registry: RegistryReader, change: RegistryChange): void => {
  const older = (what: string) => new RecordUnreadable(`it is older than what is known: ${what}`)
  if (change.kind === "key") {
    const known = registry.key(change.key.id)
    if (known?.revoked_at !== undefined && change.key.revoked_at === undefined) {
      throw older("the key is revoked")
    }
  } else if (change.kind === "link") {
    const known = registry.link(change.link.id)
    if (known === undefined) return
    if (known.revoked_at !== undefined && change.link.revoked_at === undefined) {
      throw older("the link is revoked")
    }
    if (change.link.uses < known.uses) throw older(`the link was used ${known.uses} times`)
  } else if (change.kind === "signing_key") {
    const { endorsement, key_id } = change.signing_key
    if (registry.signingKey(key_id)?.endorsement !== undefined && endorsement === undefined) {
      throw older("the key is endorsed")
    }
  }
}

/** Everything on `alk.registry`, by id. Its entries are replaced, never changed. */
export interface Registry extends RegistryReader {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly links: ReadonlyMap<string, ShareLink>
  readonly signingKeys: ReadonlyMap<string, SigningKey>
  /** The key with this hash, and the link with this hash of its token. */
  keyOfHash(hash: string): ApiKey | undefined
  linkOfHash(hash: string): ShareLink | undefined
}

/** What a decision reads. */
export interface RegistryReader {
  tenant(id: string): Tenant | undefined
  key(id: string): ApiKey | undefined
  link(id: string): ShareLink | undefined
  signingKey(id: string): SigningKey | undefined
  allSigningKeys(): Iterable<SigningKey>
  keysOf(tenantId: string): Iterable<ApiKey>
  linksOf(tenantId: string): Iterable<ShareLink>
}

/** Links of one tenant that can be used, and keys that are not revoked, at the same time. */
export const LINKS_MAX = 1_000
export const KEYS_MAX = 1_000
/** Days that a link which has ended is still listed. */
export const ENDED_LINK_KEPT_DAYS = 30
const DAY_MICROS = 86_400_000_000
/** Links of one tenant that have ended and are still listed, the newest of them. */
export const ENDED_LINKS_MAX = 1_000

export type RegistryDecision =
  | { readonly granted: true; readonly entries: ReadonlyArray<RegistryEntry> }
  | { readonly granted: false; readonly code: RefusalCode; readonly message: string }

/** Why an operation is refused. */
export type RefusalCode = "id_conflict" | "not_found" | "limit_reached"

const refused = (code: RefusalCode, message: string): RegistryDecision => ({
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

/** How many of a tenant's links can be used at this time. */
export const usableLinks = (
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

const liveKeys = (registry: RegistryReader, tenantId: string): number => {
  let count = 0
  for (const { revoked_at } of registry.keysOf(tenantId)) if (revoked_at === undefined) count++
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

/** True for a link whose key was revoked before it was made, or before keys ended their links. */
export const isOfRevokedKey = (registry: RegistryReader, { created_by }: ShareLink): boolean =>
  registry.key(created_by)?.revoked_at !== undefined

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

/** What an operation changes, or why it is refused. */
export const decide = (
  registry: RegistryReader,
  operation: RegistryOperation
): RegistryDecision => {
  switch (operation.op) {
    case "create_link": {
      const { link } = operation
      if (isOfRevokedKey(registry, link)) {
        return refused("not_found", `key ${link.created_by} is revoked`)
      }
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
    case "add_signing_key":
      return decideSigningKey(registry, operation.signing_key)
    case "create_tenant": {
      const { tenant } = operation
      return registry.tenant(tenant.id) !== undefined
        ? refused("id_conflict", `tenant ${tenant.id} exists already`)
        : { granted: true, entries: [{ kind: "tenant", tenant }] }
    }
    case "create_key": {
      const { key, tenant } = operation
      const known = registry.tenant(key.tenant_id) !== undefined
      if (!known && tenant?.id !== key.tenant_id) {
        return refused("not_found", `there is no tenant ${key.tenant_id}`)
      }
      if (registry.key(key.id) !== undefined) {
        return refused("id_conflict", `key ${key.id} exists already`)
      }
      if (liveKeys(registry, key.tenant_id) >= KEYS_MAX) {
        return refused(
          "limit_reached",
          `tenant ${key.tenant_id} has ${KEYS_MAX} keys that are not revoked, the most allowed; `
            + "revoke some"
        )
      }
      const made: RegistryEntry = { kind: "key", key }
      return {
        granted: true,
        entries: known || tenant === undefined ? [made] : [{ kind: "tenant", tenant }, made]
      }
    }
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

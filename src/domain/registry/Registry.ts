/**
 * Tenants, API keys, share links and the public keys of checkpoints: their records on
 * `alk.registry`, and what may be done to them. Holds hashes of secrets only; the secrets themselves
 * are shown once and kept nowhere.
 */

import { type LineKey, openEndorsement } from "../chain/KeyLine.ts"
import { filterFields } from "../events/EventFields.ts"
import type { EventFilter } from "../events/EventFilter.ts"
import { RecordFields, RecordUnreadable } from "../json/RecordFields.ts"
import { formatMicros, microsOf } from "../Timestamp.ts"

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

/** A link that lets its bearer fetch one document; what it covers was fixed when it was made. */
export interface ShareLink {
  readonly id: string
  readonly tenant_id: string
  readonly label?: string
  /** What the document covers, bounds on the events' timestamps included. */
  readonly filter: EventFilter
  /** SHA-256 of the token, 64 hex digits. */
  readonly hash: string
  /** Id of the API key that made it. */
  readonly created_by: string
  readonly created_at: string
  /** From then on it is invalid. */
  readonly expires_at: string
  readonly max_uses?: number
  readonly uses: number
  readonly revoked_at?: string
}

/** A public key that signs, or has signed, checkpoints. */
export interface SigningKey {
  /** 8 hex digits. */
  readonly key_id: string
  /** As C2SP writes it. */
  readonly vkey: string
  /** Base64 of the 32 bytes. */
  readonly public_key: string
  readonly added_at: string
  /** True for the first key of the service; absent where a version without endorsements wrote it. */
  readonly root?: boolean
  /** The statement of the key before it, as a C2SP signed note. */
  readonly endorsement?: string
}

/** The published keys as a line; those of a version without endorsements are roots. */
export const lineKeysOf = (keys: Iterable<SigningKey>): ReadonlyArray<LineKey> =>
  [...keys].map(({ endorsement, root, vkey }) => ({
    vkey,
    root: root ?? endorsement === undefined,
    ...(endorsement === undefined ? {} : { endorsement })
  }))

export type RegistryOperation =
  | { readonly op: "create_link"; readonly link: ShareLink }
  | {
      readonly op: "revoke_link"
      readonly tenant_id: string
      readonly link_id: string
      readonly revoked_at: string
    }
  | {
      readonly op: "use_link"
      readonly tenant_id: string
      readonly link_id: string
      /** Canonical microsecond form; decides whether it has expired. */
      readonly used_at: string
    }
  | { readonly op: "add_signing_key"; readonly signing_key: SigningKey }
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

/** Records of `alk.registry`: key `<kind>/<id>`, value the JSON of what the kind names. */
export type RegistryEntry =
  | { readonly kind: "tenant"; readonly tenant: Tenant }
  | { readonly kind: "key"; readonly key: ApiKey }
  | { readonly kind: "link"; readonly link: ShareLink }
  | { readonly kind: "signing_key"; readonly signing_key: SigningKey }

export const registryKey = (entry: RegistryEntry): string => {
  switch (entry.kind) {
    case "tenant":
      return `tenant/${entry.tenant.id}`
    case "key":
      return `key/${entry.key.id}`
    case "link":
      return `link/${entry.link.id}`
    case "signing_key":
      return `signing_key/${entry.signing_key.key_id}`
  }
}

/** The JSON of an entry. */
export const registryValue = (entry: RegistryEntry): string => {
  switch (entry.kind) {
    case "tenant":
      return JSON.stringify(entry.tenant)
    case "key":
      return JSON.stringify(entry.key)
    case "link":
      return JSON.stringify(entry.link)
    case "signing_key":
      return JSON.stringify(entry.signing_key)
  }
}

/** What removes an entry: a record without a value. */
export interface RegistryRemoval {
  readonly kind: "removed"
  /** Key of the entry's record. */
  readonly key: string
}

export type RegistryChange = RegistryEntry | RegistryRemoval

/** The key and the value of the record that a change is. */
export const registryRecord = (
  change: RegistryChange
): { readonly key: string; readonly value: string | null } =>
  change.kind === "removed"
    ? { key: change.key, value: null }
    : { key: registryKey(change), value: registryValue(change) }

const ID = /^[A-Za-z0-9_-]+$/
const TENANT_ID = /^[a-z0-9_][a-z0-9_-]{0,62}$/
const SHA256 = /^[0-9a-f]{64}$/
const SIGNING_KEY_ID = /^[0-9a-f]{8}$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

const checkKey = (fields: RecordFields): void => {
  fields.text("tenant_id", TENANT_ID)
  fields.text("hash", SHA256)
  fields.anyText("hint")
  fields.time("created_at")
  fields.optional(["label"], (name) => fields.anyText(name))
  fields.optional(["revoked_at"], (name) => fields.time(name))
  const isKnown = (value: unknown) => (scopes as ReadonlyArray<unknown>).includes(value)
  if (!fields.list("scopes").every(isKnown)) throw fields.wrong("scopes", `of ${scopes.join(", ")}`)
}

const checkFilter = (filter: RecordFields): void => {
  const texts = filterFields.map((field) => field.filter.key)
  filter.optional([...texts, "actionPrefix", "q"], (name) => filter.anyText(name))
  filter.optional(["from", "to"], (name) => filter.time(name))
  filter.optional(["fromSequence", "toSequence"], (name) => filter.integer(name))
  for (const condition of filter.list("metadata")) {
    const fields = new RecordFields(condition, "filter.metadata")
    fields.anyText("path")
    fields.anyText("value")
  }
}

const checkLink = (fields: RecordFields): void => {
  fields.text("tenant_id", TENANT_ID)
  fields.text("hash", SHA256)
  fields.anyText("created_by")
  for (const name of ["created_at", "expires_at"]) fields.time(name)
  fields.integer("uses")
  fields.optional(["label"], (name) => fields.anyText(name))
  fields.optional(["max_uses"], (name) => fields.integer(name, 1))
  fields.optional(["revoked_at"], (name) => fields.time(name))
  checkFilter(fields.object("filter"))
}

const kinds = ["tenant", "key", "link", "signing_key"] as const

/** The entry of a kind, checked; members that a newer version has added are kept. */
const entryOf = (kind: (typeof kinds)[number], id: string, value: Buffer): RegistryEntry => {
  const fields = RecordFields.of(value, kind)
  const idName = kind === "signing_key" ? "key_id" : "id"
  const form = kind === "tenant" ? TENANT_ID : kind === "signing_key" ? SIGNING_KEY_ID : ID
  if (fields.text(idName, form) !== id) throw fields.wrong(idName, "that of its record's key")
  switch (kind) {
    case "tenant":
      fields.time("created_at")
      fields.optional(["name"], (name) => fields.anyText(name))
      return { kind, tenant: fields.value as unknown as Tenant }
    case "key":
      checkKey(fields)
      return { kind, key: fields.value as unknown as ApiKey }
    case "link":
      checkLink(fields)
      return { kind, link: fields.value as unknown as ShareLink }
    case "signing_key":
      fields.text("vkey")
      fields.text("public_key", BASE64)
      fields.time("added_at")
      fields.optional(["root"], (name) => fields.boolean(name))
      fields.optional(["endorsement"], (name) => fields.text(name))
      return { kind, signing_key: fields.value as unknown as SigningKey }
  }
}

/**
 * What a record of `alk.registry` changes; undefined for kinds of newer versions.
 * @throws RecordUnreadable for what no version has written
 */
export const readRegistryRecord = (
  key: Buffer | null,
  value: Buffer | null
): RegistryChange | undefined => {
  const name = key?.toString() ?? ""
  const at = name.indexOf("/")
  if (at <= 0) throw new RecordUnreadable("its key is not <kind>/<id>")
  const kind = kinds.find((known) => known === name.slice(0, at))
  if (kind === undefined) return undefined
  if (value === null) return { kind: "removed", key: name }
  return entryOf(kind, name.slice(at + 1), value)
}

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

/** Everything that `alk.registry` says, by id. What is read of it is never changed, but replaced. */
export interface Registry extends RegistryReader {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly links: ReadonlyMap<string, ShareLink>
  readonly signingKeys: ReadonlyMap<string, SigningKey>
  /** The key with this hash, and the link with this hash of its token. */
  keyOfHash(hash: string): ApiKey | undefined
  linkOfHash(hash: string): ShareLink | undefined
}

/** What a decision goes by. */
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

/** From when on a link that can't be used any more has not been used. */
const endOf = ({ expires_at, revoked_at }: ShareLink): string =>
  revoked_at !== undefined && revoked_at < expires_at ? revoked_at : expires_at

/**
 * Links that ended so long ago, or of a tenant with so many newer ones, that they are listed no
 * more: at most `limit` of them. What was done with them stays in the chain of the system tenant.
 */
export const linksToPurge = (
  registry: Pick<Registry, "links">,
  now: string,
  limit: number
): ReadonlyArray<RegistryRemoval> => {
  const before = formatMicros(microsOf(now) - ENDED_LINK_KEPT_DAYS * DAY_MICROS)
  const leaving: Array<ShareLink> = []
  const kept = new Map<string, Array<ShareLink>>()
  for (const link of registry.links.values()) {
    if (linkRefusal(link, now) === undefined) continue
    const own = kept.get(link.tenant_id)
    if (endOf(link) <= before) leaving.push(link)
    else if (own === undefined) kept.set(link.tenant_id, [link])
    else own.push(link)
  }
  for (const own of kept.values()) {
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

/** The single writer's verdict: what an operation changes, or why it may not. */
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
      // With the key end the links that were made with it, in the same act.
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

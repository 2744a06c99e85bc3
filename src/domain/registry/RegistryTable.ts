/**
 * The registry in memory: changed in place, one entry at a time, at a cost that does not grow with
 * its size.
 */
import type { PrunedPoint } from "../chain/PrunedPoint.ts"
import { treeOfPoint } from "../chain/PrunedPoint.ts"
import type { Registry, RegistryReader } from "./Registry.ts"
import type {
  ApiKey,
  DataVersion,
  KeyUse,
  Partitions,
  QuarantineAct,
  RegistryChange,
  RegistryEntry,
  Session,
  ShareLink,
  SigningKey,
  Tenant
} from "./RegistryEntry.ts"
import type { Retention, Tombstone } from "./RetentionEntry.ts"

/** Keys, links or sessions: what has an id, belongs to a tenant and is found by a hash. */
class Owned<
  Entry extends { readonly id: string; readonly tenant_id: string; readonly hash: string }
> {
  readonly byId = new Map<string, Entry>()
  readonly #byTenant = new Map<string, Map<string, Entry>>()
  readonly #byHash = new Map<string, Entry>()

  put(entry: Entry): void {
    const before = this.byId.get(entry.id)
    if (before !== undefined) this.#unindex(before, before.tenant_id !== entry.tenant_id)
    this.byId.set(entry.id, entry)
    this.#byHash.set(entry.hash, entry)
    const own = this.#byTenant.get(entry.tenant_id)
    if (own === undefined) this.#byTenant.set(entry.tenant_id, new Map([[entry.id, entry]]))
    else own.set(entry.id, entry)
  }

  delete(id: string): void {
    const before = this.byId.get(id)
    if (before === undefined) return
    this.#unindex(before, true)
    this.byId.delete(id)
  }

  of(tenantId: string): Iterable<Entry> {
    return this.#byTenant.get(tenantId)?.values() ?? []
  }

  ofHash(hash: string): Entry | undefined {
    return this.#byHash.get(hash)
  }

  #unindex(entry: Entry, leavesTenant: boolean): void {
    if (this.#byHash.get(entry.hash) === entry) this.#byHash.delete(entry.hash)
    if (!leavesTenant) return
    const own = this.#byTenant.get(entry.tenant_id)
    own?.delete(entry.id)
    if (own?.size === 0) this.#byTenant.delete(entry.tenant_id)
  }
}

const entriesOf = <A>(
  all: ReadonlyMap<string, A>,
  toEntry: (one: A) => RegistryEntry
): ReadonlyArray<RegistryEntry> => [...all.values()].map(toEntry)

export class RegistryTable implements Registry {
  readonly #keys = new Owned<ApiKey>()
  readonly #links = new Owned<ShareLink>()
  readonly #sessions = new Owned<Session>()
  readonly #tenants = new Map<string, Tenant>()
  readonly #keyUses = new Map<string, KeyUse>()
  readonly #signingKeys = new Map<string, SigningKey>()
  readonly #quarantineActs = new Map<string, QuarantineAct>()
  #dataVersion: DataVersion | undefined
  #partitions: Partitions | undefined

  readonly #retentions = new Map<string, Retention>()
  readonly #prunedPoints = new Map<string, PrunedPoint>()
  readonly #tombstones = new Map<string, Tombstone>()
  readonly tenants: ReadonlyMap<string, Tenant> = this.#tenants
  readonly keys: ReadonlyMap<string, ApiKey> = this.#keys.byId
  readonly keyUses: ReadonlyMap<string, KeyUse> = this.#keyUses
  readonly links: ReadonlyMap<string, ShareLink> = this.#links.byId
  readonly sessions: ReadonlyMap<string, Session> = this.#sessions.byId
  readonly signingKeys: ReadonlyMap<string, SigningKey> = this.#signingKeys
  readonly quarantineActs: ReadonlyMap<string, QuarantineAct> = this.#quarantineActs
  readonly retentions: ReadonlyMap<string, Retention> = this.#retentions
  readonly prunedPoints: ReadonlyMap<string, PrunedPoint> = this.#prunedPoints
  readonly tombstones: ReadonlyMap<string, Tombstone> = this.#tombstones

  take(changes: Iterable<RegistryChange>): this {
    for (const change of changes) this.#takeOne(change)
    return this
  }

  /** All that it holds, as changes of an empty one. */
  get entries(): ReadonlyArray<RegistryEntry> {
    const dataVersion = this.#dataVersion
    const partitions = this.#partitions
    return [
      ...(dataVersion === undefined
        ? []
        : [{ kind: "data_version", data_version: dataVersion } as const]),
      ...(partitions === undefined ? [] : [{ kind: "partitions", partitions } as const]),
      ...entriesOf(this.#tenants, (tenant) => ({ kind: "tenant", tenant })),
      ...entriesOf(this.keys, (key) => ({ kind: "key", key })),
      ...entriesOf(this.#keyUses, (key_use) => ({ kind: "key_use", key_use })),
      ...entriesOf(this.links, (link) => ({ kind: "link", link })),
      ...entriesOf(this.sessions, (session) => ({ kind: "session", session })),
      ...entriesOf(this.#signingKeys, (signing_key) => ({ kind: "signing_key", signing_key })),
      ...entriesOf(this.#quarantineActs, (quarantine_act) => ({
        kind: "quarantine_act",
        quarantine_act
      })),
      ...entriesOf(this.#retentions, (retention) => ({ kind: "retention", retention })),
      ...entriesOf(this.#prunedPoints, (pruned) => ({ kind: "pruned", pruned })),
      ...entriesOf(this.#tombstones, (tombstone) => ({ kind: "tombstone", tombstone }))
    ]
  }

  tenant(id: string): Tenant | undefined {
    return this.#tenants.get(id)
  }

  key(id: string): ApiKey | undefined {
    return this.#keys.byId.get(id)
  }

  keyUse(keyId: string): KeyUse | undefined {
    return this.#keyUses.get(keyId)
  }

  link(id: string): ShareLink | undefined {
    return this.#links.byId.get(id)
  }

  session(id: string): Session | undefined {
    return this.#sessions.byId.get(id)
  }

  signingKey(id: string): SigningKey | undefined {
    return this.#signingKeys.get(id)
  }

  quarantineAct(id: string): QuarantineAct | undefined {
    return this.#quarantineActs.get(id)
  }

  dataVersion(): DataVersion | undefined {
    return this.#dataVersion
  }

  partitions(): Partitions | undefined {
    return this.#partitions
  }

  retention(tenantId: string): Retention | undefined {
    return this.#retentions.get(tenantId)
  }

  pruned(tree: string): PrunedPoint | undefined {
    return this.#prunedPoints.get(tree)
  }

  tombstone(tenantId: string): Tombstone | undefined {
    return this.#tombstones.get(tenantId)
  }

  allSigningKeys(): Iterable<SigningKey> {
    return this.#signingKeys.values()
  }

  keysOf(tenantId: string): Iterable<ApiKey> {
    return this.#keys.of(tenantId)
  }

  linksOf(tenantId: string): Iterable<ShareLink> {
    return this.#links.of(tenantId)
  }

  sessionsOf(tenantId: string): Iterable<Session> {
    return this.#sessions.of(tenantId)
  }

  keyOfHash(hash: string): ApiKey | undefined {
    return this.#keys.ofHash(hash)
  }

  linkOfHash(hash: string): ShareLink | undefined {
    return this.#links.ofHash(hash)
  }

  #takeOne(change: RegistryChange): void {
    switch (change.kind) {
      case "tenant":
        return void this.#tenants.set(change.tenant.id, change.tenant)
      case "key":
        return this.#keys.put(change.key)
      case "key_use":
        return void this.#keyUses.set(change.key_use.key_id, change.key_use)
      case "link":
        return this.#links.put(change.link)
      case "session":
        return this.#sessions.put(change.session)
      case "signing_key":
        return void this.#signingKeys.set(change.signing_key.key_id, change.signing_key)
      case "quarantine_act":
        return void this.#quarantineActs.set(change.quarantine_act.id, change.quarantine_act)
      case "data_version":
        this.#dataVersion = change.data_version
        return
      case "partitions":
        this.#partitions = change.partitions
        return
      case "retention":
        return void this.#retentions.set(change.retention.tenant_id, change.retention)
      case "pruned":
        return void this.#prunedPoints.set(treeOfPoint(change.pruned), change.pruned)
      case "tombstone":
        return void this.#tombstones.set(change.tombstone.tenant_id, change.tombstone)
      case "removed":
        return this.#remove(change.key)
    }
  }

  #remove(key: string): void {
    const at = key.indexOf("/")
    const id = key.slice(at + 1)
    switch (key.slice(0, at)) {
      case "tenant":
        return void this.#tenants.delete(id)
      case "key":
        return this.#keys.delete(id)
      case "key_use":
        return void this.#keyUses.delete(id)
      case "link":
        return this.#links.delete(id)
      case "session":
        return this.#sessions.delete(id)
      case "signing_key":
        return void this.#signingKeys.delete(id)
      case "quarantine_act":
        return void this.#quarantineActs.delete(id)
      case "data_version":
        this.#dataVersion = undefined
        return
      case "partitions":
        this.#partitions = undefined
        return
      case "retention":
        return void this.#retentions.delete(id)
      case "pruned":
        return void this.#prunedPoints.delete(id)
      case "tombstone":
        return void this.#tombstones.delete(id)
    }
  }
}

/** A table and what a chunk has changed of it; the table itself is left as it is. */
export class RegistryDraft implements RegistryReader {
  readonly #table: RegistryReader
  readonly #changed = new RegistryTable()

  constructor(table: RegistryReader) {
    this.#table = table
  }

  take(changes: Iterable<RegistryChange>): void {
    this.#changed.take(changes)
  }

  tenant(id: string): Tenant | undefined {
    return this.#changed.tenant(id) ?? this.#table.tenant(id)
  }

  key(id: string): ApiKey | undefined {
    return this.#changed.key(id) ?? this.#table.key(id)
  }

  keyUse(keyId: string): KeyUse | undefined {
    return this.#changed.keyUse(keyId) ?? this.#table.keyUse(keyId)
  }

  link(id: string): ShareLink | undefined {
    return this.#changed.link(id) ?? this.#table.link(id)
  }

  session(id: string): Session | undefined {
    return this.#changed.session(id) ?? this.#table.session(id)
  }

  signingKey(id: string): SigningKey | undefined {
    return this.#changed.signingKey(id) ?? this.#table.signingKey(id)
  }

  quarantineAct(id: string): QuarantineAct | undefined {
    return this.#changed.quarantineAct(id) ?? this.#table.quarantineAct(id)
  }

  dataVersion(): DataVersion | undefined {
    return this.#changed.dataVersion() ?? this.#table.dataVersion()
  }

  partitions(): Partitions | undefined {
    return this.#changed.partitions() ?? this.#table.partitions()
  }

  retention(tenantId: string): Retention | undefined {
    return this.#changed.retention(tenantId) ?? this.#table.retention(tenantId)
  }

  pruned(tree: string): PrunedPoint | undefined {
    return this.#changed.pruned(tree) ?? this.#table.pruned(tree)
  }

  tombstone(tenantId: string): Tombstone | undefined {
    return this.#changed.tombstone(tenantId) ?? this.#table.tombstone(tenantId)
  }

  *allSigningKeys(): Iterable<SigningKey> {
    for (const key of this.#table.allSigningKeys()) {
      if (this.#changed.signingKey(key.key_id) === undefined) yield key
    }
    yield* this.#changed.allSigningKeys()
  }

  *keysOf(tenantId: string): Iterable<ApiKey> {
    yield* this.#changed.keysOf(tenantId)
    for (const key of this.#table.keysOf(tenantId)) {
      if (this.#changed.key(key.id) === undefined) yield key
    }
  }

  *linksOf(tenantId: string): Iterable<ShareLink> {
    yield* this.#changed.linksOf(tenantId)
    for (const link of this.#table.linksOf(tenantId)) {
      if (this.#changed.link(link.id) === undefined) yield link
    }
  }

  *sessionsOf(tenantId: string): Iterable<Session> {
    yield* this.#changed.sessionsOf(tenantId)
    for (const session of this.#table.sessionsOf(tenantId)) {
      if (this.#changed.session(session.id) === undefined) yield session
    }
  }
}

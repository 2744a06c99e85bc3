/**
 * The registry in memory: changed in place, one entry at a time, at a cost that does not grow with
 * its size.
 */
import type { Registry, RegistryReader } from "./Registry.ts"
import type { ApiKey, RegistryChange, ShareLink, SigningKey, Tenant } from "./RegistryEntry.ts"

/** Keys or links: what has an id, belongs to a tenant and is found by a hash. */
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

export class RegistryTable implements Registry {
  readonly #keys = new Owned<ApiKey>()
  readonly #links = new Owned<ShareLink>()
  readonly #tenants = new Map<string, Tenant>()
  readonly #signingKeys = new Map<string, SigningKey>()

  readonly tenants: ReadonlyMap<string, Tenant> = this.#tenants
  readonly keys: ReadonlyMap<string, ApiKey> = this.#keys.byId
  readonly links: ReadonlyMap<string, ShareLink> = this.#links.byId
  readonly signingKeys: ReadonlyMap<string, SigningKey> = this.#signingKeys

  take(changes: Iterable<RegistryChange>): this {
    for (const change of changes) this.#takeOne(change)
    return this
  }

  tenant(id: string): Tenant | undefined {
    return this.#tenants.get(id)
  }

  key(id: string): ApiKey | undefined {
    return this.#keys.byId.get(id)
  }

  link(id: string): ShareLink | undefined {
    return this.#links.byId.get(id)
  }

  signingKey(id: string): SigningKey | undefined {
    return this.#signingKeys.get(id)
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
      case "link":
        return this.#links.put(change.link)
      case "signing_key":
        return void this.#signingKeys.set(change.signing_key.key_id, change.signing_key)
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
      case "link":
        return this.#links.delete(id)
      case "signing_key":
        return void this.#signingKeys.delete(id)
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

  link(id: string): ShareLink | undefined {
    return this.#changed.link(id) ?? this.#table.link(id)
  }

  signingKey(id: string): SigningKey | undefined {
    return this.#changed.signingKey(id) ?? this.#table.signingKey(id)
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
}

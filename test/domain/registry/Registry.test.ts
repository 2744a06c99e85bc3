/**
 * The single writer's verdicts on share links and signing keys: whatever the order in which they
 * come, a link is never used more often than it may be, nor after its end.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { RecordUnreadable } from "../../../src/domain/json/RecordFields.ts"
import {
  decide,
  ENDED_LINKS_MAX,
  KEYS_MAX,
  LINKS_MAX,
  linkRefusal,
  linksToPurge,
  type Registry
} from "../../../src/domain/registry/Registry.ts"
import {
  type ApiKey,
  type RegistryChange,
  type RegistryOperation,
  readRegistryRecord,
  registryKey,
  registryRecord,
  registryValue,
  type ShareLink,
  type SigningKey,
  type Tenant
} from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryDraft, RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { runs } from "../../support/Runs.ts"

/** Minutes after midnight as a time. */
const at = (minute: number): string => `2026-11-21T00:${String(minute).padStart(2, "0")}:00.000000Z`

const link = (id: string, more: Partial<ShareLink> = {}): ShareLink => ({
  id,
  tenant_id: "acme",
  filter: { actorId: "user_1", metadata: [{ path: "n", value: "1" }] },
  hash: "f".repeat(64),
  created_by: "key_1",
  created_at: at(0),
  expires_at: at(30),
  uses: 0,
  ...more
})

const signingKey = (id: string): SigningKey => ({
  key_id: id.padStart(8, "0"),
  vkey: `alk+${id}+AQ==`,
  public_key: "AQ==",
  added_at: at(0)
})

const apiKey = (id: string, more: Partial<ApiKey> = {}): ApiKey => ({
  id,
  tenant_id: "acme",
  scopes: ["read"],
  hint: "alk_live_abcd…",
  hash: "e".repeat(64),
  created_at: at(0),
  ...more
})

/** Decide in order, as the sequencer does. */
const apply = (
  operations: ReadonlyArray<RegistryOperation>,
  registry: RegistryTable = new RegistryTable()
) => {
  const granted = operations.map((operation) => {
    const decision = decide(registry, operation)
    if (decision.granted) registry.take(decision.entries)
    return decision.granted
  })
  return { registry, granted }
}

const use = (link_id: string, minute: number, tenant_id = "acme"): RegistryOperation => ({
  op: "use_link",
  tenant_id,
  link_id,
  used_at: at(minute)
})

const revoke = (link_id: string, minute = 1, tenant_id = "acme"): RegistryOperation => ({
  op: "revoke_link",
  tenant_id,
  link_id,
  revoked_at: at(minute)
})

const create = (made: ShareLink): RegistryOperation => ({ op: "create_link", link: made })

const refusal = (registry: Registry, operation: RegistryOperation) => {
  const decision = decide(registry, operation)
  return decision.granted ? undefined : { code: decision.code, message: decision.message }
}

describe("share links", () => {
  const ids = ["lnk_a", "lnk_b", "lnk_c"]
  const anyOperation: fc.Arbitrary<RegistryOperation> = fc.oneof(
    fc
      .record({
        id: fc.constantFrom(...ids),
        max_uses: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
        expires: fc.integer({ min: 0, max: 59 })
      })
      .map(({ expires, id, max_uses }) =>
        create(
          link(id, { expires_at: at(expires), ...(max_uses === undefined ? {} : { max_uses }) })
        )
      ),
    fc
      .record({ id: fc.constantFrom(...ids), minute: fc.integer({ min: 0, max: 59 }) })
      .map(({ id, minute }) => revoke(id, minute)),
    ...[1, 2, 3].map(() =>
      fc
        .record({
          id: fc.constantFrom(...ids),
          minute: fc.integer({ min: 0, max: 59 }),
          tenant: fc.constantFrom("acme", "acme", "globex")
        })
        .map(({ id, minute, tenant }) => use(id, minute, tenant))
    )
  )

  it("are never used too often, too late, after their end, or by another tenant", () => {
    fc.assert(
      fc.property(fc.array(anyOperation, { maxLength: 60 }), (operations) => {
        const { granted, registry } = apply(operations)
        const made = new Map<string, ShareLink>()
        const uses = new Map<string, number>()
        const revoked = new Set<string>()
        operations.forEach((operation, index) => {
          if (operation.op === "create_link") {
            assert.strictEqual(granted[index], !made.has(operation.link.id))
            if (granted[index]) made.set(operation.link.id, operation.link)
          } else if (operation.op === "revoke_link") {
            const { link_id } = operation
            assert.strictEqual(granted[index], made.has(link_id) && !revoked.has(link_id))
            if (granted[index]) revoked.add(link_id)
          } else if (operation.op === "use_link") {
            const { link_id, tenant_id, used_at } = operation
            const { expires_at = "", max_uses = Infinity } = made.get(link_id) ?? {}
            const before = uses.get(link_id) ?? 0
            const isAllowed =
              tenant_id === "acme"
              && !revoked.has(link_id)
              && used_at < expires_at
              && before < max_uses
            assert.strictEqual(granted[index], isAllowed)
            if (isAllowed) uses.set(link_id, before + 1)
          }
        })
        for (const [id, { max_uses = Infinity }] of made) {
          const { revoked_at, uses: counted } = registry.links.get(id)!
          assert.strictEqual(counted, uses.get(id) ?? 0)
          assert.isAtMost(counted, max_uses)
          assert.strictEqual(revoked_at !== undefined, revoked.has(id))
        }
      }),
      { numRuns: runs(500) }
    )
  })

  it("say why they can't be used", () => {
    const used = link("l", { max_uses: 2, uses: 1 })
    assert.isUndefined(linkRefusal(used, at(29)))
    assert.strictEqual(linkRefusal(used, at(30)), "it has expired")
    assert.strictEqual(linkRefusal({ ...used, uses: 2 }, at(1)), "it is used up")
    assert.strictEqual(linkRefusal({ ...used, revoked_at: at(1) }, at(1)), "it was revoked")
    assert.isUndefined(linkRefusal(link("l", { uses: 1_000_000 }), at(1)))
    const { registry } = apply([create(link("l"))])
    assert.deepInclude(refusal(registry, use("m", 1)), { code: "not_found" })
    assert.match(refusal(registry, use("m", 1))!.message, /unknown/)
    assert.match(refusal(registry, use("l", 31))!.message, /expired/)
  })

  it("can't be revoked by another tenant, nor twice", () => {
    const { registry } = apply([create(link("l"))])
    assert.deepInclude(refusal(registry, revoke("l", 1, "globex")), { code: "not_found" })
    const after = apply([revoke("l")], registry).registry
    assert.strictEqual(after.links.get("l")?.revoked_at, at(1))
    assert.deepInclude(refusal(after, revoke("l")), { code: "not_found" })
  })
})

describe("revoking a key", () => {
  const key = (id: string): ApiKey => ({
    id,
    tenant_id: "acme",
    scopes: ["read"],
    hint: "alk_live_abcd…",
    hash: "e".repeat(64),
    created_at: at(0)
  })
  const createKey = (id: string): RegistryOperation => ({
    op: "create_key",
    key: key(id),
    tenant: { id: "acme", created_at: at(0) }
  })
  const revokeKey = (key_id: string, minute: number): RegistryOperation => ({
    op: "revoke_key",
    tenant_id: "acme",
    key_id,
    revoked_at: at(minute)
  })

  it("revokes in the same act every usable link that was made with it, and no other", () => {
    const { registry } = apply([
      createKey("key_1"),
      createKey("key_2"),
      create(link("usable")),
      create(link("revoked")),
      revoke("revoked", 1),
      create(link("expired", { expires_at: at(2) })),
      create(link("other", { created_by: "key_2" })),
      revokeKey("key_1", 5)
    ])
    const ends = [...registry.links.values()].map(({ id, revoked_at }) => [id, revoked_at])
    assert.deepStrictEqual(ends, [
      ["usable", at(5)],
      ["revoked", at(1)],
      ["expired", undefined],
      ["other", undefined]
    ])
  })

  it("lets no request that was under way make or use a link", () => {
    const { registry } = apply([createKey("key_1"), revokeKey("key_1", 5)])
    assert.match(refusal(registry, create(link("late")))!.message, /key_1 is revoked/)
    // Made before keys ended their links, so it says nothing of an end.
    const older = registry.take([{ kind: "link", link: link("older") }])
    assert.match(refusal(older, use("older", 6))!.message, /revoked/)
  })

  it("leaves no link usable, in whatever order things happen", () => {
    const anyStep: fc.Arbitrary<RegistryOperation> = fc.oneof(
      fc.constantFrom("key_1", "key_2").map((id) => revokeKey(id, 5)),
      fc
        .tuple(fc.constantFrom("a", "b", "c", "d"), fc.constantFrom("key_1", "key_2"))
        .map(([id, created_by]) => create(link(id, { created_by })))
    )
    fc.assert(
      fc.property(fc.array(anyStep), (steps) => {
        const { registry } = apply([createKey("key_1"), createKey("key_2"), ...steps])
        for (const { created_by, id } of registry.links.values()) {
          const ended = registry.keys.get(created_by)!.revoked_at !== undefined
          assert.strictEqual(refusal(registry, use(id, 6)) !== undefined, ended)
        }
      })
    )
  })
})

describe("signing keys", () => {
  it("are published once, and none of them ever goes", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("0a", "0b", "0c")), (ids) => {
        const operations = ids.map(
          (id): RegistryOperation => ({
            op: "add_signing_key",
            signing_key: signingKey(id)
          })
        )
        const { granted, registry } = apply(operations)
        assert.deepStrictEqual(
          granted,
          ids.map((id, index) => ids.indexOf(id) === index)
        )
        const published = [...new Set(ids)].map((id) => signingKey(id).key_id)
        assert.sameMembers([...registry.signingKeys.keys()], published)
      })
    )
  })
})

describe("limits", () => {
  it("refuse one usable link more, name the limit, and count nothing that has ended", () => {
    const many = (count: number, more: Partial<ShareLink> = {}, prefix = "lnk") =>
      Array.from({ length: count }, (_, n) => create(link(`${prefix}_${n}`, more)))
    const { granted, registry } = apply([
      ...many(LINKS_MAX, { expires_at: at(0) }, "expired"),
      ...many(LINKS_MAX, { tenant_id: "globex" }, "other"),
      ...many(LINKS_MAX)
    ])
    assert.isTrue(granted.every(Boolean))
    const said = refusal(registry, create(link("one-more")))
    assert.strictEqual(said?.code, "limit_reached")
    assert.match(said!.message, new RegExp(`${LINKS_MAX} share links.*revoke some`))
    apply([revoke("lnk_7")], registry)
    assert.isUndefined(refusal(registry, create(link("one-more"))))
  })

  it("refuse one key more that is not revoked", () => {
    const tenant: Tenant = { id: "acme", created_at: at(0) }
    const key = (id: string): RegistryOperation => ({ op: "create_key", key: apiKey(id), tenant })
    const { registry } = apply(Array.from({ length: KEYS_MAX }, (_, n) => key(`key_${n}`)))
    const said = refusal(registry, key("one-more"))
    assert.strictEqual(said?.code, "limit_reached")
    assert.match(said!.message, new RegExp(`${KEYS_MAX} keys.*revoke some`))
    const gone = {
      op: "revoke_key",
      tenant_id: "acme",
      key_id: "key_7",
      revoked_at: at(1)
    } as const
    apply([gone], registry)
    assert.isUndefined(refusal(registry, key("one-more")))
  })
})

/** A day of the months that follow `at`. */
const later = (days: number): string =>
  new Date(Date.UTC(2026, 10, 21 + days)).toISOString().replace("Z", "000Z")

describe("links that have ended", () => {
  const purged = (registry: Registry, now: string, limit = 10_000) =>
    linksToPurge(registry, now, limit)
      .map(({ key }) => key)
      .sort()

  it("leave a month after they expired or were revoked, and those that can be used stay", () => {
    const registry = new RegistryTable().take(
      [
        link("usable", { expires_at: later(1_000) }),
        link("used-up", { expires_at: later(20), max_uses: 1, uses: 1 }),
        link("expired", { expires_at: later(10) }),
        link("revoked", { expires_at: later(1_000), revoked_at: later(5) }),
        link("revoked-late", { expires_at: later(3), revoked_at: later(9) })
      ].map((made): RegistryChange => ({ kind: "link", link: made }))
    )
    assert.deepStrictEqual(purged(registry, later(32)), [])
    assert.deepStrictEqual(purged(registry, later(33)), ["link/revoked-late"])
    assert.deepStrictEqual(purged(registry, later(35)), ["link/revoked", "link/revoked-late"])
    assert.deepStrictEqual(purged(registry, later(60)), [
      "link/expired",
      "link/revoked",
      "link/revoked-late",
      "link/used-up"
    ])
    assert.strictEqual(purged(registry, later(60), 2).length, 2)
    registry.take(linksToPurge(registry, later(60), 10))
    assert.deepStrictEqual([...registry.links.keys()], ["usable"])
    assert.deepStrictEqual(
      [...registry.linksOf("acme")].map(({ id }) => id),
      ["usable"]
    )
  })

  it("leave earlier where a tenant has many of them, the oldest first", () => {
    const made = Array.from({ length: ENDED_LINKS_MAX + 3 }, (_, n) =>
      link(`l${n}`, { created_at: later(n), expires_at: later(5_000), revoked_at: later(4_000) })
    )
    const changes = made.map((one): RegistryChange => ({ kind: "link", link: one }))
    const registry = new RegistryTable().take(changes.toReversed())
    assert.deepStrictEqual(purged(registry, later(4_001)), ["link/l0", "link/l1", "link/l2"])
  })
})

/** The registry as it was once defined: every change makes another one. */
interface PureRegistry {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly links: ReadonlyMap<string, ShareLink>
  readonly signingKeys: ReadonlyMap<string, SigningKey>
}

const without = <A>(map: ReadonlyMap<string, A>, id: string) =>
  new Map([...map].filter(([own]) => own !== id))

const changed = (registry: PureRegistry, change: RegistryChange): PureRegistry => {
  const { keys, links, signingKeys, tenants } = registry
  switch (change.kind) {
    case "tenant":
      return { ...registry, tenants: new Map([...tenants, [change.tenant.id, change.tenant]]) }
    case "key":
      return { ...registry, keys: new Map([...keys, [change.key.id, change.key]]) }
    case "link":
      return { ...registry, links: new Map([...links, [change.link.id, change.link]]) }
    case "signing_key": {
      const { signing_key } = change
      const all = new Map([...signingKeys, [signing_key.key_id, signing_key]])
      return { ...registry, signingKeys: all }
    }
    case "removed": {
      const [kind, id = ""] = change.key.split("/")
      return {
        tenants: kind === "tenant" ? without(tenants, id) : tenants,
        keys: kind === "key" ? without(keys, id) : keys,
        links: kind === "link" ? without(links, id) : links,
        signingKeys: kind === "signing_key" ? without(signingKeys, id) : signingKeys
      }
    }
  }
}

const id = fc.constantFrom("a", "b", "c", "d")
const tenantId = fc.constantFrom("acme", "globex")
const hash = fc.constantFrom(...["1", "2", "3", "4", "5", "6"].map((digit) => digit.repeat(64)))
const anyChange: fc.Arbitrary<RegistryChange> = fc.oneof(
  fc
    .record({ id, tenant_id: tenantId, hash, uses: fc.nat(3) })
    .map(({ id: own, ...more }): RegistryChange => ({ kind: "link", link: link(own, more) })),
  fc
    .record({ id, tenant_id: tenantId, hash })
    .map(({ id: own, ...more }): RegistryChange => ({ kind: "key", key: apiKey(own, more) })),
  tenantId.map(
    (own): RegistryChange => ({ kind: "tenant", tenant: { id: own, created_at: at(0) } })
  ),
  id.map((own): RegistryChange => ({ kind: "signing_key", signing_key: signingKey(own) })),
  fc
    .record({ kind: fc.constantFrom("link", "key", "tenant", "signing_key"), id })
    .map(({ id: own, kind }): RegistryChange => ({ kind: "removed", key: `${kind}/${own}` }))
)

const idsOf = (entries: Iterable<{ readonly id: string }>) =>
  [...entries].map((one) => one.id).sort()

describe("the registry in memory", () => {
  it("is what the pure definition says, whatever is changed in place", () => {
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 60 }), fc.nat(60), (changes, cut) => {
        let pure: PureRegistry = {
          tenants: new Map(),
          keys: new Map(),
          links: new Map(),
          signingKeys: new Map()
        }
        for (const change of changes) pure = changed(pure, change)
        const table = new RegistryTable().take(changes)
        for (const name of ["tenants", "keys", "links", "signingKeys"] as const) {
          assert.deepStrictEqual([...table[name]], [...pure[name]])
        }
        for (const tenant of ["acme", "globex"]) {
          const own = <A extends { readonly tenant_id: string }>(all: ReadonlyMap<string, A>) =>
            [...all.values()].filter(({ tenant_id }) => tenant_id === tenant)
          assert.deepStrictEqual(idsOf(table.linksOf(tenant)), idsOf(own(pure.links)))
          assert.deepStrictEqual(idsOf(table.keysOf(tenant)), idsOf(own(pure.keys)))
        }
        for (const { hash: known } of pure.links.values()) {
          const found = table.linkOfHash(known)
          // Of two with one hash, which nobody has made, either may be found, or none.
          if (found !== undefined) assert.strictEqual(found, pure.links.get(found.id))
        }
        const links = [...pure.links.values()]
        for (const one of links) {
          const isAlone = links.filter((other) => other.hash === one.hash).length === 1
          const held = changes.filter(
            (change) =>
              change.kind === "link" && change.link.hash === one.hash && change.link.id !== one.id
          )
          if (isAlone && held.length === 0) assert.strictEqual(table.linkOfHash(one.hash), one)
        }
        // A draft over the first changes with the others in front of it reads the same.
        const kept = changes.filter(({ kind }) => kind !== "removed")
        const draft = new RegistryDraft(new RegistryTable().take(kept.slice(0, cut)))
        draft.take(kept.slice(cut))
        const whole = new RegistryTable().take(kept)
        for (const tenant of ["acme", "globex"]) {
          assert.deepStrictEqual(idsOf(draft.linksOf(tenant)), idsOf(whole.linksOf(tenant)))
          assert.deepStrictEqual(idsOf(draft.keysOf(tenant)), idsOf(whole.keysOf(tenant)))
        }
        for (const own of ["a", "b", "c", "d"]) {
          assert.strictEqual(draft.link(own), whole.link(own))
          assert.strictEqual(draft.key(own), whole.key(own))
        }
      }),
      { numRuns: runs(500) }
    )
  })

  it("is changed in place, however many changes there are", () => {
    const table = new RegistryTable()
    const { keys, links, tenants } = table
    for (let n = 0; n < 16_000; n++) {
      const made = link(`lnk_${n}`, { hash: n.toString(16).padStart(64, "0") })
      table.take([{ kind: "link", link: made }])
    }
    assert.strictEqual(table.links, links)
    assert.strictEqual(table.keys, keys)
    assert.strictEqual(table.tenants, tenants)
    assert.strictEqual(links.size, 16_000)
  })
})

describe("records of alk.registry", () => {
  const read = (key: string | null, value: string | null) =>
    readRegistryRecord(
      key === null ? null : Buffer.from(key),
      value === null ? null : Buffer.from(value)
    )

  it("are read back as they were written, and replaced by their key", () => {
    const entries = [
      { kind: "tenant", tenant: { id: "acme", name: "Acme", created_at: at(0) } },
      { kind: "tenant", tenant: { id: "_system", created_at: at(0) } },
      { kind: "key", key: apiKey("key_1", { label: "für CI", revoked_at: at(2) }) },
      { kind: "link", link: link("lnk_a", { max_uses: 3, label: "für die Prüfung" }) },
      { kind: "signing_key", signing_key: signingKey("0a") }
    ] as const
    for (const entry of entries) {
      assert.deepStrictEqual(read(registryKey(entry), registryValue(entry)), entry)
    }
    const removal = { kind: "removed", key: "link/lnk_a" } as const
    const { key, value } = registryRecord(removal)
    assert.deepStrictEqual([key, value], ["link/lnk_a", null])
    assert.deepStrictEqual(read(key, value), removal)
    assert.strictEqual(registryKey(entries[3]), "link/lnk_a")
    const table = new RegistryTable().take(entries)
    table.take([{ kind: "link", link: link("lnk_a", { uses: 2 }) }])
    assert.deepStrictEqual(
      [...table.links.values()].map(({ uses }) => uses),
      [2]
    )
  })

  it("knows the key of a record to which a newer version has added a member", () => {
    const newer = JSON.stringify({ ...link("one"), key_id: "0000abcd" })
    const change = read("link/one", newer)
    assert.strictEqual(change?.kind, "link")
    assert.strictEqual(change && registryRecord(change).key, "link/one")
  })

  it("of kinds that this version does not know are passed over", () => {
    assert.isUndefined(read("passkey/1", "{}"))
    assert.isUndefined(read("passkey/1", "no JSON"))
    assert.isUndefined(read("passkey/1", null))
  })

  it("keep what a newer version has added to them", () => {
    const more = { ...apiKey("key_1"), expires_at: at(9) }
    assert.deepStrictEqual(read("key/key_1", JSON.stringify(more)), { kind: "key", key: more })
  })

  it("that no version has written are refused, whatever is wrong with them", () => {
    const wrong = (entry: object, ...names: ReadonlyArray<string>) =>
      names.flatMap((name) =>
        [null, 1, {}, [], "", true, "x y\u0000", "9".repeat(400)].map((value) =>
          JSON.stringify({ ...entry, [name]: value })
        )
      )
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      [
        "key/key_1",
        [
          ...["", "no JSON", "null", "[]", "1", '"text"', "{}", "{", "\u0000"],
          ...wrong(apiKey("key_1"), "id", "tenant_id", "hash", "created_at", "revoked_at"),
          ...["admin", "read", 1, null, {}, ["admin"], [1]].map((scopes) =>
            JSON.stringify({ ...apiKey("key_1"), scopes })
          ),
          JSON.stringify(apiKey("key_2"))
        ]
      ],
      [
        "link/lnk_1",
        [
          ...wrong(link("lnk_1"), "id", "tenant_id", "hash", "created_at", "expires_at"),
          ...[1e300, -1, 1.5, "1", null, 2 ** 53].map((uses) =>
            JSON.stringify({ ...link("lnk_1"), uses })
          ),
          JSON.stringify(link("lnk_1")).replace('"uses":0', '"uses":1e999'),
          ...[0, -1, 1e300, "3", null].map((max_uses) =>
            JSON.stringify({ ...link("lnk_1"), max_uses })
          ),
          ...[null, [], {}, { metadata: {} }, { metadata: [1] }, { metadata: [], from: 5 }].map(
            (filter) => JSON.stringify({ ...link("lnk_1"), filter })
          )
        ]
      ],
      ["tenant/acme", ["{}", '{"id":"globex","created_at":""}', '{"id":"acme"}']],
      ["signing_key/0000000a", wrong(signingKey("0a"), "key_id", "vkey", "added_at").slice(0, 5)]
    ]
    for (const [key, values] of cases) {
      for (const value of values) {
        assert.throws(() => read(key, value), RecordUnreadable, undefined, `${key}: ${value}`)
      }
    }
    for (const key of [null, "", "key", "/1"]) {
      assert.throws(() => read(key, "{}"), RecordUnreadable)
      assert.throws(() => read(key, null), RecordUnreadable)
    }
  })
})

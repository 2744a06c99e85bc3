/**
 * The single writer's verdicts on share links and signing keys: whatever the order in which they
 * come, a link is never used more often than it may be, nor after its end.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  decide,
  emptyRegistry,
  linkRefusal,
  registryKey,
  registryValue,
  toRegistryEntry,
  withEntries,
  type ApiKey,
  type Registry,
  type RegistryOperation,
  type ShareLink,
  type SigningKey
} from "../../src/domain/Registry.ts"

/** Minutes after midnight as a time. */
const at = (minute: number): string =>
  `2026-11-21T00:${String(minute).padStart(2, "0")}:00.000000Z`

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

const signingKey = (key_id: string): SigningKey => ({
  key_id,
  vkey: `alk+${key_id}+AQ==`,
  public_key: "AQ==",
  added_at: at(0)
})

/** Decide in order, as the sequencer does. */
const apply = (operations: ReadonlyArray<RegistryOperation>, from: Registry = emptyRegistry) => {
  let registry = from
  const granted = operations.map((operation) => {
    const decision = decide(registry, operation)
    if (decision.granted) registry = withEntries(registry, decision.entries)
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
        )),
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
        .map(({ id, minute, tenant }) => use(id, minute, tenant)))
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
              tenant_id === "acme" &&
              !revoked.has(link_id) &&
              used_at < expires_at &&
              before < max_uses
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
      { numRuns: 500 }
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
    const older = withEntries(registry, [{ kind: "link", link: link("older") }])
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
        const operations = ids.map((id): RegistryOperation => ({
          op: "add_signing_key",
          signing_key: signingKey(id)
        }))
        const { granted, registry } = apply(operations)
        assert.deepStrictEqual(granted, ids.map((id, index) => ids.indexOf(id) === index))
        assert.sameMembers([...registry.signingKeys.keys()], [...new Set(ids)])
      })
    )
  })
})

describe("records of alk.registry", () => {
  it("are read back as they were written, and replaced by their key", () => {
    const entries = [
      { kind: "tenant", tenant: { id: "acme", name: "Acme", created_at: at(0) } },
      { kind: "link", link: link("lnk_a", { max_uses: 3, label: "für die Prüfung" }) },
      { kind: "signing_key", signing_key: signingKey("0a") }
    ] as const
    for (const entry of entries) {
      assert.deepStrictEqual(toRegistryEntry(registryKey(entry), registryValue(entry)), entry)
    }
    assert.strictEqual(registryKey(entries[1]), "link/lnk_a")
    const { links } = withEntries(withEntries(emptyRegistry, entries), [
      { kind: "link", link: link("lnk_a", { uses: 2 }) }
    ])
    assert.deepStrictEqual([...links.values()].map(({ uses }) => uses), [2])
  })

  it("of kinds that this version does not know are passed over", () => {
    assert.isUndefined(toRegistryEntry("passkey/1", "{}"))
  })
})

/**
 * The single writer's verdicts on share links and signing keys: whatever the order in which they
 * come, a link is never used more often than it may be, nor after its end.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type PrunedPoint, treeOfPoint } from "../../../src/domain/chain/PrunedPoint.ts"
import { RecordUnreadable } from "../../../src/domain/json/RecordFields.ts"
import {
  decide,
  ENDED_LINKS_MAX,
  KEYS_MAX,
  keyRefusal,
  LINKS_MAX,
  linkRefusal,
  linksToPurge,
  type Registry
} from "../../../src/domain/registry/Registry.ts"
import {
  type ApiKey,
  type DataVersion,
  type KeyUse,
  type Partitions,
  type QuarantineAct,
  type RegistryChange,
  type RegistryOperation,
  readRegistryRecord,
  registryKey,
  registryRecord,
  registryValue,
  type Session,
  type ShareLink,
  type SigningKey,
  type Tenant
} from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryDraft, RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import type { Retention, Tombstone } from "../../../src/domain/registry/RetentionEntry.ts"
import {
  ENDED_SESSIONS_MAX,
  SESSIONS_MAX,
  sessionsToPurge
} from "../../../src/domain/registry/Sessions.ts"
import { prunedPoint } from "../../support/PrunedPoints.ts"
import { runs } from "../../support/Runs.ts"

/** Minutes after midnight as a time. */
const at = (minute: number): string => `2026-11-21T00:${String(minute).padStart(2, "0")}:00.000000Z`

const settled = (id: string, state: QuarantineAct["state"] = "dropped"): QuarantineAct => ({
  id,
  state,
  settled_at: at(3),
  settled_by: "admin"
})

const dataVersion = (version: number): DataVersion => ({
  id: "topics",
  version,
  program: `0.${version}.0`,
  noted_at: at(version)
})

const partitions = (topics: number): Partitions => ({
  id: "topics",
  counts: [2],
  topics,
  changed_at: at(topics)
})

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

const keyUse = (key_id: string, minute: number): KeyUse => ({ key_id, used_at: at(minute) })

const session = (id: string, more: Partial<Session> = {}): Session => ({
  id,
  tenant_id: "acme",
  key_id: "key_1",
  hash: "d".repeat(64),
  created_at: at(0),
  expires_at: at(30),
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
        const uses = new Map<string, ReadonlyArray<string>>()
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
            const before = uses.get(link_id) ?? []
            const isAllowed =
              tenant_id === "acme"
              && !revoked.has(link_id)
              && used_at < expires_at
              && before.length < max_uses
            assert.strictEqual(granted[index], isAllowed)
            if (isAllowed) uses.set(link_id, [...before, used_at])
          }
        })
        for (const [id, { max_uses = Infinity }] of made) {
          const { last_used_at, revoked_at, uses: counted } = registry.links.get(id)!
          const times = uses.get(id) ?? []
          assert.strictEqual(counted, times.length)
          assert.strictEqual(last_used_at, times.toSorted().at(-1))
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

describe("a key that expires", () => {
  const tenant: Tenant = { id: "acme", created_at: at(0) }
  const expiring = apiKey("key_1", { expires_at: at(10) })
  const createKey = (key: ApiKey): RegistryOperation => ({ op: "create_key", key, tenant })
  const signIn = (id: string, minute: number): RegistryOperation => ({
    op: "create_session",
    session: session(id, { created_at: at(minute) })
  })

  it("is valid before its end, and says since when it is not", () => {
    assert.isUndefined(keyRefusal(expiring, at(9)))
    assert.strictEqual(keyRefusal(expiring, at(10)), `has expired at ${at(10)}`)
    assert.strictEqual(keyRefusal({ ...expiring, revoked_at: at(1) }, at(11)), "is revoked")
    assert.isUndefined(keyRefusal(apiKey("key_1"), at(59)))
  })

  it("makes no links and no sessions from then on", () => {
    const { granted, registry } = apply([
      createKey(expiring),
      signIn("a", 9),
      signIn("b", 10),
      create(link("c", { created_at: at(9) })),
      create(link("d", { created_at: at(10) }))
    ])
    assert.deepStrictEqual(granted, [true, true, false, true, false])
    assert.match(refusal(registry, signIn("e", 11))!.message, /key_1 has expired at/)
  })

  it("ends the links that were made with it", () => {
    const { granted } = apply([createKey(expiring), create(link("a")), use("a", 9), use("a", 20)])
    assert.deepStrictEqual(granted, [true, true, true, false])
  })

  it("doesn't count among the most that a tenant may have", () => {
    const { registry } = apply(
      Array.from({ length: KEYS_MAX }, (_, n) =>
        createKey(apiKey(`key_${n}`, n === 0 ? { expires_at: at(10) } : {}))
      )
    )
    const more = (minute: number) => createKey(apiKey("more", { created_at: at(minute) }))
    assert.strictEqual(refusal(registry, more(9))?.code, "limit_reached")
    assert.isUndefined(refusal(registry, more(10)))
  })
})

describe("the use of keys", () => {
  const report = (...uses: ReadonlyArray<KeyUse>): RegistryOperation => ({ op: "use_keys", uses })

  it("only ever grows, whatever the order in which processes report it", () => {
    const ids = ["key_1", "key_2", "key_cfg_1"]
    const anyUse = fc
      .tuple(fc.constantFrom(...ids), fc.integer({ min: 0, max: 59 }))
      .map(([id, minute]) => keyUse(id, minute))
    fc.assert(
      fc.property(fc.array(fc.array(anyUse, { maxLength: 6 })), (reports) => {
        const registry = new RegistryTable()
        for (const uses of reports) {
          const decision = decide(registry, report(...uses))
          assert.isTrue(decision.granted)
          if (!decision.granted) continue
          registry.take(decision.entries)
        }
        const all = reports.flat()
        for (const id of ids) {
          const times = all.filter(({ key_id }) => key_id === id).map(({ used_at }) => used_at)
          assert.strictEqual(registry.keyUse(id)?.used_at, times.toSorted().at(-1))
        }
      }),
      { numRuns: runs(500) }
    )
  })

  it("changes no key, and makes none", () => {
    const revoked = apiKey("key_1", { revoked_at: at(5) })
    const registry = new RegistryTable().take([{ kind: "key", key: revoked }])
    apply([report(keyUse("key_1", 9), keyUse("key_cfg_1", 9))], registry)
    assert.deepStrictEqual([...registry.keys.values()], [revoked])
    assert.strictEqual(registry.keyUse("key_cfg_1")?.used_at, at(9))
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

describe("sessions", () => {
  const create = (made: Session): RegistryOperation => ({ op: "create_session", session: made })
  const end = (id: string, minute: number): RegistryOperation => ({
    op: "end_session",
    session_id: id,
    ended_at: at(minute)
  })

  it("are made once, with a key that is not revoked, and end once", () => {
    const registry = new RegistryTable().take([
      { kind: "key", key: apiKey("key_1") },
      { kind: "key", key: apiKey("key_gone", { revoked_at: at(1) }) }
    ])
    const { granted } = apply(
      [
        create(session("a")),
        create(session("a", { hash: "1".repeat(64) })),
        create(session("b", { key_id: "key_gone" })),
        create(session("late")),
        end("a", 5),
        end("a", 6),
        end("late", 30),
        end("unknown", 1),
        create(session("a"))
      ],
      registry
    )
    assert.deepStrictEqual(granted, [true, false, false, true, true, false, false, false, false])
    assert.strictEqual(registry.session("a")?.ended_at, at(5))
    assert.strictEqual(registry.session("a")?.hash, "d".repeat(64))
  })

  it("are at most so many at a time; those that have ended don't count", () => {
    const registry = new RegistryTable().take(
      Array.from(
        { length: SESSIONS_MAX },
        (_, n): RegistryChange => ({
          kind: "session",
          session: session(`s${n}`, n === 0 ? { expires_at: at(20) } : {})
        })
      )
    )
    const refusal = (minute: number) =>
      decide(registry, create(session("more", { created_at: at(minute) })))
    assert.include(refusal(10), { granted: false, code: "limit_reached" })
    assert.isTrue(refusal(20).granted)
    apply([end("s1", 11)], registry)
    assert.isTrue(refusal(12).granted)
    assert.isTrue(decide(registry, create(session("other", { tenant_id: "globex" }))).granted)
  })

  it("leave the registry a day after they ended, as many as are asked for", () => {
    const sessions = new RegistryTable().take(
      [
        session("open", { expires_at: later(9) }),
        session("ended", { expires_at: later(9), ended_at: later(1) }),
        session("expired", { expires_at: later(2) })
      ].map((made): RegistryChange => ({ kind: "session", session: made }))
    ).sessions
    const purged = (now: string, limit = 9) =>
      sessionsToPurge(sessions, now, limit).map((removed) => removed.key)
    assert.deepStrictEqual(purged(later(1)), [])
    assert.deepStrictEqual(purged(later(2)), ["session/ended"])
    assert.deepStrictEqual(purged(later(3)), ["session/ended", "session/expired"])
    assert.deepStrictEqual(purged(later(3), 1), ["session/ended"])
    assert.deepStrictEqual(purged(later(3), 0), [])
  })

  it("leave sooner where very many have ended, but not while their codes are valid", () => {
    const made = (n: number, minute: number, more: Partial<Session> = {}): RegistryChange => {
      const times = { created_at: at(minute), ended_at: at(minute + 1), expires_at: later(9) }
      return { kind: "session", session: session(`s${n}`, { ...times, ...more }) }
    }
    const { sessions } = new RegistryTable().take([
      ...Array.from({ length: ENDED_SESSIONS_MAX + 2 }, (_, n) => made(n, n === 7 ? 0 : 1)),
      ...Array.from({ length: ENDED_SESSIONS_MAX }, (_, n) => made(2_000 + n, 20)),
      made(4_000, 0, { tenant_id: "globex" })
    ])
    const purged = (minute: number) =>
      sessionsToPurge(sessions, at(minute), 10_000).map((removed) => removed.key)
    assert.deepStrictEqual(purged(10), [])
    assert.deepStrictEqual(purged(16), ["session/s7", "session/s0"])
    assert.strictEqual(purged(36).length, ENDED_SESSIONS_MAX + 2)
    assert.notInclude(purged(36), "session/s2000")
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

describe("a command in quarantine", () => {
  const settle = (quarantine_act: QuarantineAct): RegistryOperation => ({
    op: "settle_quarantined",
    quarantine_act
  })

  it("is settled once, whichever way, and known after a restart", () => {
    const registry = new RegistryTable()
    const first = decide(registry, settle(settled("3-17", "replayed")))
    assert.isTrue(first.granted)
    if (!first.granted) return
    const [entry] = first.entries
    const { key, value } = registryRecord(entry!)
    assert.strictEqual(key, "quarantine_act/3-17")
    const read = readRegistryRecord(Buffer.from(key), Buffer.from(value!))
    assert.deepStrictEqual(read, entry)
    registry.take([read!])
    for (const state of ["replayed", "dropped"] as const) {
      assert.deepStrictEqual(decide(registry, settle(settled("3-17", state))), {
        granted: false,
        code: "id_conflict",
        message: `3-17 was replayed at ${at(3)}`
      })
    }
    assert.isTrue(decide(registry, settle(settled("3-18"))).granted)
    // Two in one chunk of commands: the second sees what the first has decided.
    const draft = new RegistryDraft(new RegistryTable())
    draft.take(first.entries)
    assert.isFalse(decide(draft, settle(settled("3-17"))).granted)
  })
})

describe("the version of the data", () => {
  const note = (version: number): RegistryOperation => ({
    op: "note_data_version",
    data_version: dataVersion(version)
  })

  it("is raised, never lowered, and known after a restart", () => {
    const registry = new RegistryTable()
    const first = decide(registry, note(2))
    assert.isTrue(first.granted)
    if (!first.granted) return
    const { key, value } = registryRecord(first.entries[0]!)
    assert.strictEqual(key, "data_version/topics")
    const read = readRegistryRecord(Buffer.from(key), Buffer.from(value!))
    assert.deepStrictEqual(read, first.entries[0])
    registry.take([read!])
    for (const version of [1, 2]) {
      assert.deepStrictEqual(decide(registry, note(version)), { granted: true, entries: [] })
    }
    const next = decide(registry, note(3))
    assert.strictEqual(next.granted ? next.entries.length : 0, 1)
    const draft = new RegistryDraft(registry)
    draft.take(next.granted ? next.entries : [])
    assert.strictEqual(draft.dataVersion()?.version, 3)
  })
})

/** The registry as it was once defined: every change makes another one. */
interface PureRegistry {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly keyUses: ReadonlyMap<string, KeyUse>
  readonly links: ReadonlyMap<string, ShareLink>
  readonly sessions: ReadonlyMap<string, Session>
  readonly signingKeys: ReadonlyMap<string, SigningKey>
  readonly quarantineActs: ReadonlyMap<string, QuarantineAct>
  readonly retentions: ReadonlyMap<string, Retention>
  readonly prunedPoints: ReadonlyMap<string, PrunedPoint>
  readonly tombstones: ReadonlyMap<string, Tombstone>
  readonly dataVersion: DataVersion | undefined
  readonly partitions: Partitions | undefined
}

const without = <A>(map: ReadonlyMap<string, A>, id: string) =>
  new Map([...map].filter(([own]) => own !== id))

const changed = (registry: PureRegistry, change: RegistryChange): PureRegistry => {
  const { keys, keyUses, links, quarantineActs, sessions, signingKeys, tenants } = registry
  switch (change.kind) {
    case "tenant":
      return { ...registry, tenants: new Map([...tenants, [change.tenant.id, change.tenant]]) }
    case "key":
      return { ...registry, keys: new Map([...keys, [change.key.id, change.key]]) }
    case "key_use": {
      const { key_use } = change
      return { ...registry, keyUses: new Map([...keyUses, [key_use.key_id, key_use]]) }
    }
    case "link":
      return { ...registry, links: new Map([...links, [change.link.id, change.link]]) }
    case "session":
      return { ...registry, sessions: new Map([...sessions, [change.session.id, change.session]]) }
    case "signing_key": {
      const { signing_key } = change
      const all = new Map([...signingKeys, [signing_key.key_id, signing_key]])
      return { ...registry, signingKeys: all }
    }
    case "quarantine_act": {
      const { quarantine_act } = change
      const all = new Map([...quarantineActs, [quarantine_act.id, quarantine_act]])
      return { ...registry, quarantineActs: all }
    }
    case "data_version":
      return { ...registry, dataVersion: change.data_version }
    case "partitions":
      return { ...registry, partitions: change.partitions }
    case "retention": {
      const { retention } = change
      const all = new Map([...registry.retentions, [retention.tenant_id, retention]])
      return { ...registry, retentions: all }
    }
    case "pruned": {
      const all = new Map([...registry.prunedPoints, [treeOfPoint(change.pruned), change.pruned]])
      return { ...registry, prunedPoints: all }
    }
    case "tombstone": {
      const { tombstone } = change
      const all = new Map([...registry.tombstones, [tombstone.tenant_id, tombstone]])
      return { ...registry, tombstones: all }
    }
    case "removed": {
      const kind = change.key.slice(0, change.key.indexOf("/"))
      const id = change.key.slice(kind.length + 1)
      const { prunedPoints, retentions, tombstones } = registry
      return {
        dataVersion: kind === "data_version" ? undefined : registry.dataVersion,
        partitions: kind === "partitions" ? undefined : registry.partitions,
        tenants: kind === "tenant" ? without(tenants, id) : tenants,
        keys: kind === "key" ? without(keys, id) : keys,
        keyUses: kind === "key_use" ? without(keyUses, id) : keyUses,
        links: kind === "link" ? without(links, id) : links,
        sessions: kind === "session" ? without(sessions, id) : sessions,
        signingKeys: kind === "signing_key" ? without(signingKeys, id) : signingKeys,
        quarantineActs: kind === "quarantine_act" ? without(quarantineActs, id) : quarantineActs,
        retentions: kind === "retention" ? without(retentions, id) : retentions,
        prunedPoints: kind === "pruned" ? without(prunedPoints, id) : prunedPoints,
        tombstones: kind === "tombstone" ? without(tombstones, id) : tombstones
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
  fc.record({ id, tenant_id: tenantId, hash }).map(
    ({ id: own, ...more }): RegistryChange => ({
      kind: "session",
      session: session(own, more)
    })
  ),
  tenantId.map(
    (own): RegistryChange => ({ kind: "tenant", tenant: { id: own, created_at: at(0) } })
  ),
  id.map((own): RegistryChange => ({ kind: "signing_key", signing_key: signingKey(own) })),
  id.map((own): RegistryChange => ({ kind: "quarantine_act", quarantine_act: settled(own) })),
  fc
    .integer({ min: 1, max: 4 })
    .map(
      (version): RegistryChange => ({ kind: "data_version", data_version: dataVersion(version) })
    ),
  fc
    .integer({ min: 2, max: 5 })
    .map((topics): RegistryChange => ({ kind: "partitions", partitions: partitions(topics) })),
  fc
    .tuple(id, fc.nat(59))
    .map(([own, minute]): RegistryChange => ({ kind: "key_use", key_use: keyUse(own, minute) })),
  tenantId.map(
    (tenant_id): RegistryChange => ({
      kind: "retention",
      retention: { tenant_id, days: 30, changed_at: at(1) }
    })
  ),
  fc.record({ tenantId, chain: fc.constantFrom("events", "traces"), size: fc.nat(5) }).map(
    ({ chain, size, tenantId: own }): RegistryChange => ({
      kind: "pruned",
      pruned: prunedPoint(own, size + 1, { chain })
    })
  ),
  tenantId.map(
    (tenant_id): RegistryChange => ({
      kind: "tombstone",
      tombstone: { tenant_id, deleted_at: at(2), deleted_by: "admin" }
    })
  ),
  fc
    .record({
      kind: fc.constantFrom("retention", "pruned", "tombstone"),
      own: fc.constantFrom("acme", "globex", "acme/traces")
    })
    .map(({ kind, own }): RegistryChange => ({ kind: "removed", key: `${kind}/${own}` })),
  fc
    .record({
      kind: fc.constantFrom(
        ...["link", "key", "key_use", "session", "tenant", "signing_key", "quarantine_act"],
        ...["data_version", "partitions"]
      ),
      id
    })
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
          keyUses: new Map(),
          links: new Map(),
          sessions: new Map(),
          signingKeys: new Map(),
          quarantineActs: new Map(),
          retentions: new Map(),
          prunedPoints: new Map(),
          tombstones: new Map(),
          dataVersion: undefined,
          partitions: undefined
        }
        for (const change of changes) pure = changed(pure, change)
        const table = new RegistryTable().take(changes)
        // Its entries are all of it.
        const again = new RegistryTable().take(table.entries)
        assert.deepStrictEqual(again.dataVersion(), pure.dataVersion)
        assert.deepStrictEqual(again.partitions(), pure.partitions)
        for (const name of [
          "tenants",
          "keys",
          "keyUses",
          "links",
          "sessions",
          "signingKeys",
          "quarantineActs",
          "retentions",
          "prunedPoints",
          "tombstones"
        ] as const) {
          assert.deepStrictEqual([...table[name]], [...pure[name]])
          assert.deepStrictEqual([...again[name]], [...pure[name]])
        }
        assert.deepStrictEqual(table.dataVersion(), pure.dataVersion)
        assert.deepStrictEqual(table.partitions(), pure.partitions)
        for (const tenant of ["acme", "globex"]) {
          const own = <A extends { readonly tenant_id: string }>(all: ReadonlyMap<string, A>) =>
            [...all.values()].filter(({ tenant_id }) => tenant_id === tenant)
          assert.deepStrictEqual(idsOf(table.linksOf(tenant)), idsOf(own(pure.links)))
          assert.deepStrictEqual(idsOf(table.keysOf(tenant)), idsOf(own(pure.keys)))
          assert.deepStrictEqual(idsOf(table.sessionsOf(tenant)), idsOf(own(pure.sessions)))
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
          assert.deepStrictEqual(idsOf(draft.sessionsOf(tenant)), idsOf(whole.sessionsOf(tenant)))
          assert.deepStrictEqual(idsOf(draft.keysOf(tenant)), idsOf(whole.keysOf(tenant)))
        }
        for (const own of ["a", "b", "c", "d"]) {
          assert.strictEqual(draft.link(own), whole.link(own))
          assert.strictEqual(draft.key(own), whole.key(own))
          assert.strictEqual(draft.keyUse(own), whole.keyUse(own))
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
      { kind: "key", key: apiKey("key_2", { expires_at: at(9) }) },
      { kind: "key_use", key_use: keyUse("key_1", 3) },
      { kind: "link", link: link("lnk_a", { max_uses: 3, label: "für die Prüfung" }) },
      { kind: "link", link: link("lnk_b", { uses: 2, last_used_at: at(2) }) },
      { kind: "signing_key", signing_key: signingKey("0a") }
    ] as const
    for (const entry of entries) {
      assert.deepStrictEqual(read(registryKey(entry), registryValue(entry)), entry)
    }
    const removal = { kind: "removed", key: "link/lnk_a" } as const
    const { key, value } = registryRecord(removal)
    assert.deepStrictEqual([key, value], ["link/lnk_a", null])
    assert.deepStrictEqual(read(key, value), removal)
    assert.strictEqual(registryKey(entries[5]), "link/lnk_a")
    // As versions wrote it that did not keep when a link was used last.
    assert.notProperty(entries[5].link, "last_used_at")
    const table = new RegistryTable().take(entries)
    table.take([{ kind: "link", link: link("lnk_a", { uses: 3 }) }])
    assert.deepStrictEqual(
      [...table.links.values()].map(({ uses }) => uses),
      [3, 2]
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
    const more = { ...apiKey("key_1"), rotated_at: at(9) }
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
          ...wrong(link("lnk_1"), "last_used_at"),
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

/** What the single writer says of retention, holds, pruning and the deletion of tenants. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { decide } from "../../../src/domain/registry/Registry.ts"
import {
  type RegistryOperation,
  readRegistryRecord,
  registryRecord
} from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { prunedPoint } from "../../support/PrunedPoints.ts"
import { runs } from "../../support/Runs.ts"

const at = (minute: number): string => `2026-11-21T00:${String(minute).padStart(2, "0")}:00.000000Z`

const keepFor = (days?: number): RegistryOperation => ({
  op: "set_retention",
  tenant_id: "acme",
  ...(days === undefined ? {} : { days }),
  changed_at: at(1)
})
const hold: RegistryOperation = {
  op: "hold",
  tenant_id: "acme",
  hold: { reason: "case 7", by: "admin", since: at(2) }
}
const release: RegistryOperation = { op: "release_hold", tenant_id: "acme", changed_at: at(3) }
const prune = (size: number): RegistryOperation => ({
  op: "prune",
  pruned: prunedPoint("acme", size)
})
const request: RegistryOperation = {
  op: "request_deletion",
  tenant_id: "acme",
  deletion: { by: "admin", requested_at: at(4) }
}
const cancel: RegistryOperation = { op: "cancel_deletion", tenant_id: "acme", changed_at: at(5) }
const remove: RegistryOperation = {
  op: "delete_tenant",
  tombstone: { tenant_id: "acme", deleted_at: at(6), deleted_by: "admin" }
}

/** Decides, and takes what was granted as a process takes it from the topic. */
const apply = (registry: RegistryTable, operation: RegistryOperation) => {
  const decision = decide(registry, operation)
  if (!decision.granted) return decision.code
  for (const entry of decision.entries) {
    const { key, value } = registryRecord(entry)
    const read = readRegistryRecord(Buffer.from(key), value === null ? null : Buffer.from(value))
    registry.take([read!])
  }
  return "granted"
}

describe("retention", () => {
  it("is set, changed and given up, and a hold stays with it", () => {
    const registry = new RegistryTable()
    assert.strictEqual(apply(registry, keepFor(30)), "granted")
    assert.strictEqual(apply(registry, hold), "granted")
    assert.strictEqual(apply(registry, keepFor(7)), "granted")
    assert.strictEqual(registry.retention("acme")?.days, 7)
    assert.strictEqual(registry.retention("acme")?.hold?.reason, "case 7")
    assert.strictEqual(apply(registry, keepFor()), "granted")
    assert.isUndefined(registry.retention("acme")?.days)
    assert.strictEqual(registry.retention("acme")?.hold?.since, at(2))
  })

  it("is set once at a time: a second hold is refused, and a release of none", () => {
    const registry = new RegistryTable()
    assert.strictEqual(apply(registry, release), "not_found")
    assert.strictEqual(apply(registry, hold), "granted")
    assert.strictEqual(apply(registry, hold), "id_conflict")
    assert.strictEqual(apply(registry, release), "granted")
    assert.strictEqual(apply(registry, hold), "granted")
  })

  it("prunes only where records are not kept for ever, never under a hold, never backwards", () => {
    const registry = new RegistryTable()
    assert.strictEqual(apply(registry, prune(5)), "not_found")
    apply(registry, keepFor(1))
    apply(registry, hold)
    assert.strictEqual(apply(registry, prune(5)), "legal_hold")
    apply(registry, release)
    assert.strictEqual(apply(registry, prune(5)), "granted")
    assert.strictEqual(apply(registry, prune(5)), "id_conflict")
    assert.strictEqual(apply(registry, prune(4)), "id_conflict")
    assert.strictEqual(apply(registry, prune(9)), "granted")
    assert.strictEqual(registry.pruned("acme")?.size, 9)
  })

  it("notes once that the rows of a point are gone", () => {
    const registry = new RegistryTable()
    apply(registry, keepFor(1))
    apply(registry, prune(5))
    const removed = (size: number): RegistryOperation => ({
      op: "note_removed",
      pruned: prunedPoint("acme", size, { removed_at: at(9) })
    })
    assert.strictEqual(apply(registry, removed(4)), "id_conflict")
    assert.strictEqual(apply(registry, removed(5)), "granted")
    assert.strictEqual(apply(registry, removed(5)), "id_conflict")
    assert.strictEqual(registry.pruned("acme")?.removed_at, at(9))
  })
})

describe("the deletion of a tenant", () => {
  const tenant = { id: "acme", created_at: at(0) }
  const key = {
    id: "key_1",
    tenant_id: "acme",
    scopes: ["read" as const],
    hint: "alk_live_abcd…",
    hash: "c".repeat(64),
    created_at: at(0)
  }

  it("takes a request and a confirmation, and leaves the tombstone alone", () => {
    const registry = new RegistryTable()
    for (const operation of [
      { op: "create_tenant", tenant },
      { op: "create_key", key },
      { op: "use_keys", uses: [{ key_id: "key_1", used_at: at(1) }] },
      keepFor(1),
      prune(3)
    ] satisfies ReadonlyArray<RegistryOperation>) {
      assert.strictEqual(apply(registry, operation), "granted")
    }
    assert.strictEqual(apply(registry, remove), "not_found")
    assert.strictEqual(apply(registry, request), "granted")
    assert.strictEqual(apply(registry, remove), "granted")
    const { keys, keyUses, prunedPoints, retentions, tenants, tombstones } = registry
    for (const left of [tenants, keys, keyUses, retentions, prunedPoints]) {
      assert.strictEqual(left.size, 0)
    }
    assert.deepStrictEqual([...tombstones.keys()], ["acme"])
  })

  it("is refused under a hold, before and after it was asked for", () => {
    const registry = new RegistryTable()
    apply(registry, hold)
    assert.strictEqual(apply(registry, request), "legal_hold")
    apply(registry, release)
    apply(registry, request)
    apply(registry, hold)
    assert.strictEqual(apply(registry, remove), "legal_hold")
    assert.isUndefined(registry.tombstone("acme"))
  })

  it("can be taken back until it is confirmed", () => {
    const registry = new RegistryTable()
    assert.strictEqual(apply(registry, cancel), "not_found")
    apply(registry, request)
    assert.strictEqual(apply(registry, cancel), "granted")
    assert.strictEqual(apply(registry, remove), "not_found")
  })

  it("is for good: neither the tenant nor a key of it can be made again", () => {
    const registry = new RegistryTable()
    apply(registry, request)
    apply(registry, remove)
    const after: ReadonlyArray<RegistryOperation> = [
      { op: "create_tenant", tenant },
      { op: "create_key", key, tenant },
      keepFor(1),
      hold,
      request,
      remove,
      prune(9)
    ]
    for (const operation of after) {
      assert.strictEqual(apply(registry, operation), "tenant_deleted")
    }
  })
})

describe("whatever is asked for, in any order", () => {
  const all = [keepFor(1), keepFor(), hold, release, prune(1), prune(2), request, cancel, remove]

  it("nothing is pruned or deleted while a hold is on", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...all), { maxLength: 40 }), (operations) => {
        const registry = new RegistryTable()
        for (const operation of operations) {
          const isHeld = registry.retention("acme")?.hold !== undefined
          const outcome = apply(registry, operation)
          const removes = operation.op === "prune" || operation.op === "delete_tenant"
          if (isHeld && removes) assert.notStrictEqual(outcome, "granted")
        }
      }),
      { numRuns: runs(300) }
    )
  })
})

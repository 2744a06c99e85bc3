import { createRequire } from "node:module"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { murmur2, Placement, partitionAmong } from "../../../src/domain/registry/Placement.ts"
import { decide } from "../../../src/domain/registry/Registry.ts"
import type {
  GrowthStep,
  RegistryChange,
  RegistryOperation
} from "../../../src/domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { runs } from "../../support/Runs.ts"

const NOW = "2026-11-21T12:00:00.000000Z"

/** kafkajs's own, which has been compared with Java's. */
const theirs: (key: string) => number = createRequire(import.meta.url)(
  "kafkajs/src/producer/partitioners/default/murmur2"
)

const grow = (step: GrowthStep, from: number, to: number): RegistryOperation => ({
  op: "grow_partitions",
  step,
  from,
  to,
  changed_at: NOW,
  data_version: { id: "topics", version: 2, program: "0.1.0", noted_at: NOW }
})

const create = (id: string, spread = true): RegistryOperation => ({
  op: "create_tenant",
  tenant: { id, created_at: NOW },
  spread
})

/** A registry, and every record that was written to its topic. */
class Written {
  readonly registry = new RegistryTable()
  readonly entries: Array<RegistryChange> = []

  do(...operations: ReadonlyArray<RegistryOperation>): this {
    for (const operation of operations) {
      const decision = decide(this.registry, operation)
      if (!decision.granted) throw new Error(decision.message)
      this.registry.take(decision.entries)
      this.entries.push(...decision.entries)
    }
    return this
  }

  refusal(operation: RegistryOperation): string {
    const decision = decide(this.registry, operation)
    return decision.granted ? "granted" : decision.message
  }

  grown(from: number, to: number): this {
    return this.do(grow("begin", from, to), grow("open", from, to), grow("spread", from, to))
  }
}

const placementOf = (first: number, entries: Iterable<RegistryChange>): Placement => {
  const placement = new Placement(first)
  for (const entry of entries) placement.take(entry)
  return placement
}

const tenantId = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,30}$/u)

describe("the partition of a key", () => {
  it("is the one that Kafka's default partitioner chooses", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 80 }), (key) => {
        assert.strictEqual(murmur2(key), theirs(key))
      }),
      { numRuns: runs(2_000) }
    )
  })
})

describe("the partition of a tenant", () => {
  /** Growths, each followed by tenants that are made then. */
  const life = fc.record({
    first: fc.integer({ min: 1, max: 8 }),
    earlier: fc.uniqueArray(tenantId, { maxLength: 8 }),
    growths: fc.array(fc.record({ by: fc.integer({ min: 1, max: 9 }), made: fc.array(tenantId) }), {
      maxLength: 4
    })
  })

  it("never changes, whatever grows after it, and is among those of its time", () => {
    fc.assert(
      fc.property(life, ({ earlier, first, growths }) => {
        const written = new Written().do(...earlier.map((id) => create(id)))
        const before = new Map(earlier.map((id) => [id, partitionAmong(id, first)]))
        let partitions = first
        for (const { by, made } of growths) {
          written.grown(partitions, partitions + by)
          partitions += by
          for (const id of made) {
            if (written.registry.tenant(id) !== undefined) continue
            written.do(create(id))
            before.set(id, partitionAmong(id, partitions))
          }
          const placement = placementOf(first, written.entries)
          assert.strictEqual(placement.partitions, partitions)
          for (const [id, partition] of before) {
            assert.strictEqual(placement.partitionOf(id), partition)
          }
        }
      }),
      { numRuns: runs(300) }
    )
  })

  it("is the same in whatever order the registry's records come, and when they come twice", () => {
    const shuffled = life.chain((one) => {
      const written = new Written().do(...one.earlier.map((id) => create(id)))
      let partitions = one.first
      for (const { by, made } of one.growths) {
        written.grown(partitions, partitions + by)
        partitions += by
        for (const id of made) {
          if (written.registry.tenant(id) === undefined) written.do(create(id))
        }
      }
      const all = [...written.entries, ...written.entries]
      return fc.record({
        first: fc.constant(one.first),
        entries: fc.constant(written.entries),
        mixed: fc.shuffledSubarray(all, { minLength: all.length })
      })
    })
    fc.assert(
      fc.property(shuffled, tenantId, ({ entries, first, mixed }, stranger) => {
        const [one, other] = [placementOf(first, entries), placementOf(first, mixed)]
        const tenants = entries.flatMap((entry) => (entry.kind === "tenant" ? [entry.tenant] : []))
        for (const { id } of [...tenants, { id: stranger }]) {
          assert.strictEqual(one.partitionOf(id), other.partitionOf(id))
        }
        assert.strictEqual(one.partitions, other.partitions)
        assert.deepStrictEqual(one.counts, other.counts)
      }),
      { numRuns: runs(300) }
    )
  })

  it("is a new one for some of the tenants that are made after a growth", () => {
    const written = new Written().grown(4, 8)
    for (let number = 0; number < 200; number++) written.do(create(`tenant-${number}`))
    const placement = placementOf(4, written.entries)
    const found = new Set(
      Array.from({ length: 200 }, (_, number) => placement.partitionOf(`tenant-${number}`))
    )
    assert.deepStrictEqual([...found].sort(), [0, 1, 2, 3, 4, 5, 6, 7])
  })

  it("is among the first where the tenant may have records, is the service's own, or unknown", () => {
    const written = new Written().grown(4, 8).do(create("acme", false))
    const placement = placementOf(4, written.entries)
    for (const id of ["acme", "_system", "nobody"]) {
      assert.strictEqual(placement.partitionOf(id), partitionAmong(id, 4))
    }
  })

  it("is not what a sender claims", () => {
    const written = new Written().do({
      op: "create_tenant",
      tenant: { id: "acme", created_at: NOW, partitions: 1_000 },
      spread: true
    })
    assert.deepStrictEqual(written.entries, [
      { kind: "tenant", tenant: { id: "acme", created_at: NOW } }
    ])
  })
})

describe("a growth", () => {
  it("goes on step by step, from any of them again, and new tenants come last", () => {
    const written = new Written()
    assert.strictEqual(written.refusal(grow("open", 4, 8)), "no growth has begun")
    assert.strictEqual(written.refusal(grow("spread", 4, 8)), "the topics are not there yet")
    const known = () => written.registry.partitions()
    written.do(grow("begin", 4, 8), grow("begin", 4, 8))
    assert.deepInclude(known(), { counts: [4], topics: 4, growing_to: 8 })
    assert.strictEqual(written.registry.dataVersion()?.version, 2)
    written.do(create("while-growing"), grow("open", 4, 8), grow("open", 4, 8))
    assert.deepStrictEqual(known(), { id: "topics", counts: [4], topics: 8, changed_at: NOW })
    written.do(create("while-open"), grow("begin", 4, 8))
    written.do(grow("spread", 4, 8), grow("spread", 4, 8), create("after"))
    assert.deepStrictEqual(known()?.counts, [4, 8])
    const countsOf = (id: string) => written.registry.tenant(id)?.partitions
    assert.deepStrictEqual(["while-growing", "while-open", "after"].map(countsOf), [
      undefined,
      undefined,
      8
    ])
    // Data version, begin, open, spread: what is repeated writes nothing.
    const kinds = written.entries.map(({ kind }) => kind)
    assert.strictEqual(kinds.filter((kind) => kind === "partitions").length, 3)
    assert.strictEqual(kinds.filter((kind) => kind === "data_version").length, 1)
  })

  it("never shrinks, and is finished before the next one begins", () => {
    const written = new Written().do(grow("begin", 4, 8))
    const underWay = "a growth to 8 partitions is under way: finish it first"
    assert.strictEqual(written.refusal(grow("begin", 4, 12)), underWay)
    written.do(grow("open", 4, 8))
    assert.strictEqual(written.refusal(grow("begin", 4, 12)), underWay)
    written.do(grow("spread", 4, 8))
    assert.strictEqual(
      written.refusal(grow("begin", 4, 6)),
      "the topics have 8 partitions and never get fewer"
    )
    assert.deepStrictEqual(written.grown(8, 12).registry.partitions()?.counts, [4, 8, 12])
  })
})

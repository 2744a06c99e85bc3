/** Nodes in memory are what the leaves make, also where the first leaves of a group were pruned. */
import { hash as digest } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { CHILDREN } from "../../../../src/adapters/clickhouse/checkpoints/HashTreeSql.ts"
import { NodeGroups, slicesOf } from "../../../../src/adapters/clickhouse/checkpoints/NodeGroups.ts"
import { nodesOver } from "../../../support/PrunedPoints.ts"
import { runs } from "../../../support/Runs.ts"

const LEAVES = 2 * CHILDREN
const hashes = Array.from({ length: LEAVES }, (_, index) =>
  digest("sha256", `event ${index}`, "hex")
)
const whole = nodesOver(hashes)

/** The leaves from `pruned` up to `end`, in their groups. */
const groupsOf = (pruned: number, end: number): NodeGroups => {
  const groups = new NodeGroups()
  for (let group = 0; group * CHILDREN < end; group++) {
    const first = group * CHILDREN
    const start = Math.min(CHILDREN, Math.max(0, pruned - first))
    const own = hashes.slice(first + start, Math.min(end, first + CHILDREN))
    if (own.length > 0) groups.put("acme", 0, group, own, start)
  }
  return groups
}

describe("groups of nodes", () => {
  it("know exactly the subtrees over leaves that are there", () => {
    fc.assert(
      fc.property(
        fc.nat(LEAVES - 1),
        fc.nat(LEAVES),
        fc.nat(7),
        fc.nat(),
        (from, to, level, at) => {
          const [pruned, end] = [Math.min(from, to), Math.max(from, to)]
          const index = at % (LEAVES / 2 ** level)
          const groups = groupsOf(pruned, end)
          const slices = slicesOf(level, index)
          const isThere = index * 2 ** level >= pruned && (index + 1) * 2 ** level <= end
          assert.strictEqual(
            slices.every((slice) => groups.has("acme", slice)),
            isThere
          )
          const snapshot = groups.snapshot("acme", slices)
          if (isThere) {
            assert.deepStrictEqual(snapshot.node(level, index), whole(level, index))
            const leaf = index * 2 ** level
            assert.strictEqual(snapshot.eventHash(leaf), hashes[leaf])
          } else assert.throws(() => snapshot.node(level, index), RangeError)
        }
      ),
      { numRuns: runs(200) }
    )
  })
})

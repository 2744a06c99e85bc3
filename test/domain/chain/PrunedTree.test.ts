/** What can be told of a tree whose first leaves were removed: every proof about what is left. */
import { hash as digest } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  consistencyParts,
  inclusionParts,
  rootPart,
  type TreeNode
} from "../../../src/domain/chain/MerkleTree.ts"
import { frontierText } from "../../../src/domain/chain/PrunedPoint.ts"
import { PrunedTree } from "../../../src/domain/chain/PrunedTree.ts"
import { nodesOver } from "../../support/PrunedPoints.ts"
import { runs } from "../../support/Runs.ts"

const LEAVES = 600
const hashes = Array.from({ length: LEAVES }, (_, index) =>
  digest("sha256", `event ${index}`, "hex")
)
const whole = nodesOver(hashes)

const prunedAt = (size: number): PrunedTree =>
  new PrunedTree({
    size,
    frontier: frontierText(
      size,
      rootPart(size).map(({ index, level }) => whole(level, index))
    )
  })

/** Every node is told, of leaves that are left and of nothing else. */
const assertTold = (tree: PrunedTree, nodes: ReadonlyArray<TreeNode>): void => {
  const left = tree.nodes((level, index) => {
    assert.isAtLeast(index * 2 ** level, tree.size)
    return whole(level, index)
  })
  for (const node of nodes) {
    const parts = tree.parts(node)
    assert.isDefined(parts, `${node.level}/${node.index} of ${tree.size}`)
    for (const part of parts) assert.isAtLeast(part.index * 2 ** part.level, tree.size)
    assert.deepStrictEqual(left(node.level, node.index), whole(node.level, node.index))
  }
}

const sizes = fc
  .uniqueArray(fc.integer({ min: 1, max: LEAVES }), { minLength: 3, maxLength: 3 })
  .map((all) => all.toSorted((one, other) => one - other) as [number, number, number])

describe("a tree whose first leaves were removed", () => {
  it("has every root, every inclusion proof of a leaf that is left, and consistency from there", () => {
    fc.assert(
      fc.property(sizes, ([pruned, first, second]) => {
        const tree = prunedAt(pruned)
        assertTold(tree, rootPart(first))
        assertTold(tree, inclusionParts(first - 1, second).flat())
        assertTold(tree, inclusionParts(pruned, second).flat())
        assertTold(tree, consistencyParts(first, second).flat())
        assertTold(tree, consistencyParts(pruned, second).flat())
      }),
      { numRuns: runs(100) }
    )
  })

  it("tells of what was removed no more than the subtrees that were kept", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: LEAVES }), (pruned) => {
        const tree = prunedAt(pruned)
        const kept = new Set(rootPart(pruned).map(({ index, level }) => `${level}/${index}`))
        for (let leaf = 0; leaf < pruned; leaf++) {
          const parts = tree.parts({ level: 0, index: leaf })
          assert.strictEqual(parts !== undefined, kept.has(`0/${leaf}`))
        }
      }),
      { numRuns: runs(30) }
    )
  })

  it("is none with the subtrees of another size", () => {
    const frontier = frontierText(
      5,
      rootPart(5).map(({ index, level }) => whole(level, index))
    )
    assert.throws(() => new PrunedTree({ size: 6, frontier }), "of 5 leaves")
  })
})

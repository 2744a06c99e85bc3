/** Large graphs as trees: every node once, none above another. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { LayoutQuestion } from "../../src/console/parts/GraphPicture.ts"
import { treeLayout } from "../../src/console/workers/TreeLayout.ts"
import { runs } from "../support/Runs.ts"

const [WIDTH, HEIGHT] = [176, 44]

const questionOf = (count: number, pairs: ReadonlyArray<readonly [number, number]>) => ({
  nodes: Array.from({ length: count }, (_, at) => `n${at}`),
  edges: pairs.map(([source, target], at) => ({
    id: `e${at}`,
    source: `n${source % count}`,
    target: `n${target % count}`
  })),
  width: WIDTH,
  height: HEIGHT
})

const questions: fc.Arbitrary<LayoutQuestion> = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 80 }))
  .map(([count, pairs]) => questionOf(count, pairs))

describe("a graph as a tree", () => {
  it("has every node once, apart from the others and within the picture", () => {
    fc.assert(
      fc.property(questions, (question) => {
        const { height, nodes, width } = treeLayout(question)
        assert.sameMembers(
          nodes.map(({ id }) => id),
          [...question.nodes]
        )
        for (const one of nodes) {
          assert.isTrue(one.x >= WIDTH / 2 && one.x <= width - WIDTH / 2)
          assert.isTrue(one.y >= HEIGHT / 2 && one.y <= height - HEIGHT / 2)
          const isApart = (other: typeof one) =>
            other === one
            || Math.abs(other.x - one.x) >= WIDTH
            || Math.abs(other.y - one.y) >= HEIGHT
          assert.isTrue(nodes.every(isApart))
        }
      }),
      { numRuns: runs(500) }
    )
  })

  it("has every edge, from the right of its source to the left of its target", () => {
    fc.assert(
      fc.property(questions, (question) => {
        const { edges, nodes } = treeLayout(question)
        const middles = new Map(nodes.map((node) => [node.id, node]))
        assert.deepStrictEqual(
          edges.map(({ id }) => id),
          question.edges.map(({ id }) => id)
        )
        question.edges.forEach(({ source, target }, at) => {
          const [from, to] = [middles.get(source)!, middles.get(target)!]
          assert.deepStrictEqual(edges[at]!.points, [
            { x: from.x + WIDTH / 2, y: from.y },
            { x: to.x - WIDTH / 2, y: to.y }
          ])
        })
      }),
      { numRuns: runs(500) }
    )
  })

  it("puts each node right of what it is reached from, and the first ones left", () => {
    const chain = questionOf(3, [
      [0, 1],
      [1, 2],
      [2, 0]
    ])
    const [first, second, third] = treeLayout(chain).nodes
    assert.isTrue(first!.x < second!.x && second!.x < third!.x)
  })

  it("takes chains of thousands of nodes and stars of thousands", () => {
    const chain = Array.from({ length: 4_999 }, (_, at) => [at, at + 1] as const)
    const star = Array.from({ length: 4_999 }, (_, at) => [0, at + 1] as const)
    for (const pairs of [chain, star]) {
      assert.strictEqual(treeLayout(questionOf(5_000, pairs)).nodes.length, 5_000)
    }
  })
})

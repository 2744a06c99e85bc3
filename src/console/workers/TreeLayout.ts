/**
 * Places the nodes of a large graph as a tree, from left to right: below each node those that are
 * reached from it first. Pure, and quick: thousands of nodes in a moment.
 */
import { hierarchy, tree } from "d3-hierarchy"
import type { LayoutAnswer, LayoutQuestion } from "../parts/GraphPicture.ts"

/** Pixels between nodes beside each other, and between a node and those below it. */
const GAP = 14
const LEVEL_GAP = 60
const MARGIN = 12

interface Branch {
  readonly id: string | undefined
  readonly children: Array<Branch>
}

/**
 * Every node once: below the source of its first edge that comes before it in the order of the nodes,
 * so that no circle arises; others are below the top, which is not drawn.
 */
const branchesOf = ({ edges, nodes }: LayoutQuestion): Branch => {
  const top: Branch = { id: undefined, children: [] }
  const places = new Map(nodes.map((id, at) => [id, at]))
  const above = new Map<string, string>()
  for (const { source, target } of edges) {
    if (places.get(source)! < places.get(target)! && !above.has(target)) above.set(target, source)
  }
  const branches = new Map<string, Branch>()
  for (const id of nodes) {
    const branch: Branch = { id, children: [] }
    branches.set(id, branch)
    const parent = above.get(id)
    const to = parent === undefined ? top : branches.get(parent)!
    to.children.push(branch)
  }
  return top
}

export const treeLayout = (question: LayoutQuestion): LayoutAnswer => {
  const { edges, height, width } = question
  const root = tree<Branch>().nodeSize([height + GAP, width + LEVEL_GAP])(
    hierarchy(branchesOf(question))
  )
  const placed = root.descendants().filter(({ data }) => data.id !== undefined)
  const least = placed.reduce((so, { x }) => Math.min(so, x), Infinity)
  const middles = new Map(
    placed.map(({ data, depth, x }) => [
      data.id!,
      {
        x: MARGIN + width / 2 + (depth - 1) * (width + LEVEL_GAP),
        y: MARGIN + height / 2 + x - least
      }
    ])
  )
  const most = (of: "x" | "y"): number =>
    [...middles.values()].reduce((so, middle) => Math.max(so, middle[of]), 0)
  return {
    width: most("x") + width / 2 + MARGIN,
    height: most("y") + height / 2 + MARGIN,
    nodes: [...middles].map(([id, middle]) => ({ id, ...middle })),
    edges: edges.map(({ id, source, target }) => {
      const [from, to] = [middles.get(source)!, middles.get(target)!]
      const points = [
        { x: from.x + width / 2, y: from.y },
        { x: to.x - width / 2, y: to.y }
      ]
      return { id, points }
    })
  }
}

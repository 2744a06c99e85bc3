/**
 * Places the nodes of a graph beside the page: in layers, which takes seconds for some hundred nodes,
 * and as a tree where there are more.
 */
import { Graph, layout } from "@dagrejs/dagre"
import type { LayoutAnswer, LayoutQuestion, Point } from "../parts/GraphPicture.ts"
import { treeLayout } from "./TreeLayout.ts"

/** Nodes that are placed in layers. */
const LAYERED_MAX = 150

/** What a worker has of the browser. */
declare const self: {
  onmessage: ((message: { readonly data: LayoutQuestion }) => void) | null
  postMessage(answer: LayoutAnswer): void
}

type Points = LayoutAnswer["edges"][number]["points"]

/** From the right side of a node to the left side of the next, where it is to the right. */
const fromSideToSide = (points: Points, width: number, from: Point, to: Point): Points =>
  from.x + width > to.x
    ? points
    : [
        { x: from.x + width / 2, y: from.y },
        ...points.slice(1, -1),
        { x: to.x - width / 2, y: to.y }
      ]

const layeredLayout = ({ edges, height, nodes, width }: LayoutQuestion): LayoutAnswer => {
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 60, marginx: 12, marginy: 12 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const id of nodes) graph.setNode(id, { width, height })
  for (const { id, source, target } of edges) graph.setEdge(source, target, {}, id)
  layout(graph)
  const all = graph.graph()
  const middleOf = (id: string): Point => {
    const { x = 0, y = 0 } = graph.node(id)
    return { x, y }
  }
  return {
    width: all.width ?? 0,
    height: all.height ?? 0,
    nodes: nodes.map((id) => ({ id, ...middleOf(id) })),
    edges: edges.map(({ id, source, target }) => {
      const { points = [] } = graph.edge(source, target, id)
      return { id, points: fromSideToSide(points, width, middleOf(source), middleOf(target)) }
    })
  }
}

self.onmessage = ({ data }) => {
  self.postMessage(data.nodes.length > LAYERED_MAX ? treeLayout(data) : layeredLayout(data))
}

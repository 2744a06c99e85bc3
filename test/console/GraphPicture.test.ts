/** What is drawn of a graph: all its nodes, and edges that lead on. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { pictureOfAggregated, pictureOfDag } from "../../src/console/parts/GraphPicture.ts"

const node = (id: string) => ({
  id,
  name: `span ${id}`,
  type: "CUSTOM",
  status: "COMPLETED" as const,
  started_at: "2026-01-01T00:00:00.000000Z",
  depth: 0,
  event_count: 0
})

const ids = ["a", "b", "c", "d", "e"]
const edges = fc.array(
  fc.record({
    source: fc.constantFrom(...ids),
    target: fc.constantFrom(...ids),
    type: fc.constantFrom("parent" as const, "caused_by" as const, "inferred" as const)
  }),
  { maxLength: 15 }
)

const dagOf = (all: ReadonlyArray<{ source: string; target: string; type: string }>) => {
  const named = all.map((edge, at) => ({ ...edge, id: `e${at}` }))
  return {
    nodes: ids.map(node),
    edges: named.filter(({ type }) => type !== "inferred"),
    inferred_edges: named
      .filter(({ type }) => type === "inferred")
      .map((edge) => ({ ...edge, rule: "timing" })),
    critical_path: [],
    latest_end_path: [],
    digest: ""
  } as unknown as Parameters<typeof pictureOfDag>[0]
}

describe("the picture of a graph", () => {
  it("has every node, and every recorded edge whatever is inferred", () => {
    fc.assert(
      fc.property(edges, fc.boolean(), (all, withInferred) => {
        const shown = all.filter(({ type }) => withInferred || type !== "inferred")
        const picture = pictureOfDag(dagOf(all), withInferred)
        assert.deepStrictEqual(
          picture.nodes.map(({ id }) => id),
          ids
        )
        const leadingOn = shown.filter(({ source, target }) => source !== target)
        const drawn = ({ source, target }: { source: string; target: string }, kind: string) =>
          `${source} ${target} ${kind}`
        assert.sameMembers(
          picture.edges.map((edge) => drawn(edge, edge.kind)),
          leadingOn.map((edge) => drawn(edge, edge.type))
        )
        assert.isTrue(withInferred || picture.edges.every(({ kind }) => kind !== "inferred"))
      })
    )
  })

  it("says of gathered spans how many they are, and of edges why they are there", () => {
    const gathered = {
      nodes: [
        {
          id: "a",
          name: "search",
          type: "TOOL_CALL",
          depth: 0,
          count: 12,
          errors: 2,
          running: 0,
          event_count: 0,
          total_duration_us: 5
        }
      ],
      edges: [
        { id: "e", source: "a", target: "b", type: "inferred", rule: "timing", count: 3 },
        { id: "f", source: "a", target: "a", type: "inferred", rule: "timing", count: 9 }
      ],
      span_count: 12
    } as const
    const { edges: drawn, nodes } = pictureOfAggregated(gathered, true)
    assert.include(nodes[0], { note: "12 times, 2 failed", hasFailed: true })
    assert.deepStrictEqual(
      drawn.map(({ id, title }) => [id, title]),
      [["e", "inferred: timing, 3 times"]]
    )
    assert.isEmpty(pictureOfAggregated(gathered, false).edges)
  })
})

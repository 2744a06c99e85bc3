/** The folded graph: that nothing is lost or counted twice in it, and what loops look like. */

import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { finish } from "../../../src/domain/Slices.ts"
import { aggregatedGraphOf } from "../../../src/domain/traces/AggregatedGraph.ts"
import { graphOf } from "../../../src/domain/traces/ExecutionGraph.ts"
import { acyclic, type Shape, spanOf } from "./support/Spans.ts"

const inputOf = (shapes: ReadonlyArray<Shape>, rootSpanId = "r") => ({
  rootSpanId,
  spans: shapes.map(spanOf),
  eventCounts: new Map(shapes.map(({ id }, n) => [id, n % 3]))
})

/** Few names, so that much is folded. */
const repeating = fc
  .tuple(acyclic, fc.array(fc.constantFrom("a", "b"), { minLength: 31, maxLength: 31 }))
  .map(([shapes, names]) =>
    shapes.map((shape, n): Shape => ({ ...shape, name: names[n]!, failed: n % 4 === 1 }))
  )

const total = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

describe("the aggregated graph", () => {
  it("counts every span, edge, event, error and duration once", () => {
    fc.assert(
      fc.property(repeating, (shapes) => {
        const input = inputOf(shapes, "root")
        const folded = finish(aggregatedGraphOf(input))
        const { edges, inferred_edges = [], nodes } = finish(graphOf(input))
        assert.strictEqual(folded.span_count, nodes.length)
        assert.strictEqual(total(folded.nodes.map(({ count }) => count)), nodes.length)
        const sums = [
          total(folded.nodes.map(({ event_count }) => event_count)),
          total(folded.nodes.map(({ errors }) => errors)),
          total(folded.nodes.map(({ running }) => running)),
          total(folded.nodes.map(({ total_duration_us }) => total_duration_us))
        ]
        assert.deepStrictEqual(sums, [
          total(nodes.map(({ event_count }) => event_count)),
          nodes.filter(({ status }) => status === "FAILED").length,
          nodes.filter(({ ended_at }) => ended_at === undefined).length,
          total(nodes.map(({ duration_us = 0 }) => duration_us))
        ])
        for (const type of ["parent", "caused_by", "inferred"]) {
          const counted = folded.edges.filter((edge) => edge.type === type)
          const all = [...edges, ...inferred_edges].filter((edge) => edge.type === type)
          assert.strictEqual(total(counted.map(({ count }) => count)), all.length, type)
        }
        assert.strictEqual(new Set(folded.edges.map(({ id }) => id)).size, folded.edges.length)
      })
    )
  })

  it("has one node per name and type below a node, after that node", () => {
    fc.assert(
      fc.property(repeating, (shapes) => {
        const { edges, nodes } = finish(aggregatedGraphOf(inputOf(shapes, "root")))
        const keys = nodes.map(({ name, parent_id, type }) =>
          JSON.stringify([parent_id, name, type])
        )
        assert.strictEqual(new Set(keys).size, nodes.length)
        const places = new Map(nodes.map(({ id }, place) => [id, place]))
        assert.strictEqual(places.size, nodes.length)
        for (const [place, { depth, parent_id }] of nodes.entries()) {
          const above = parent_id === undefined ? undefined : nodes[places.get(parent_id)!]!
          assert.strictEqual(depth, above === undefined ? 0 : above.depth + 1)
          if (parent_id !== undefined) assert.isBelow(places.get(parent_id)!, place)
        }
        for (const { source, target } of edges) {
          assert.isTrue(places.has(source) && places.has(target))
        }
      })
    )
  })

  it("shows a loop as one node per part, with counts, durations and tokens", () => {
    const tokens = (input: number, output?: number) => ({
      attributes: {
        "gen_ai.usage.input_tokens": input,
        ...(output === undefined ? {} : { "gen_ai.usage.output_tokens": output })
      }
    })
    const model = { parent: "r", type: "LLM_CALL", name: "ask" }
    const tool = { parent: "r", type: "TOOL_CALL", name: "search" }
    const { edges, nodes, span_count } = finish(
      aggregatedGraphOf(
        inputOf([
          { id: "r", type: "AGENT", name: "agent" },
          { id: "l1", ...model, start: 1, end: 4, metadata: tokens(10, 1) },
          { id: "t1", ...tool, start: 5, end: 6, failed: true },
          { id: "l2", ...model, start: 7, end: 12, metadata: tokens(20) },
          { id: "t2", ...tool, start: 13 }
        ])
      )
    )
    assert.strictEqual(span_count, 5)
    assert.deepStrictEqual<object>(nodes, [
      {
        id: "r",
        name: "agent",
        type: "AGENT",
        depth: 0,
        count: 1,
        errors: 0,
        running: 1,
        event_count: 0,
        total_duration_us: 0
      },
      {
        id: "l1",
        parent_id: "r",
        name: "ask",
        type: "LLM_CALL",
        depth: 1,
        count: 2,
        errors: 0,
        running: 0,
        event_count: 1,
        total_duration_us: 8,
        mean_duration_us: 4,
        max_duration_us: 5,
        input_tokens: 30,
        output_tokens: 1
      },
      {
        id: "t1",
        parent_id: "r",
        name: "search",
        type: "TOOL_CALL",
        depth: 1,
        count: 2,
        errors: 1,
        running: 1,
        event_count: 3,
        total_duration_us: 1,
        mean_duration_us: 1,
        max_duration_us: 1
      }
    ])
    assert.sameDeepMembers(
      edges.map(({ count, rule, source, target, type }) => [source, target, rule ?? type, count]),
      [
        ["r", "l1", "parent", 2],
        ["r", "t1", "parent", 2],
        ["l1", "t1", "timing", 2],
        ["t1", "l1", "timing", 1]
      ]
    )
  })

  it("leaves out inferred edges, ends sums at what a double holds, and says what is missing", () => {
    const most = { attributes: { "gen_ai.usage.input_tokens": 999_999_999_999_999 } }
    const shapes = Array.from(
      { length: 10 },
      (_, n): Shape => ({ id: `s${n}`, name: "x", parent: "r", start: n, end: n, metadata: most })
    )
    const input = inputOf([{ id: "r" }, ...shapes])
    const folded = finish(aggregatedGraphOf({ ...input, edges: "recorded", isPartial: true }))
    assert.deepStrictEqual(
      folded.edges.map(({ count, type }) => [type, count]),
      [["parent", 10]]
    )
    assert.strictEqual(folded.nodes[1]!.input_tokens, Number.MAX_SAFE_INTEGER)
    assert.isTrue(folded.inferred_incomplete)
    assert.notProperty(finish(aggregatedGraphOf(input)), "inferred_incomplete")
  })

  it("gives way between two spans", () => {
    const spans = Array.from({ length: 300 }, (_, n): Shape => ({ id: `s${n}`, parent: "s0" }))
    assert.isAtLeast([...aggregatedGraphOf(inputOf(spans, "s0"))].length, 4 * 300)
  })

  it("takes a chain, and a fan, of 20,000 spans", () => {
    const chain = Array.from(
      { length: 20_000 },
      (_, n): Shape => (n === 0 ? { id: "s0" } : { id: `s${n}`, name: "x", parent: `s${n - 1}` })
    )
    assert.strictEqual(finish(aggregatedGraphOf(inputOf(chain, "s0"))).nodes.at(-1)!.depth, 19_999)
    const fan = chain.map(
      (shape): Shape => (shape.id === "s0" ? shape : { ...shape, parent: "s0" })
    )
    const { nodes } = finish(aggregatedGraphOf(inputOf(fan, "s0")))
    assert.deepStrictEqual(
      nodes.map(({ count }) => count),
      [1, 19_999]
    )
  })
})

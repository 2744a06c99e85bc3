/** The graph of an execution against its naive definitions, and at a size that hurts. */

import { createHash } from "node:crypto"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../src/domain/json/Json.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { graphOf } from "../../../src/domain/traces/ExecutionGraph.ts"
import type { GraphEdge } from "../../../src/domain/traces/SpanGraph.ts"
import { acyclic, type Shape, spanOf } from "./support/Spans.ts"

const graph = (rootSpanId: string, ...shapes: ReadonlyArray<Shape>) => {
  const eventCounts = new Map(shapes.some(({ id }) => id === "a") ? [["a", 2]] : [])
  return finish(graphOf({ rootSpanId, spans: shapes.map(spanOf), eventCounts }))
}

const idsOf = (nodes: ReadonlyArray<{ readonly id: string }>) => nodes.map(({ id }) => id)

/** Every edge leads forward. */
const assertTopological = (ids: ReadonlyArray<string>, edges: ReadonlyArray<GraphEdge>): void => {
  const places = new Map(ids.map((id, place) => [id, place]))
  for (const { source, target } of edges) {
    assert.isBelow(places.get(source)!, places.get(target)!, `${source} -> ${target}`)
  }
}

describe("the graph of an execution", () => {
  it("has every span once, sources first, of what is free the one that started first", () => {
    fc.assert(
      fc.property(acyclic, (shapes) => {
        const { edges, nodes } = graph("root", ...shapes)
        const ids = idsOf(nodes)
        assert.strictEqual(new Set(ids).size, ids.length)
        for (const { id } of shapes) assert.include(ids, id)
        assertTopological(ids, edges)
        const started = new Map(nodes.map((node) => [node.id, node.started_at]))
        const key = (id: string) => `${started.get(id)} ${id}`
        const naive: Array<string> = []
        while (naive.length < ids.length) {
          const free = ids.filter(
            (id) =>
              !naive.includes(id)
              && edges.every(({ source, target }) => target !== id || naive.includes(source))
          )
          naive.push(free.sort((left, right) => (key(left) < key(right) ? -1 : 1))[0]!)
        }
        assert.deepStrictEqual(ids, naive)
      })
    )
  })

  it("says what each span names, as edges, and how far below the root it stands", () => {
    fc.assert(
      fc.property(acyclic, (shapes) => {
        const { edges, nodes } = graph("root", ...shapes)
        for (const { causes = [], id, parent } of shapes) {
          const own = edges.filter(({ target }) => target === id)
          const named = own.map(({ source, type }) => `${type} ${source}`)
          const expected = causes.map((cause) => `caused_by ${cause}`)
          if (parent !== undefined) expected.push(`parent ${parent}`)
          assert.sameMembers(named, expected)
        }
        const depths = new Map(nodes.map(({ depth, id }) => [id, depth]))
        for (const { source, target, type } of edges) {
          if (type === "parent") assert.strictEqual(depths.get(target), depths.get(source)! + 1)
        }
        assert.strictEqual(new Set(edges.map(({ id }) => id)).size, edges.length)
      })
    )
  })

  it("finds the chain that reaches the latest end", () => {
    fc.assert(
      fc.property(acyclic, (shapes) => {
        const { latest_end_path: path, edges, nodes } = graph("root", ...shapes)
        assert.strictEqual(path[0], "root")
        for (const [place, id] of path.entries()) {
          if (place === 0) continue
          const before = path[place - 1]
          assert.isTrue(edges.some(({ source, target }) => source === before && target === id))
        }
        const ends = new Map(nodes.map((node) => [node.id, node.ended_at ?? node.started_at]))
        const latestBelow = (id: string): string =>
          edges
            .filter(({ source }) => source === id)
            .map(({ target }) => latestBelow(target))
            .reduce((left, right) => (left > right ? left : right), ends.get(id)!)
        const last = path.at(-1)!
        assert.isFalse(edges.some(({ source }) => source === last))
        // Each step keeps what is latest among all that follow.
        for (const [place, id] of path.slice(0, -1).entries()) {
          const followers = edges.filter(({ source }) => source === id)
          const best = followers
            .map(({ target }) => latestBelow(target))
            .reduce((left, right) => (left > right ? left : right), "")
          assert.strictEqual(latestBelow(path[place + 1]!), best)
        }
      }),
      { numRuns: 50 }
    )
  })

  it("shows parallel branches and several causes as they are", () => {
    const { latest_end_path, edges, nodes } = graph(
      "r",
      { id: "r", end: 100 },
      { id: "a", parent: "r", start: 1, end: 10 },
      { id: "b", parent: "r", start: 1, end: 30 },
      { id: "join", parent: "r", causes: ["a", "b"], start: 31, end: 90 }
    )
    assert.deepStrictEqual(idsOf(nodes), ["r", "a", "b", "join"])
    assert.deepStrictEqual(
      nodes.map(({ depth }) => depth),
      [0, 1, 1, 1]
    )
    assert.deepStrictEqual(
      nodes.map(({ event_count }) => event_count),
      [0, 2, 0, 0]
    )
    assert.deepStrictEqual(
      edges.map(({ id }) => id),
      ["parent:r:a", "parent:r:b", "parent:r:join", "caused_by:a:join", "caused_by:b:join"]
    )
    assert.deepStrictEqual(latest_end_path, ["r", "a", "join"])
    assert.strictEqual(nodes[3]!.duration_us, 59)
  })

  it("gives each edge an id of its own, whatever the ids of spans are", () => {
    const { edges } = graph(
      "r",
      { id: "r" },
      { id: "a", parent: "r" },
      { id: "a:b", parent: "r" },
      { id: "b:c", parent: "a" },
      { id: "c", parent: "a:b" }
    )
    assert.strictEqual(new Set(edges.map(({ id }) => id)).size, 4)
  })

  it("puts what never arrived below the root, unless the root follows from it", () => {
    const below = graph("r", { id: "r" }, { id: "a", parent: "gone", start: 4 })
    assert.deepStrictEqual(idsOf(below.nodes), ["r", "gone", "a"])
    assert.isTrue(below.nodes[1]!.missing)
    assert.deepStrictEqual(
      below.nodes.map(({ depth }) => depth),
      [0, 1, 2]
    )
    const above = graph("r", { id: "r", causes: ["gone"] }, { id: "a", parent: "gone" })
    assert.deepStrictEqual(idsOf(above.nodes), ["gone", "a", "r"])
    const far = graph(
      "r",
      { id: "r", causes: ["a"], start: 5 },
      { id: "a", parent: "gone", start: 4 },
      { id: "b", parent: "elsewhere", start: 6 }
    )
    assert.deepStrictEqual(idsOf(far.nodes), ["gone", "a", "r", "elsewhere", "b"])
  })

  it("has a node for what never arrived, but has events", () => {
    const spans = [
      { id: "r", start: 3 },
      { id: "a", parent: "gone" }
    ].map(spanOf)
    const eventCounts = new Map([
      ["told", 2],
      ["gone", 1],
      ["a", 4]
    ])
    const { edges, nodes } = finish(graphOf({ rootSpanId: "r", spans, eventCounts }))
    assert.deepStrictEqual(
      nodes.map(({ event_count, id, missing }) => [id, event_count, missing]),
      [
        ["r", 0, undefined],
        ["gone", 1, true],
        ["a", 4, undefined],
        ["told", 2, true]
      ]
    )
    assert.deepInclude(edges, {
      id: "parent:r:told",
      source: "r",
      target: "told",
      type: "parent"
    })
  })

  it("loses nothing of a cycle that should not be there, and ends", () => {
    const { latest_end_path, nodes } = graph(
      "r",
      { id: "r" },
      { id: "a", parent: "r", causes: ["b"] },
      { id: "b", parent: "r", causes: ["a"] }
    )
    assert.deepStrictEqual(idsOf(nodes), ["r", "a", "b"])
    assert.strictEqual(latest_end_path[0], "r")
    const alone = graph("none", { id: "a", parent: "b" }, { id: "b", parent: "a" })
    assert.sameMembers(idsOf(alone.nodes), ["a", "b"])
  })

  it("has a digest over nodes and edges", () => {
    const { digest, edges, nodes } = graph("r", { id: "r" }, { id: "a", parent: "r" })
    const text = canonicalize({ nodes, edges } as unknown as JsonObject)
    assert.strictEqual(digest, createHash("sha256").update(text).digest("hex"))
    assert.notStrictEqual(digest, graph("r", { id: "r" }, { id: "b", parent: "r" }).digest)
  })

  it("shows inferred edges in a member of their own, unless recorded ones are asked for", () => {
    fc.assert(
      fc.property(acyclic, (shapes) => {
        const input = { rootSpanId: "root", spans: shapes.map(spanOf), eventCounts: new Map() }
        const { inferred_edges, ...rest } = finish(graphOf(input))
        assert.isArray(inferred_edges)
        assert.deepStrictEqual(
          finish(graphOf({ ...input, edges: "inferred" })),
          finish(graphOf(input))
        )
        assert.deepStrictEqual<object>(finish(graphOf({ ...input, edges: "recorded" })), rest)
      })
    )
  })

  it("says so when the metadata was not read whole", () => {
    const input = { rootSpanId: "r", spans: [spanOf({ id: "r" })], eventCounts: new Map() }
    assert.isTrue(finish(graphOf({ ...input, isPartial: true })).inferred_incomplete)
    assert.notProperty(finish(graphOf(input)), "inferred_incomplete")
    const recorded = finish(graphOf({ ...input, edges: "recorded", isPartial: true }))
    assert.notProperty(recorded, "inferred_incomplete")
  })

  it("gives way between two spans", () => {
    const spans = Array.from({ length: 300 }, (_, n) => spanOf({ id: `${n}`, parent: "0" }))
    const input = { rootSpanId: "0", spans, eventCounts: new Map() }
    assert.isAtLeast([...graphOf(input)].length, 4 * 300)
  })

  it("takes a chain, and a fan, of 20,000 spans", () => {
    const chain = Array.from(
      { length: 20_000 },
      (_, n): Shape =>
        n === 0
          ? { id: "s0" }
          : { id: `s${n}`, parent: `s${n - 1}`, causes: n > 1 ? [`s${n - 2}`] : [], start: n }
    )
    const deep = graph("s0", ...chain)
    assert.strictEqual(deep.nodes.at(-1)!.depth, 19_999)
    assert.strictEqual(deep.latest_end_path.length, 20_000)
    const fan = Array.from({ length: 20_000 }, (_, n): Shape => ({ id: `f${n}`, parent: "r" }))
    const wide = graph("r", { id: "r" }, ...fan, {
      id: "join",
      parent: "r",
      causes: fan.map(({ id }) => id),
      start: 1
    })
    assert.strictEqual(wide.nodes.length, 20_002)
    assert.strictEqual(wide.nodes.at(-1)!.id, "join")
  })
})

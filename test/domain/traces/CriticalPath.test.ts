/** The critical path against its naive definition, moment by moment, and at a size that hurts. */

import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { finish } from "../../../src/domain/Slices.ts"
import { microsOf } from "../../../src/domain/Timestamp.ts"
import { criticalPathOf } from "../../../src/domain/traces/CriticalPath.ts"
import { spanGraphOf } from "../../../src/domain/traces/SpanGraph.ts"
import { at, type Shape, spanOf } from "./support/Spans.ts"

const ZERO = microsOf(at(0))

const pathOf = (rootSpanId: string, shapes: ReadonlyArray<Shape>) =>
  criticalPathOf(
    finish(spanGraphOf({ rootSpanId, spans: shapes.map(spanOf), eventCounts: new Map() }))
  ).map(({ from, span_id, to }) => [span_id, microsOf(from) - ZERO, microsOf(to) - ZERO] as const)

const path = (...shapes: ReadonlyArray<Shape>) => pathOf("r", shapes)

/** Spans inside and outside of their parents' time, that have ended or not. */
const trees: fc.Arbitrary<ReadonlyArray<Shape>> = fc
  .record({
    root: fc.record({ start: fc.nat({ max: 4 }), length: fc.nat({ max: 16 }), ends: fc.boolean() }),
    drawn: fc.array(
      fc.record({
        parent: fc.nat(),
        start: fc.nat({ max: 20 }),
        length: fc.nat({ max: 10 }),
        ends: fc.boolean()
      }),
      { maxLength: 20 }
    )
  })
  .map(({ drawn, root }) =>
    [root, ...drawn.map((one) => one)].map(({ ends, length, start, ...rest }, n): Shape => {
      const parent = "parent" in rest ? Number(rest.parent) % n : undefined
      return {
        id: n === 0 ? "r" : `s${n}`,
        ...(parent === undefined ? {} : { parent: parent === 0 ? "r" : `s${parent}` }),
        start,
        ...(ends ? { end: start + length } : {})
      }
    })
  )

/** From its definition: of the children that ended by then the one that ended last. */
const naivePath = (shapes: ReadonlyArray<Shape>) => {
  const last = Math.max(...shapes.flatMap(({ end = 0, start = 0 }) => [start, end]))
  const startOf = ({ start = 0 }: Shape) => start
  const endOf = ({ end = last }: Shape) => end
  const walk = (span: Shape, from: number, to: number): ReadonlyArray<string> => {
    const moments: Array<string> = []
    let now = to
    while (now > from) {
      const children = shapes
        .filter(({ parent }) => parent === span.id)
        .map((child) => ({ child, end: Math.min(endOf(child), to), over: endOf(child) > to }))
        .filter(({ child, end }) => end <= now && end > from && startOf(child) < now)
        .sort(
          (left, right) =>
            right.end - left.end
            || Number(left.over) - Number(right.over)
            || startOf(left.child) - startOf(right.child)
            || (left.child.id < right.child.id ? -1 : 1)
        )
      const first = children[0]
      const end = first?.end ?? from
      for (; now > end; now--) moments.unshift(span.id)
      if (first === undefined) break
      now = Math.max(startOf(first.child), from)
      moments.unshift(...walk(first.child, now, end))
    }
    return moments
  }
  return walk(shapes[0]!, startOf(shapes[0]!), endOf(shapes[0]!))
}

describe("the critical path", () => {
  it("covers the root from its start to its end, without gaps and overlaps", () => {
    fc.assert(
      fc.property(trees, (shapes) => {
        const sections = path(...shapes)
        const last = Math.max(...shapes.flatMap(({ end = 0, start = 0 }) => [start, end]))
        assert.strictEqual(sections[0]![1], shapes[0]!.start)
        assert.strictEqual(sections.at(-1)![2], shapes[0]!.end ?? last)
        for (const [n, [id, from, to]] of sections.entries()) {
          if (sections.length > 1) assert.isBelow(from, to)
          if (n === 0) continue
          assert.strictEqual(from, sections[n - 1]![2])
          assert.notStrictEqual(id, sections[n - 1]![0])
        }
      })
    )
  })

  it("is at each moment where the definition says, and never in a span that does not run", () => {
    fc.assert(
      fc.property(trees, (shapes) => {
        const sections = path(...shapes)
        const moments = sections.flatMap(([id, from, to]) =>
          Array.from({ length: to - from }, () => id)
        )
        assert.deepStrictEqual(moments, naivePath(shapes))
        const byId = new Map(shapes.map((shape) => [shape.id, shape]))
        for (const [id, from, to] of sections) {
          const { end = to, start = 0 } = byId.get(id)!
          assert.isTrue(start <= from && to <= end, `${id} ${from} ${to}`)
        }
      })
    )
  })

  it("goes through the work, not through what ends with the root", () => {
    assert.deepStrictEqual(
      path(
        { id: "r", end: 192 },
        { id: "load", parent: "r", start: 2, end: 6 },
        { id: "work", parent: "r", start: 8, end: 182 },
        { id: "model", parent: "work", start: 10, end: 150 },
        { id: "tool", parent: "work", start: 120, end: 180 },
        { id: "save", parent: "r", start: 184, end: 192 }
      ),
      [
        ["r", 0, 2],
        ["load", 2, 6],
        ["r", 6, 8],
        ["work", 8, 120],
        ["tool", 120, 180],
        ["work", 180, 182],
        ["r", 182, 184],
        ["save", 184, 192]
      ]
    )
  })

  it("takes the one that ended last of those that ran side by side", () => {
    assert.deepStrictEqual(
      path(
        { id: "r", end: 10 },
        { id: "short", parent: "r", start: 1, end: 4 },
        { id: "long", parent: "r", start: 1, end: 9 }
      ),
      [
        ["r", 0, 1],
        ["long", 1, 9],
        ["r", 9, 10]
      ]
    )
  })

  it("counts what still runs up to the last known time", () => {
    assert.deepStrictEqual(
      path(
        { id: "r" },
        { id: "a", parent: "r", start: 1, end: 3 },
        { id: "b", parent: "r", start: 4 },
        { id: "c", parent: "b", start: 5, end: 7 }
      ),
      [
        ["r", 0, 1],
        ["a", 1, 3],
        ["r", 3, 4],
        ["b", 4, 5],
        ["c", 5, 7]
      ]
    )
    assert.deepStrictEqual(path({ id: "r", start: 3 }), [["r", 3, 3]])
    assert.deepStrictEqual(path({ id: "r", start: 3, end: 2 }), [["r", 3, 3]])
  })

  it("cuts what goes beyond its parent, and prefers what does not", () => {
    assert.deepStrictEqual(
      path({ id: "r", start: 5, end: 10 }, { id: "a", parent: "r", start: 2, end: 20 }),
      [["a", 5, 10]]
    )
    assert.deepStrictEqual(
      path(
        { id: "r", end: 10 },
        { id: "forgotten", parent: "r", start: 1, end: 20 },
        { id: "awaited", parent: "r", start: 6, end: 10 },
        { id: "elsewhere", parent: "r", start: 11, end: 12 }
      ),
      [
        ["r", 0, 6],
        ["awaited", 6, 10]
      ]
    )
  })

  it("does without spans that were never sent, the root included", () => {
    assert.deepStrictEqual(
      path(
        { id: "r", end: 10 },
        { id: "a", parent: "gone", start: 1, end: 3 },
        { id: "b", parent: "gone", start: 5, end: 7 }
      ),
      [
        ["r", 0, 1],
        ["a", 1, 3],
        ["gone", 3, 5],
        ["b", 5, 7],
        ["r", 7, 10]
      ]
    )
    assert.deepStrictEqual(
      path({ id: "a", parent: "r", start: 1, end: 3 }, { id: "b", parent: "r", start: 4, end: 6 }),
      [
        ["a", 1, 3],
        ["r", 3, 4],
        ["b", 4, 6]
      ]
    )
    assert.deepStrictEqual(pathOf("none", [{ id: "a", start: 1, end: 2 }]), [["a", 1, 2]])
    assert.deepStrictEqual(pathOf("none", []), [])
  })

  it("ends on a cycle, and takes a chain and a fan of 20,000 spans", () => {
    path({ id: "r", parent: "a", end: 5 }, { id: "a", parent: "r", start: 1, end: 4 })
    const chain = Array.from(
      { length: 20_000 },
      (_, n): Shape =>
        n === 0
          ? { id: "r", end: 50_000 }
          : { id: `s${n}`, parent: n === 1 ? "r" : `s${n - 1}`, start: n, end: 50_000 - n }
    )
    assert.strictEqual(path(...chain).length, 39_999)
    const fan = Array.from(
      { length: 20_000 },
      (_, n): Shape => ({ id: `f${n}`, parent: "r", start: n, end: n + 1 })
    )
    assert.strictEqual(path({ id: "r", end: 20_000 }, ...fan).length, 20_000)
  })
})

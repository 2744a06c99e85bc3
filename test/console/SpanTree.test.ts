/** Rows of a timeline: every span once, below its parent, whatever the spans say of each other. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { microsOf, spanTreeOf } from "../../src/console/parts/SpanTree.ts"
import { formatMicros } from "../../src/domain/Timestamp.ts"

const START = 1_767_225_600_000_000

const spanOf = (
  id: number,
  parent: number | undefined,
  from: number,
  took: number | undefined
) => ({
  id: String(id),
  execution_id: "x",
  ...(parent === undefined ? {} : { parent_span_id: String(parent) }),
  caused_by_span_ids: [],
  span_type: "CUSTOM",
  name: `span ${id}`,
  status: "COMPLETED" as const,
  started_at: formatMicros(START + from),
  ...(took === undefined ? {} : { ended_at: formatMicros(START + from + took) }),
  metadata: {}
})

const runs = fc
  .array(
    fc.record({
      parent: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
      from: fc.nat({ max: 5_000_000 }),
      took: fc.option(fc.nat({ max: 2_000_000 }), { nil: undefined })
    }),
    { minLength: 1, maxLength: 40 }
  )
  .map((spans) => spans.map(({ from, parent, took }, id) => spanOf(id, parent, from, took)))

describe("a tree of spans", () => {
  it("has every span once, those below another one right behind it", () => {
    fc.assert(
      fc.property(runs, (spans) => {
        const { length, rows, startedAt } = spanTreeOf(spans)
        assert.sameMembers(
          rows.map(({ span }) => span.id),
          spans.map(({ id }) => id)
        )
        rows.forEach(({ below, depth, from, span, to }, at) => {
          const inside = rows.slice(at + 1, at + 1 + below)
          assert.isTrue(inside.every((row) => row.depth > depth))
          const next = rows[at + 1 + below]
          assert.isTrue(next === undefined || next.depth <= depth)
          const parent = rows.slice(0, at).findLast((row) => row.depth === depth - 1)
          if (depth > 0) assert.strictEqual(span.parent_span_id, parent!.span.id)
          assert.strictEqual(from, microsOf(span.started_at) - startedAt)
          assert.isTrue(from >= 0 && to >= from && to <= length)
        })
      })
    )
  })

  it("is in the order of starts", () => {
    const spans = [
      spanOf(0, undefined, 0, 9),
      spanOf(1, 0, 5, 1),
      spanOf(2, 0, 2, 1),
      spanOf(3, 1, 5, 0)
    ]
    assert.deepStrictEqual(
      spanTreeOf(spans).rows.map(({ below, depth, span }) => [span.id, depth, below]),
      [
        ["0", 0, 3],
        ["2", 1, 0],
        ["1", 1, 1],
        ["3", 2, 0]
      ]
    )
  })

  it("is walked through however deep it is", () => {
    const spans = Array.from({ length: 10_000 }, (_, n) =>
      spanOf(n, n === 0 ? undefined : n - 1, n, 1)
    )
    assert.strictEqual(spanTreeOf(spans).rows.at(-1)!.depth, 9_999)
  })
})

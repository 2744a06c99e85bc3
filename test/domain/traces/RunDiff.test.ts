/** What differs between two runs: each span is said once, and pairs are what a reader would pair. */

import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { finish } from "../../../src/domain/Slices.ts"
import {
  type ComparedSpan,
  comparedSpan,
  type SpanDiff,
  spanDiffs,
  totalsOf
} from "../../../src/domain/traces/RunDiff.ts"
import { acyclic, at, type Shape, spanOf } from "./support/Spans.ts"

const compared = (shapes: ReadonlyArray<Shape>): ReadonlyArray<ComparedSpan> =>
  shapes.map((shape) => comparedSpan(spanOf(shape), true))

const diff = (as: ReadonlyArray<Shape>, bs: ReadonlyArray<Shape>) =>
  finish(spanDiffs(compared(as), compared(bs)))

const ids = (diffs: ReadonlyArray<SpanDiff>, side: "a" | "b") =>
  diffs.flatMap((one) => one[side]?.span_id ?? [])

/** Few names, so that much can be paired; parents may be above each other. */
const anyRun: fc.Arbitrary<ReadonlyArray<Shape>> = fc
  .tuple(
    acyclic,
    fc.array(fc.constantFrom("a", "b", "c"), { minLength: 31, maxLength: 31 }),
    fc.nat()
  )
  .map(([shapes, names, circle]) =>
    shapes.map((shape, n): Shape => {
      const named = { ...shape, name: names[n]!, type: n % 3 === 0 ? "LLM_CALL" : "CUSTOM" }
      return n === 1 && circle % 4 === 0 ? { ...named, parent: shapes.at(-1)!.id } : named
    })
  )

const line = ({ a, b, change, depth, name }: SpanDiff) =>
  `${"  ".repeat(depth)}${change} ${name} ${a?.span_id ?? "-"} ${b?.span_id ?? "-"}`

describe("the difference of two runs", () => {
  it("says every span of both once, and pairs only spans of one type", () => {
    fc.assert(
      fc.property(anyRun, anyRun, (as, bs) => {
        const found = diff(as, bs)
        const idsOf = (shapes: ReadonlyArray<Shape>) => shapes.map(({ id }) => id).sort()
        assert.deepStrictEqual(ids(found, "a").toSorted(), idsOf(as))
        assert.deepStrictEqual(ids(found, "b").toSorted(), idsOf(bs))
        const typeOf = (shapes: ReadonlyArray<Shape>, id: string | undefined) =>
          shapes.find((shape) => shape.id === id)?.type
        for (const { a, b, change } of found) {
          if (a !== undefined && b !== undefined) {
            assert.strictEqual(typeOf(as, a.span_id), typeOf(bs, b.span_id))
          } else assert.strictEqual(change, a === undefined ? "added" : "removed")
        }
      })
    )
  })

  it("finds nothing between a run and itself, under whatever ids", () => {
    fc.assert(
      fc.property(anyRun, (run) => {
        const renamed = run.map((shape) => ({
          ...shape,
          id: `other-${shape.id}`,
          ...(shape.parent === undefined ? {} : { parent: `other-${shape.parent}` })
        }))
        for (const { change, differences } of diff(run, renamed)) {
          assert.deepStrictEqual([change, differences], ["same", []])
        }
      })
    )
  })

  it("mirrors when the runs change sides", () => {
    fc.assert(
      fc.property(anyRun, anyRun, (as, bs) => {
        const pairs = (found: ReadonlyArray<SpanDiff>, left: "a" | "b", right: "a" | "b") =>
          found.map((one) => `${one[left]?.span_id} ${one[right]?.span_id}`).sort()
        assert.deepStrictEqual(pairs(diff(as, bs), "a", "b"), pairs(diff(bs, as), "b", "a"))
      })
    )
  })

  it("pairs the nth of a name with the nth, then by type, and shows what is left where it was", () => {
    const before: ReadonlyArray<Shape> = [
      { id: "r", type: "AGENT", name: "agent" },
      { id: "p", parent: "r", name: "plan", type: "LLM_CALL" },
      { id: "s1", parent: "r", name: "search", type: "TOOL_CALL" },
      { id: "s2", parent: "r", name: "search", type: "TOOL_CALL" },
      { id: "w", parent: "s2", name: "web" },
      { id: "z", parent: "r", name: "answer by gpt-4", type: "LLM_CALL" }
    ]
    const after: ReadonlyArray<Shape> = [
      { id: "R", type: "AGENT", name: "agent" },
      { id: "P", parent: "R", name: "plan", type: "LLM_CALL" },
      { id: "S", parent: "R", name: "search", type: "TOOL_CALL" },
      { id: "Z", parent: "R", name: "answer by gpt-5", type: "LLM_CALL" },
      { id: "M", parent: "Z", name: "mail", type: "TOOL_CALL" }
    ]
    const found = diff(before, after)
    assert.deepStrictEqual(found.map(line), [
      "same agent r R",
      "  same plan p P",
      "  same search s1 S",
      "  removed search s2 -",
      "    removed web w -",
      "  changed answer by gpt-4 z Z",
      "    added mail - M"
    ])
    assert.deepStrictEqual(found[5]!.differences, [
      { field: "name", a: '"answer by gpt-4"', b: '"answer by gpt-5"' }
    ])
  })

  it("says in what a pair differs, and shows long values where they part", () => {
    const prompt = (end: string) =>
      `${"You are 🙂 helpful. ".repeat(1_000)}${end}${"x".repeat(500)}`
    const span = (id: string, failed: boolean, metadata: Shape["metadata"]): Shape => ({
      id,
      end: 5,
      failed,
      metadata: metadata!
    })
    const as = [
      span("a", false, {
        attributes: { "gen_ai.prompt": prompt("ONE"), "gen_ai.response.id": "1", model: "m" },
        only: { a: 1 },
        list: [1, 2],
        empty: {}
      })
    ]
    const bs = [
      span("a", true, {
        attributes: { "gen_ai.prompt": prompt("TWO"), "gen_ai.response.id": "2", model: "m" },
        list: [1, 3]
      })
    ]
    const [{ differences }] = diff(as, bs) as [SpanDiff]
    const byField = new Map(differences.map(({ field, ...sides }) => [field, sides]))
    assert.deepStrictEqual([...byField.keys()].sort(), [
      "metadata.attributes.gen_ai.prompt",
      "metadata.empty",
      "metadata.list",
      "metadata.only.a",
      "status"
    ])
    assert.deepStrictEqual(byField.get("metadata.list"), { a: "[1,2]", b: "[1,3]" })
    assert.deepStrictEqual(byField.get("metadata.only.a"), { a: "1" })
    assert.deepStrictEqual(byField.get("metadata.empty"), { a: "{}" })
    const { a, b } = byField.get("metadata.attributes.gen_ai.prompt")!
    assert.match(a!, /^….*helpful\. ONEx+…$/)
    assert.match(b!, /^….*helpful\. TWOx+…$/)
    assert.isTrue(a!.isWellFormed() && b!.isWellFormed())
    assert.isAtMost(a!.length, 203)
  })

  it("misses no difference where keys with dots spell another path", () => {
    const one = { id: "a", metadata: { "x.y": 1, x: { y: 2 } } }
    const other = { id: "a", metadata: { "x.y": 3, x: { y: 2 } } }
    const swapped = { id: "a", metadata: { "x.y": 2, x: { y: 1 } } }
    assert.strictEqual(diff([one], [other])[0]!.change, "changed")
    assert.strictEqual(diff([one], [swapped])[0]!.change, "changed")
  })

  it("tells long keys apart by their ends, and names none of them in full", () => {
    const key = (end: string) => `${"k".repeat(16_400)}${end}`
    const nested = (value: number) => ({ [key("a")]: { [key("b")]: value, [key("c")]: 0 } })
    const [found] = diff([{ id: "a", metadata: nested(1) }], [{ id: "a", metadata: nested(2) }])
    assert.strictEqual(found!.differences.length, 1)
    assert.isBelow(found!.differences[0]!.field.length, 600)
  })

  it("counts differences that it does not show", () => {
    const many = (value: number) =>
      Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`k${n}`, value]))
    const [found] = diff([{ id: "a", metadata: many(1) }], [{ id: "a", metadata: many(2) }])
    assert.strictEqual(found!.differences.length, 50)
    assert.strictEqual(found!.differences_omitted, 30)
  })

  it("pairs ten thousand spans of one parent, and ten thousand in a row, at once", () => {
    const wide = Array.from(
      { length: 10_000 },
      (_, n): Shape => ({ id: `${n}`, name: `n${n % 3}` })
    )
    const deep = wide.map((shape, n): Shape => (n === 0 ? shape : { ...shape, parent: `${n - 1}` }))
    for (const run of [wide, deep]) {
      assert.isTrue(diff(run, run).every(({ change }) => change === "same"))
    }
  })

  it("gives way between two pairs", () => {
    const run = compared(Array.from({ length: 300 }, (_, n): Shape => ({ id: `${n}` })))
    assert.isAtLeast([...spanDiffs(run, run)].length, 300)
  })

  it("adds up tokens and costs of calls of models, not those that agents repeat", () => {
    const usage = {
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 3,
      "gen_ai.usage.cost": 0.5
    }
    const spans = compared([
      { id: "r", type: "AGENT", metadata: { attributes: usage } },
      { id: "1", parent: "r", type: "LLM_CALL", metadata: { attributes: usage }, end: 1 },
      { id: "2", parent: "r", type: "EMBEDDING", metadata: usage, end: 2, failed: true }
    ])
    const totals = totalsOf({ spans, startedAt: at(0), endedAt: at(7) })
    const tokens = { calls: 2, input_tokens: 20, output_tokens: 6, cost: 1 }
    assert.deepStrictEqual(totals, { spans: 3, errors: 1, ...tokens, duration_us: 7 })
    assert.notProperty(totalsOf({ spans, startedAt: at(0), endedAt: undefined }), "duration_us")
  })
})

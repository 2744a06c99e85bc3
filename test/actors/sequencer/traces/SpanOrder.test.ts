/** Spans of one command are put into an order that makes sense, whatever order they came in. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { orderSpans } from "../../../../src/actors/sequencer/traces/SpanOrder.ts"
import type { StartSpan } from "../../../../src/domain/traces/TraceOperation.ts"
import { runs } from "../../../support/Runs.ts"
import { startSpan } from "../../support/Traces.ts"

const sourcesOf = ({ causedBy, parentSpanId }: StartSpan): ReadonlyArray<string> =>
  parentSpanId === undefined ? causedBy : [parentSpanId, ...causedBy]

/** Up to ten spans that name each other, or ids that nobody has, at random. */
const spans = fc
  .uniqueArray(
    fc.record({
      id: fc.nat({ max: 9 }),
      parent: fc.option(fc.nat({ max: 11 })),
      causes: fc.array(fc.nat({ max: 11 }), { maxLength: 2 })
    }),
    { selector: ({ id }) => id, maxLength: 10 }
  )
  .map((drawn) =>
    drawn.map(({ causes, id, parent }) =>
      startSpan("e", `s${id}`, {
        ...(parent === null ? {} : { parentSpanId: `s${parent}` }),
        causedBy: causes.map((cause) => `s${cause}`)
      })
    )
  )

/** Ids from which one comes back to where one started. */
const onCycles = (starts: ReadonlyArray<StartSpan>, exists: (id: string) => boolean) => {
  const byId = new Map(starts.map((start) => [start.spanId, start]))
  const next = (id: string) => {
    const start = exists(id) ? undefined : byId.get(id)
    return start === undefined ? [] : sourcesOf(start).filter((source) => byId.has(source))
  }
  return [...byId.keys()].filter((id) => {
    const seen = new Set<string>()
    const waiting = [...next(id)]
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      if (one === id) return true
      if (seen.has(one)) continue
      seen.add(one)
      waiting.push(...next(one))
    }
    return false
  })
}

describe("orderSpans", () => {
  it("puts sources first, keeps every span, and names exactly those on cycles", () => {
    fc.assert(
      fc.property(spans, fc.nat({ max: 9 }), (starts, known) => {
        const exists = (id: string) => id === `s${known}`
        const { cyclic, ordered } = orderSpans(starts, exists)
        assert.deepStrictEqual(
          ordered.map(({ spanId }) => spanId).sort(),
          starts.map(({ spanId }) => spanId).sort()
        )
        assert.deepStrictEqual([...cyclic].sort(), [...onCycles(starts, exists)].sort())
        const places = new Map(ordered.map(({ spanId }, place) => [spanId, place]))
        for (const start of ordered) {
          if (cyclic.has(start.spanId) || exists(start.spanId)) continue
          for (const source of sourcesOf(start)) {
            const place = places.get(source)
            if (place !== undefined) assert.isBelow(place, places.get(start.spanId)!)
          }
        }
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("keeps the order of the request where nothing speaks against it", () => {
    const starts = ["c", "a", "b", "a"].map((id) => startSpan("e", id))
    const { ordered } = orderSpans(starts, () => false)
    assert.deepStrictEqual(
      ordered.map(({ spanId }) => spanId),
      ["c", "a", "a", "b"]
    )
  })

  it("takes a chain of any length", () => {
    const starts = Array.from({ length: 50_000 }, (_, index) =>
      startSpan("e", `s${index}`, { parentSpanId: `s${index + 1}` })
    )
    const { cyclic, ordered } = orderSpans(starts, () => false)
    assert.strictEqual(ordered[0]?.spanId, "s49999")
    assert.strictEqual(cyclic.size, 0)
  })
})

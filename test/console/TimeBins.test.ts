/** Bars of time: every event is in one bar, bars are of equal length, and there are not too many. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { binsOf, unitOf, units } from "../../src/console/parts/TimeBins.ts"

const UNIT_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }
const START = Date.parse("2026-01-01T00:00:00Z")

const cases = fc.record({
  unit: fc.constantFrom(...units),
  places: fc.array(
    fc.tuple(fc.nat({ max: 2_000 }), fc.constantFrom("success", "error"), fc.nat({ max: 50 })),
    { minLength: 1, maxLength: 60 }
  ),
  before: fc.option(fc.nat({ max: 300 })),
  after: fc.option(fc.nat({ max: 300 }))
})

describe("bars of time", () => {
  it("hold every event once, in bars of equal length, over the whole span", () => {
    fc.assert(
      fc.property(cases, ({ after, before, places, unit }) => {
        const unitMs = UNIT_MS[unit]
        const counts = places.map(([place, key, count]) => ({
          start: new Date(START + place * unitMs).toISOString(),
          key,
          count
        }))
        const from = before === null ? undefined : START - before * unitMs - 1
        const to = after === null ? undefined : START + after * unitMs + 1
        const bins = binsOf(counts, unit, { from, to })
        assert.isAtMost(bins.length, 101)
        const lengths = new Set(bins.map((bin) => bin.to - bin.from))
        assert.strictEqual(lengths.size, 1)
        assert.strictEqual([...lengths][0]! % unitMs, 0)
        bins.slice(1).forEach((bin, index) => assert.strictEqual(bin.from, bins[index]!.to))
        for (const key of ["success", "error"]) {
          const own = counts.filter((one) => one.key === key)
          assert.strictEqual(
            bins.reduce((sum, bin) => sum + (bin.counts[key] ?? 0), 0),
            own.reduce((sum, one) => sum + one.count, 0)
          )
        }
        for (const { count, start } of counts) {
          const bin = bins.find(
            (one) => one.from <= Date.parse(start) && Date.parse(start) < one.to
          )
          assert.isAtLeast(bin!.total, count)
        }
        if (from !== undefined) assert.isAtMost(bins[0]!.from, from)
        if (to !== undefined) assert.isAtLeast(bins.at(-1)!.to, to)
      })
    )
  })

  it("are none without events and without a span", () => {
    assert.deepStrictEqual(binsOf([], "day", { from: undefined, to: undefined }), [])
    assert.lengthOf(binsOf([], "hour", { from: START, to: START + 7_200_000 }), 3)
  })

  it("are as fine as a span allows", () => {
    assert.strictEqual(unitOf(0), "minute")
    assert.strictEqual(unitOf(3 * UNIT_MS.hour), "minute")
    assert.strictEqual(unitOf(UNIT_MS.day), "hour")
    assert.strictEqual(unitOf(9 * UNIT_MS.day), "day")
  })
})

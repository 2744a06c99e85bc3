/** Points in time: the vectors, the Python implementation, and the laws between the functions. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { afterEach, vi } from "vitest"
import {
  formatMicros,
  microsOf,
  nowMicros,
  parseTimestamp,
  YEAR_MAX,
  YEAR_MIN
} from "../../src/domain/Timestamp.ts"
import { readVectors } from "../support/Independent.ts"
import { runs } from "../support/Runs.ts"
import { almost } from "../support/TimestampTexts.ts"

const { timestamps } = readVectors("timestamps.json") as {
  readonly timestamps: ReadonlyArray<{ readonly text: string; readonly canonical: string | null }>
}

/** Microseconds of the years in which a double holds every one of them. */
const exactMicros = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

describe("parseTimestamp", () => {
  it.each(timestamps)("makes $canonical of $text", ({ canonical, text }) => {
    assert.strictEqual(parseTimestamp(text), canonical ?? undefined)
  })

  it("names the same instant as Date, in a text that is canonical itself", () => {
    fc.assert(
      fc.property(almost, (text) => {
        const canonical = parseTimestamp(text)
        if (canonical === undefined) return
        assert.match(canonical, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
        assert.strictEqual(parseTimestamp(canonical), canonical)
        assert.strictEqual(Date.parse(canonical), Date.parse(text.toUpperCase()))
      }),
      { numRuns: runs(1_000) }
    )
  })

  it("makes texts that sort as the times do", () => {
    fc.assert(
      fc.property(almost, almost, (left, right) => {
        const a = parseTimestamp(left)
        const b = parseTimestamp(right)
        fc.pre(a !== undefined && b !== undefined)
        assert.strictEqual(Math.sign(microsOf(a) - microsOf(b)), a < b ? -1 : a > b ? 1 : 0)
      })
    )
  })
})

describe("formatMicros and microsOf", () => {
  it("are each other's inverse", () => {
    fc.assert(
      fc.property(exactMicros, (micros) => {
        const text = formatMicros(micros)
        assert.strictEqual(parseTimestamp(text), text)
        assert.strictEqual(microsOf(text), micros)
        assert.strictEqual(formatMicros(BigInt(micros)), text)
      })
    )
  })

  it("cover the supported years, beyond doubles with bigint", () => {
    assert.strictEqual(formatMicros(0), `${YEAR_MIN}-01-01T00:00:00.000000Z`)
    const last = BigInt(Date.parse(`${YEAR_MAX}-12-31T23:59:59.999Z`)) * 1000n + 999n
    assert.strictEqual(formatMicros(last), `${YEAR_MAX}-12-31T23:59:59.999999Z`)
    assert.isAtMost(Math.abs(microsOf(formatMicros(last)) - Number(last)), 1)
  })
})

describe("nowMicros", () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it("is an integer close to the wall clock", () => {
    const before = Date.now()
    const micros = nowMicros()
    const after = Date.now()
    assert.isTrue(Number.isSafeInteger(micros))
    assert.isAtLeast(micros / 1000, before - 3)
    assert.isAtMost(micros / 1000, after + 3)
  })

  it("follows the wall clock when it is set forward and back", () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"], now: Date.UTC(2026, 0, 1) })
    assert.strictEqual(nowMicros(), Date.UTC(2026, 0, 1) * 1000)
    vi.setSystemTime(Date.UTC(2026, 0, 2))
    assert.strictEqual(nowMicros(), Date.UTC(2026, 0, 2) * 1000)
    vi.setSystemTime(Date.UTC(2025, 0, 1))
    assert.strictEqual(nowMicros(), Date.UTC(2025, 0, 1) * 1000)
  })

  it("goes on between two ticks of the wall clock", () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"], now: Date.UTC(2030, 0, 1) })
    const start = nowMicros()
    vi.spyOn(performance, "now").mockReturnValue(performance.now() + 0.25)
    assert.strictEqual(nowMicros(), start + 250)
    vi.restoreAllMocks()
  })
})

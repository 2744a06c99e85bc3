/** The numbers behind charts, mapping and sample. */
import { assert, describe, it } from "vitest"
import { brokenEventsOf } from "../../../src/exports/report/BrokenEvents.ts"
import { axisOf, timelineChart, timelineText } from "../../../src/exports/report/Charts.ts"
import { completenessOf } from "../../../src/exports/report/Completeness.ts"
import { boundedFilter } from "../../../src/exports/report/Evidence.ts"
import { fontFaces, hasGlyph } from "../../../src/exports/report/Fonts.ts"
import {
  drawSample,
  positionOf,
  SAMPLE_SIZE,
  seedOf
} from "../../../src/exports/report/Sampling.ts"
import { stylesheet } from "../../../src/exports/report/Stylesheet.ts"
import { command, share } from "../../../src/exports/report/Tables.ts"
import { BARS_MAX, type DayCount, timelineOf } from "../../../src/exports/report/Timeline.ts"
import { type Break, HISTORY_FROM, HISTORY_TO } from "../../../src/verify/Verifier.ts"
import { verificationOf } from "./support/Inputs.ts"
import { plausible } from "./support/SyntheticStore.ts"

const day = (date: string, count = 1, outcome = "success"): DayCount => ({
  start: `${date}T00:00:00.000000Z`,
  outcome,
  count
})

describe("timelineOf", () => {
  it("keeps empty days between the first and the last", () => {
    const { bars, unit } = timelineOf([day("2026-01-01", 2), day("2026-01-03", 3, "error")])
    assert.strictEqual(unit, "day")
    assert.deepStrictEqual(bars, [
      { label: "2026-01-01", success: 2, failure: 0, error: 0 },
      { label: "2026-01-02", success: 0, failure: 0, error: 0 },
      { label: "2026-01-03", success: 0, failure: 0, error: 3 }
    ])
  })

  it("takes the finest unit that fits and loses no event", () => {
    const cases = [
      ["2026-03-03", "day", "2026-01-01"],
      ["2026-03-04", "week", "2025-12-29"],
      ["2027-12-31", "month", "2026-01"],
      ["2036-12-31", "quarter", "2026 Q1"],
      ["2080-12-31", "year", "2026"],
      ["2261-12-31", "decade", "2020s"]
    ] as const
    for (const [last, unit, label] of cases) {
      const timeline = timelineOf([day("2026-01-01", 5), day(last, 7, "failure")])
      assert.strictEqual(timeline.unit, unit)
      assert.strictEqual(timeline.bars[0]!.label, label)
      assert.isAtMost(timeline.bars.length, BARS_MAX)
      assert.strictEqual(timeline.bars[0]!.success, 5)
      assert.strictEqual(timeline.bars.at(-1)!.failure, 7)
    }
  })

  it("has no bars for no events, and one for the whole history's ends", () => {
    assert.deepStrictEqual(timelineOf([]).bars, [])
    assert.strictEqual(timelineChart(timelineOf([])).markup, "")
    assert.strictEqual(timelineText(timelineOf([])), "No events.")
    assert.strictEqual(timelineOf([day("1970-01-01"), day("2261-12-31")]).bars.length, 30)
  })
})

describe("timelineChart", () => {
  it("draws one piece per outcome and says the same in words", () => {
    const { markup } = timelineChart(
      timelineOf([
        day("2026-01-01", 90),
        day("2026-01-01", 9, "failure"),
        day("2026-01-04", 1, "error")
      ])
    )
    assert.strictEqual(markup.split("<rect").length - 1, 3)
    assert.include(
      markup,
      "Events by day and outcome, 2026-01-01 to 2026-01-04: 4 days, 2 without events; the most, "
        + "99 events in 2026-01-01."
    )
  })

  it("has an axis of whole numbers in equal steps that just holds the most", () => {
    const axes = [1, 4, 5, 7, 11, 99, 2_600].map(axisOf)
    assert.deepStrictEqual(axes, [
      [0, 1],
      [0, 1, 2, 3, 4],
      [0, 1, 2, 3, 4, 5],
      [0, 2, 4, 6, 8],
      [0, 5, 10, 15],
      [0, 20, 40, 60, 80, 100],
      [0, 1_000, 2_000, 3_000]
    ])
  })

  it("keeps the last label within the drawing", () => {
    const { markup } = timelineChart(timelineOf([day("2026-01-01"), day("2026-01-31")]))
    const ends = [...markup.matchAll(/<text class="tick" x="([\d.]+)"[^>]*text-anchor="(\w+)"/g)]
    for (const [, x, anchor] of ends) {
      assert.isAtMost(Number(x) + (anchor === "middle" ? 30 : 0), 680)
    }
  })
})

describe("command", () => {
  it("breaks between words and behind an ampersand, and reads as it was given", () => {
    const text = "curl \\\n  'https://alk.example/v1/verify?from=2026-11-01&to=2026-11-30'"
    const { markup } = command(text)
    const pieces = [...markup.matchAll(/<span class="unbroken">([^<]*)<\/span>(<wbr>)?/g)]
    assert.deepStrictEqual(
      pieces.map(([, piece, mayBreak]) => [piece!.replaceAll(/&#\d+;/g, "."), mayBreak]),
      [
        ["curl", undefined],
        ["\\", undefined],
        [".https://alk.example/v1/verify?from=2026-11-01.", "<wbr>"],
        ["to=2026-11-30.", undefined]
      ]
    )
    const read = markup
      .replaceAll(/<[^>]*>/g, "")
      .replaceAll("&#38;", "&")
      .replaceAll("&#39;", "'")
    assert.strictEqual(read, text)
    assert.notInclude(command("x".repeat(200)).markup, "unbroken")
  })
})

describe("the colours of outcomes", () => {
  it("are one in the chart and in tables", () => {
    const css = stylesheet({ left: "", right: "", foot: "", alarm: false })
    for (const outcome of ["failure", "error"]) {
      const found = [`rect.${outcome} { fill:`, `.outcome.${outcome} { font-weight: 600; color:`]
      const [chart, cell] = found.map((rule) => css.split(rule)[1]?.split("}")[0]?.trim())
      assert.match(chart ?? "", /^#/)
      assert.strictEqual(chart, cell)
    }
  })
})

describe("share", () => {
  it("never rounds something to nothing or to all", () => {
    const parts = [
      [0, 9],
      [9, 9],
      [1, 100_000],
      [99_999, 100_000],
      [1, 8],
      [0, 0]
    ] as const
    const shares = parts.map(([part, whole]) => share(part, whole))
    assert.deepStrictEqual(shares, ["0 %", "100 %", "< 0.1 %", "> 99.9 %", "12.5 %", "–"])
  })
})

describe("completenessOf", () => {
  const bounds = { from: HISTORY_FROM, to: HISTORY_TO, from_sequence: null, to_sequence: null }

  it("is last - first + 1 up to the log's head", () => {
    const { head } = verificationOf(31, plausible)
    const complete = completenessOf(verificationOf(30, plausible))
    assert.deepInclude(complete, { expected: 30, checked: 30, isEstablished: true })
    const short = completenessOf(verificationOf(30, plausible, { head }))
    assert.deepInclude(short, { expected: 31, checked: 30, isEstablished: false })
    const gone = { head, first_sequence_number: null, last_sequence_number: null }
    const all = completenessOf(verificationOf(0, plausible, gone))
    assert.deepInclude(all, { expected: 31, checked: 0, isEstablished: false })
  })

  it("takes the first number of the bounds, not the first row that is left", () => {
    const cut = { first_sequence_number: 3, events_checked: 28 }
    const { expected, span } = completenessOf(verificationOf(30, plausible, cut))
    assert.deepStrictEqual([span, expected], [{ first: 1, last: 30 }, 30])
    const from = { bounds: { ...bounds, from_sequence: 11, to_sequence: 20 }, events_checked: 10 }
    const part = completenessOf(verificationOf(30, plausible, from))
    assert.deepStrictEqual(part.span, { first: 11, last: 20 })
    assert.isTrue(part.isEstablished)
  })

  it("of a closed period is what the check spans, and of nothing is established", () => {
    const closed = { ...bounds, to: plausible(20).timestamp }
    const changed = { bounds: closed, last_sequence_number: 20, events_checked: 20 }
    const period = completenessOf(verificationOf(30, plausible, changed))
    assert.deepInclude(period, { expected: 20, isEstablished: true })
    const none = completenessOf(verificationOf(0, plausible))
    assert.deepInclude(none, { span: undefined, expected: 0, isEstablished: true })
  })
})

describe("marksOf", () => {
  const broken = { event_id: null, expected: "a", actual: "b" }
  const verification = (breaks: ReadonlyArray<Break>, total = breaks.length) =>
    verificationOf(30, plausible, { valid: false, status: "broken", breaks, breaks_total: total })

  it("marks nothing where nothing was found", () => {
    const marks = brokenEventsOf(verificationOf(30, plausible))
    assert.deepStrictEqual([1, 30, 31].map(marks), [undefined, undefined, undefined])
  })

  it("marks what a break names and what lies outside of the chain, not what is missing", () => {
    const marks = brokenEventsOf(
      verification([
        { ...broken, sequence_number: 5, reason: "sequence_gap" },
        { ...broken, sequence_number: 9, reason: "duplicate_sequence" }
      ])
    )
    const of = [0, 1, 5, 9, 10, 30, 31].map(marks)
    const is = ["broken", undefined, undefined, "broken", undefined, undefined, "broken"]
    assert.deepStrictEqual(of, is)
  })

  it("marks as in doubt what a checkpoint contradicts and what the list of breaks left out", () => {
    const checkpoint = { ...broken, sequence_number: 8, reason: "checkpoint_mismatch" } as const
    assert.deepStrictEqual([1, 8, 9].map(brokenEventsOf(verification([checkpoint]))), [
      "in doubt",
      "in doubt",
      undefined
    ])
    const listed = { ...broken, sequence_number: 9, reason: "hash_mismatch" } as const
    assert.deepStrictEqual([8, 9, 10].map(brokenEventsOf(verification([listed], 2))), [
      undefined,
      "broken",
      "in doubt"
    ])
  })
})

describe("drawSample", () => {
  const seed = seedOf("acme", "f".repeat(64))

  it("takes all of a population that is no larger than a sample", () => {
    assert.deepStrictEqual(drawSample(seed, 0), [])
    assert.deepStrictEqual(
      drawSample(seed, SAMPLE_SIZE).map(({ position }) => position),
      Array.from({ length: SAMPLE_SIZE }, (_, index) => index + 1)
    )
  })

  it("draws different positions, each where its draw says", () => {
    for (const population of [SAMPLE_SIZE + 1, 1_000, 9_007_199_254_740_991]) {
      const drawn = drawSample(seed, population)
      assert.strictEqual(new Set(drawn.map(({ position }) => position)).size, SAMPLE_SIZE)
      for (const { draw, position } of drawn) {
        assert.strictEqual(position, positionOf(seed, draw, population))
        assert.isTrue(position >= 1 && position <= population)
      }
    }
  })

  it("follows from tenant and head alone", () => {
    const again = seedOf("acme", "f".repeat(64))
    assert.deepStrictEqual(drawSample(seed, 1_000), drawSample(again, 1_000))
    assert.notDeepEqual(drawSample(seed, 1_000), drawSample(seedOf("acne", "f".repeat(64)), 1_000))
    assert.notDeepEqual(drawSample(seed, 1_000), drawSample(seedOf("acme", "e".repeat(64)), 1_000))
  })
})

describe("boundedFilter", () => {
  const from = "2026-01-01T00:00:00.000000Z"
  const to = "2026-12-31T00:00:00.000000Z"
  const bounds = { from, to, from_sequence: 5, to_sequence: 90 }

  it("leaves out the whole history and never reads beyond what was checked", () => {
    for (const size of [0, 7]) {
      const filter = boundedFilter({ metadata: [] }, verificationOf(size, plausible))
      assert.deepStrictEqual(filter, { metadata: [], toSequence: size })
    }
  })

  it("narrows and never widens", () => {
    const verification = verificationOf(80, plausible, { bounds })
    const wide = {
      from: "2020-01-01T00:00:00.000000Z",
      to: "2030-01-01T00:00:00.000000Z",
      fromSequence: 1,
      toSequence: 99,
      metadata: []
    }
    const bounded = { metadata: [], from, to, fromSequence: 5, toSequence: 80 }
    assert.deepStrictEqual(boundedFilter(wide, verification), bounded)
    const narrow = {
      from: "2026-06-01T00:00:00.000000Z",
      to: "2026-06-02T00:00:00.000000Z",
      fromSequence: 10,
      toSequence: 20,
      metadata: []
    }
    assert.deepStrictEqual(boundedFilter(narrow, verification), narrow)
  })
})

describe("fonts", () => {
  it("know what they have glyphs for", () => {
    const has = (character: string) => hasGlyph(character.codePointAt(0)!)
    for (const character of "aé€Жאع中あ한글힣กูทहिन्दी") assert.isTrue(has(character), character)
    for (const character of ["\u1112", "😀", "த", "\ue000"])
      assert.isFalse(has(character), character)
  })

  it("embed a face per subset and weight, with the characters used and no others", () => {
    const ranges = (css: string) =>
      Array.from(css.matchAll(/unicode-range:([^}]+)/g), ([, range]) => range!)
    assert.deepStrictEqual(ranges(fontFaces([])), ["U+20-7e", "U+20-7e", "U+20-7e"])
    assert.deepStrictEqual(
      ranges(fontFaces(["中文中"]))
        .filter((range) => range !== "U+20-7e")
        .sort(),
      ["U+4e2d", "U+6587"]
    )
    assert.include(ranges(fontFaces(["กำ"])), "U+e01,U+e32-e33,U+e4d")
    assert.include(ranges(fontFaces(["\u0958"])), "U+915,U+93c,U+958")
  })
})

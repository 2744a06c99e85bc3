/** Where the two sides of a break differ, and that every reason of the API has its words. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { differenceOf, reasonTexts } from "../../src/console/pages/chain/BreakTexts.ts"
import { Break } from "../../src/verify/VerifyReport.ts"

describe("reasonTexts", () => {
  it("has a sentence for each reason that the service can name, and for nothing else", () => {
    assert.sameMembers(Object.keys(reasonTexts), [...Break.fields.reason.literals])
    for (const { meaning } of Object.values(reasonTexts)) assert.match(meaning, /^[A-Z].{60,}\.$/)
  })
})

describe("differenceOf", () => {
  it("marks the words that differ", () => {
    assert.deepStrictEqual(differenceOf("root ab over 8 events", "root cd over 8 events"), {
      before: "root ",
      expected: "ab",
      actual: "cd",
      after: " over 8 events"
    })
    assert.deepStrictEqual(differenceOf("a b", "a b c"), {
      before: "a b",
      expected: "",
      actual: " c",
      after: ""
    })
  })

  it("marks hashes as a whole", () => {
    const [one, other] = ["ab".repeat(32), `ab${"cd".repeat(31)}`]
    const whole = { before: "", expected: one, actual: other, after: "" }
    assert.deepStrictEqual(differenceOf(one, other), whole)
    assert.deepStrictEqual(differenceOf("sequence 5", "none"), {
      before: "",
      expected: "sequence 5",
      actual: "none",
      after: ""
    })
  })

  it("loses nothing of either text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.string({ unit: "grapheme" }),
        (one, other) => {
          const { actual, after, before, expected } = differenceOf(one, other)
          assert.strictEqual(before + expected + after, one)
          assert.strictEqual(before + actual + after, other)
        }
      )
    )
  })
})

/** RFC 8785: the vectors, the npm package that defines it, and the values that have no text. */
import { assert, describe, it } from "@effect/vitest"
import jcs from "canonicalize"
import fc from "fast-check"
import {
  canonicalInSteps,
  canonicalize,
  flat,
  NotCanonicalizable,
  quote
} from "../../../src/domain/json/CanonicalJson.ts"
import type { JsonValue } from "../../../src/domain/json/Json.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { readVectors } from "../../support/Independent.ts"
import { jsonValue } from "../../support/JsonTexts.ts"
import { runs } from "../../support/Runs.ts"

const vectors = readVectors("canonical-json.json") as {
  readonly canonical: ReadonlyArray<{
    readonly name: string
    readonly json: string
    readonly jcs: string
  }>
  readonly doubles: ReadonlyArray<{ readonly ieee: string; readonly jcs: string }>
}

describe("canonicalize", () => {
  it.each(vectors.canonical)("writes $name", (vector) => {
    assert.strictEqual(canonicalize(JSON.parse(vector.json)), vector.jcs)
    assert.strictEqual(jcs(JSON.parse(vector.json)), vector.jcs)
  })

  it.each(vectors.doubles)("writes the double $ieee as $jcs", (vector) => {
    const double = Buffer.from(vector.ieee, "hex").readDoubleBE()
    assert.strictEqual(canonicalize(double), vector.jcs)
    assert.strictEqual(canonicalize([double, { n: double }]), `[${vector.jcs},{"n":${vector.jcs}}]`)
  })

  it("writes the same bytes as the package canonicalize", () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        assert.strictEqual(canonicalize(value as JsonValue), jcs(value))
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("writes the same bytes for many keys, in order or not", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ unit: "binary", maxLength: 3 }), { maxLength: 60 }),
        fc.boolean(),
        (keys, inOrder) => {
          if (inOrder) keys.sort()
          const value = Object.fromEntries(keys.map((key) => [key, [key]]))
          assert.strictEqual(canonicalize(value), jcs(value))
        }
      )
    )
  })

  it("writes the same bytes in steps, of what is long, deep or of many members", () => {
    const long = "x".repeat(70_000)
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${at}`, at / 3]))
    fc.assert(
      fc.property(jsonValue, fc.constantFrom(long, many, 1), (value, beside) => {
        const deep = [[{ z: [[{ value, a: [value] }]], beside }], beside] as JsonValue
        assert.strictEqual(finish(canonicalInSteps(deep)), jcs(deep))
      }),
      { numRuns: runs(200) }
    )
    assert.isAbove([...canonicalInSteps(many)].length, 0)
    const unpaired = [[[[["\ud800"]]]], long]
    assert.throws(() => finish(canonicalInSteps(unpaired)), NotCanonicalizable)
  })

  it("is the same however the members were ordered, and reads back as the same value", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })), (value) => {
        const text = canonicalize(value as JsonValue)
        const reversed = Object.fromEntries(Object.entries(value).reverse())
        assert.strictEqual(canonicalize(reversed as JsonValue), text)
        assert.strictEqual(canonicalize(JSON.parse(text)), text)
      })
    )
  })

  it.each([
    "\ud800",
    "a\udc00",
    ["\ud83d"],
    { a: { b: "\ude00\ud83d" } },
    { "\ud800": 1 },
    { b: 1, a: "\udfff" },
    "x".repeat(100) + "\ud800",
    Number.NaN,
    [Number.POSITIVE_INFINITY],
    { a: Number.NEGATIVE_INFINITY }
  ])("refuses what has no text: %j", (value) => {
    assert.throws(() => canonicalize(value as JsonValue), NotCanonicalizable)
    assert.throws(() => jcs(value))
  })

  it("does not mistake an escaped backslash before ud800 for half a surrogate pair", () => {
    assert.strictEqual(canonicalize({ a: "\\ud800" }), '{"a":"\\\\ud800"}')
  })
})

describe("quote", () => {
  it("writes every string as JSON.stringify does, short or long", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 100 }), (text) => {
        assert.strictEqual(quote(text), JSON.stringify(text))
      })
    )
    const units = Array.from({ length: 0xd800 }, (_, unit) => String.fromCharCode(unit))
    assert.deepStrictEqual(
      units.filter((unit) => quote(unit) !== JSON.stringify(unit)),
      []
    )
  })
})

describe("flat", () => {
  it("changes nothing", () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        assert.strictEqual(flat(canonicalize(value as JsonValue)), canonicalize(value as JsonValue))
      })
    )
  })
})

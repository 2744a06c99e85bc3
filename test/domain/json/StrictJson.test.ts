/**
 * Strict JSON against JSON.parse and against its own careful scanner: the same texts are accepted,
 * with the same values, and nothing else.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { NESTING_MAX } from "../../../src/domain/json/Json.ts"
import { isExactNumber } from "../../../src/domain/json/JsonBytes.ts"
import {
  ITEM_BYTES_MAX,
  ITEM_VALUES_MAX,
  parseStrict,
  problemOf,
  type StrictResult
} from "../../../src/domain/json/StrictJson.ts"
import { readVectors } from "../../support/Independent.ts"
import { jsonText, number } from "../../support/JsonTexts.ts"
import { runs } from "../../support/Runs.ts"

interface Vector {
  readonly name: string
  readonly json?: string
  readonly hex?: string
}

const vectors = readVectors("strict-json.json") as {
  readonly accepted: ReadonlyArray<Vector>
  readonly refused: ReadonlyArray<Vector>
}

const bytesOf = ({ hex, json }: Vector): Buffer =>
  hex === undefined ? Buffer.from(json!) : Buffer.from(hex, "hex")

const parse = (text: string): StrictResult => parseStrict(Buffer.from(text))

const problemIn = (result: StrictResult) => {
  assert("problem" in result, JSON.stringify(result))
  return result.problem
}

const parsesPlainly = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe("the vectors", () => {
  it.each(vectors.accepted)("accepts $name", (vector) => {
    const bytes = bytesOf(vector)
    assert.deepStrictEqual(parseStrict(bytes), { value: JSON.parse(bytes.toString()) })
    assert.isUndefined(problemOf(bytes.toString()))
  })

  it.each(vectors.refused)("refuses $name", (vector) => {
    const bytes = bytesOf(vector)
    const { code } = problemIn(parseStrict(bytes))
    const isJson = vector.hex === undefined && parsesPlainly(vector.json!)
    assert.strictEqual(code, isJson ? "unstorable_value" : "invalid_json")
  })
})

describe("parseStrict", () => {
  it("agrees with the careful scanner and with JSON.parse, whatever the spelling", () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const problem = problemOf(text)
        const expected = problem === undefined ? { value: JSON.parse(text) } : { problem }
        assert.deepStrictEqual(parse(text), expected)
        assert.notStrictEqual(problem?.code, "invalid_json")
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("calls invalid_json exactly what JSON.parse does not take", () => {
    const noise = fc.constantFrom("", ...'"{}[],:\\0-e\tt')
    fc.assert(
      fc.property(jsonText, fc.nat(), fc.nat({ max: 2 }), noise, (text, place, cut, put) => {
        const at = place % (text.length + 1)
        const broken = text.slice(0, at) + put + text.slice(at + cut)
        fc.pre(broken.isWellFormed())
        const result = parse(broken)
        const found = "problem" in result ? result.problem : undefined
        for (const problem of [problemOf(broken), found]) {
          assert.strictEqual(problem?.code !== "invalid_json", parsesPlainly(broken), broken)
        }
      }),
      { numRuns: runs(3_000) }
    )
  })

  it("keeps __proto__ as a key of its own", () => {
    const result = parse('{"__proto__":{"admin":true}}')
    assert("value" in result)
    const value = result.value as Record<string, unknown>
    assert.deepStrictEqual(Object.keys(value), ["__proto__"])
    assert.isUndefined(value["admin"])
  })

  it("reads keys in index order without taking them for duplicates", () => {
    assert.deepStrictEqual(parse('{"b":1,"10":2,"9":3}'), { value: { 9: 3, 10: 2, b: 1 } })
  })

  it.each([
    ['{"metadata":{"a":1,"a":2}}', "metadata.a", "this key is given more than once"],
    ['{"metadata":{"tags":["x",9007199254740993]}}', "metadata.tags[1]", "9007199254740993"],
    ['{"metadata":{"a b":{"":"\\ud800"}}}', 'metadata["a b"][""]', "the text holds"],
    ['{"metadata":{"\\udc00":1}}', 'metadata["\\udc00"]', "the key holds an unpaired"],
    ['{"actor":{"id":"a\\u0000"}}', "actor.id", "U+0000"],
    ['[1,[2,{"a":1e400}]]', "[1][1].a", "1e400"],
    [`{"a":1e400,"b":{"c":1,"c":2}}`, "a", "1e400"]
  ])("names the place of the first offender: %s", (text, path, reason) => {
    const problem = problemIn(parse(text))
    assert.strictEqual(problem.code, "unstorable_value")
    assert.strictEqual(problem.path, path)
    assert.isTrue(problem.message.startsWith(`${path}: `), problem.message)
    assert.include(problem.message, reason)
  })

  it("says where a text stops being JSON", () => {
    assert.strictEqual(
      problemIn(parse('{"a":1,\n "b" 2}')).message,
      'not valid JSON: ":" is expected at line 2, column 6'
    )
    assert.strictEqual(
      problemIn(parse("[1,")).message,
      "not valid JSON: the text ends where a value is expected"
    )
  })

  it("keeps messages short however long keys and numbers are", () => {
    const long = "k".repeat(100_000)
    assert.isBelow(problemIn(parse(`{"${long}":1,"${long}":2}`)).message.length, 300)
    assert.isBelow(problemIn(parse(`[1${"0".repeat(100_000)}]`)).message.length, 300)
  })

  it.each(["[", '{"a":'])("refuses 100,000 levels of %s without running out of stack", (open) => {
    const close = open === "[" ? "]" : "}"
    const deep = open.repeat(100_000) + "1" + close.repeat(100_000)
    assert.strictEqual(problemIn(parse(deep)).code, "unstorable_value")
    assert.strictEqual(problemIn(parse(open.repeat(50_000))).code, "invalid_json")
  })

  it.each([
    ["values", `[${"1,".repeat(ITEM_VALUES_MAX - 1)}1]`, `[${"1,".repeat(ITEM_VALUES_MAX)}1]`],
    ["bytes", `"${"a".repeat(ITEM_BYTES_MAX)}"`, `"${"a".repeat(ITEM_BYTES_MAX)}\\u0000"`]
  ])("makes nothing of an item with too many %s", (_, most, tooMany) => {
    assert.isTrue("value" in parse(most))
    assert.include(problemIn(parse(tooMany)).message, "65536 values in one item, or over")
    assert.strictEqual(problemIn(parse(tooMany)).code, "unstorable_value")
  })

  it("does not count the zeros of a number that is too long to be compared", () => {
    assert.isTrue("value" in parse(`[1.${"0".repeat(1_000)}]`))
    assert.include(problemIn(parse(`[1.${"0".repeat(2_000)}]`)).message, "no double holds")
  })

  it("counts levels from a member of the object: metadata is the first", () => {
    const nested = (levels: number) => `{"metadata":${"[".repeat(levels)}${"]".repeat(levels)}}`
    assert.isTrue("value" in parse(nested(NESTING_MAX)))
    assert.include(problemIn(parse(nested(NESTING_MAX + 1))).message, "64 levels")
  })
})

describe("isExactNumber", () => {
  it("holds for the shortest form of every double, with zeros behind it too", () => {
    const double = fc.double({ noNaN: true, noDefaultInfinity: true })
    fc.assert(
      fc.property(double, fc.integer({ min: 1, max: 40 }), (n, zeros) => {
        const [mantissa, exponent] = n.toExponential().split("e")
        const point = mantissa!.includes(".") ? "" : "."
        assert.isTrue(isExactNumber(String(n)))
        assert.isTrue(isExactNumber(n.toExponential()))
        assert.isTrue(isExactNumber(`${mantissa}${point}${"0".repeat(zeros)}e${exponent}`))
      })
    )
  })

  it("holds for what printers of 17 digits make of every double, but for integers", () => {
    const double = fc.double({ noNaN: true, noDefaultInfinity: true })
    fc.assert(
      fc.property(double, (n) => {
        const text = n.toExponential(16)
        assert.isTrue(isExactNumber(text), text)
        assert.strictEqual(Number(text), Math.abs(n) === 0 ? 0 : n)
      })
    )
    assert.isTrue(isExactNumber("0.10000000000000001"))
    assert.isTrue(isExactNumber("-0.29999999999999999"))
    assert.isFalse(isExactNumber("0.10000000000000004"))
    assert.isFalse(isExactNumber("0.100000000000000011"))
    // 2 to the 55th, whose shortest form ends in 70.
    assert.isFalse(isExactNumber("36028797018963968"))
    assert.isFalse(isExactNumber("9007199254740993"))
    assert.isFalse(isExactNumber("12345678901234567890.5"))
  })

  it("holds for a number exactly if its text has the value of the canonical one, or of 17 digits", () => {
    const fraction = (text: string): readonly [bigint, bigint] => {
      const [mantissa, exponent = "0"] = text.toLowerCase().split("e")
      const [whole, decimals = ""] = mantissa!.split(".")
      const power = BigInt(exponent) - BigInt(decimals.length)
      const digits = BigInt(whole! + decimals)
      return power < 0n ? [digits, 10n ** -power] : [digits * 10n ** power, 1n]
    }
    fc.assert(
      fc.property(number, (text) => {
        const nearest = Number(text)
        const isEqual = (other: string): boolean => {
          const [a, b] = fraction(text)
          const [c, d] = fraction(other)
          return a * d === c * b
        }
        const isExact = (): boolean =>
          isEqual(String(nearest)) || (/[.e]/i.test(text) && isEqual(nearest.toPrecision(17)))
        assert.strictEqual(isExactNumber(text), Number.isFinite(nearest) && isExact(), text)
      }),
      { numRuns: runs(1_000) }
    )
  })
})

/**
 * Generators of JSON texts in every spelling: space, escapes, number forms, keys that stand twice,
 * numbers that no double holds, halves of surrogate pairs. All of them are JSON; whether they can
 * be stored is for the tested code to say.
 */
import fc from "fast-check"

const space = fc.constantFrom("", "", "", " ", "\n", "\r\n\t ")

const piece = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom("a", "b", "x y", "é", "日本", "😀", "[{", ":1,", "ud800")
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom("\\n", '\\"', "\\\\", "\\/", "\\u00e9", "\\u001F", "\\ud83d\\uDE00")
  },
  { weight: 1, arbitrary: fc.constantFrom("\\u0000", "\\ud800", "\\udc00", "\\\\ud800", "\u2028") }
)

const string = fc.array(piece, { maxLength: 4 }).map((pieces) => `"${pieces.join("")}"`)

const key = fc.constantFrom(
  '"a"',
  '"b"',
  '"c"',
  '"d"',
  '"e"',
  '"f"',
  '"g"',
  '""',
  '"10"',
  '"9"',
  '"é"',
  '"\\u0061"',
  '"__proto__"',
  '"constructor"',
  '"a key that is long"',
  '"\\ud83d"'
)

/** Decimal texts: of doubles in several forms, and with digits that no double has. */
export const number: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.integer().map(String) },
  { weight: 4, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) },
  {
    weight: 2,
    arbitrary: fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((n) => n.toFixed(3))
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: -330, max: 310 }))
      .map(([mantissa, exponent]) => `${mantissa}E${exponent}`)
  },
  { weight: 1, arbitrary: fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String) },
  {
    weight: 1,
    arbitrary: fc.double({ min: 1e-5, max: 1e5, noNaN: true }).map((n) => n.toPrecision(18))
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("-0", "0.000", "1e400", "-0E9", "9007199254740993", "1.50")
  }
)

const spaced = (inner: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(space, inner, space).map((parts) => parts.join(""))

const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("true", "false", "null"),
    number,
    string,
    fc.array(spaced(tie("value")), { maxLength: 4 }).map((parts) => `[${parts.join(",")}]`),
    fc
      .array(fc.tuple(spaced(key), spaced(tie("value"))), { maxLength: 4 })
      .map((members) => `{${members.map((member) => member.join(":")).join(",")}}`)
  )
}))

/** One JSON text, mostly an object or array, sometimes nested beyond the limit. */
export const jsonText: fc.Arbitrary<string> = fc.oneof(
  { weight: 12, arbitrary: spaced(value) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 28, max: 36 }), value)
      .map(([levels, inner]) => '{"a":['.repeat(levels / 2) + inner + "]}".repeat(levels / 2))
  }
)

/** JSON values as `JSON.parse` gives them, keys of prototypes and indices among them. */
export const jsonValue: fc.Arbitrary<unknown> = fc
  .oneof(
    fc.jsonValue({ maxDepth: 4 }),
    fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text))
  )
  .chain((inner) =>
    fc
      .uniqueArray(fc.constantFrom("b", "a", "10", "9", "__proto__", "€", "😀", "דּ", ""), {
        maxLength: 6
      })
      .map((keys) =>
        JSON.parse(`{${keys.map((name) => `${JSON.stringify(name)}:${JSON.stringify(inner)}`)}}`)
      )
  )

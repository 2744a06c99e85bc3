/** The language of `where`: what its texts mean, what is refused and at which column. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type Expression,
  WHERE_LENGTH_MAX
} from "../../../../src/domain/events/where/Expression.ts"
import { parseWhere, WhereError } from "../../../../src/domain/events/where/Parse.ts"
import { printWhere } from "../../../../src/domain/events/where/Print.ts"
import {
  expressionOf,
  fixedWhere,
  whereWithMoments
} from "../../../../src/domain/events/where/Where.ts"
import { runs } from "../../../support/Runs.ts"
import { anyExpression } from "./Expressions.ts"

const NOW = "2026-11-21T12:00:00.000000Z"

/** As a request is read; what is fixed means the same. */
const parse = (text: string): Expression => parseWhere(fixedWhere(text, NOW), NOW)

const day = { first: "2026-11-20T00:00:00.000000Z", last: "2026-11-20T23:59:59.999999Z" }

const meanings: ReadonlyArray<readonly [text: string, meaning: Expression]> = [
  ["outcome:failure", { field: "outcome", is: "failure" }],
  ["outcome=failure", { field: "outcome", is: "failure" }],
  ["  outcome:failure ", { field: "outcome", is: "failure" }],
  ["outcome!=success", { not: { field: "outcome", is: "success" } }],
  [
    "outcome:failure,error",
    {
      or: [
        { field: "outcome", is: "failure" },
        { field: "outcome", is: "error" }
      ]
    }
  ],
  [
    'outcome!="failure", error',
    {
      not: {
        or: [
          { field: "outcome", is: "failure" },
          { field: "outcome", is: "error" }
        ]
      }
    }
  ],
  ["actor:u_1*", { field: "actor_id", startsWith: "u_1" }],
  ["actor:u_1\\*", { field: "actor_id", is: "u_1*" }],
  ['actor.id:"u 1"*', { field: "actor_id", startsWith: "u 1" }],
  ['actor_id:"u_1*"', { field: "actor_id", is: "u_1*" }],
  ['actor_id:""', { field: "actor_id", is: "" }],
  ["resource_name:*", { field: "resource_name", exists: true }],
  ["-email:*", { not: { field: "actor_email", exists: true } }],
  ["metadata.amount>10000", { metadata: "amount", sign: ">", value: "10000" }],
  ["metadata.amount<=-1.50", { metadata: "amount", sign: "<=", value: "-1.5" }],
  ["metadata.a.b:x:y=z", { metadata: "a.b", is: "x:y=z" }],
  ["metadata.a\\ b:*", { metadata: "a b", exists: true }],
  ["metadata.url:https://example.com/", { metadata: "url", is: "https://example.com/" }],
  ["sequence_number>=7", { field: "sequence_number", sign: ">=", value: "7" }],
  ["sequence:07", { field: "sequence_number", is: "7" }],
  ["timestamp>=-24h", { field: "timestamp", sign: ">=", value: "2026-11-20T12:00:00.000000Z" }],
  ["timestamp<now", { field: "timestamp", sign: "<", value: NOW }],
  ["timestamp>2026-11-20", { field: "timestamp", sign: ">", value: day.last }],
  ["timestamp>=2026-11-20", { field: "timestamp", sign: ">=", value: day.first }],
  ["timestamp<2026-11-20", { field: "timestamp", sign: "<", value: day.first }],
  ["timestamp<=2026-11-20", { field: "timestamp", sign: "<=", value: day.last }],
  [
    "created_at:2026-11-20",
    {
      and: [
        { field: "created_at", sign: ">=", value: day.first },
        { field: "created_at", sign: "<=", value: day.last }
      ]
    }
  ],
  [
    'timestamp:"2026-11-20T02:00:00+02:00"',
    { field: "timestamp", is: "2026-11-20T00:00:00.000000Z" }
  ],
  ["failed login", { and: [{ search: "failed" }, { search: "login" }] }],
  ['"failed login"', { search: "failed login" }],
  ['"OR"', { search: "OR" }],
  ["or ORDER", { and: [{ search: "or" }, { search: "ORDER" }] }],
  ["a AND b", { and: [{ search: "a" }, { search: "b" }] }],
  ["a b OR c", { or: [{ and: [{ search: "a" }, { search: "b" }] }, { search: "c" }] }],
  [
    "a (b OR NOT c)",
    { and: [{ search: "a" }, { or: [{ search: "b" }, { not: { search: "c" } }] }] }
  ],
  ["NOT NOT a", { not: { not: { search: "a" } } }],
  ["-(a)", { not: { search: "a" } }],
  ['"say \\"no\\" \\\\"', { search: 'say "no" \\' }],
  [
    'outcome:failure actor:u_1* metadata.amount>10000 "free text"',
    {
      and: [
        { field: "outcome", is: "failure" },
        { field: "actor_id", startsWith: "u_1" },
        { metadata: "amount", sign: ">", value: "10000" },
        { search: "free text" }
      ]
    }
  ]
]

const refusals: ReadonlyArray<readonly [text: string, column: number, what: RegExp]> = [
  ["", 1, /has to follow/],
  ["   ", 4, /has to follow/],
  ["a OR", 5, /has to follow/],
  ["a OR OR b", 6, /has to/],
  ["AND a", 1, /./],
  ["NOT", 4, /has to follow/],
  ["(a", 1, /is not closed/],
  ["a)", 2, /no \( is open/],
  ["()", 2, /has to/],
  ['"a', 1, /is not closed/],
  ['""', 1, /empty/],
  ["a\\", 3, /has to follow/],
  [
    "colour:red",
    1,
    /"colour" is no field; fields are sequence_number, id, .*metadata\.<path>; a text goes in quotes/
  ],
  ["outcom:failure", 1, /"outcom" is no field; did you mean outcome\? A text goes in quotes/],
  ["http://x", 1, /a text goes in quotes/],
  ["outcome:", 9, /a value has to follow/],
  ["outcome:failure,", 17, /a value has to follow/],
  ["outcome:no", 9, /one of success, failure, error/],
  ["ü outcome:no", 11, /one of/],
  ["\u{1f4c4} outcome:no", 11, /one of/],
  ["actor>x", 7, /has no order/],
  ["actor:a*b", 9, /at the end/],
  ["a*", 2, /value of a field/],
  ["sequence:x", 10, /an integer/],
  ["sequence>9007199254740993", 10, /an integer/],
  ["sequence:1*", 10, /no text/],
  ["sequence>1,2", 12, /one value/],
  ["timestamp>yesterday", 11, /-24h/],
  ["timestamp>2026-02-30", 11, /a date/],
  ["timestamp>-999999w", 11, /-24h/],
  ["metadata.amount>much", 17, /a number/],
  ["metadata.amount>1e999", 17, /a number/],
  ["metadata.amount>*", 17, /without \*/],
  ["metadata.:1", 1, /names no path/],
  ["metadata.a.b.c.d.e.f.g:1", 1, /segments/],
  [`"${"x".repeat(257)}"`, 1, /256/],
  [Array.from({ length: 65 }, () => "a").join(" "), 129, /64 conditions/],
  ["(".repeat(40), 18, /16 brackets/],
  ["-".repeat(40), 18, /16 brackets/],
  ["x".repeat(4_097), 4_097, /4096 characters/],
  ["\0", 1, /U\+0000/]
]

const refusalOf = (text: string): WhereError => {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof WhereError) return error
    throw error
  }
  throw new Error(`${JSON.stringify(text)} is not refused`)
}

describe("where", () => {
  for (const [text, meaning] of meanings) {
    it(`reads ${JSON.stringify(text)}`, () => assert.deepStrictEqual(parse(text), meaning))
  }

  for (const [text, column, what] of refusals) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))} at column ${column}`, () => {
      const error = refusalOf(text)
      assert.match(error.message, what)
      assert.strictEqual(error.column, column, error.message)
    })
  }

  it("is printed as a text that means the same at any time", () => {
    fc.assert(
      fc.property(anyExpression, (expression) => {
        const text = printWhere(expression)
        assert.deepStrictEqual(parseWhere(text, "1999-01-01T00:00:00.000000Z"), expression, text)
      }),
      { numRuns: 2_000 }
    )
  })

  it("is fixed to the time of the request", () => {
    const fixed = fixedWhere("timestamp>=-24h login", NOW)
    assert.strictEqual(fixed, 'timestamp>=2026-11-20T12:00:00.000000Z "login"')
    assert.strictEqual(fixedWhere(fixed, "2027-01-01T00:00:00.000000Z"), fixed)
  })

  it("is written with the moments of its times from now, and else as it was", () => {
    const text =
      'timestamp>=-24h  (ü OR -created_at:"now",2026-11-01, now+1h) now "timestamp:now" metadata.at:now'
    const [day, now, hour] = ["2026-11-20T12:00:00.000000Z", NOW, "2026-11-21T13:00:00.000000Z"]
    assert.strictEqual(
      whereWithMoments(text, NOW),
      `timestamp>=${day}  (ü OR -created_at:${now},2026-11-01, ${hour})`
        + ' now "timestamp:now" metadata.at:now'
    )
  })

  it("means the same with the moments, whenever it is read", () => {
    const times = ["now", "-24h", "now-2w", "+5m", "2026-11-20", "2026-11-20T10:00:00Z"]
    const part = fc
      .tuple(
        fc.constantFrom("timestamp", "-created_at", "NOT timestamp", "metadata.at"),
        fc.constantFrom(":", "=", "!="),
        fc.array(fc.constantFrom(...times, '"now"'), { minLength: 1, maxLength: 3 })
      )
      .map(([field, sign, values]) => `${field}${sign}${values.join(",")}`)
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), anyExpression, (parts, other) => {
        const text = `${parts.join(" OR ")} (${printWhere(other)})`
        const fixed = whereWithMoments(text, NOW)
        const [before, later] = [parseWhere(text, NOW), "2027-01-01T00:00:00.000000Z"]
        assert.deepStrictEqual(parseWhere(fixed, later), before, text)
      }),
      { numRuns: runs(5_000) }
    )
  })

  it("stays as it is where the moments have no room", () => {
    const padded = (length: number) => "timestamp>-24h a".padEnd(length)
    const added = "2026-11-20T12:00:00.000000Z".length - "-24h".length
    const fits = padded(WHERE_LENGTH_MAX - added)
    assert.strictEqual(whereWithMoments(fits, NOW).length, WHERE_LENGTH_MAX)
    assert.strictEqual(whereWithMoments(`${fits} `, NOW), `${fits} `)
  })

  it("is kept whatever its printed form has more of than what a client may write", () => {
    const nested = Array.from({ length: 15 }).reduce((text: string) => `(a ${text} OR b)`, "c")
    const days = Array.from({ length: 64 }, () => "timestamp:2026-11-20").join(" ")
    for (const text of [nested, days]) {
      assert.deepStrictEqual(expressionOf(fixedWhere(text, NOW)), parseWhere(text, NOW))
    }
  })

  it("never fails otherwise, whatever the text is", () => {
    const pieces = fc.constantFrom(
      ...'()",:=!<>*\\- \t',
      "OR",
      "AND",
      "NOT",
      "outcome",
      "metadata.a",
      "failure",
      "1",
      "-24h",
      "timestamp"
    )
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(pieces).map((all) => all.join(""))
    )
    fc.assert(
      fc.property(text, (source) => {
        try {
          parse(source)
        } catch (error) {
          assert.instanceOf(error, WhereError)
          assert.isAtMost((error as WhereError).column, [...source].length + 1)
        }
      }),
      { numRuns: 3_000 }
    )
  })
})

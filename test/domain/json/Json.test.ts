/**
 * Our own reading of JSON against JSON.parse where that is right, and by construction where it is
 * not: texts whose keys are written with escapes, after the engine was misled.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import {
  engineConfusesKeys,
  hasEscapedKey,
  type JsonValue,
  parseJson,
  parseJsonWith
} from "../../../src/domain/json/Json.ts"
import { jsonOf } from "../../../src/exports/checker/Lines.ts"
import { arm, armingFor, freshName, victims } from "../../support/EscapedKeys.ts"
import { jsonText } from "../../support/JsonTexts.ts"
import { runs } from "../../support/Runs.ts"

type Read = (text: string) => unknown
/** The reader itself, whatever the text, and what everybody calls. */
const own: Read = (text) => parseJsonWith(text, Number)

const readers: ReadonlyArray<readonly [string, Read]> = [
  ["parseJson", parseJson],
  ["parseJsonWith", own]
]

const outcomeOf = (read: Read, text: string): unknown => {
  try {
    return { value: read(text) }
  } catch (error) {
    assert.instanceOf(error, SyntaxError)
    return "refused"
  }
}

/** A text, and how the value that it stands for is made without reading it. */
interface Made {
  readonly text: string
  readonly value: () => unknown
}

const unit = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
  ).join("")

/** A character of a key and one of its spellings. */
const spelled = fc
  .tuple(fc.constantFrom(...'\\"/\nu01azé名😀 ', "\ud800"), fc.boolean())
  .map(([character, isEscaped]) => {
    const short = character === "/" ? "\\/" : JSON.stringify(character).slice(1, -1)
    return { character, spelling: isEscaped ? unit(character) : short }
  })

const key = fc
  .oneof(
    { weight: 9, arbitrary: fc.array(spelled, { maxLength: 4 }) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("__proto__", "constructor", "10", "9")
        .map((name) => [{ character: name, spelling: unit(name[0]!) + name.slice(1) }])
    }
  )
  .map((parts) => ({
    key: parts.map(({ character }) => character).join(""),
    literal: `"${parts.map(({ spelling }) => spelling).join("")}"`
  }))

const scalar: fc.Arbitrary<Made> = fc
  .oneof(
    fc.string({ unit: "binary" }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(true, false, null)
  )
  .map((value) => ({
    text: Object.is(value, -0) ? "-0" : JSON.stringify(value),
    value: () => value
  }))

const members = (value: fc.Arbitrary<Made>) => fc.array(fc.tuple(key, value), { maxLength: 5 })

const space = fc.constantFrom("", " ", "\n\t")

/** Objects and arrays whose keys are spelled in every way, nested. */
const { made } = fc.letrec<{ made: Made }>((tie) => ({
  made: fc.oneof(
    { depthSize: "medium" },
    scalar,
    fc.array(tie("made"), { maxLength: 4 }).map((elements) => ({
      text: `[${elements.map(({ text }) => text).join(",")}]`,
      value: () => elements.map(({ value }) => value())
    })),
    fc.tuple(members(tie("made")), space).map(([given, gap]) => ({
      text: `{${given.map(([{ literal }, { text }]) => `${literal}${gap}:${text}`).join(",")}}`,
      value: () => {
        const object = {}
        for (const [{ key }, { value }] of given) {
          const own = { value: value(), writable: true, enumerable: true, configurable: true }
          Object.defineProperty(object, key, own)
        }
        return object
      }
    }))
  )
}))

/** Members in order, so that `__proto__`, -0 and the order of keys count. */
const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : value
  assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
  return Object.entries(Object.getOwnPropertyDescriptors(value)).map(([key, descriptor]) => {
    const { configurable, enumerable, value: member, writable } = descriptor
    assert.isTrue(configurable && enumerable && writable)
    return [key, inOrder(member)]
  })
}

describe.each(readers)("%s", (_, read) => {
  it("reads what an armed engine misreads", () => {
    for (const { canonical, name, text } of victims()) {
      arm(text, canonical)
      assert.strictEqual(canonicalize(read(text) as JsonValue), canonical, name)
    }
  })

  it("returns what JSON.parse does of texts without escaped keys", () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        fc.pre(!hasEscapedKey(text))
        assert.deepStrictEqual(inOrder(read(text)), inOrder(JSON.parse(text)))
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("returns what the text was made for, whatever the spelling of its keys, armed or not", () => {
    fc.assert(
      fc.property(made, ({ text, value }) => {
        JSON.parse(armingFor(text))
        assert.deepStrictEqual(inOrder(read(text)), inOrder(value()), text)
      }),
      { numRuns: runs(3_000) }
    )
  })

  it("refuses exactly what JSON.parse does not take", () => {
    const noise = fc.constantFrom(
      "",
      ...'"{}[],:\\/0123-+.eEtfnu \t\n\r\u0000\u000b\u00a0\u2028\ufeff',
      "\\u00",
      "01",
      "tru"
    )
    fc.assert(
      fc.property(jsonText, fc.nat(), fc.nat({ max: 2 }), noise, (text, place, cut, put) => {
        const at = place % (text.length + 1)
        const broken = text.slice(0, at) + put + text.slice(at + cut)
        const isJson = outcomeOf(JSON.parse, broken) !== "refused"
        assert.strictEqual(outcomeOf(read, broken) !== "refused", isJson, JSON.stringify(broken))
      }),
      { numRuns: runs(5_000) }
    )
  })

  it.each([
    "",
    " ",
    "{",
    "[",
    "}",
    "]",
    "{]",
    "[}",
    "[1,]",
    "[,1]",
    "[1 2]",
    '{"\\u0061"}',
    '{"\\u0061" 1}',
    '{"\\u0061":}',
    '{"\\u0061":1,}',
    '{"\\u0061":1,,"b":2}',
    '{"\\u0061":1 "b":2}',
    "{'a':1}",
    '{"\\x61":1}',
    '{"\\u006":1}',
    '{"\\u0061":1}}',
    '{"\\u0061":1}x',
    '{"\\u0061":1',
    '"\\',
    '"\\"',
    '{"\\u0061":01}',
    '{"\\u0061":1.}',
    '{"\\u0061":.1}',
    '{"\\u0061":+1}',
    '{"\\u0061":-}',
    '{"\\u0061":1e}',
    '{"\\u0061":1e+}',
    '{"\\u0061":0x1}',
    '{"\\u0061":NaN}',
    '{"\\u0061":Infinity}',
    '{"\\u0061":undefined}',
    '{"\\u0061":True}',
    '{"\\u0061":nul}',
    '{"\\u0061":"a\nb"}',
    '{"\\u0061":"\\v"}',
    '\ufeff{"\\u0061":1}',
    '{"\\u0061":1}\u00a0',
    '{"\\u0061\n":1}',
    '{\\"a":1}'
  ])("refuses %j with a SyntaxError", (text) => {
    assert.strictEqual(outcomeOf(JSON.parse, text), "refused")
    assert.strictEqual(outcomeOf(read, text), "refused")
  })

  it("takes the last of keys that are the same, at the place of the first", () => {
    const text =
      '{"a":1,"b":2,"\\u0061":3,"2":4,"\\u0031":5,' + '"__proto__":6,"\\u005f_proto__":7}'
    assert.strictEqual(JSON.stringify(read(text)), '{"1":5,"2":4,"a":3,"b":2,"__proto__":7}')
  })

  it("keeps __proto__ as a key of its own, and no other object gets it", () => {
    const text = '{"\\u005f_proto__":{"admin":true},"\\u0061":{}}'
    const value = read(text) as Record<string, unknown>
    assert.deepStrictEqual(Object.keys(value), ["__proto__", "a"])
    assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
    assert.isUndefined(value["admin"])
  })

  it("reads a million levels without running out of stack, or refuses them", () => {
    const levels = 1_000_000
    let value = read(`${"[".repeat(levels)}{"\\u0061":1}${"]".repeat(levels)}`)
    for (let level = 0; level < levels; level++) value = (value as ReadonlyArray<unknown>)[0]
    assert.deepStrictEqual(value, { a: 1 })
    assert.strictEqual(outcomeOf(read, `{"\\u0061":${"[".repeat(levels)}`), "refused")
  })
})

describe("hasEscapedKey", () => {
  it("is true of a text exactly if one of its keys is written with a backslash", () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        let found = false
        // With the strings that are values taken out, every backslash that is left is a key's.
        text.replaceAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g, (string, colon?: string) => {
          if (colon !== undefined && string.includes("\\")) found = true
          return ""
        })
        assert.strictEqual(hasEscapedKey(text), found, text)
      }),
      { numRuns: runs(3_000) }
    )
  })

  it.each([
    ['{"a":"\\\\"}', false],
    ['{"a":"\\\\\\"","b":1}', false],
    ['{"a":"\\":","b":1}', false],
    ['["\\n" , ":"]', false],
    ['{"a":"\\\\","\\\\":1}', true],
    ['{"a":"\\n","b\\"" \n\t\r :1}', true],
    ['{"\\\\\\"\\\\":1}', true]
  ])("of %s is %s", (text, expected) => {
    JSON.parse(text)
    assert.strictEqual(hasEscapedKey(text), expected)
  })
})

describe("parseJsonWith", () => {
  it("hands over every number as it is written, and nothing else", () => {
    const text = '{"\\u0061":[12345678901234567890,-0,1.50E+3,"7",true],"b":{"c":0}}'
    const value = parseJsonWith(text, (source) => `<${source}>`)
    assert.deepStrictEqual(value, {
      a: ["<12345678901234567890>", "<-0>", "<1.50E+3>", "7", true],
      b: { c: "<0>" }
    })
  })
})

describe("engineConfusesKeys", () => {
  it("says of this runtime what is so, asked once or often", () => {
    const first = freshName()
    JSON.parse(`{"${first}":1,"\\\\":1}`)
    const isConfused = Object.keys(JSON.parse(`{"${first}":1,"\\u007a":1}`) as object)[1] !== "z"
    for (let time = 0; time < 3; time++) assert.strictEqual(engineConfusesKeys(), isConfused)
  })
})

describe("JSON of packs", () => {
  it("is read up to 128 levels, and refused beyond, in linear time and without recursion", () => {
    const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
    assert.isDefined(jsonOf(nested(128)))
    for (const depth of [129, 1_000_000]) assert.isUndefined(jsonOf(nested(depth)))
  })
})

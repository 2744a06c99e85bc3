/** The items of a request: each is read as if it stood alone, and what is around them is checked. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  areLines,
  isBatch,
  parseStrictBatch,
  parseStrictLines,
  type StrictBatch
} from "../../../src/domain/json/StrictBatch.ts"
import { parseStrict, type StrictResult } from "../../../src/domain/json/StrictJson.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { jsonText } from "../../support/JsonTexts.ts"
import { runs } from "../../support/Runs.ts"

const read = (body: Buffer): StrictBatch => finish(parseStrictBatch(body, "events", 3))
const parse = (text: string): StrictResult => parseStrict(Buffer.from(text))
const batch = (text: string): StrictBatch => read(Buffer.from(text))

const problemIn = (result: StrictResult | StrictBatch) => {
  assert("problem" in result, JSON.stringify(result))
  return result.problem
}

const itemsOf = (result: StrictBatch): ReadonlyArray<StrictResult> => {
  assert("items" in result, JSON.stringify(result))
  return result.items
}

describe("parseStrictBatch", () => {
  it("reads each item as if it stood alone", () => {
    fc.assert(
      fc.property(fc.array(jsonText, { minLength: 1, maxLength: 3 }), (texts) => {
        assert.deepStrictEqual(
          itemsOf(batch(`{"more":{"events":[1]},"events":[${texts.join(",")}]}`)),
          texts.map(parse)
        )
      }),
      { numRuns: runs(1_000) }
    )
  })

  it("takes the array alone for the batch", () => {
    fc.assert(
      fc.property(fc.array(jsonText, { minLength: 1, maxLength: 3 }), (texts) => {
        const list = `[${texts.join(" , ")}]`
        assert.deepStrictEqual(batch(` ${list}\n`), batch(`{"events":${list}}`))
      }),
      { numRuns: runs(1_000) }
    )
  })

  it("lets the other items through when one can't be stored", () => {
    const items = itemsOf(
      batch('{"events":[{"a":1},{"metadata":{"n":1e400,"m":{"":1,"":1}}},{"b":2}]}')
    )
    assert.deepStrictEqual(items[0], { value: { a: 1 } })
    assert.deepStrictEqual(items[2], { value: { b: 2 } })
    assert.deepInclude(problemIn(items[1]!), { code: "unstorable_value", path: "metadata.n" })
  })

  it("takes the items from that array only, not from another one beside it", () => {
    const items = itemsOf(batch('{"a":[1,[2]],"events":[{"n":1e400},5],"z":[3]}'))
    assert.deepInclude(problemIn(items[0]!), { path: "n" })
    assert.deepStrictEqual(items.slice(1), [{ value: 5 }])
  })

  it.each([
    '{"x":1e400,"events":[{"n":1}]}',
    '{"events":[{"n":1}],"x":12345678901234567890}',
    '{"events":[{"n":1}],"x":"\\ud800"}',
    '{"x":{"y":1,"y":2},"events":[{"n":1}]}',
    '{"x":1,"x":2,"events":[{"n":1}]}',
    `{"events":[{"n":1}],"x":${"[".repeat(100)}${"]".repeat(100)}}`
  ])("takes the items whatever stands beside them, and names it: %s", (text) => {
    const found = batch(text)
    assert.deepStrictEqual(itemsOf(found), [{ value: { n: 1 } }])
    assert.deepStrictEqual("beside" in found && found.beside, ["x"])
  })

  it("names what stands beside the items where nothing is wrong with it, too", () => {
    assert.deepStrictEqual(batch('{"a":1,"events":[5],"b":[6]}'), {
      items: [{ value: 5 }],
      beside: ["a", "b"]
    })
  })

  it("refuses the array that is there twice: either might be meant", () => {
    for (const text of ['{"events":[1],"events":[2]}', '{"events":1,"events":[2]}']) {
      assert.deepInclude(problemIn(batch(text)), { code: "invalid_request", path: "events" })
    }
  })

  it("lets the other items through when one nests 100,000 levels", () => {
    const deep = `{"metadata":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
    const items = itemsOf(batch(`{"events":[${deep},{"a":1}]}`))
    assert.strictEqual(problemIn(items[0]!).code, "unstorable_value")
    assert.deepStrictEqual(items[1], { value: { a: 1 } })
  })

  it.each([
    ['{"events":[1]', "invalid_json"],
    ["", "invalid_json"],
    ['{"events":[{"a":1e400}],}', "invalid_json"],
    ["[]", "invalid_request"],
    ["[1,2,3,4]", "invalid_request"],
    ["[1", "invalid_json"],
    ["[1]x", "invalid_json"],
    ["[1,]", "invalid_json"],
    ["null", "invalid_request"],
    ["{}", "invalid_request"],
    ['{"events":{}}', "invalid_request"],
    ['{"events":{"a":1e400}}', "invalid_request"],
    ['{"events":null,"a":1e400}', "invalid_request"],
    ['{"events":[]}', "invalid_request"],
    ['{"events":[1,2,3,4]}', "invalid_request"],
    ['{"events":[1,2,3,1e400]}', "invalid_request"],
    ['{"events":[1],"events":[2]}', "invalid_request"]
  ])("refuses the whole request: %s", (text, code) => {
    assert.strictEqual(problemIn(batch(text)).code, code)
  })

  it("refuses the whole request if any of it is no UTF-8", () => {
    const body = Buffer.from('{"events":[1,"\xff"]}', "latin1")
    assert.strictEqual(problemIn(read(body)).code, "invalid_json")
  })

  it("says how many items it takes", () => {
    assert.strictEqual(
      problemIn(batch('{"events":[1,2,3,4]}')).message,
      "events: more than 3 items; send 1 to 3"
    )
    assert.strictEqual(problemIn(batch('{"events":[]}')).message, "events: no items; send 1 to 3")
  })
})

describe("parseStrictLines", () => {
  const lines = (text: string | Buffer): StrictBatch =>
    finish(parseStrictLines(Buffer.from(text), 3))

  it("reads each line as if it stood alone and skips blank ones", () => {
    const items = itemsOf(lines('{"a":1}\n\n \t\r\n{"a":1,"a":2}\r\n{"b":'))
    assert.strictEqual(items.length, 3)
    assert.deepStrictEqual(items[0], { value: { a: 1 } })
    assert.deepInclude(problemIn(items[1]!), { code: "unstorable_value", path: "a" })
    assert.strictEqual(problemIn(items[2]!).code, "invalid_json")
  })

  it("blames invalid UTF-8 on its line only", () => {
    const items = itemsOf(lines(Buffer.from([0x31, 0x0a, 0x22, 0xff, 0x22, 0x0a, 0x32, 0x0a])))
    assert.deepStrictEqual(items[0], { value: 1 })
    assert.strictEqual(problemIn(items[1]!).code, "invalid_json")
    assert.deepStrictEqual(items[2], { value: 2 })
  })

  it.each(["", "\n\n", "1\n2\n3\n4\n"])("refuses none or too many lines: %j", (text) => {
    assert.strictEqual(problemIn(lines(text)).code, "invalid_request")
  })
})

describe("isBatch", () => {
  it.each([
    ['{"events":[1]}', true],
    [' {"a":{"events":1},"\\u0065vents":1', true],
    ['{"a":{"events":1},"b":["events"]}', false],
    ['["events"]', true],
    ["{", false],
    ["", false]
  ])("looks at the outermost members only: %s", (text, expected) => {
    assert.strictEqual(finish(isBatch(Buffer.from(text), "events")), expected)
  })
})

describe("areLines", () => {
  it.each([
    ['{"a":1}\n{"a":2}\n', true],
    [' {"a":{}}{', true],
    ['{"a":1}\n', false],
    ['{"a":1} x', false],
    ["[{}]\n[{}]", false],
    ['{"a":', false],
    ["", false]
  ])("sees an object behind the first one: %s", (text, expected) => {
    assert.strictEqual(areLines(Buffer.from(text)), expected)
  })
})

describe("work", () => {
  /** Steps of a reading, which are what a request may take of the event loop. */
  const stepsOf = (work: Generator<void, StrictBatch, void>) => {
    let steps = 0
    for (let step = work.next(); step.done !== true; step = work.next()) steps += 1
    return steps
  }

  const MEGABYTES_8 = 8 * 1_048_576
  const filled = (part: string, head = "", tail = "") =>
    Buffer.from(head + part.repeat(MEGABYTES_8 / part.length) + tail)

  it("is refused after as many items as there may be, however many were sent", () => {
    for (const body of [
      filled("{},", '{"events":['),
      filled("1,", '{"events":['),
      filled("1,", "[")
    ]) {
      assert.strictEqual(stepsOf(parseStrictBatch(body, "events", 100)), 101)
    }
    for (const body of [filled("{}\n"), filled("[\n")]) {
      assert.strictEqual(stepsOf(parseStrictLines(body, 100)), 100)
    }
    assert.strictEqual(stepsOf(parseStrictLines(filled("\n"), 100)), 0)
    assert.strictEqual(stepsOf(parseStrictBatch(filled('"a":1,', "{"), "events", 100)), 1_000)
  })

  it("makes nothing of what is too much, and says how it is wrong", () => {
    const read = (body: Buffer) => finish(parseStrictBatch(body, "events", 100))
    const brackets = filled("[", '{"events":[{},')
    assert.include(problemIn(read(brackets)).message, "the text ends where a closing bracket")
    const pairs = filled("[],", '{"events":[{},[', "1],{}]}")
    const items = itemsOf(read(pairs))
    assert.include(problemIn(items[1]!).message, "65536 values in one item")
    assert.deepStrictEqual(items[2], { value: {} })
  })

  it("names the place in the whole text where an item stops being JSON", () => {
    const messages = [
      ['{"events":[\n{"é":1},\n {"é" 2}]}', '":" is expected at line 3, column 7'],
      ['{"events":[\n{"a":1},\n]}', "a value is expected at line 3, column 1"],
      ['{"events":[1 2]}', '"," or "]" is expected at line 1, column 14'],
      ['{"events":[{"a":[1}]}', '"," or "]" is expected at line 1, column 19'],
      ['{"events":[1],"a":tru}', "a value is expected at line 1, column 19"],
      ['{"events":[1]}}', "the end is expected at line 1, column 15"],
      ['{"events":[1],a:1}', "a key in double quotes is expected at line 1, column 15"],
      ['{"events":[{"a":', "the text ends where a value is expected"]
    ] as const
    for (const [text, message] of messages) {
      assert.strictEqual(problemIn(batch(text)).message, `not valid JSON: ${message}`)
    }
  })
})

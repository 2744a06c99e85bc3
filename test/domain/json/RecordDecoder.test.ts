import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { form, natural, text, time } from "../../../src/domain/Forms.ts"
import { recordChecker, recordDecoder } from "../../../src/domain/json/RecordDecoder.ts"
import { RecordUnreadable } from "../../../src/domain/json/RecordFields.ts"

const Sample = Schema.Struct({
  name: text("A name."),
  hash: Schema.optionalKey(form(/^[0-9a-f]{4}$/u, "A hash.")),
  at: Schema.optionalKey(time("A time.")),
  flag: Schema.optionalKey(Schema.Boolean),
  list: Schema.optionalKey(Schema.Array(Schema.Struct({ count: natural("A count.") }))),
  kind: Schema.optionalKey(Schema.Literals(["a", "b"]))
})

const decode = recordDecoder(Sample, "sample")

const messageOf = (json: string): string => {
  try {
    decode(json)
  } catch (error) {
    assert.instanceOf(error, RecordUnreadable)
    return (error as Error).message
  }
  return assert.fail(`${json} was read`)
}

describe("recordDecoder", () => {
  it("reads a record, and keeps the members that a newer version has added", () => {
    const record = { name: "x", list: [{ count: 0, more: true }], newer: { of: 1 } }
    assert.deepStrictEqual(decode(JSON.stringify(record)) as unknown, record)
    assert.deepStrictEqual(decode(Buffer.from('{"name":"x"}')), { name: "x" })
  })

  it.each([
    ["{", "sample is no JSON"],
    ["[]", "sample is not a JSON object"],
    ["null", "sample is not a JSON object"],
    ["{}", "sample: name is missing"],
    ['{"name":""}', "sample: name is not a text"],
    ['{"name":1}', "sample: name is not a text"],
    ['{"name":"x","hash":"g"}', "sample: hash is not of the form ^[0-9a-f]{4}$"],
    [
      '{"name":"x","at":"2026-02-30T00:00:00.000000Z"}',
      "sample: at is not a time in canonical form"
    ],
    ['{"name":"x","at":"2026-02-03"}', "sample: at is not a time in canonical form"],
    ['{"name":"x","flag":1}', "sample: flag is not true or false"],
    ['{"name":"x","flag":null}', "sample: flag is not true or false"],
    ['{"name":"x","list":{}}', "sample: list is not a list"],
    [
      '{"name":"x","list":[{"count":0},{"count":-1}]}',
      "sample: list.1.count is not a value greater than or equal to 0"
    ],
    ['{"name":"x","list":[{"count":0.5}]}', "sample: list.0.count is not an integer"],
    ['{"name":"x","list":[{"count":9007199254740992}]}', "sample: list.0.count is not an integer"],
    ['{"name":"x","kind":"c"}', 'sample: kind is not "a" | "b"']
  ])("refuses %s and names what is wrong", (json, message) => {
    assert.strictEqual(messageOf(json), message)
  })
})

describe("recordChecker", () => {
  it("returns the very value that it was given", () => {
    const value = { name: "x", newer: 1 }
    assert.strictEqual(recordChecker(Sample, "sample")(value) as unknown, value)
  })
})

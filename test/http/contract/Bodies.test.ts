/** Bodies as schemas: what they take, and in whose words they refuse. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { bodyOf, integerInput, mustBe, optionalInput } from "../../../src/http/contract/Bodies.ts"
import { KeyInput, label } from "../../../src/http/contract/ContractSchemas.ts"
import { ApiError } from "../../../src/http/messages/ApiError.ts"

const Input = Schema.Struct({
  names: mustBe("a list of names", Schema.Array(Schema.String).check(Schema.isMinLength(1))),
  label: optionalInput(label),
  uses: optionalInput(integerInput(3)),
  nested: Schema.optionalKey(
    Schema.Struct({
      list: Schema.Array(
        Schema.Struct({
          name: mustBe("a string", Schema.String),
          digits: Schema.String.check(Schema.isPattern(/^[0-9]+$/u, { expected: "digits" }))
        })
      )
    })
  )
})

const read = (value: unknown) => bodyOf(Input, "a thing")(Buffer.from(JSON.stringify(value)))

/** The message that refuses a body with these members. */
const refusal = (members: object): string => {
  try {
    read({ names: ["a"], ...members })
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
  return assert.fail("not refused")
}

describe("a body", () => {
  it("is the values of its members; null is absent", () => {
    const body = { names: ["a"], label: null, uses: 3 }
    assert.deepStrictEqual(read(body), body)
  })

  it("is refused with the field and what it must be", () => {
    assert.strictEqual(refusal({ names: undefined }), "names: must be a list of names")
    for (const names of [1, [], [1]]) {
      assert.strictEqual(refusal({ names }), "names: must be a list of names")
    }
    for (const uses of [0, 4, 1.5, "1"]) {
      assert.strictEqual(refusal({ uses }), "uses: must be an integer from 1 to 3")
    }
    const at = (item: object) => refusal({ nested: { list: [{ name: "a", digits: "1" }, item] } })
    assert.strictEqual(at({ digits: "1" }), "nested.list[1].name: must be a string")
    assert.strictEqual(at({ name: 1 }), "nested.list[1].name: must be a string")
    assert.strictEqual(at({ name: "a", digits: "x" }), "nested.list[1].digits: must be digits")
  })

  it("is refused for a member that it does not have", () => {
    assert.strictEqual(
      refusal({ labl: "a" }),
      "labl: is not a field of a thing; did you mean label?"
    )
  })

  it("counts the characters of a text, not its UTF-16 units", () => {
    const longest = "\u{1f600}".repeat(256)
    assert.strictEqual(read({ names: ["a"], label: longest }).label, longest)
    for (const text of ["", `${longest}a`, 1]) {
      assert.strictEqual(refusal({ label: text }), "label: must be a string of 1 to 256 characters")
    }
    const decode = Schema.decodeUnknownSync(KeyInput)
    assert.strictEqual(decode({ scopes: ["read"], label: longest }).label, longest)
  })
})

/** Objects that are cut to a size: they fit, what is cut can be shown to be the value, the rest stays. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { canonicalize } from "../../../../src/domain/json/CanonicalJson.ts"
import {
  type JsonObject,
  type JsonValue,
  NESTING_MAX
} from "../../../../src/domain/json/StrictJson.ts"
import { fitted, fittedText } from "../../../../src/services/ingest/otlp/LargeValues.ts"

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

const unit = fc.constantFrom("a", "é", "字", "🙂", '"', "\n")
const anyText = fc
  .tuple(fc.string({ unit, maxLength: 4 }), fc.nat({ max: 3_000 }), fc.nat({ max: 3 }))
  .map(([text, times, rarely]) => (rarely === 0 ? text.repeat(times) : text))
const anyObject = fc.dictionary(
  fc.string({ unit: fc.constantFrom("a", "b", "c", "."), minLength: 1, maxLength: 3 }),
  fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      anyText,
      fc.integer(),
      fc.boolean(),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom("x", "y"), tie("value"), { maxKeys: 2 })
    )
  })).value,
  { maxKeys: 8 }
)

/** Each value of the result is that of the object, or stands for it truly. */
const assertStands = (value: JsonValue, found: JsonValue): void => {
  const cut = found as { $ref?: string; bytes?: number; preview?: string; truncated?: true }
  if (cut?.truncated === true) {
    const text = typeof value === "string" ? value : canonicalize(value)
    assert.strictEqual(cut.$ref, `sha256:${sha256(text)}`)
    assert.strictEqual(cut.bytes, Buffer.byteLength(text))
    assert.isTrue(text.startsWith(cut.preview ?? ""))
    assert.isTrue((cut.preview ?? "").isWellFormed())
    return
  }
  if (typeof value !== "object" || value === null) assert.strictEqual(found, value)
  else {
    const [own, others] = [value, found] as [JsonObject, JsonObject]
    assert.deepStrictEqual(Object.keys(others), Object.keys(own))
    for (const key of Object.keys(own)) assertStands(own[key]!, others[key]!)
  }
}

describe("an object that is cut to a size", () => {
  it("fits, keeps its keys, and says of each value that was cut what it was", () => {
    fc.assert(
      fc.property(
        anyObject,
        fc.integer({ min: 600, max: 9_000 }),
        fc.boolean(),
        (members, max, isSpan) => {
          const object: JsonObject = isSpan ? { span_id: "1", attributes: members } : members
          const found = fitted(object, max)
          if (found === undefined) {
            assert.isAbove(Buffer.byteLength(canonicalize(object)), max)
            return
          }
          assert.isAtMost(Buffer.byteLength(found.text), max)
          const result = JSON.parse(found.text) as JsonObject
          assert.strictEqual(canonicalize(result), found.text)
          if (found.cut === 0) assert.strictEqual(found.text, canonicalize(object))
          else assertStands(JSON.parse(canonicalize(object)), result)
        }
      )
    )
  })

  it("is always found for a prompt, however many messages it has", () => {
    const content = "Tell me. ".repeat(2_000)
    for (const messages of [2, 4, 40, 400]) {
      const all = Array.from({ length: messages }, (_, n) => ({ role: "user", content, n }))
      const object = { attributes: { "gen_ai.input.messages": all, "gen_ai.request.model": "m" } }
      const { cut, text } = fitted(object, 32_768)!
      assert.isAtLeast(cut, 1)
      const { attributes } = JSON.parse(text)
      assert.strictEqual(attributes["gen_ai.request.model"], "m")
      if (messages === 40) assert.strictEqual(attributes["gen_ai.input.messages"][39].n, 39)
    }
  })

  it("gives the same for the same, and leaves what fits as it is", () => {
    const object = { a: "x".repeat(50_000), b: "y".repeat(9_000) }
    assert.deepStrictEqual(fitted(object, 32_768), fitted(structuredClone(object), 32_768))
    assert.deepStrictEqual(fitted({ a: "x" }, 9), { text: '{"a":"x"}', cut: 0 })
    assert.strictEqual(fitted({ a: "x" }, 8), undefined)
  })

  it("nests no deeper than what can be stored", () => {
    let value: JsonValue = "x".repeat(50_000)
    for (let level = 1; level < NESTING_MAX; level++) value = { a: value }
    const { text } = fitted({ a: value } as JsonObject, 32_768)!
    assert.isAtMost(text.split("{").length - 1, NESTING_MAX)
  })

  it("has a text with its size and hash at the end where there is no place for an object", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 120, max: 500 }), (text, max) => {
        const found = fittedText(text, max)
        assert.isAtMost(Buffer.byteLength(found), Math.max(max, 0))
        assert.isTrue(found.isWellFormed())
        if (found !== text) assert.include(found, sha256(text))
      })
    )
  })
})

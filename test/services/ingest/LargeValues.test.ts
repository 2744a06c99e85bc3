/** Objects that are cut to a size: they fit, what is cut can be shown to be the value, the rest stays. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject, JsonValue } from "../../../src/domain/json/Json.ts"
import { NESTING_MAX } from "../../../src/domain/json/Json.ts"
import { finish, type Sliced } from "../../../src/domain/Slices.ts"
import {
  PAYLOAD_VALUE_BYTES_MAX,
  type PayloadChunk,
  type PayloadReference,
  wholeValue
} from "../../../src/domain/traces/Payload.ts"
import * as LargeValues from "../../../src/services/ingest/LargeValues.ts"

const { OffloadedValues } = LargeValues
type OffloadedValues = LargeValues.OffloadedValues

/** What is done in steps, done at once. */
const atOnce =
  <Given extends ReadonlyArray<unknown>, A>(inSteps: (...given: Given) => Sliced<A>) =>
  (...given: Given): A =>
    finish(inSteps(...given))
const encodedSize = atOnce(LargeValues.encodedSize)
const fitted = atOnce(LargeValues.fitTo)
const fittedError = atOnce(LargeValues.fittedError)
const withoutLargeMembers = atOnce(LargeValues.withoutLargeMembers)
const withoutLargeTexts = atOnce(LargeValues.withoutLargeTexts)

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

const valuesOf = (apart: OffloadedValues): ReadonlyMap<string, string | undefined> =>
  new Map(
    (finish(apart.payloads()) ?? []).map(({ chunks = [], sha256: hash }) => {
      const pieces = chunks.map(({ text }) => JSON.parse(text).payload as PayloadChunk)
      return [hash, wholeValue(hash, pieces)]
    })
  )

/** Each value of the result is that of the object, or stands for it truly. */
const assertStands = (
  value: JsonValue,
  found: JsonValue,
  values: ReadonlyMap<string, string | undefined>
): void => {
  const cut = found as unknown as PayloadReference
  if (cut?.$ref !== undefined) {
    const text = typeof value === "string" ? value : canonicalize(value)
    const hash = sha256(text)
    assert.strictEqual(cut.$ref, `sha256:${hash}`)
    assert.strictEqual(cut.bytes, Buffer.byteLength(text))
    assert.isTrue(text.startsWith(cut.preview ?? ""))
    assert.isTrue((cut.preview ?? "").isWellFormed())
    assert.strictEqual(cut.media_type, typeof value === "string" ? undefined : "application/json")
    assert.strictEqual(values.get(hash), cut.truncated === true ? undefined : text)
    return
  }
  if (typeof value !== "object" || value === null) assert.strictEqual(found, value)
  else {
    const [own, others] = [value, found] as [JsonObject, JsonObject]
    assert.deepStrictEqual(Object.keys(others), Object.keys(own))
    for (const key of Object.keys(own)) assertStands(own[key]!, others[key]!, values)
  }
}

const levelsOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map(levelsOf))
    : 0

describe("an object that is given a size", () => {
  it("fits, keeps its keys, and refers to what it had no room for", () => {
    fc.assert(
      fc.property(
        anyObject,
        fc.integer({ min: 600, max: 9_000 }),
        fc.boolean(),
        fc.constantFrom(fitted, withoutLargeTexts),
        (members, max, isSpan, make) => {
          const object: JsonObject = isSpan ? { span_id: "1", attributes: members } : members
          const apart = new OffloadedValues()
          const text = make(object, max, apart)
          if (text === undefined) {
            assert.isAbove(Buffer.byteLength(canonicalize(object)), max)
            return
          }
          assert.isAtMost(Buffer.byteLength(text), max)
          const result = JSON.parse(text) as JsonObject
          assert.strictEqual(canonicalize(result), text)
          if (apart.references === 0) assert.strictEqual(text, canonicalize(object))
          else assertStands(JSON.parse(canonicalize(object)), result, valuesOf(apart))
        }
      )
    )
  })

  it("is always found for a prompt, however many messages it has", () => {
    const content = "Tell me. ".repeat(2_000)
    for (const messages of [2, 4, 40, 400]) {
      const all = Array.from({ length: messages }, (_, n) => ({ role: "user", content, n }))
      const object = { attributes: { "gen_ai.input.messages": all, "gen_ai.request.model": "m" } }
      const apart = new OffloadedValues()
      const { attributes } = JSON.parse(fitted(object, 32_768, apart)!)
      assert.strictEqual(attributes["gen_ai.request.model"], "m")
      const [value, ...others] = valuesOf(apart).values()
      assert.deepStrictEqual(others, [])
      assert.strictEqual(value, messages === 400 ? canonicalize(all) : content)
      if (messages === 40) assert.strictEqual(attributes["gen_ai.input.messages"][39].n, 39)
    }
  })

  it("has no text of more than 8 KiB even if there is room, where that is asked for", () => {
    const object = { a: "x".repeat(8_192), b: "y".repeat(8_193) }
    const apart = new OffloadedValues()
    assert.strictEqual(fitted(object, 32_768, apart), canonicalize(object))
    assert.strictEqual(apart.references, 0)
    const { a, b } = JSON.parse(withoutLargeTexts(object, 32_768, apart)!)
    assert.strictEqual(a, object.a)
    assert.strictEqual(b.preview, "y".repeat(2_048))
    assert.deepStrictEqual([...valuesOf(apart).values()], [object.b])
  })

  it("gives the same for the same, and leaves what fits as it is", () => {
    const object = { a: "x".repeat(50_000), b: "y".repeat(9_000) }
    const texts = [object, structuredClone(object)].map((one) =>
      fitted(one, 32_768, new OffloadedValues())
    )
    assert.strictEqual(texts[0], texts[1])
    assert.strictEqual(fitted({ a: "x" }, 9, new OffloadedValues()), '{"a":"x"}')
    assert.strictEqual(fitted({ a: "x" }, 8, new OffloadedValues()), undefined)
  })

  it("says of values that are too large, or for which there is no room left, that they are not kept", () => {
    const large = "x".repeat(PAYLOAD_VALUE_BYTES_MAX + 1)
    const apart = new OffloadedValues()
    const { a, b } = JSON.parse(fitted({ a: large, b: "y".repeat(40_000) }, 32_768, apart)!)
    assert.deepStrictEqual([a.truncated, a.bytes, b.truncated], [true, large.length, undefined])
    assert.deepStrictEqual([apart.referred, apart.truncated], [1, 1])
    const room = { left: 100_000 }
    const [first, second] = [new OffloadedValues(room), new OffloadedValues(room)]
    const texts = [first, second].map((one, at) =>
      JSON.parse(fitted({ a: `${at}${"x".repeat(60_000)}` }, 32_768, one)!)
    )
    assert.deepStrictEqual(
      texts.map(({ a: { truncated } }) => truncated),
      [undefined, true]
    )
    assert.strictEqual(finish(second.payloads()), undefined)
  })

  it("counts what a text takes as a string of JSON in another", () => {
    const anyUnit = fc.oneof(fc.constantFrom("\u0001", "\u007f", "\\", '"', "\t", "\u2028"), unit)
    fc.assert(
      fc.property(fc.string({ unit: anyUnit, maxLength: 50 }), (text) => {
        const twice = JSON.stringify(JSON.stringify(text))
        assert.deepStrictEqual(encodedSize(text, Buffer.byteLength(text)), {
          characters: twice.length,
          bytes: Buffer.byteLength(twice)
        })
      })
    )
  })

  it("keeps the members of what would be too much for one value, its texts apart from them", () => {
    const members = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`m${n}`, `v${n}`]))
    const long = "x".repeat(17 * 1_048_576)
    const apart = new OffloadedValues()
    const found = JSON.parse(fitted({ ...members, long }, 1_024, apart)!) as PayloadReference
    const [value] = valuesOf(apart).values()
    const kept = JSON.parse(value!)
    assert.strictEqual(found.$ref, `sha256:${sha256(value!)}`)
    assert.deepInclude(kept, members)
    assert.deepInclude(kept.long, { $ref: `sha256:${sha256(long)}`, truncated: true })
  })

  it("nests no deeper than what can be stored", () => {
    let value: JsonValue = "x".repeat(50_000)
    for (let level = 1; level < NESTING_MAX; level++) value = { a: value }
    const apart = new OffloadedValues()
    const text = fitted({ a: value } as JsonObject, 32_768, apart)!
    assert.isAtMost(levelsOf(JSON.parse(text)), NESTING_MAX)
    assert.strictEqual(apart.referred, 1)
  })

  it("has a reference for the text of an error that is too long", () => {
    const apart = new OffloadedValues()
    assert.strictEqual(fittedError("no", 100, apart), '"no"')
    const error = "no ".repeat(1_000)
    const found = JSON.parse(fittedError(error, 100, apart)!)
    assertStands(error, found, valuesOf(apart))
    assert.strictEqual(found.preview.length, 2_048)
    const members = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`m${n}`, n]))
    assertStands(members, JSON.parse(fittedError(members, 1_000, apart)!), valuesOf(apart))
    assert.strictEqual(fittedError(members, 10, apart), undefined)
  })
})

describe("metadata that is given a size", () => {
  it("fits, keeps what it can, and the largest members that it refers to are whole", () => {
    fc.assert(
      fc.property(anyObject, fc.integer({ min: 700, max: 9_000 }), (object, max) => {
        const whole = canonicalize(object)
        fc.pre(Buffer.byteLength(whole) > max)
        const apart = new OffloadedValues()
        const cut = withoutLargeMembers(object, whole, max, apart)
        if (cut === undefined) return assert.isBelow(max, 2_048)
        assert.isAtMost(Buffer.byteLength(cut.text), max)
        const result = JSON.parse(cut.text) as JsonObject
        assert.strictEqual(canonicalize(result), cut.text)
        const { moved } = cut
        assertStands(JSON.parse(whole), result, valuesOf(apart))
        assert.strictEqual(apart.truncated, 0)
        if (moved === undefined)
          return assert.strictEqual(result["$ref"], `sha256:${sha256(whole)}`)
        const size = (name: string) => Buffer.byteLength(canonicalize(object[name]!))
        const kept = Object.keys(object).filter((name) => !moved.includes(name))
        for (const name of kept) {
          assert.deepStrictEqual(result[name], JSON.parse(canonicalize(object[name]!)))
          assert.isAtMost(size(name), Math.min(...moved.map(size)))
        }
        // As few as will do: with the last one of them it is too long.
        const last = moved.at(-1)!
        assert.isAbove(Buffer.byteLength(canonicalize({ ...result, [last]: object[last]! })), max)
        // Whatever the order in which it was sent.
        const turned = Object.fromEntries(Object.entries(object).reverse())
        assert.deepStrictEqual(withoutLargeMembers(turned, whole, max, new OffloadedValues()), cut)
      })
    )
  })

  it("goes as a whole where small members alone have no room", () => {
    const object = Object.fromEntries(
      Array.from({ length: 900 }, (_, n) => [`key ${n}`, `value ${n}`])
    )
    const apart = new OffloadedValues()
    const whole = canonicalize(object)
    const cut = withoutLargeMembers(object, whole, 8_192, apart)
    assert.isUndefined(cut?.moved)
    assert.strictEqual(valuesOf(apart).get(sha256(whole)), whole)
  })
})

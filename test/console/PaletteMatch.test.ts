/** What a text in the palette leads to. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { fitting, jumpsOf, searchOf } from "../../src/console/PaletteMatch.ts"
import { parseWhere } from "../../src/domain/events/where/Parse.ts"

const pathsOf = (text: string) => jumpsOf(text).map(({ path }) => path)
const whereOf = (text: string): string | null =>
  new URL(searchOf(text)?.path ?? "/", "http://a").searchParams.get("where")

describe("jumpsOf", () => {
  it("leads from a number to the event", () => {
    for (const text of ["123", "#123", " #123 ", "# 123"]) {
      assert.deepStrictEqual(pathsOf(text), ["/events?event=123"], text)
    }
    assert.deepStrictEqual(pathsOf("#1,234,567"), ["/events?event=1234567"])
    for (const text of ["0", "-1", "1.5", "12,34", "1".repeat(16)]) {
      assert.deepStrictEqual(pathsOf(text), [], text)
    }
  })

  it("leads from an id to the receipt or the execution", () => {
    const receipt = `rcp_${"0a".repeat(26)}`
    assert.deepStrictEqual(pathsOf(receipt), [`/receipts/${receipt}`])
    const uuid = "0199d3a0-1111-7abc-8def-0123456789ab"
    assert.deepStrictEqual(pathsOf(uuid), [`/executions/${uuid}`])
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert.deepStrictEqual(pathsOf(trace), [`/executions/${trace}`])
    assert.deepStrictEqual(pathsOf("rcp_../keys"), [])
  })
})

describe("searchOf", () => {
  it("takes conditions as they are, and anything else as text", () => {
    assert.isUndefined(searchOf("  "))
    assert.strictEqual(whereOf("user login"), "user login")
    assert.strictEqual(whereOf("outcome:failure amount"), "outcome:failure amount")
    assert.strictEqual(whereOf("metadata.amount>5"), "metadata.amount>5")
    assert.strictEqual(whereOf('a "b" (c)'), '"a \\"b\\" (c)"')
    assert.strictEqual(whereOf("http://x"), '"http://x"')
    assert.strictEqual(whereOf("this AND that"), '"this AND that"')
  })

  it("makes a query that the service reads of any text without conditions", () => {
    const texts = fc.string({ unit: "binary", minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(text.trim() !== "" && !/[\u0000-\u001f\u007f-\u009f\ud800-\udfff]/u.test(text))
        fc.pre(!/[:<>]/.test(text))
        assert.doesNotThrow(() => parseWhere(whereOf(text)!, "2026-01-31T12:00:00.000000Z"))
      })
    )
  })
})

describe("fitting", () => {
  const all = ["Overview", "Events", "Live", "Keys", "Copy the link"].map((title) => ({ title }))
  const titles = (text: string) => fitting(all, text).map(({ title }) => title)

  it("has everything for no text, and the best name first", () => {
    assert.lengthOf(titles(""), all.length)
    assert.deepStrictEqual(titles("l"), ["Live", "Copy the link"])
    assert.deepStrictEqual(titles("ev"), ["Events"])
    assert.deepStrictEqual(titles("view"), ["Overview"])
    assert.deepStrictEqual(titles("nothing"), [])
  })
})

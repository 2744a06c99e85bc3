/** The module cuts rows into the bytes that TypeScript cuts them into, or leaves them to it. */
import { isUtf8 } from "node:buffer"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  FastSplit,
  fastSplit
} from "../../../../../src/adapters/clickhouse/events/fast/FastSplit.ts"
import { runs } from "../../../../support/Runs.ts"
import { SEED } from "../../../../support/Seed.ts"
import { Chain, erasedForm, type Fields } from "../../../../verify/support/Chains.ts"
import { anyEvents } from "../../support/Generators.ts"
import { compare, fuzz, rowsOf } from "./SplitAgreement.ts"

const PIECE_BYTES_MAX = 262_144
const ROWS_MAX = 1_024
const STRINGS_MAX = 4_096

const bodyOf = (fields: Fields = {}): string => new Chain("acme").append(fields)

const whole = bodyOf({
  actor: { id: 'a"\\', type: "human", email: "a@b" },
  resource: { id: "r", type: "t", name: "\n\u0001é" },
  metadata: { text: ['"', "\\", { deep: "x:" }], n: [1e21, -0.5, true, null] }
})

describe("the module that cuts rows", () => {
  it("agrees with TypeScript on generated events, and does them all", () => {
    fc.assert(
      fc.property(anyEvents, (samples) => {
        const chain = new Chain("acme").extend(samples.length, (n) => samples[n - 1] as Fields)
        assert.strictEqual(compare(chain.bodies), samples.length)
      }),
      { numRuns: runs(100) }
    )
  })

  it("agrees with TypeScript on hostile rows", { timeout: 300_000 }, () => {
    // Else the comparison would be about too little.
    assert.isAbove(fuzz(SEED, 20_000), 10_000, `seed ${SEED}`)
  })

  it("agrees with TypeScript on a row that ends anywhere, or with any byte changed", () => {
    const bytes = Buffer.from(whole)
    for (let at = 0; at < bytes.length; at++) {
      const part = bytes.subarray(0, at)
      // The module does no row of a piece that is not UTF-8.
      assert.strictEqual(compare([whole, part, whole]), isUtf8(part) ? 2 : 0)
      for (const byte of [
        0, 0x1f, 0x20, 0x22, 0x2f, 0x30, 0x3a, 0x5c, 0x60, 0x61, 0x67, 0x7d, 0xff
      ]) {
        const changed = Buffer.from(bytes)
        changed[at] = byte
        compare([whole, changed, whole])
      }
    }
  })

  it("does strings of every length, with escapes at every place", () => {
    const bodies: Array<string> = []
    for (let length = 0; length < 300; length++) {
      const text = "x".repeat(length)
      bodies.push(bodyOf({ actor: { id: text, type: "human", email: `${text}\n${text}` } }))
      bodies.push(
        bodyOf({ resource: { id: `${text}"`, type: `\\${text}`, name: `${text}\u0001` } })
      )
      bodies.push(bodyOf({ metadata: { a: text, [text]: [`${text}é`, `${text}\\`] } }))
    }
    assert.strictEqual(compare(bodies), bodies.length)
  })

  it("does every escape that canonical JSON has", () => {
    const controls = String.fromCharCode(...Array.from({ length: 32 }, (_, code) => code))
    const fields = {
      actor: { id: '"\\', type: "human", email: controls },
      resource: { id: "r", type: "t", name: `é${controls}` },
      metadata: { controls, '"': `"${controls}\\` }
    }
    assert.strictEqual(compare([bodyOf(fields)]), 1)
  })

  it("leaves escapes of characters with more than one byte to TypeScript", () => {
    const body = bodyOf({ actor: { id: "a", type: "human", email: "e" } })
    assert.strictEqual(compare([body.replace('"email":"e"', '"email":"\\u0041"')]), 1)
    assert.strictEqual(compare([body.replace('"email":"e"', '"email":"\\u00e9"')]), 0)
  })

  it("leaves rows to TypeScript and keeps the order, whatever the rows between them", () => {
    const other = erasedForm(whole, "2026-11-22T08:00:00.000000Z")
    const escaped = whole.replace('"email":"a@b"', '"email":"\\u00e9"')
    const bodies = [other, whole, escaped, whole, whole, escaped, escaped, other, other, whole]
    assert.strictEqual(compare(bodies), 4)
    compare(Array.from({ length: 100 }, () => [whole, other]).flat())
    assert.strictEqual(compare(Array.from({ length: 500 }, () => [whole, escaped]).flat()), 500)
    compare([])
  })

  it("leaves the rows beside one that is not UTF-8 to TypeScript, and no others", () => {
    const wrong = Buffer.from(whole)
    wrong[whole.indexOf("a@b")] = 0xff
    assert.strictEqual(compare([whole, wrong, whole]), 0)
    // Two rows that are UTF-8 only together.
    const [first, second] = [Buffer.from('{"id":"\xc3', "latin1"), Buffer.from('\xa9"}', "latin1")]
    compare([first, second])
    const many = Array.from({ length: 3 * ROWS_MAX }, () => whole)
    assert.isAtLeast(compare([wrong, ...many]), 2 * ROWS_MAX)
  })

  it("does rows of any number and size up to a piece, and leaves what is larger", () => {
    for (const count of [ROWS_MAX - 1, ROWS_MAX, ROWS_MAX + 1]) {
      assert.strictEqual(compare(Array.from({ length: count }, () => whole)), count)
      // The module gets more of them at a time than it has room for.
      assert.strictEqual(compare(Array.from({ length: count }, () => "{}")), 0)
    }
    const sized = (bytes: number) => {
      const empty = bodyOf({ metadata: { a: "" } })
      return bodyOf({ metadata: { a: "x".repeat(bytes - Buffer.byteLength(empty)) } })
    }
    assert.strictEqual(Buffer.byteLength(sized(PIECE_BYTES_MAX)), PIECE_BYTES_MAX)
    assert.strictEqual(compare([whole, sized(PIECE_BYTES_MAX), whole]), 3)
    assert.strictEqual(compare([whole, sized(PIECE_BYTES_MAX + 1), whole]), 2)
    assert.strictEqual(compare([sized(200_000), sized(200_000), sized(300_000)]), 2)
  })

  it("leaves a row whose metadata has more strings than there is room for", () => {
    const strings = (count: number) =>
      bodyOf({ metadata: { a: Array.from({ length: count }, () => "s") } })
    assert.strictEqual(compare([strings(STRINGS_MAX)]), 1)
    assert.strictEqual(compare([whole, strings(STRINGS_MAX + 1), whole]), 2)
  })

  it("keeps its memory, and no rows of the last insert", () => {
    const fast = new FastSplit()
    const { byteLength } = fast.memory
    fast.begin(rowsOf([whole]))
    assert.strictEqual(fast.split(0), 1)
    fast.begin([])
    assert.isFalse(fast.isLoaded(0))
    assert.strictEqual(fast.memory.byteLength, byteLength)
    assert.isBelow(byteLength, 8 * 1_048_576)
    assert.strictEqual(fastSplit(), fastSplit())
  })
})

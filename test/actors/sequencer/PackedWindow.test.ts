/** The window against a plain array: the same answers at any size, through growth and eviction. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  PackedWindow,
  packEntries,
  unpackEntries
} from "../../../src/actors/sequencer/PackedWindow.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"

const hex = (text: string): string => sha256Hex(text).slice(0, 32)

describe("PackedWindow", () => {
  it("finds what an array of the last entries would find", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.nat({ max: 30 }), { maxLength: 200 }),
        (capacity, keys) => {
          const window = new PackedWindow(capacity)
          const model: Array<{ key: number; number: number }> = []
          keys.forEach((key, number) => {
            window.append({ key: hex(`k${key}`), fingerprint: hex(`m${number}`), number })
            model.push({ key, number })
            const held = model.slice(-capacity)
            for (let probe = 0; probe <= 30; probe++) {
              const expected = held.findLast((entry) => entry.key === probe)
              const found = window.find(hex(`k${probe}`))
              assert.strictEqual(found?.number, expected?.number)
              if (expected !== undefined) {
                assert.strictEqual(found?.fingerprint, hex(`m${expected.number}`))
                assert.strictEqual(found?.ordinal, expected.number)
              }
            }
          })
        }
      ),
      { numRuns: 60 }
    )
  })

  it("grows past its first size without losing an entry", () => {
    const window = new PackedWindow(10_000)
    for (let number = 0; number < 9_000; number++) {
      window.append({ key: hex(`k${number}`), fingerprint: hex("m"), number })
    }
    for (let number = 0; number < 9_000; number += 7) {
      assert.strictEqual(window.find(hex(`k${number}`))?.number, number)
    }
    assert.isUndefined(window.find(hex("k9000")))
  })

  it("knows the newest entry of a key through every growth", () => {
    const window = new PackedWindow(20_000)
    const newest = new Map<string, number>()
    for (let number = 0; number < 18_000; number++) {
      const key = hex(`k${number % 1_700}`)
      window.append({ key, fingerprint: hex(`m${number}`), number })
      newest.set(key, number)
    }
    for (const [key, number] of newest) {
      assert.deepStrictEqual(window.find(key), {
        ordinal: number,
        fingerprint: hex(`m${number}`),
        number
      })
    }
    const entries = [...window.entries()]
    assert.strictEqual(entries.length, 18_000)
    assert.deepStrictEqual(entries[5_000], {
      key: hex(`k${5_000 % 1_700}`),
      fingerprint: hex("m5000"),
      number: 5_000,
      ordinal: 5_000
    })
  })

  it("packs and unpacks numbers up to the largest safe integer", () => {
    const entries = [0, 1, 2 ** 32, Number.MAX_SAFE_INTEGER].map((number) => ({
      key: hex(`k${number}`),
      fingerprint: hex(`m${number}`),
      number
    }))
    assert.deepStrictEqual(unpackEntries(packEntries(entries)), entries)
    const window = new PackedWindow(8)
    for (const entry of entries) window.append(entry)
    for (const { key, number } of entries) assert.strictEqual(window.find(key)?.number, number)
  })
})

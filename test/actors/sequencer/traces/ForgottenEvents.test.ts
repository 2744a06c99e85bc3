/** Up to where events may be forgotten, against the offset of each entry. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { PackedWindow } from "../../../../src/actors/sequencer/PackedWindow.ts"
import { ForgottenEvents } from "../../../../src/actors/sequencer/traces/ForgottenEvents.ts"
import { sha256Hex } from "../../../../src/domain/Identifiers.ts"

describe("events that the window may have forgotten", () => {
  it("are below an offset that never falls, and that lags behind the end by most of the window", () => {
    const chunks = fc.array(fc.nat({ max: 30 }), { maxLength: 60 })
    const restarts = fc.array(fc.boolean(), { minLength: 60, maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), chunks, restarts, (capacity, counts, again) => {
        const window = new PackedWindow(capacity)
        const offsets: Array<number> = []
        let forgotten = new ForgottenEvents(0)
        let [next, before, restarted] = [0, 0, 0]
        for (const [at, count] of counts.entries()) {
          for (let n = 0; n < count; n++) {
            const key = sha256Hex(`${window.next}`).slice(0, 32)
            window.append({ key, fingerprint: key, number: n })
            offsets.push(next + n)
          }
          next += count + 1
          forgotten.advance(window, next)
          if (again[at] === true) {
            forgotten = ForgottenEvents.restored(window, 0, next)
            restarted = window.next
          }
          const lost = offsets.slice(0, window.first)
          assert.isTrue(lost.every((offset) => offset < forgotten.upTo))
          assert.isAtLeast(forgotten.upTo, before)
          if (window.first === 0) assert.strictEqual(forgotten.upTo, 0)
          else if (window.first > restarted) {
            const late = offsets[window.first + Math.ceil(capacity / 64) + 30] ?? next
            assert.isAtMost(forgotten.upTo, late + 1)
          }
          before = forgotten.upTo
        }
      }),
      { numRuns: 200 }
    )
  })
})

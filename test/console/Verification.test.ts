/** What the page of the chain asks for, and how long that takes. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { rateOf, type Sample, secondsLeft, withSample } from "../../src/console/state/Pace.ts"
import { checksOf, parametersOf, requestOf } from "../../src/console/state/VerificationRequest.ts"

describe("a request of the address", () => {
  it("is both chains one after the other, unless one is named", () => {
    assert.deepStrictEqual(checksOf(requestOf({})), [
      { chain: "events", path: "/v1/verify?chain=events" },
      { chain: "traces", path: "/v1/verify?chain=traces" }
    ])
    assert.deepStrictEqual(checksOf(requestOf({ verify: "traces", from: "-1h" })), [
      { chain: "traces", path: "/v1/verify?chain=traces&from=-1h" }
    ])
  })

  it("is of the events where sequences bound it and no chain is named", () => {
    assert.deepStrictEqual(checksOf(requestOf({ from_sequence: "3", to_sequence: "9" })), [
      { chain: "events", path: "/v1/verify?chain=events&from_sequence=3&to_sequence=9" }
    ])
    assert.strictEqual(requestOf({ verify: "nothing", from_sequence: "-3" }).chain, "both")
  })

  it("is the same after a way through the address", () => {
    const text = fc.option(fc.constantFrom("-1h", "2026-01-31", "a&b=c"), { nil: undefined })
    const sequence = fc.option(fc.integer({ min: 1, max: 10 ** 14 }), { nil: undefined })
    const chain = fc.constantFrom("events" as const, "traces" as const)
    const requests = fc.record({
      chain,
      from: text,
      to: text,
      fromSequence: sequence,
      toSequence: sequence
    })
    fc.assert(
      fc.property(requests, (request) => {
        const address = new URLSearchParams(parametersOf(request))
        assert.deepStrictEqual(requestOf(Object.fromEntries(address)), request)
      })
    )
  })
})

describe("the pace of a check", () => {
  const samplesOf = (...points: ReadonlyArray<readonly [at: number, done: number]>) =>
    points.reduce<ReadonlyArray<Sample>>(
      (samples, [at, done]) => withSample(samples, { at, done }),
      []
    )

  it("is that of the last seconds, and unknown without two times", () => {
    assert.isUndefined(rateOf([]))
    assert.isUndefined(rateOf(samplesOf([0, 0])))
    assert.isUndefined(rateOf(samplesOf([5, 0], [5, 10])))
    assert.strictEqual(rateOf(samplesOf([0, 0], [2_000, 500])), 250)
    const slower = Array.from(
      { length: 20 },
      (_, n) => [n * 1_000, n < 9 ? 900 * n : 8_100 + n] as const
    )
    assert.strictEqual(rateOf(samplesOf(...slower)), 1)
  })

  it("says how long it takes, and nothing where that is unknown", () => {
    assert.strictEqual(secondsLeft(500, 250), 2)
    assert.strictEqual(secondsLeft(0, undefined), 0)
    assert.isUndefined(secondsLeft(5, undefined))
    assert.isUndefined(secondsLeft(5, 0))
  })
})

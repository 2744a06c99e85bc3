/** The digest of the ends of chains: the same however they came about, and another one for others. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { digestOfSum, movedSum, sumOfHeads } from "../../../src/domain/chain/HeadsDigest.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"

const end = (sequence_number: number, text = "") => ({
  sequence_number,
  hash: sha256Hex(`${sequence_number} ${text}`)
})

const digestOf = (...chains: Parameters<typeof sumOfHeads>) => digestOfSum(sumOfHeads(...chains))

describe("the digest of the ends of chains", () => {
  it("is the same in whatever steps the chains have grown", () => {
    const step = fc.record({
      chain: fc.constantFrom("events", "traces"),
      tenants: fc.uniqueArray(fc.constantFrom("acme", "globex", "umbrella", "_system"))
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const heads = { events: new Map(), traces: new Map() }
        let sum = 0n
        for (const [at, { chain, tenants }] of steps.entries()) {
          const moved = new Map(tenants.map((tenantId) => [tenantId, end(at + 1)]))
          sum = movedSum(sum, chain, moved, heads[chain])
          for (const [tenantId, head] of moved) heads[chain].set(tenantId, head)
        }
        assert.strictEqual(digestOfSum(sum), digestOf(heads.events, heads.traces))
      })
    )
  })

  it("is another one where anything differs, also where as many records are there", () => {
    const none = new Map()
    const digests = [
      digestOf(none, none),
      digestOf(new Map([["acme", end(6)]]), none),
      digestOf(none, new Map([["acme", end(6)]])),
      digestOf(new Map([["acme", end(6, "another history")]]), none),
      digestOf(new Map([["globex", end(6)]]), none),
      digestOf(new Map([["acme", { ...end(6), sequence_number: 5 }]]), none),
      digestOf(new Map([...["acme", "globex"].map((one) => [one, end(3)] as const)]), none)
    ]
    assert.strictEqual(new Set(digests).size, digests.length)
  })
})

/**
 * The buckets behind quotas: they decide as buckets that are kept for ever would, and remember no
 * more names than they may.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { clientNetwork } from "../../../src/http/server/FailedCredentials.ts"
import { TokenBuckets } from "../../../src/http/server/TokenBuckets.ts"

/** A bucket per name, none of which is ever forgotten. */
const unbounded = (perSecond: number, capacity: number) => {
  const buckets = new Map<string, { left: number; at: number }>()
  return (name: string, tokens: number, now: number): boolean => {
    const { at, left } = buckets.get(name) ?? { left: capacity, at: now }
    const before = Math.min(capacity, left + ((now - at) / 1_000) * perSecond)
    buckets.set(name, { left: before >= 1 ? before - tokens : before, at: now })
    return before >= 1
  }
}

const wishes = (names: number) =>
  fc.array(
    fc.record({
      name: fc.integer({ min: 0, max: names - 1 }).map((n) => `tenant-${n}`),
      tokens: fc.integer({ min: 1, max: 12 }),
      waitMs: fc.integer({ min: 0, max: 4_000 })
    }),
    { maxLength: 200 }
  )

describe("TokenBuckets", () => {
  it("decides as buckets that nobody forgets, while there are few enough names", () => {
    fc.assert(
      fc.property(wishes(8), fc.integer({ min: 1, max: 5 }), (all, perSecond) => {
        const buckets = new TokenBuckets({ perSecond, capacity: 5, namesMax: 8 })
        const expected = unbounded(perSecond, 5)
        let now = 0
        for (const { name, tokens, waitMs } of all) {
          now += waitMs
          assert.strictEqual(buckets.take(name, tokens, now).admitted, expected(name, tokens, now))
        }
      })
    )
  })

  it("remembers no more names than it may, and those that are full again not at all", () => {
    fc.assert(
      fc.property(wishes(1_000), (all) => {
        const buckets = new TokenBuckets({ perSecond: 1, capacity: 5, namesMax: 10 })
        let now = 0
        for (const { name, tokens, waitMs } of all) {
          now += waitMs
          buckets.take(name, tokens, now)
          assert.isAtMost(buckets.size, 10)
        }
        for (let n = 0; n < 10; n++) buckets.take("last", 1, now + 1_000_000 + n * 10_000)
        assert.strictEqual(buckets.size, 1)
      })
    )
  })

  it("says when a whole token is there again", () => {
    const buckets = new TokenBuckets({ perSecond: 0.5, capacity: 1, namesMax: 10 })
    buckets.take("a", 1, 0)
    const { admitted, left } = buckets.take("a", 1, 0)
    assert.isFalse(admitted)
    const seconds = buckets.secondsUntilOne(left)
    assert.isFalse(buckets.take("a", 1, (seconds - 1) * 1_000).admitted)
    assert.isTrue(buckets.take("a", 1, seconds * 1_000).admitted)
  })
})

describe("the network of a client", () => {
  it("is its IPv4 address, or the first half of its IPv6 address", () => {
    for (const [address, network] of [
      ["192.0.2.1", "192.0.2.1"],
      ["::ffff:192.0.2.1", "192.0.2.1"],
      ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
      ["2001:db8::1", "2001:db8:0:0::/64"],
      ["::1", "0:0:0:0::/64"],
      ["fe80::1%eth0", "fe80:0:0:0::/64"],
      ["unknown", "unknown"]
    ] as const) {
      assert.strictEqual(clientNetwork(address), network, address)
    }
  })
})

/** The page of keys as its address says it, and how a key stands at a time. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  expiryInput,
  type KeysView,
  keyStateOf,
  keysAddress,
  keysViewOf,
  parts
} from "../../src/console/state/KeysView.ts"

const text = fc.option(fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }), {
  nil: undefined
})
const page = fc.integer({ min: 1, max: 99_999 })
const anyView: fc.Arbitrary<KeysView> = fc.record({
  part: fc.constantFrom(...parts),
  tenant: text,
  tenantsPage: page,
  keysPage: page,
  action: text,
  logPage: page
})

describe("the address of the page of keys", () => {
  it("holds all of the view", () => {
    fc.assert(
      fc.property(anyView, (view) => {
        const { searchParams } = new URL(keysAddress(view), "http://console.example")
        assert.deepStrictEqual(keysViewOf(Object.fromEntries(searchParams)), view)
      })
    )
  })

  it("is read with whatever somebody has typed into it", () => {
    const view = keysViewOf({ show: "x", tenant: "", page: "-1", tenants: "1e9", log: "0" })
    assert.deepStrictEqual(view, keysViewOf({}))
    assert.strictEqual(keysAddress(view), "/keys")
  })
})

describe("a key", () => {
  const NOW = Date.parse("2026-11-21T10:00:00Z")
  it("is valid, expires soon, has expired or is revoked", () => {
    assert.strictEqual(keyStateOf({}, NOW), "valid")
    for (const [expires_at, state] of [
      ["2026-11-28T10:00:00.000001Z", "expires soon"],
      ["2026-11-28T10:00:01.000000Z", "valid"],
      ["2026-11-21T10:00:00.001000Z", "expires soon"],
      ["2026-11-21T10:00:00.000000Z", "expired"],
      ["2025-11-21T10:00:00.000000Z", "expired"]
    ] as const) {
      assert.strictEqual(keyStateOf({ expires_at }, NOW), state, expires_at)
      const revoked_at = "2026-11-20T10:00:00.000000Z"
      assert.strictEqual(keyStateOf({ expires_at, revoked_at }, NOW), "revoked")
    }
  })

  it("expires as it is chosen: never, so many days from now, or with a day that ends", () => {
    assert.deepStrictEqual(expiryInput("never", ""), {})
    assert.deepStrictEqual(expiryInput("90", "2026-12-01"), { expires_in: 7_776_000 })
    assert.deepStrictEqual(expiryInput("date", "2026-12-01"), {
      expires_at: "2026-12-01T23:59:59.999999Z"
    })
  })
})

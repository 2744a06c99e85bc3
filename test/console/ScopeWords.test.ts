/** What a share link covers, in words, and how it stands. */
import { assert, describe, it } from "vitest"
import { endOf, linkStateOf } from "../../src/console/parts/LinkState.ts"
import { filterWords, periodWords } from "../../src/console/parts/ScopeWords.ts"

const [from, to] = ["2026-01-01T00:00:00.000000Z", "2026-03-31T23:59:59.999999Z"]

describe("a scope in words", () => {
  it("names both ends of its period, or says that one is open", () => {
    assert.strictEqual(periodWords(from, to), "2026-01-01 00:00:00 UTC to 2026-03-31 23:59:59 UTC")
    assert.strictEqual(periodWords(from, null), "2026-01-01 00:00:00 UTC to the newest event")
    assert.strictEqual(periodWords(null, to), "from the first event to 2026-03-31 23:59:59 UTC")
    assert.match(periodWords(null, null), /^everything/)
  })

  it("leaves no condition out, known or not", () => {
    const filters = {
      actor_id: "bob",
      action: "document.*",
      q: "invoice",
      "metadata.n": "1",
      where: "outcome:failure",
      from_sequence: "5",
      to_sequence: "9",
      of_tomorrow: "x"
    }
    assert.deepStrictEqual(filterWords(filters), [
      "actor bob",
      "an action that begins with document.",
      "the text “invoice” in them",
      "metadata.n = 1",
      "the query outcome:failure",
      "sequence number 5 or higher",
      "sequence number 9 or lower",
      "of_tomorrow x"
    ])
    assert.deepStrictEqual(filterWords({}), [])
  })
})

describe("a link in the list", () => {
  const link = {
    id: "lnk_1",
    from: null,
    to: null,
    filters: {},
    created_by: "key_1",
    created_at: from,
    expires_at: to,
    uses: 2
  }
  const during = Date.parse(from) + 1

  it("is usable until it is revoked, expired or used up, in this order of words", () => {
    assert.strictEqual(linkStateOf(link, during), "usable")
    assert.strictEqual(linkStateOf({ ...link, max_uses: 3 }, during), "usable")
    assert.strictEqual(linkStateOf({ ...link, max_uses: 2 }, during), "used up")
    assert.strictEqual(linkStateOf({ ...link, max_uses: 2 }, Date.parse(to)), "expired")
    assert.strictEqual(linkStateOf({ ...link, revoked_at: to }, Date.parse(to)), "revoked")
  })

  it("ended when it was revoked, used last, or ran out", () => {
    const last_used_at = "2026-02-01T00:00:00.000000Z"
    assert.strictEqual(endOf(link, "expired"), to)
    assert.strictEqual(endOf({ ...link, last_used_at }, "used up"), last_used_at)
    assert.strictEqual(endOf({ ...link, last_used_at, revoked_at: from }, "revoked"), from)
  })
})

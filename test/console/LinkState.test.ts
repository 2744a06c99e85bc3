/** How share links stand, as the console shows it. */
import { assert, it } from "vitest"
import type { ShareLink } from "../../src/client/gen/Api.d.ts"
import { endOf, linkStateOf } from "../../src/console/parts/LinkState.ts"

const NOW = Date.parse("2026-03-01T00:00:00Z")
const link: ShareLink = {
  id: "lnk_1",
  from: null,
  to: null,
  filters: {},
  created_by: "key_reader",
  created_at: "2026-02-01T00:00:00.000000Z",
  expires_at: "2026-04-01T00:00:00.000000Z",
  uses: 0
}

it("a share link stands as the service says, and as its end, uses and the time do", () => {
  const ended = { ...link, ended: "revoked" } as const
  assert.strictEqual(linkStateOf(link, NOW), "usable")
  assert.strictEqual(linkStateOf(link, Date.parse(link.expires_at)), "expired")
  assert.strictEqual(linkStateOf({ ...link, max_uses: 1, uses: 1 }, NOW), "used up")
  assert.strictEqual(linkStateOf(ended, NOW), "revoked")
  assert.strictEqual(endOf(link, "usable"), link.expires_at)
  assert.isUndefined(endOf(ended, "revoked"))
})

/** For which links and exports the console offers to take them away. */
import { assert, it } from "vitest"
import { mayBeTakenAway } from "../../src/console/parts/OwnThings.ts"

const made = { created_by: "key_reader" }

it.each([
  ["its own key", "key_reader", ["read"], true],
  ["another key that reads", "key_other", ["read"], false],
  ["another key that writes, too", "key_other", ["read", "write"], true]
] as const)("what a key has made is taken away with %s, or not", (_name, key_id, scopes, may) => {
  const session = {
    id: "ses_1",
    idle_seconds: 3_600,
    tenant_id: "acme",
    key_id,
    scopes,
    created_at: "2026-03-01T00:00:00.000000Z",
    expires_at: "2026-03-01T12:00:00.000000Z"
  }
  assert.strictEqual(mayBeTakenAway(made, { is: "in", session, isAdmin: false }), may)
  assert.isFalse(mayBeTakenAway(made, { is: "leaving" }))
})

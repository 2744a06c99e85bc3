/** Commands of those who run the service: tenants, keys, share links. */
import { assert, beforeAll, describe, it } from "vitest"
import { ADMIN_TOKEN } from "../support/Program.ts"
import { alkWorld, SEND } from "./AlkWorld.ts"

const world = alkWorld("administration")
const { alk, alkWith, key, rows } = world

beforeAll(async () => {
  const { code, errors } = await alkWith({ input: key }, "login", "--url", world.running.url)
  assert.strictEqual(code, 0, errors)
})

describe("alk", () => {
  it("keeps, holds and deletes a tenant", async () => {
    const environment = { ALK_ADMIN_TOKEN: ADMIN_TOKEN, ALK_URL: world.running.url }
    const ran = (...args: ReadonlyArray<string>) => alkWith({ environment }, "tenants", ...args)
    const said = async (...args: ReadonlyArray<string>) => {
      const { code, errors, output } = await ran(...args)
      assert.strictEqual(code, 0, errors)
      return output === "" ? undefined : JSON.parse(output)
    }
    await said("create", "leaver")
    assert.deepInclude(await said("retention", "leaver", "--days", "30"), { days: 30, hold: null })
    assert.deepInclude(await said("retention", "leaver"), { tenant_id: "leaver", days: 30 })
    assert.deepInclude(await said("retention", "leaver", "--for-ever"), { days: null })
    assert.deepInclude((await said("hold", "leaver", "--reason", "case 7")).hold, {
      reason: "case 7",
      by: "admin"
    })
    const held = await ran("delete", "leaver")
    assert.notStrictEqual(held.code, 0)
    assert.include(held.errors, "legal hold")
    assert.deepInclude(await said("release", "leaver"), { hold: null })
    assert.isNotNull((await said("delete", "leaver", "--reason", "ended")).deletion)
    await said("delete", "leaver", "--cancel")
    assert.isNotNull((await said("delete", "leaver")).deletion)
    const gone = await said("delete", "leaver", "--confirm", "leaver")
    assert.deepInclude(gone, { tenant_id: "leaver", deleted_by: "admin" })
    assert.include((await ran("retention", "leaver")).errors, "was deleted")
  })

  it("makes tenants, keys and share links, and takes them back", async () => {
    const environment = { ALK_ADMIN_TOKEN: ADMIN_TOKEN }
    const admin = async (...args: ReadonlyArray<string>) => {
      const { code, errors, output } = await alkWith({ environment }, ...args)
      assert.strictEqual(code, 0, errors)
      return output === "" ? undefined : JSON.parse(output)
    }
    assert.deepInclude(await admin("tenants", "create", "acme", "--name", "Acme"), { id: "acme" })
    const made = await admin("keys", "create", "acme", "--scopes", "read", "--label", "reader")
    const login = await alkWith(
      { input: made.key },
      "login",
      "--context",
      "acme",
      "--url",
      world.running.url
    )
    assert.strictEqual(login.code, 0, login.errors)
    const denied = await alk(...SEND, "--actor", "eve", "--context", "acme")
    assert.strictEqual(denied.code, 3)
    assert.match(denied.errors, /next: use a key that may do this/)
    await admin("keys", "revoke", "acme", made.id)
    const [listed] = [await admin("keys", "list", "acme")]
    assert.isString(listed.revoked_at)
    const link = await admin(
      "share",
      "create",
      "--actor",
      "alice",
      "--label",
      "auditor",
      "--context",
      "default"
    )
    assert.match(link.token, /^shr_/)
    await admin("share", "revoke", link.id, "--context", "default")
    const [revoked] = await rows("share", "list", "--context", "default")
    assert.isString(revoked.revoked_at)
  })
})

/**
 * The admin routes: tenants and keys come and go, and nothing secret is shown twice.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { ADMIN_TOKEN } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

describe("administration", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())
  const call = (path: string, json?: unknown, method?: string) =>
    api.call(`/v1/admin/tenants${path}`, {
      key: ADMIN_TOKEN,
      ...(json === undefined ? {} : { json }),
      ...(method === undefined ? {} : { method })
    })

  it("creates and lists tenants", async () => {
    const created = await call("", { id: "initech", name: "Initech" })
    assert.strictEqual(created.status, 201)
    assert.deepInclude(created.body, { id: "initech", name: "Initech" })
    assert.isString(created.body.created_at)
    const listed = await call("")
    assert.deepStrictEqual(
      listed.body.tenants.map(({ id }: any) => id),
      ["acme", "initech"]
    )
  })

  it("makes keys that expire: after so many seconds, or at a time to come", async () => {
    const inSeconds = await call("/acme/keys", { scopes: ["read"], expires_in: 60 })
    const { created_at, expires_at } = inSeconds.body
    assert.closeTo(Date.parse(expires_at) - Date.parse(created_at), 60_000, 1_000)
    const later = new Date(Date.now() + 86_400_000).toISOString()
    const atTime = await call("/acme/keys", { scopes: ["read"], expires_at: later })
    assert.strictEqual(atTime.body.expires_at, later.replace("Z", "000Z"))
    const shown = await call(`/acme/keys/${atTime.body.id}`)
    assert.strictEqual(shown.body.expires_at, atTime.body.expires_at)
    const never = await call("/acme/keys", { scopes: ["read"], expires_at: null, expires_in: null })
    assert.notProperty(never.body, "expires_at")
    const years = (count: number) =>
      new Date(Date.now() + count * 365.25 * 86_400_000).toISOString()
    for (const [json, field] of [
      [{ expires_in: 0 }, "expires_in"],
      [{ expires_in: 4_000_000_000 }, "expires_in"],
      [{ expires_in: "60" }, "expires_in"],
      [{ expires_at: "tomorrow" }, "expires_at"],
      [{ expires_at: "2027-02-30T00:00:00Z" }, "expires_at"],
      [{ expires_at: years(-1) }, "expires_at"],
      [{ expires_at: years(11) }, "expires_at"],
      [{ expires_at: later, expires_in: 60 }, "expires_at"]
    ] as const) {
      const { body, status } = await call("/acme/keys", { scopes: ["read"], ...json })
      assert.deepStrictEqual([status, body.error?.field], [400, field], JSON.stringify(json))
    }
    for (const { id } of [inSeconds.body, atTime.body, never.body]) {
      await call(`/acme/keys/${id}`, undefined, "DELETE")
    }
  })

  it("shows when keys were last used", async () => {
    const { body: key } = await call("/acme/keys", { scopes: ["read"] })
    const used_at = "2026-11-21T10:00:00.000000Z"
    api.world.state.registry.take([{ kind: "key_use", key_use: { key_id: key.id, used_at } }])
    assert.strictEqual((await call(`/acme/keys/${key.id}`)).body.last_used_at, used_at)
    const [listed] = (await call("/acme/keys")).body.keys
    assert.deepInclude(listed, { id: key.id, last_used_at: used_at, hint: key.hint })
    await call(`/acme/keys/${key.id}`, undefined, "DELETE")
  })

  it("shows a key once, lists it without secrets, and revokes it", async () => {
    const created = await call("/acme/keys", {
      scopes: ["write", "read", "read"],
      label: "shop",
      prefix: "svc_live_"
    })
    assert.strictEqual(created.status, 201)
    assert.strictEqual(created.headers["cache-control"], "no-store")
    assert.sameMembers(Object.keys(created.body), [
      "id",
      "key",
      "tenant_id",
      "scopes",
      "label",
      "hint",
      "created_at"
    ])
    assert.isTrue(created.body.key.startsWith(created.body.hint.slice(0, -1)))
    assert.match(created.body.key, /^svc_live_/)
    assert.deepStrictEqual(created.body.scopes, ["read", "write"])
    const plain = await call("/acme/keys", { scopes: ["read"], label: null })
    assert.match(plain.body.key, /^alk_live_/)
    const listed = await call("/acme/keys")
    const valid = listed.body.keys.filter(({ revoked_at }: any) => revoked_at === undefined)
    assert.strictEqual(valid.length, 2)
    assert.notInclude(listed.text, created.body.key)
    assert.notInclude(listed.text, "hash")
    assert.notInclude(listed.text, "f".repeat(64))
    const revoked = await call(`/acme/keys/${created.body.id}`, undefined, "DELETE")
    assert.deepStrictEqual([revoked.status, revoked.text], [204, ""])
    const again = await call(`/acme/keys/${created.body.id}`, undefined, "DELETE")
    assert.strictEqual(again.status, 404)
  })
})

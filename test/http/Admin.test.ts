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
      "created_at"
    ])
    assert.match(created.body.key, /^svc_live_/)
    assert.deepStrictEqual(created.body.scopes, ["read", "write"])
    const plain = await call("/acme/keys", { scopes: ["read"], label: null })
    assert.match(plain.body.key, /^alk_live_/)
    const listed = await call("/acme/keys")
    assert.strictEqual(listed.body.keys.length, 2)
    assert.notInclude(listed.text, created.body.key)
    assert.notInclude(listed.text, "hash")
    assert.notInclude(listed.text, "f".repeat(64))
    const revoked = await call(`/acme/keys/${created.body.id}`, undefined, "DELETE")
    assert.deepStrictEqual([revoked.status, revoked.text], [204, ""])
    const again = await call(`/acme/keys/${created.body.id}`, undefined, "DELETE")
    assert.strictEqual(again.status, 404)
  })
})

/** GET /v1/me: whose key it is and what holds for it, for every kind of credential. */
import { afterEach, assert, describe, it } from "vitest"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, settings, World, WRITE_KEY } from "./support/Doubles.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import { TestApi } from "./support/TestApi.ts"

const ME = "/v1/me"
const KEYS = "/v1/admin/tenants/acme/keys"

let api: TestApi
afterEach(() => api.stop())

const made = async (input: object): Promise<{ readonly id: string; readonly key: string }> => {
  const { body, status } = await api.call(KEYS, { key: ADMIN_TOKEN, json: input })
  assert.strictEqual(status, 201)
  return body
}

describe("GET /v1/me", () => {
  it("names tenant, scopes, label and limits of a key, never the key itself", async () => {
    api = await TestApi.start()
    const { id, key } = await made({ scopes: ["write"], label: "the web shop" })
    const { body, headers, status, text } = await api.call(ME, { key })
    assert.strictEqual(status, 200)
    const { hint, created_at, ...named } = body.key
    assert.deepStrictEqual(named, { id, kind: "api_key", label: "the web shop" })
    assert.isTrue(key.startsWith(hint.slice(0, -1)))
    assert.isString(created_at)
    assert.deepStrictEqual([body.tenant_id, body.scopes], ["acme", ["write"]])
    assert.strictEqual(headers["cache-control"], "no-store")
    assert.notInclude(text, key)
    assert.notInclude(text, "hash")
  })

  it("says when the key expires, and whether there is an admin token to make another", async () => {
    const world = new World()
    api = await TestApi.start({}, world)
    const { key } = await made({ scopes: ["read"], expires_in: 3_600 })
    const { body } = await api.call(ME, { key })
    const lasts = Date.parse(body.key.expires_at) - Date.parse(body.key.created_at)
    assert.closeTo(lasts, 3_600_000, 1_000)
    assert.isTrue(body.has_admin_token)
    await api.stop()
    world.adminToken = undefined
    world.principals.delete(ADMIN_TOKEN)
    api = await TestApi.start({}, world)
    assert.isFalse((await api.call(ME, { key })).body.has_admin_token)
    assert.strictEqual((await api.call("/v1/admin/tenants", { key: ADMIN_TOKEN })).status, 401)
  })

  it("answers keys of every scope, each with its own tenant", async () => {
    api = await TestApi.start()
    const seen: Array<unknown> = []
    for (const key of [READ_KEY, WRITE_KEY, OTHER_KEY]) {
      const { body, status } = await api.call(ME, { key })
      assert.strictEqual(status, 200)
      seen.push([body.tenant_id, body.key.id, body.scopes])
    }
    assert.deepStrictEqual(seen, [
      ["acme", "key_read", ["read"]],
      ["acme", "key_write", ["write"]],
      ["globex", "key_other", ["read", "write"]]
    ])
  })

  it("says that the admin token is one, and that it reads the system tenant", async () => {
    api = await TestApi.start()
    const { body } = await api.call(ME, { key: ADMIN_TOKEN })
    assert.deepStrictEqual(
      [body.tenant_id, body.scopes, body.key],
      ["_system", ["read"], { id: "admin", kind: "admin_token" }]
    )
  })

  it("refuses what is no key: none, an unknown or revoked one, a share link's token", async () => {
    api = await startExports(new World(), new ExportWorld())
    const { id, key } = await made({ scopes: ["read"] })
    assert.strictEqual((await api.call(ME, { key })).status, 200)
    await api.call(`${KEYS}/${id}`, { method: "DELETE", key: ADMIN_TOKEN })
    const link = await api.call("/v1/share/links", { key: READ_KEY, json: {} })
    for (const refused of [undefined, `alk_live_${"x".repeat(43)}`, key, link.body.token]) {
      const { body, headers, status } = await api.call(
        ME,
        refused === undefined ? {} : { key: refused }
      )
      assert.deepStrictEqual([status, body.error.code], [401, "unauthenticated"])
      assert.strictEqual(headers["www-authenticate"], "Bearer")
    }
  })

  it("says the limits that are configured, and null for quotas that are off", async () => {
    api = await TestApi.start()
    const { limits } = (await api.call(ME, { key: READ_KEY })).body
    assert.deepInclude(limits, {
      body_bytes_max: settings.limits.bodyBytesMax,
      batch_items_max: 1_000,
      page_size_max: 1_000,
      streams_max: 100,
      events_per_second_max: null,
      exports_at_once_max: null
    })
    await api.stop()
    api = await TestApi.start({
      eventsPerSecondMax: 25,
      exportsAtOnceMax: 2,
      streamsPerTenantMax: 7,
      limits: { ...settings.limits, metadataBytesMax: 512 }
    })
    const { body } = await api.call(ME, { key: WRITE_KEY })
    assert.deepInclude(body.limits, {
      metadata_bytes_max: 512,
      streams_max: 7,
      events_per_second_max: 25,
      exports_at_once_max: 2
    })
  })
})

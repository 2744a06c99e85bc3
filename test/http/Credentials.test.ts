/**
 * What credentials lead to and what they leave behind: a key's end is the end of its share links,
 * guesses are slowed down, and nothing private stays in a cache.
 */
import { Stream } from "effect"
import { afterEach, assert, describe, it, vi } from "vitest"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { opsPaths } from "../../src/http/operations/OpsContract.ts"
import { ADMIN_TOKEN, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import { type Answer, TestApi } from "./support/TestApi.ts"

const LINKS = "/v1/share/links"
const DOCUMENT = "/v1/share/export/pdf"
const KEYS = "/v1/admin/tenants/acme/keys"
const admin = { key: ADMIN_TOKEN }
const remove = { method: "DELETE", ...admin }

let api: TestApi
afterEach(async () => {
  vi.useRealTimers()
  await api.stop()
})

const createKey = async (): Promise<{ readonly id: string; readonly key: string }> => {
  const { body, status } = await api.call(KEYS, { ...admin, json: { scopes: ["read"] } })
  assert.strictEqual(status, 201)
  return body
}

interface MadeLink {
  readonly id: string
  readonly token: string
}

const createLink = async (key: string): Promise<MadeLink> => {
  const { body, status } = await api.call(LINKS, { key, json: {} })
  assert.strictEqual(status, 201)
  return body
}

describe("a header that is no bearer", () => {
  it.each([
    ["Bearer%20KEY", "%20"],
    ["Bearer+KEY", "the word Bearer and a space"],
    ['"Bearer KEY"', "the word Bearer and a space"],
    ["KEY", "the word Bearer and a space"],
    ["", "send the header"]
  ])("is said to be what it is, without the key: %s", async (header, expected) => {
    api = await TestApi.start()
    const authorization = header.replace("KEY", READ_KEY)
    const answer = await api.call("/v1/events", { headers: { authorization } })
    assert.strictEqual(answer.status, 401)
    assert.include(answer.body.error.message, expected)
    assert.notInclude(answer.text, READ_KEY)
  })
})

describe("revoking a key", () => {
  it("ends the links that were made with it, those of other keys not, and says so", async () => {
    const world = new World()
    api = await startExports(world, new ExportWorld())
    await api.call("/v1/events?sync=true", { key: WRITE_KEY, json: item(1) })
    const [leaked, kept] = [await createKey(), await createKey()]
    const ended = [await createLink(leaked.key), await createLink(leaked.key)]
    const usable = await createLink(kept.key)
    const gone = await createLink(leaked.key)
    await api.call(`${LINKS}/${gone.id}`, { method: "DELETE", key: leaked.key })
    const before = (await api.call(`${LINKS}/${gone.id}`, { key: READ_KEY })).body.revoked_at

    assert.strictEqual((await api.call(`${KEYS}/${leaked.id}`, remove)).status, 204)

    const openedWith = async (token: string) => (await api.call(DOCUMENT, { key: token })).status
    for (const { id, token } of ended) {
      assert.strictEqual(await openedWith(token), 401)
      const { body } = await api.call(`${LINKS}/${id}`, { key: READ_KEY })
      assert.isString(body.revoked_at)
    }
    assert.strictEqual(await openedWith(usable.token), 200)
    const { body } = await api.call(`${LINKS}/${gone.id}`, { key: READ_KEY })
    assert.strictEqual(body.revoked_at, before)
    const revoked = world.bodies
      .map((text) => JSON.parse(text) as AuditEvent)
      .find(({ action }) => action === "api_key.revoked")
    assert.strictEqual(revoked?.tenant_id, "_system")
    assert.deepStrictEqual(revoked?.metadata, {
      tenant_id: "acme",
      share_links_revoked: 2,
      share_links: ended.map(({ id }) => id)
    })
  })
})

describe("the url of a share link", () => {
  it("is the service's own address, whatever the request says", async () => {
    api = await TestApi.start()
    for (const headers of [
      { host: "evil.example" },
      { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
      { forwarded: "host=evil.example;proto=https" }
    ]) {
      const { body } = await api.call(LINKS, { key: READ_KEY, json: {}, headers })
      assert.strictEqual(body.url, `${api.url}${DOCUMENT}`)
    }
  })
})

describe("failed credentials", () => {
  const guess = (path: string, key: string): Promise<Answer> => api.call(path, { key })

  /** Another address in each request: what a client says of itself counts for nothing. */
  const elsewhere = (n: number): Record<string, string> => ({
    "x-forwarded-for": `10.0.0.${n}`,
    "x-real-ip": `10.0.0.${n}`,
    forwarded: `for=10.0.0.${n}`
  })

  it("are slowed down after a number of them, on every kind of route", async () => {
    // No time passes in which a guess would be forgiven.
    vi.useFakeTimers({ toFake: ["performance"] })
    for (const path of ["/v1/admin/tenants", "/v1/events", "/v1/share", DOCUMENT]) {
      api = await TestApi.start({ failedKeysPerMinuteMax: 5 })
      for (let n = 0; n < 5; n++) {
        const call = { key: `guess-number-${n}`, headers: elsewhere(n) }
        const { status, text } = await api.call(path, call)
        assert.strictEqual(status, 401, path)
        assert.notInclude(text, "guess-number")
      }
      const slowed = await api.call(path, { key: "guess-number-5", headers: elsewhere(5) })
      assert.strictEqual(slowed.status, 429, path)
      assert.notInclude(slowed.text, "guess-number")
      assert.strictEqual(slowed.body.error.code, "rate_limited")
      assert.match(slowed.body.error.message, /too many wrong keys/)
      assert.isAtLeast(Number(slowed.headers["retry-after"]), 1)
      const { text } = await api.call("/metrics")
      assert.match(text, /alk_http_failed_credentials_total\{answer="401"\} \d+/)
      assert.match(text, /alk_http_failed_credentials_total\{answer="429"\} \d+/)
      assert.lengthOf(
        api.logs.filter(({ message }) => message.includes("wrong keys")),
        1
      )
      assert.notInclude(JSON.stringify(api.logs), "guess-number")
      if (path !== DOCUMENT) await api.stop()
    }
  })

  it("cost the right ones of the address nothing, and a missing key is no guess", async () => {
    api = await TestApi.start({ failedKeysPerMinuteMax: 1 })
    for (let n = 0; n < 4; n++) await guess("/v1/events", `wrong-${n}`)
    assert.strictEqual((await guess("/v1/events", READ_KEY)).status, 200)
    assert.strictEqual((await guess("/v1/admin/tenants", ADMIN_TOKEN)).status, 200)
    for (let n = 0; n < 4; n++) assert.strictEqual((await api.call("/v1/events")).status, 401)
  })

  it("are not counted where that is off", async () => {
    api = await TestApi.start({ failedKeysPerMinuteMax: 0 })
    for (let n = 0; n < 80; n++) {
      assert.strictEqual((await guess("/v1/events", `wrong-${n}`)).status, 401)
    }
  })
})

describe("an answer to a key", () => {
  it("stays in no cache, whatever the route and the status", async () => {
    const world = new World()
    world.sse = Stream.make(Buffer.from("retry: 3000\n\n"))
    api = await TestApi.start({}, world)
    for (const [path, methods] of Object.entries<object>(openApiDocument().paths)) {
      if ((opsPaths as ReadonlyArray<string>).includes(path)) continue
      for (const method of Object.keys(methods)) {
        for (const key of [READ_KEY, WRITE_KEY, ADMIN_TOKEN, undefined]) {
          const call = { method: method.toUpperCase(), ...(key === undefined ? {} : { key }) }
          const { headers } = await api.call(path.replaceAll(/\{\w+\}/g, "x"), call)
          const stored = String(headers["cache-control"])
          assert.match(stored, /no-store|private, no-cache/, `${method} ${path}`)
        }
      }
    }
  })
})

/**
 * Signing a browser in and out: the cookie in place of a key, what it opens, for how long, and to
 * which pages only.
 */
import { Redacted } from "effect"
import { afterEach, assert, describe, it, vi } from "vitest"
import { SYSTEM_TENANT } from "../../src/domain/Identifiers.ts"
import { CODE_LASTS } from "../../src/services/administration/Sessions.ts"
import { sessionTokens } from "../../src/services/administration/SessionTokens.ts"
import { ADMIN_TOKEN, READ_KEY, SECRET, World, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { type Answer, TestApi } from "./support/TestApi.ts"

const SESSION = "/v1/session"
const KEYS = "/v1/admin/tenants/acme/keys"
const admin = { key: ADMIN_TOKEN }

let api: TestApi
afterEach(async () => {
  vi.useRealTimers()
  await api.stop()
})

const start = async (...settings: Parameters<typeof TestApi.start>) => {
  api = await TestApi.start(...settings)
}

/** The cookies that an answer sets, with their attributes. */
const setBy = ({ headers }: Answer): ReadonlyArray<string> =>
  [headers["set-cookie"] ?? []].flat().map(String)

/** What a browser sends after it. */
const cookieOf = (answer: Answer): string =>
  setBy(answer)
    .map((line) => line.split(";")[0]!)
    .join("; ")

const signIn = async (key: string): Promise<Answer> => {
  const answer = await api.call(SESSION, { json: { key } })
  assert.strictEqual(answer.status, 201, answer.text)
  return answer
}

/** A request of a page of the console. */
const own = (cookie: string, method = "GET") => ({
  method,
  headers: {
    cookie,
    "sec-fetch-site": "same-origin",
    ...(method === "GET" ? {} : { origin: api.url })
  }
})

const systemActions = () =>
  api.world.bodies
    .map((body) => JSON.parse(body))
    .filter((event) => event.tenant_id === SYSTEM_TENANT)
    .map((event) => event.action)

describe("signing in", () => {
  it("gives a cookie that no script reads in place of the key, and says so in the chain", async () => {
    await start()
    const answer = await signIn(READ_KEY)
    const { admin: none, session } = answer.body
    assert.isNull(none)
    assert.include(session, { tenant_id: "acme", key_id: "key_read", idle_seconds: 3_600 })
    assert.deepStrictEqual(session.scopes, ["read"])
    assert.strictEqual(
      Date.parse(session.expires_at) - Date.parse(session.created_at),
      12 * 3_600_000
    )
    const [line = ""] = setBy(answer)
    assert.match(line, /^alk_session=ses_[0-9a-f]{32}\.[^;]+; /)
    for (const attribute of ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=3600"]) {
      assert.include(line, attribute)
    }
    assert.notInclude(line, "Secure")
    assert.notInclude(answer.text, READ_KEY)
    assert.include(systemActions(), "session.started")
    assert.isFalse(api.world.bodies.some((body) => body.includes(READ_KEY)))
  })

  it("binds the cookie to this host over TLS where the service has it", async () => {
    await start({ publicUrl: "https://alk.example" })
    const [line = ""] = setBy(await signIn(READ_KEY))
    assert.match(line, /^__Host-alk_session=/)
    assert.include(line, "Secure")
    const cookie = line.split(";")[0]!
    const { status } = await api.call("/v1/events/erase-me/erase", {
      method: "POST",
      json: { reason: "asked for" },
      headers: { cookie, origin: "https://alk.example" }
    })
    assert.strictEqual(status, 403)
  })

  it("does so for a page that came over TLS, too, where the service knows of none", async () => {
    await start()
    const host = "alk.example"
    const https = { host, origin: `https://${host}`, "sec-fetch-site": "same-origin" }
    const answer = await api.call(SESSION, { json: { key: READ_KEY }, headers: https })
    const [line = ""] = setBy(answer)
    assert.match(line, /^__Host-alk_session=.*Secure/)
    const cookie = cookieOf(answer)
    // What only reads says no origin; the cookie stays what it is, and counts before a plain one.
    const read = { headers: { cookie: `alk_session=planted; ${cookie}`, host } }
    assert.strictEqual((await api.call("/v1/events", read)).status, 200)
    vi.useFakeTimers({ toFake: ["Date"] })
    vi.setSystemTime(Date.now() + 120_000)
    assert.match(setBy(await api.call("/v1/events", read))[0] ?? "", /^__Host-alk_session=.*Secure/)
    const ended = await api.call(SESSION, { method: "DELETE", headers: { cookie, ...https } })
    assert.match(setBy(ended)[0] ?? "", /^__Host-alk_session=; .*Secure/)
    assert.strictEqual((await api.call("/v1/events", read)).status, 401)
  })

  it("takes no plain cookie where the service has TLS", async () => {
    await start({ publicUrl: "https://alk.example" })
    const cookie = cookieOf(await signIn(READ_KEY)).replace("__Host-", "")
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 401)
  })

  it("takes a sign-in code once, and for ten minutes", async () => {
    await start()
    vi.useFakeTimers({ toFake: ["Date"] })
    const signInWith = async (code: string) => (await api.call(SESSION, { json: { code } })).status
    const { code } = sessionTokens(Redacted.make(SECRET))
    const [used, late] = [code("key_read", CODE_LASTS), code("key_read", CODE_LASTS)]
    vi.setSystemTime(Date.now() + 599_000)
    assert.deepStrictEqual([await signInWith(used), await signInWith(used)], [201, 401])
    vi.setSystemTime(Date.now() + 1_000)
    assert.strictEqual(await signInWith(late), 401)
  })

  it("refuses wrong keys as every other route does, and counts them", async () => {
    // No time passes in which a guess would be forgiven.
    vi.useFakeTimers({ toFake: ["performance"] })
    await start({ failedKeysPerMinuteMax: 2 })
    const wrong = () => api.call(SESSION, { json: { key: `alk_live_${"x".repeat(43)}` } })
    assert.deepStrictEqual(
      [(await wrong()).status, (await wrong()).status, (await wrong()).status],
      [401, 401, 429]
    )
    assert.strictEqual((await api.call(SESSION, { json: { key: READ_KEY } })).status, 201)
  })

  it("takes a key or a code, and names what is wrong with a body", async () => {
    await start()
    for (const [json, field] of [
      [{}, "key"],
      [{ key: READ_KEY, code: "x" }, "code"],
      [{ key: 5 }, "key"],
      [{ token: "x" }, "token"]
    ] as const) {
      const { body, status } = await api.call(SESSION, { json })
      assert.deepStrictEqual([status, body.error.field], [400, field])
    }
  })

  it("is for the console's own pages: another page can't sign a visitor in", async () => {
    await start()
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "http://127.0.0.1:1" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" }
    ]) {
      const answer = await api.call(SESSION, { json: { key: READ_KEY }, headers })
      assert.strictEqual(answer.status, 401)
      assert.deepStrictEqual(setBy(answer), [])
    }
  })
})

describe("a session", () => {
  it("opens what its key opens, and nothing else", async () => {
    await start()
    await api.call("/v1/events?sync=true", { key: WRITE_KEY, json: item(1) })
    const cookie = cookieOf(await signIn(READ_KEY))
    const list = await api.call("/v1/events", own(cookie))
    assert.deepStrictEqual([list.status, list.body.total], [200, 1])
    const written = await api.call("/v1/events", { ...own(cookie, "POST"), json: item(2) })
    assert.deepStrictEqual([written.status, written.body.error.code], [403, "insufficient_scope"])
    assert.strictEqual((await api.call("/v1/admin/tenants", own(cookie))).status, 401)
    const writer = cookieOf(await signIn(WRITE_KEY))
    const event = await api.call("/v1/events?sync=true", { ...own(writer, "POST"), json: item(3) })
    assert.strictEqual(event.status, 201, event.text)
  })

  it("is worth nothing to pages of other origins, those of the same host included", async () => {
    await start()
    const cookie = cookieOf(await signIn(WRITE_KEY))
    const call = (headers: Record<string, string>, method = "POST") =>
      api.call("/v1/events", {
        method,
        headers: { cookie, ...headers },
        ...(method === "POST" ? { json: item(1) } : {})
      })
    for (const headers of [
      {},
      { origin: "http://127.0.0.1:1" },
      { origin: "null" },
      { origin: api.url, "sec-fetch-site": "same-site" },
      { origin: "https://evil.example", "sec-fetch-site": "cross-site" }
    ]) {
      assert.strictEqual((await call(headers)).status, 401, JSON.stringify(headers))
    }
    assert.strictEqual((await call({ "sec-fetch-site": "same-site" }, "GET")).status, 401)
    assert.strictEqual((await call({ origin: api.url })).status, 202)
  })

  it("gives way to a key that is sent beside it, right or wrong", async () => {
    await start()
    const cookie = cookieOf(await signIn(READ_KEY))
    const { status } = await api.call("/v1/events", {
      ...own(cookie),
      key: `alk_live_${"x".repeat(43)}`
    })
    assert.strictEqual(status, 401)
  })

  it("ends with its key", async () => {
    await start()
    const { body: made } = await api.call(KEYS, { ...admin, json: { scopes: ["read"] } })
    const cookie = cookieOf(await signIn(made.key))
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 200)
    await api.call(`${KEYS}/${made.id}`, { method: "DELETE", ...admin })
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 401)
    const state = await api.call(SESSION, own(cookie))
    assert.deepStrictEqual(state.body, { session: null, admin: null })
    assert.match(setBy(state)[0] ?? "", /^alk_session=; .*Max-Age=0/)
  })

  it("ends everywhere when somebody signs out: a copy of the token is worth nothing", async () => {
    await start()
    const cookie = cookieOf(await signIn(READ_KEY))
    const other = cookieOf(await signIn(READ_KEY))
    assert.strictEqual((await api.call(SESSION, own(cookie, "DELETE"))).status, 204)
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 401)
    assert.strictEqual((await api.call("/v1/events", own(other))).status, 200)
    assert.include(systemActions(), "session.ended")
    assert.strictEqual((await api.call(SESSION, own(cookie, "DELETE"))).status, 204)
    const foreign = { method: "DELETE", headers: { cookie: other, origin: "https://evil.example" } }
    assert.strictEqual((await api.call(SESSION, foreign)).status, 401)
    assert.strictEqual((await api.call("/v1/events", own(other))).status, 200)
  })

  it("ends after twelve hours, and after one without use; use renews its cookie", async () => {
    await start()
    vi.useFakeTimers({ toFake: ["Date"] })
    const minutesLater = (minutes: number) => vi.setSystemTime(Date.now() + minutes * 60_000)
    let cookie = cookieOf(await signIn(READ_KEY))
    const first = cookie
    const use = async () => {
      const answer = await api.call("/v1/events", own(cookie))
      if (setBy(answer).length > 0) cookie = cookieOf(answer)
      return answer.status
    }
    assert.strictEqual(await use(), 200)
    assert.strictEqual(cookie, first)
    for (let used = 0; used < 14; used++) {
      minutesLater(50)
      assert.strictEqual(await use(), 200, `after ${(used + 1) * 50} minutes`)
      assert.notStrictEqual(cookie, first)
    }
    const unused = { ...own(first) }
    assert.strictEqual((await api.call("/v1/events", unused)).status, 401)
    minutesLater(25)
    assert.strictEqual(await use(), 401)
    cookie = cookieOf(await signIn(READ_KEY))
    minutesLater(61)
    assert.strictEqual(await use(), 401)
  })

  it("can't be made up, prolonged or moved to another one", async () => {
    await start()
    const [one, two] = [cookieOf(await signIn(READ_KEY)), cookieOf(await signIn(WRITE_KEY))]
    const parts = (cookie: string) => cookie.replace(/^\w+=/, "").split(".")
    const [id, own1, used, mac] = parts(one)
    const [id2, own2] = parts(two)
    const later = String(Number(used) + 1_000)
    for (const token of [
      [id, own1, later, mac],
      [id, own2, used, mac],
      [id2, own1, used, mac],
      [id, own1, used, "0".repeat(64)],
      [`ses_${"0".repeat(32)}`, own1, used, mac],
      [id, own1, used],
      ["nonsense"],
      [""]
    ]) {
      const cookie = `alk_session=${token.join(".")}`
      assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 401, cookie)
    }
    assert.strictEqual((await api.call("/v1/events", own(one))).status, 200)
  })

  it("of the admin token is apart and short: admin routes, and the chain of the service", async () => {
    await start()
    const answer = await signIn(ADMIN_TOKEN)
    assert.isNull(answer.body.session)
    assert.include(answer.body.admin, { tenant_id: SYSTEM_TENANT, idle_seconds: 900 })
    const cookie = cookieOf(answer)
    assert.match(cookie, /^alk_admin=/)
    assert.strictEqual((await api.call("/v1/admin/tenants", own(cookie))).status, 200)
    const made = { ...own(cookie, "POST"), json: { scopes: ["read"] } }
    assert.strictEqual((await api.call(KEYS, made)).status, 201)
    const unsaid = { method: "POST", headers: { cookie }, json: { scopes: ["read"] } }
    assert.strictEqual((await api.call(KEYS, unsaid)).status, 401)
    assert.strictEqual((await api.call("/v1/me", own(cookie))).body.tenant_id, SYSTEM_TENANT)
    // With both, the routes of a tenant are those of the key.
    const both = `${cookie}; ${cookieOf(await signIn(READ_KEY))}`
    assert.strictEqual((await api.call("/v1/me", own(both))).body.tenant_id, "acme")
    assert.strictEqual((await api.call("/v1/admin/tenants", own(both))).status, 200)
    const { body } = await api.call(SESSION, own(both))
    assert.deepStrictEqual([body.session.tenant_id, body.admin.tenant_id], ["acme", SYSTEM_TENANT])
  })

  it("of one kind is none of the other, whatever its cookie is called", async () => {
    await start()
    for (const [credential, name, other] of [
      [READ_KEY, "alk_session", "alk_admin"],
      [ADMIN_TOKEN, "alk_admin", "alk_session"]
    ] as const) {
      const cookie = cookieOf(await signIn(credential))
      const renamed = cookie.replace(name, other)
      assert.notStrictEqual(renamed, cookie)
      const made = { ...own(renamed, "POST"), json: { scopes: ["read"] } }
      assert.strictEqual((await api.call(KEYS, made)).status, 401)
      for (const path of ["/v1/admin/tenants", "/v1/me", "/v1/events"]) {
        assert.strictEqual((await api.call(path, own(renamed))).status, 401, `${other} ${path}`)
      }
      const { body } = await api.call(SESSION, own(renamed))
      assert.deepStrictEqual([body.session, body.admin], [null, null])
    }
  })

  it("of the admin token is used beside the other where a request asks for it, and ends alone", async () => {
    await start()
    const admin = cookieOf(await signIn(ADMIN_TOKEN))
    const both = `${admin}; ${cookieOf(await signIn(READ_KEY))}`
    const as = (kind: string, cookie = both, method = "GET") => {
      const request = own(cookie, method)
      return { ...request, headers: { ...request.headers, "x-alk-session": kind } }
    }
    const whose = async (call: ReturnType<typeof as>) => (await api.call("/v1/me", call)).body
    assert.strictEqual((await whose(as("admin"))).tenant_id, SYSTEM_TENANT)
    assert.strictEqual((await whose(as("session"))).tenant_id, "acme")
    const { error } = await whose(as("Admin"))
    assert.match(error.message, /X-Alk-Session must be one of session, admin/)
    assert.strictEqual((await whose(as("session", admin))).error.code, "unauthenticated")
    // It says which cookie counts, not who may use it.
    const foreign = { ...as("admin").headers, "sec-fetch-site": "cross-site" }
    assert.strictEqual((await api.call("/v1/me", { headers: foreign })).status, 401)
    const unsaid = { cookie: both, "x-alk-session": "admin" }
    const made = { method: "POST", headers: unsaid, json: { scopes: ["read"] } }
    assert.strictEqual((await api.call(KEYS, made)).status, 401)

    assert.strictEqual((await api.call(SESSION, as("Admin", both, "DELETE"))).status, 401)
    const ended = await api.call(SESSION, as("admin", both, "DELETE"))
    assert.strictEqual(ended.status, 204)
    assert.lengthOf(setBy(ended), 1)
    assert.match(setBy(ended)[0]!, /^alk_admin=; .*Max-Age=0/)
    assert.strictEqual((await whose(as("admin"))).error.code, "unauthenticated")
    assert.strictEqual((await whose(as("session"))).tenant_id, "acme")
  })

  it("is no substitute for the other: where a key's has ended, nothing of _system is shown", async () => {
    await start()
    const key = cookieOf(await signIn(READ_KEY))
    const both = `${cookieOf(await signIn(ADMIN_TOKEN))}; ${key}`
    await api.call(SESSION, own(key, "DELETE"))
    assert.strictEqual((await api.call("/v1/events", own(both))).status, 401)
    assert.strictEqual((await api.call("/v1/admin/tenants", own(both))).status, 200)
  })

  it("is of the kind that is asked for: a key is not taken for the admin token", async () => {
    await start()
    const signInAs = (kind: string, key: string) =>
      api.call(SESSION, { json: { key }, headers: { "x-alk-session": kind } })
    const wrong = await signInAs("admin", WRITE_KEY)
    assert.deepStrictEqual([wrong.status, setBy(wrong)], [401, []])
    assert.match(wrong.body.error.message, /not the token in ALK_ADMIN_TOKEN/)
    assert.strictEqual((await signInAs("session", ADMIN_TOKEN)).status, 401)
    assert.strictEqual((await signInAs("admin", ADMIN_TOKEN)).status, 201)
    assert.strictEqual((await signInAs("session", WRITE_KEY)).status, 201)
    assert.strictEqual((await signInAs("both", WRITE_KEY)).status, 401)
  })

  it("ends when its key expires, and lasts no longer than that", async () => {
    await start()
    vi.useFakeTimers({ toFake: ["Date"] })
    const { body: made } = await api.call(KEYS, {
      ...admin,
      json: { scopes: ["read"], expires_in: 600 }
    })
    const answer = await signIn(made.key)
    assert.strictEqual(answer.body.session.expires_at, made.expires_at)
    const cookie = cookieOf(answer)
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 200)
    vi.setSystemTime(Date.now() + 601_000)
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 401)
    const refused = await api.call("/v1/events", { key: made.key })
    assert.strictEqual(refused.status, 401)
    assert.strictEqual(
      refused.body.error.message,
      `the API key has expired at ${made.expires_at}; ask for a new one`
    )
    const again = await api.call(SESSION, { json: { key: made.key } })
    assert.include(again.body.error.message, "has expired at")
  })

  it("counts as a use of its key, that of the admin token as none", async () => {
    await start()
    const { body: made } = await api.call(KEYS, { ...admin, json: { scopes: ["read"] } })
    const cookie = cookieOf(await signIn(made.key))
    assert.deepStrictEqual(api.world.used, [made.id])
    await api.call("/v1/events", own(cookie))
    await api.call("/v1/events", { key: made.key })
    assert.deepStrictEqual(api.world.used, [made.id, made.id, made.id])
    await api.call("/v1/admin/tenants", own(cookieOf(await signIn(ADMIN_TOKEN))))
    assert.strictEqual(api.world.used.length, 3)
  })

  it("says who is signed in without asking for anything", async () => {
    await start()
    const { body, status } = await api.call(SESSION)
    assert.deepStrictEqual([status, body], [200, { session: null, admin: null }])
    assert.strictEqual((await api.call(`${SESSION}?x=1`)).status, 400)
  })

  it("outlives a process that didn't know it: the registry does", async () => {
    const world = new World()
    await start({}, world)
    const cookie = cookieOf(await signIn(READ_KEY))
    await api.stop()
    await start({}, world)
    assert.strictEqual((await api.call("/v1/events", own(cookie))).status, 200)
  })
})

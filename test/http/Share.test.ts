/**
 * Share links over HTTP: what one may cover, who sees it, and that its token opens one document, as
 * often and as long as it was meant to, and nothing else.
 */
import { Deferred, Effect } from "effect"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { newApiKey, sha256Hex } from "../../src/domain/Identifiers.ts"
import { registryValue, type ShareLink } from "../../src/domain/registry/RegistryEntry.ts"
import { currentTime, formatMicros, nowMicros } from "../../src/domain/Timestamp.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { opsPaths } from "../../src/http/operations/OpsContract.ts"
import { LogUnavailable } from "../../src/ports/EventLog.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import type { Answer, TestApi } from "./support/TestApi.ts"

const LINKS = "/v1/share/links"
const DOCUMENT = "/v1/share/export/pdf"
/** Every route that a token opens. */
const OPENED = ["/v1/share", "/v1/share/verify", DOCUMENT, "/v1/share/export/evidence-pack"]
/** Who ask for one document at the same time. */
const AT_ONCE = 8

const world = new World()
const state = new ExportWorld()
let api: TestApi

beforeAll(async () => {
  api = await startExports(world, state)
  const call = { key: WRITE_KEY, json: { events: items(5) } }
  assert.strictEqual((await api.call("/v1/events/batch?sync=true", call)).status, 200)
})
afterAll(() => api.stop())
beforeEach(() => {
  Object.assign(state, { printer: "prints", recordBreaks: false, gate: Effect.void })
  world.refuse = undefined
  world.storeDown = false
  state.acts.length = 0
  state.printed.length = 0
})

const create = (json: unknown, key = READ_KEY): Promise<Answer> => api.call(LINKS, { key, json })

interface MadeLink {
  readonly id: string
  readonly token: string
}

const made = async (json: object = {}): Promise<MadeLink> => {
  const { body, status } = await create(json)
  assert.strictEqual(status, 201, JSON.stringify(body))
  return body
}

const open = (token: string, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call(DOCUMENT, { key: token, headers })

const known = async (id: string) => (await api.call(`${LINKS}/${id}`, { key: READ_KEY })).body

/** Put a link in the place of the one with its id, as time would. */
const become = (link: ShareLink): void => {
  world.state.registry.take([{ kind: "link", link }])
}

const systemLog = (): ReadonlyArray<AuditEvent> =>
  world.bodies
    .map((body) => JSON.parse(body) as AuditEvent)
    .filter(({ tenant_id }) => tenant_id === "_system")

const assertUnusable = ({ body, headers, status }: Answer, end?: string): void => {
  assert.strictEqual(status, 401)
  assert.strictEqual(body.error.code, "unauthenticated")
  const why = end === undefined ? "" : ` error="invalid_token", error_description="${end}"`
  assert.strictEqual(headers["www-authenticate"], `Bearer${why}`)
}

/** A tenant that has as many links as it may have. */
const fullWorld = (made: (n: number) => Pick<ShareLink, "created_by" | "hash">) => {
  const full = new World()
  full.state.registry.take(
    Array.from({ length: 1_000 }, (_, n) => ({
      kind: "link" as const,
      link: {
        id: `lnk_${n}`,
        tenant_id: "acme",
        filter: { metadata: [] },
        created_at: currentTime(),
        expires_at: "2261-01-01T00:00:00.000000Z",
        uses: 0,
        ...made(n)
      }
    }))
  )
  return full
}

describe("a share link", () => {
  it("is made with what it covers, and shows its token this once", async () => {
    const before = nowMicros()
    const { body, headers, status } = await create({
      from: "2026-01-01T02:00:00+02:00",
      to: null,
      filters: {
        actor_id: "user_1",
        outcome: "success",
        to_sequence: 4,
        "metadata.n": "1",
        where: "timestamp>=2026-01-01 -metadata.x:*"
      },
      max_uses: 3,
      label: "for the auditor"
    })
    assert.strictEqual(status, 201)
    assert.strictEqual(headers["cache-control"], "no-store")
    const { created_at, expires_at, id, page_url, token, url, ...rest } = body
    assert.match(id, /^lnk_[0-9a-f-]{36}$/)
    assert.match(token, /^shr_[0-9A-Za-z]{43}$/)
    assert.strictEqual(url, `${api.url}${DOCUMENT}`)
    assert.strictEqual(page_url, `${api.url}/share#${token}`)
    assert.isAtLeast(Date.parse(created_at) * 1_000, Math.floor(before / 1_000) * 1_000)
    assert.strictEqual(Date.parse(expires_at) - Date.parse(created_at), 7 * 86_400_000)
    assert.deepStrictEqual(rest, {
      label: "for the auditor",
      from: "2026-01-01T00:00:00.000000Z",
      to: null,
      filters: {
        actor_id: "user_1",
        outcome: "success",
        to_sequence: "4",
        "metadata.n": "1",
        where: "timestamp>=2026-01-01T00:00:00.000000Z NOT metadata.x:*"
      },
      created_by: "key_read",
      max_uses: 3,
      uses: 0
    })
    const shown = await api.call(`${LINKS}/${id}`, { key: READ_KEY })
    assert.strictEqual(shown.status, 200)
    assert.deepStrictEqual(shown.body, { ...rest, id, created_at, expires_at })
  })

  it("takes the conditions of a query, several values as an array or with commas", async () => {
    const filters = {
      "outcome!": ["failure", "error"],
      "outcome!=": "failure",
      actor_id: ["user_1", "user_2,user\\,3"],
      actor_type: "human",
      "metadata.n>=": 1,
      "metadata.n<=": "4",
      sequence_number: [1, 2],
      "timestamp>=": "-1h",
      q: "a,b"
    }
    const { body, status, text } = await create({ from: "2026-01-01", to: "2026-01-01", filters })
    assert.strictEqual(status, 201, text)
    assert.strictEqual(body.from, "2026-01-01T00:00:00.000000Z")
    assert.strictEqual(body.to, "2026-01-01T23:59:59.999999Z")
    const { where, ...rest } = body.filters
    assert.deepStrictEqual(rest, { actor_type: "human", q: "a,b" })
    assert.match(
      where,
      /^NOT \(outcome:failure OR outcome:error\) \(actor_id:user_1 OR actor_id:user_2 OR actor_id:"user,3" OR actor_id:"user_2,user\\\\,3"\) metadata\.n>=1 metadata\.n<=4 \(sequence_number:1 OR sequence_number:2\) timestamp>=20\S+Z$/
    )
    const again = await create({ from: body.from, to: body.to, filters: body.filters })
    assert.deepStrictEqual(again.body.filters, body.filters)
  })

  it("needs nothing said: everything, for 7 days, as often as one likes", async () => {
    const { id } = await made()
    const { filters, from, max_uses, to, uses } = await known(id)
    assert.deepStrictEqual([from, to, filters, max_uses, uses], [null, null, {}, undefined, 0])
    const fields = ["from", "to", "filters", "expires_in", "max_uses", "label"]
    const nothing = Object.fromEntries(fields.map((name) => [name, null]))
    assert.strictEqual((await create(nothing)).status, 201)
  })

  it("is valid no longer than its key, and says so", async () => {
    const secret = newApiKey("alk_live_")
    const expires_at = formatMicros(nowMicros() + 3_600_000_000)
    const key = { id: "key_hour", tenant_id: "acme", scopes: ["read" as const], hint: "" }
    const times = { created_at: currentTime(), expires_at }
    world.state.registry.take([{ kind: "key", key: { ...key, ...times, hash: sha256Hex(secret) } }])
    assert.strictEqual((await create({}, secret)).body.expires_at, expires_at)
    const short = (await create({ expires_in: 60 }, secret)).body
    assert.strictEqual(Date.parse(short.expires_at) - Date.parse(short.created_at), 60_000)
  })

  it("is kept and logged by the hash of its token only", async () => {
    const { id, token } = await made({ label: "hashed" })
    const link = world.state.registry.links.get(id)!
    assert.strictEqual(link.hash, sha256Hex(token))
    const places = [
      registryValue({ kind: "link", link }),
      ...world.bodies,
      JSON.stringify(world.commands),
      (await api.call(LINKS, { key: READ_KEY })).text
    ]
    for (const place of places) assert.notInclude(place, token.slice(4))
    assert.notInclude((await api.call(LINKS, { key: READ_KEY })).text, link.hash)
  })

  it("has the service's public address, where there is one", async () => {
    const { TestApi } = await import("./support/TestApi.ts")
    const published = await TestApi.start({ publicUrl: "https://alk.example" }, new World())
    const { body } = await published.call(LINKS, { key: READ_KEY, json: {} })
    await published.stop()
    assert.strictEqual(body.url, `https://alk.example${DOCUMENT}`)
    assert.strictEqual(body.page_url, `https://alk.example/share#${body.token}`)
  })

  it("has no page where the console is off", async () => {
    const { TestApi } = await import("./support/TestApi.ts")
    const bare = await TestApi.start({ hasConsole: false }, new World())
    const { body } = await bare.call(LINKS, { key: READ_KEY, json: {} })
    await bare.stop()
    assert.notProperty(body, "page_url")
  })

  it("is listed for its tenant, newest first, with those that have ended", async () => {
    const ids = [(await made()).id, (await made()).id, (await made()).id]
    await api.call(`${LINKS}/${ids[1]}`, { method: "DELETE", key: READ_KEY })
    const { body } = await api.call(LINKS, { key: READ_KEY })
    assert.deepStrictEqual(
      body.links.slice(0, 3).map(({ id }: any) => id),
      ids.toReversed()
    )
    assert.isString(body.links[1].revoked_at)
    const others = await api.call(LINKS, { key: OTHER_KEY })
    assert.deepStrictEqual(others.body, { links: [], total: 0, page: 1, page_size: 1_000 })
  })

  it("is on record when it is made, used and revoked", async () => {
    const from = systemLog().length
    const { id, token } = await made({ max_uses: 2, label: "on record" })
    assert.strictEqual((await open(token)).status, 200)
    await api.call(`${LINKS}/${id}`, { method: "DELETE", key: READ_KEY })
    const { expires_at } = await known(id)
    const resource = { id, type: "share_link" }
    const acts = systemLog()
      .slice(from)
      .map(({ action, actor, metadata, resource }) => ({
        action,
        actor: actor.id,
        metadata,
        resource
      }))
    assert.deepStrictEqual(acts, [
      {
        action: "share_link.created",
        actor: "key_read",
        metadata: { tenant_id: "acme", expires_at, max_uses: 2, label: "on record" },
        resource
      },
      { action: "share_link.used", actor: id, metadata: { tenant_id: "acme" }, resource },
      { action: "share_link.revoked", actor: "key_read", metadata: { tenant_id: "acme" }, resource }
    ])
  })

  it("of a key that has left the configuration is not active, and gives way to a new one", async () => {
    const full = fullWorld((n) => ({
      hash: String(n).padStart(64, "0"),
      created_by: n < 2 ? "key_that_left" : "key_read"
    }))
    const other = await startExports(full, new ExportWorld())
    const listed = async () => {
      const { body } = await other.call(LINKS, { key: READ_KEY })
      return body.links.filter(({ ended }: any) => ended === undefined).length
    }
    assert.strictEqual(await listed(), 998)
    assert.strictEqual(
      (await other.call(`${LINKS}/lnk_0`, { key: READ_KEY })).body.ended,
      "revoked"
    )
    const statuses = []
    for (let n = 0; n < 3; n++) {
      statuses.push((await other.call(LINKS, { key: READ_KEY, json: {} })).status)
    }
    assert.deepStrictEqual(statuses, [201, 201, 429])
    assert.strictEqual(await listed(), 1_000)
    await other.stop()
  })

  it("is not made beyond a number of usable ones", async () => {
    const full = fullWorld(() => ({ hash: "f".repeat(64), created_by: "key_read" }))
    const other = await startExports(full, new ExportWorld())
    const refused = await other.call(LINKS, { key: READ_KEY, json: {} })
    assert.strictEqual(refused.status, 429)
    assert.strictEqual(refused.body.error.code, "rate_limited")
    assert.match(refused.body.error.message, /1000 share links.*revoke some/)
    await other.call(`${LINKS}/lnk_7`, { method: "DELETE", key: READ_KEY })
    const { status } = await other.call(LINKS, { key: READ_KEY, json: {} })
    await other.stop()
    assert.strictEqual(status, 201)
  })
})

describe("a share link that can't be made", () => {
  const refusals: ReadonlyArray<readonly [unknown, string]> = [
    [{ form: "2026-01-01T00:00:00Z" }, "form"],
    [{ tenant_id: "globex" }, "tenant_id"],
    [{ token: `shr_${"a".repeat(43)}` }, "token"],
    [[], "body"],
    [{ from: "yesterday" }, "from"],
    [{ from: "" }, "from"],
    [{ to: 4711 }, "to"],
    [{ from: ["2026-01-01T00:00:00Z"] }, "from"],
    [{ filters: [] }, "filters"],
    [{ filters: { where: "outcome:no" } }, "filters.where"],
    [{ filters: "actor_id=1" }, "filters"],
    [{ filters: { actor: "user_1" } }, "filters.actor"],
    [{ filters: { page: 1 } }, "filters.page"],
    [{ filters: { from: "2026-01-01T00:00:00Z" } }, "filters.from"],
    [{ filters: { __proto__x: "1" } }, "filters.__proto__x"],
    [{ filters: { constructor: "1" } }, "filters.constructor"],
    [{ filters: { actor_id: "" } }, "filters.actor_id"],
    [{ filters: { actor_id: true } }, "filters.actor_id"],
    [{ filters: { actor_type: "robot" } }, "filters.actor_type"],
    [{ filters: { from_sequence: 1.5 } }, "filters.from_sequence"],
    [{ filters: { from_sequence: -1 } }, "filters.from_sequence"],
    [{ filters: { "metadata.n": 1 } }, "filters.metadata.n"],
    [{ filters: { "metadata.a.b.c.d.e.f.g": "1" } }, "filters.metadata.a.b.c.d.e.f.g"],
    [{ filters: { "metadata.n>": 1 } }, "filters.metadata.n>"],
    [{ filters: { "metadata.n>=": "x" } }, "filters.metadata.n>="],
    [{ filters: { "outcome!": [] } }, "filters.outcome!"],
    [{ filters: { "outcome!": ["success", 1] } }, "filters.outcome!"],
    [
      {
        filters: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`metadata.k${n}`, "1"]))
      },
      "filters"
    ],
    [{ filters: { "metadata.k": "x".repeat(60_000) } }, "filters.metadata.k"],
    [
      { filters: { "metadata.k!": "x".repeat(9_000), actor_id: "\u0001".repeat(1_500) } },
      "filters.metadata.k!"
    ],
    [
      { filters: { "metadata.k": "x", where: `metadata.k:"${"\u0001".repeat(4_000)}"` } },
      "filters.where"
    ],
    [{ expires_in: 0 }, "expires_in"],
    [{ expires_in: 30 * 86_400 + 1 }, "expires_in"],
    [{ expires_in: "3600" }, "expires_in"],
    [{ expires_in: 1.5 }, "expires_in"],
    [{ max_uses: 0 }, "max_uses"],
    [{ max_uses: 1_000_001 }, "max_uses"],
    [{ max_uses: -1 }, "max_uses"],
    [{ label: "" }, "label"],
    [{ label: 4711 }, "label"],
    [{ label: "x".repeat(257) }, "label"]
  ]
  for (const [json, field] of refusals) {
    it(`is refused for ${field}: ${JSON.stringify(json).slice(0, 60)}`, async () => {
      const { body, status } = await create(json)
      assert.strictEqual(status, 400)
      assert.strictEqual(body.error.code, "invalid_request")
      assert.strictEqual(body.error.field, field)
    })
  }

  it("is refused if it would end before it begins", async () => {
    const json = { from: "2026-02-01T00:00:00Z", to: "2026-01-01T00:00:00Z" }
    const { body, status } = await create(json)
    assert.strictEqual(status, 400)
    assert.strictEqual(body.error.code, "invalid_range")
  })

  it("is refused with query parameters, another body, or none", async () => {
    const query = await api.call(`${LINKS}?from=2026-01-01T00:00:00Z`, { key: READ_KEY, json: {} })
    assert.deepStrictEqual([query.status, query.body.error.field], [400, "from"])
    for (const [raw, type, status] of [
      ["{", "application/json", 400],
      ["", "application/json", 400],
      ['{"label":"a","label":"b"}', "application/json", 400],
      ["{}", "text/plain", 415],
      [`{"label":"${"x".repeat(70_000)}"}`, "application/json", 413]
    ] as const) {
      const call = { method: "POST", key: READ_KEY, raw, headers: { "content-type": type } }
      assert.strictEqual((await api.call(LINKS, call)).status, status, raw.slice(0, 30))
    }
  })

  it("is refused without a key and with one that only writes", async () => {
    assert.strictEqual((await api.call(LINKS, { json: {} })).status, 401)
    const { body, status } = await create({}, WRITE_KEY)
    assert.strictEqual(status, 403)
    assert.strictEqual(body.error.code, "insufficient_scope")
  })

  it("is not made while the log is away", async () => {
    world.refuse = new LogUnavailable({ operation: "submit", cause: new Error("down") })
    const before = world.state.registry.links.size
    const { headers, status } = await create({})
    assert.strictEqual(status, 503)
    assert.isDefined(headers["retry-after"])
    assert.strictEqual(world.state.registry.links.size, before)
  })
})

describe("the routes of one link", () => {
  it("know only links of the tenant, and none of another one's", async () => {
    const { id, token } = await made()
    for (const key of [OTHER_KEY, READ_KEY]) {
      for (const method of ["GET", "DELETE"]) {
        const path = key === OTHER_KEY ? `${LINKS}/${id}` : `${LINKS}/lnk_nobody`
        const { body, status } = await api.call(path, { method, key })
        assert.strictEqual(status, 404)
        assert.strictEqual(body.error.code, "not_found")
      }
    }
    assert.strictEqual((await open(token)).status, 200)
  })

  it("revoke at once, and only once", async () => {
    const { id, token } = await made()
    const call = { method: "DELETE", key: READ_KEY }
    const first = await api.call(`${LINKS}/${id}`, call)
    assert.deepStrictEqual([first.status, first.text], [204, ""])
    assertUnusable(await open(token), "revoked")
    assert.isString((await known(id)).revoked_at)
    assert.strictEqual((await api.call(`${LINKS}/${id}`, call)).status, 404)
  })

  it("revoke links of other keys for keys that may write, and for no others", async () => {
    const keys = { other: `alk_live_${"p".repeat(43)}`, writer: `alk_live_${"v".repeat(43)}` }
    world.principals.set(keys.other, { tenantId: "acme", keyId: "key_other", scopes: ["read"] })
    world.principals.set(keys.writer, {
      tenantId: "acme",
      keyId: "key_writer",
      scopes: ["read", "write"]
    })
    const { id, token } = await made()
    const refused = await api.call(`${LINKS}/${id}`, { method: "DELETE", key: keys.other })
    assert.strictEqual(refused.status, 403)
    assert.strictEqual(refused.body.error.code, "insufficient_scope")
    assert.match(refused.body.error.message, /key_read.*scope write/)
    assert.strictEqual((await open(token)).status, 200)
    const done = await api.call(`${LINKS}/${id}`, { method: "DELETE", key: keys.writer })
    assert.strictEqual(done.status, 204)
    assertUnusable(await open(token), "revoked")
  })

  it("take no parameters, and no key that only writes", async () => {
    const { id } = await made()
    for (const path of [LINKS, `${LINKS}/${id}`]) {
      assert.strictEqual((await api.call(`${path}?pages=1`, { key: READ_KEY })).status, 400)
      assert.strictEqual((await api.call(path, { key: WRITE_KEY })).status, 403)
      assert.strictEqual((await api.call(path)).status, 401)
    }
    const deleted = await api.call(`${LINKS}/${id}`, { method: "DELETE", key: WRITE_KEY })
    assert.strictEqual(deleted.status, 403)
    assert.isUndefined((await known(id)).revoked_at)
  })
})

describe("GET /v1/share/export/pdf", () => {
  it("answers the document of exactly the bounds and filters of the link", async () => {
    const { id, token } = await made({
      from: "2026-01-01T00:00:00Z",
      to: "2026-01-02T00:00:00Z",
      filters: { actor_id: "user_1", from_sequence: 2, "metadata.n": "4" }
    })
    const { bytes, headers, status } = await open(token)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["content-type"], "application/pdf")
    assert.match(headers["content-disposition"]!, /^attachment; filename="alk-audit-report-acme-/)
    assert.match(bytes.toString(), /^%PDF-1.7 acme /)
    const [{ filter, tenant }] = state.printed as [(typeof state.printed)[0]]
    assert.strictEqual(tenant.id, "acme")
    assert.deepStrictEqual(
      { ...filter },
      {
        actorId: "user_1",
        from: "2026-01-01T00:00:00.000000Z",
        to: "2026-01-02T00:00:00.000000Z",
        fromSequence: 2,
        metadata: [{ path: "n", value: "4" }]
      }
    )
    const [{ action, actor }] = state.acts as [(typeof state.acts)[0]]
    assert.deepStrictEqual([action, actor], ["export.created", id])
    assert.deepStrictEqual(state.printed[0]!.request.askedBy, { kind: "share link", id })
  })

  it("takes no parameters", async () => {
    const { id, token } = await made({ filters: { actor_id: "user_1" } })
    for (const query of ["from=2026-01-01T00:00:00Z", "actor_id=user_2", "tenant=globex", "x"]) {
      const { status } = await api.call(`${DOCUMENT}?${query}`, { key: token })
      assert.strictEqual(status, 400, query)
    }
    assert.strictEqual((await known(id)).uses, 0)
  })

  it("counts each document, keeps when it was the last, and ends with the last use", async () => {
    const { id, token } = await made({ max_uses: 2 })
    assert.notProperty(await known(id), "last_used_at")
    for (const uses of [1, 2]) {
      const before = currentTime()
      assert.strictEqual((await open(token)).status, 200)
      const link = await known(id)
      assert.strictEqual(link.uses, uses)
      assert.isTrue(link.last_used_at >= before && link.last_used_at <= currentTime())
    }
    assertUnusable(await open(token), "used_up")
    assert.strictEqual((await known(id)).uses, 2)
  })

  it("gives the last use to one of those who ask at once, and records one export", async () => {
    const { id, token } = await made({ max_uses: 1 })
    const all = Deferred.makeUnsafe<void>()
    let printing = 0
    state.gate = Effect.suspend(() => {
      printing += 1
      if (printing === AT_ONCE) Deferred.doneUnsafe(all, Effect.void)
      return Deferred.await(all)
    })
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => open(token)))
    const statuses = answers.map(({ status }) => status).sort()
    assert.deepStrictEqual(statuses, [200, ...Array(AT_ONCE - 1).fill(401)])
    for (const answer of answers) if (answer.status === 401) assertUnusable(answer, "used_up")
    assert.strictEqual((await known(id)).uses, 1)
    assert.strictEqual(state.acts.length, 1)
  })

  it("counts nothing that hands out no document", async () => {
    const { id, token } = await made({ max_uses: 1 })
    state.printer = "missing"
    assert.strictEqual((await open(token)).status, 503)
    state.printer = "busy"
    assert.strictEqual((await open(token)).status, 503)
    state.printer = "prints"
    const head = await api.call(DOCUMENT, { method: "HEAD", key: token })
    assert.strictEqual(head.status, 200)
    const etag = head.headers["etag"]!
    assert.strictEqual((await open(token, { "if-none-match": etag })).status, 304)
    assert.strictEqual((await known(id)).uses, 0)
    assert.deepStrictEqual(state.acts, [])
    assert.strictEqual((await open(token)).status, 200)
  })

  it("hands nothing out that can't be counted or put on record", async () => {
    const { id, token } = await made()
    world.refuse = new LogUnavailable({ operation: "submit", cause: new Error("down") })
    const uncounted = await open(token)
    assert.deepStrictEqual([uncounted.status, uncounted.body.error.code], [503, "unavailable"])
    world.refuse = undefined
    assert.strictEqual((await known(id)).uses, 0)
    state.recordBreaks = true
    assert.strictEqual((await open(token)).status, 503)
  })

  it("refuses a token that is unknown or altered alike", async () => {
    const { id, token } = await made()
    const last = token.at(-1) === "a" ? "b" : "a"
    const link = world.state.registry.links.get(id)!
    become({ ...link, revoked_at: link.created_at })
    const tokens = [
      `shr_${"x".repeat(43)}`,
      `${token.slice(0, -1)}${last}`,
      token.slice(0, -1),
      `${token}a`,
      token.toUpperCase(),
      token.slice(4),
      id,
      link.hash,
      "shr_",
      READ_KEY,
      WRITE_KEY,
      ADMIN_TOKEN
    ]
    const answers = await Promise.all(tokens.map((one) => open(one)))
    for (const answer of answers) assertUnusable(answer)
    assert.strictEqual(new Set(answers.map(({ body }) => body.error.message)).size, 1)
  })

  it("says of a link that has ended how it did, to those who have its token", async () => {
    const { id, token } = await made()
    const link = world.state.registry.links.get(id)!
    const ends = [
      ["expired", { expires_at: formatMicros(nowMicros() - 1) }, /it has expired/],
      ["revoked", { revoked_at: link.created_at }, /it was revoked/],
      ["used_up", { max_uses: 3, uses: 3 }, /it is used up/]
    ] as const
    for (const [end, change, words] of ends) {
      become({ ...link, ...change })
      for (const path of [DOCUMENT, "/v1/share"]) {
        const answer = await api.call(path, { key: token })
        assertUnusable(answer, end)
        assert.match(answer.body.error.message, words)
      }
    }
    become(link)
    assert.strictEqual((await open(token)).status, 200)
  })

  it("refuses a request without a token", async () => {
    assertUnusable(await api.call(DOCUMENT))
    assertUnusable(await api.call(DOCUMENT, { headers: { authorization: "Basic YTpi" } }))
    const { token } = await made()
    assertUnusable(await api.call(DOCUMENT, { headers: { authorization: token } }))
  })

  it("and its neighbours are the only routes that a token opens", async () => {
    const { id, token } = await made()
    const paths = Object.entries<Record<string, { readonly security?: unknown }>>(
      openApiDocument().paths as never
    )
    let tried = 0
    for (const [template, operations] of paths) {
      if ([...OPENED, "/v1/session", ...opsPaths].includes(template)) continue
      const path = template.replaceAll(/\{[^}]+\}/g, id)
      for (const method of Object.keys(operations)) {
        const { status } = await api.call(path, {
          method: method.toUpperCase(),
          key: token,
          ...(method === "post" || method === "put" ? { json: {} } : {})
        })
        assert.strictEqual(status, 401, `${method} ${path}`)
        tried += 1
      }
    }
    assert.isAbove(tried, 30)
  })
})

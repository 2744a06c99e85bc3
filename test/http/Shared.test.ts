/**
 * What the token of a share link opens besides the report: what the link covers, the verdict and the
 * pack. Whatever is asked, it is the scope of the link, and nothing of events outside of it.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Redacted, Stream } from "effect"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import type { ApiKey, ShareLink } from "../../src/domain/registry/RegistryEntry.ts"
import { formatMicros, nowMicros } from "../../src/domain/Timestamp.ts"
import { verify } from "../../src/exports/checker/Verify.ts"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import { type Answer, TestApi } from "./support/TestApi.ts"

const LINKS = "/v1/share/links"
const SCOPE = "/v1/share"
const VERIFY = "/v1/share/verify"
const PACK = "/v1/share/export/evidence-pack"
const ROUTES = [SCOPE, VERIFY, PACK]
const NDJSON = { accept: "application/x-ndjson" }

/** Events of each tenant. */
const OWN_COUNT = 5
const OTHER_COUNT = 2

const made = async (api: TestApi, json: object = {}, key = READ_KEY) => {
  const { body, status, text } = await api.call(LINKS, { key, json })
  assert.strictEqual(status, 201, text)
  return body as { readonly id: string; readonly token: string; readonly expires_at: string }
}

const usesOf = async (api: TestApi, id: string): Promise<number> =>
  (await api.call(`${LINKS}/${id}`, { key: READ_KEY })).body.uses

const fill = async (api: TestApi): Promise<void> => {
  for (const [key, count] of [
    [WRITE_KEY, OWN_COUNT],
    [OTHER_KEY, OTHER_COUNT]
  ] as const) {
    const call = { key, json: { events: items(count) } }
    assert.strictEqual((await api.call("/v1/events/batch?sync=true", call)).status, 200)
  }
}

describe("the token of a share link", () => {
  const world = new World()
  const state = new ExportWorld()
  let api: TestApi
  beforeAll(async () => {
    api = await startExports(world, state)
    await fill(api)
  })
  afterAll(() => api.stop())
  beforeEach(() => {
    world.storeDown = false
    world.rebuilding = false
    state.acts.length = 0
  })

  it("shows what the link covers, and nothing of who made it", async () => {
    const { created_at, expires_at, token } = (await made(api, {
      from: "2026-01-01",
      filters: { actor_id: "user_1", from_sequence: 1 },
      max_uses: 3,
      label: "for the auditor"
    })) as any
    const { body, headers, status } = await api.call(SCOPE, { key: token })
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["cache-control"], "no-store")
    assert.deepStrictEqual(body, {
      tenant: { id: "acme" },
      label: "for the auditor",
      from: "2026-01-01T00:00:00.000000Z",
      to: null,
      filters: { actor_id: "user_1", from_sequence: "1" },
      created_at,
      expires_at,
      max_uses: 3,
      uses: 0,
      events: 2,
      has_traces: false
    })
  })

  it("names the tenant where it has a name, and counts its own events only", async () => {
    const { token } = await made(api, {}, OTHER_KEY)
    const id = "globex"
    world.state.registry.take([
      { kind: "tenant", tenant: { id, name: "Globex Inc.", created_at: "2026-01-01" } }
    ])
    const { body } = await api.call(SCOPE, { key: token })
    assert.deepStrictEqual(body.tenant, { id, name: "Globex Inc." })
    assert.deepStrictEqual([body.events, body.has_traces], [OTHER_COUNT, true])
  })

  it("takes no parameters but whether a pack has the PDF in it", async () => {
    const { id, token } = await made(api)
    for (const path of ROUTES) {
      for (const query of ["from=2026-01-01", "actor_id=user_2", "tenant=globex", "chain=events"]) {
        const { status } = await api.call(`${path}?${query}`, { key: token })
        assert.strictEqual(status, 400, `${path}?${query}`)
      }
    }
    assert.strictEqual((await api.call(`${PACK}?pdf=perhaps`, { key: token })).status, 400)
    assert.strictEqual(await usesOf(api, id), 0)
  })

  it("opens nothing after the link's end, and no cookie takes its place", async () => {
    const { id, token } = await made(api)
    const link = world.state.registry.links.get(id)!
    const become = (change: Partial<ShareLink>) =>
      world.state.registry.take([{ kind: "link", link: { ...link, ...change } }])
    const signedIn = await api.call("/v1/session", { json: { key: READ_KEY } })
    const cookie = [signedIn.headers["set-cookie"] ?? []].flat()[0]!.split(";")[0]!
    const headers = { cookie, "sec-fetch-site": "same-origin" }
    const asked = { expires_at: formatMicros(nowMicros() - 1) }
    for (const path of ROUTES) {
      for (const change of [asked, { revoked_at: link.created_at }, { max_uses: 1, uses: 1 }]) {
        become(change)
        const { status } = await api.call(path, { key: token, headers })
        assert.strictEqual(status, 401, `${path} ${JSON.stringify(change)}`)
      }
      become({})
      assert.strictEqual((await api.call(path, { headers })).status, 401)
      assert.strictEqual((await api.call(path, { key: READ_KEY, headers })).status, 401)
      const { headers: answered, status } = await api.call(path, { key: token, headers })
      assert.strictEqual(status, 200)
      assert.isUndefined(answered["set-cookie"])
    }
    await api.call("/v1/session", { method: "DELETE", headers: { ...headers, origin: api.url } })
  })

  const acmeKey = { tenant_id: "acme", scopes: ["read" as const], hint: "", hash: "c".repeat(64) }
  const ended: ReadonlyArray<readonly [string, Partial<ApiKey> | undefined]> = [
    ["has been revoked", { revoked_at: "2026-01-02T00:00:00.000000Z" }],
    ["has expired", { expires_at: "2026-01-02T00:00:00.000000Z" }],
    ["is not known any more, as one that has left the configuration", undefined]
  ]
  it.each(ended)("opens nothing after its key %s", async (_, end) => {
    const { id, token } = await made(api)
    const link = world.state.registry.links.get(id)!
    const key = { ...acmeKey, id: `key_${id}`, created_at: "2026-01-01T00:00:00.000000Z" }
    world.state.registry.take([
      { kind: "link", link: { ...link, created_by: key.id } },
      ...(end === undefined ? [] : [{ kind: "key" as const, key: { ...key, ...end } }])
    ])
    for (const path of ROUTES) {
      const { headers, status } = await api.call(path, { key: token })
      assert.strictEqual(status, 401)
      assert.include(headers["www-authenticate"], 'error_description="revoked"')
    }
    world.state.registry.take([{ kind: "key", key }])
    assert.strictEqual((await api.call(SCOPE, { key: token })).status, 200)
  })

  it("opens nothing after the admin token that made it has been replaced", async () => {
    const made = { key: ADMIN_TOKEN, json: {} }
    const { body } = await api.call("/v1/share/links", made)
    assert.strictEqual((await api.call(SCOPE, { key: body.token })).status, 200)
    const changed = new World()
    changed.principals.delete(ADMIN_TOKEN)
    changed.adminToken = Redacted.make("another-admin-token-of-the-tests")
    changed.state.registry.take([{ kind: "link", link: world.state.registry.links.get(body.id)! }])
    const other = await startExports(changed, new ExportWorld())
    const { status } = await other.call(SCOPE, { key: body.token })
    await other.stop()
    assert.strictEqual(status, 401)
  })

  it("shows no scope while the view is away or being rebuilt", async () => {
    const { token } = await made(api)
    world.storeDown = true
    assert.strictEqual((await api.call(SCOPE, { key: token })).status, 503)
    world.storeDown = false
    world.rebuilding = true
    assert.strictEqual((await api.call(SCOPE, { key: token })).status, 503)
  })
})

describe("GET /v1/share/export/evidence-pack", () => {
  const world = new World()
  const state = new ExportWorld()
  let api: TestApi
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "alk-shared-"))
    state.traceHead = { sequence_number: 1, hash: "a".repeat(64) }
    state.spans = Stream.make(['{"id":"a span of somebody else"}'])
    api = await startExports(world, state)
    await fill(api)
  })
  afterAll(async () => {
    await api.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(() => {
    Object.assign(state, { printer: "prints", keyMissing: false })
    state.acts.length = 0
  })

  const get = (token: string, query = "?pdf=false", headers = {}): Promise<Answer> =>
    api.call(`${PACK}${query}`, { key: token, headers })

  it("holds the events of the scope, no traces beside conditions, and verifies", async () => {
    const { id, token } = await made(api, { filters: { actor_id: "user_1" } })
    const { bytes, headers, status } = await get(token, "")
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["content-type"], "application/zip")
    const pack = new PackEditor(bytes)
    assert.strictEqual(pack.lines("links.ndjson").length, OWN_COUNT)
    const actors = pack.lines("events.ndjson").map((line) => JSON.parse(line).actor.id)
    assert.deepStrictEqual(actors, ["user_1", "user_1"])
    for (const name of ["spans.ndjson", "executions.ndjson", "facts.ndjson"]) {
      assert.strictEqual(pack.text(name), "", name)
    }
    assert.include(pack.text("README.txt"), "Traces   left out")
    assert.strictEqual(pack.text("evidence.pdf"), `%PDF-1.7 acme ${OWN_COUNT}`)
    assert.isTrue(state.printed.at(-1)!.eventsOnly)
    const path = join(folder, "pack.zip")
    writeFileSync(path, bytes)
    const { text } = await verify([path, "--json"])
    assert.deepInclude(JSON.parse(text), { verdict: "consistent", problems: [] })
    const [{ action, actor, resource }] = state.acts as [(typeof state.acts)[0]]
    assert.deepStrictEqual([action, actor, resource.type], ["export.created", id, "evidence_pack"])
  })

  it("has the traces of a link that covers its whole period", async () => {
    const { token } = await made(api)
    const { bytes } = await get(token)
    assert.include(new PackEditor(bytes).text("spans.ndjson"), "a span of somebody else")
  })

  it("counts as a use, but not what the client has, HEAD, or what can't be made", async () => {
    const { id, token } = await made(api, { max_uses: 2 })
    state.keyMissing = true
    assert.strictEqual((await get(token)).status, 503)
    state.keyMissing = false
    state.printer = "missing"
    const unprinted = await get(token, "")
    assert.deepStrictEqual([unprinted.status, unprinted.body.error.code], [503, "pdf_unavailable"])
    const head = await api.call(`${PACK}?pdf=false`, { method: "HEAD", key: token })
    assert.strictEqual(head.status, 200)
    const tag = { "if-none-match": head.headers["etag"]! }
    assert.strictEqual((await get(token, "?pdf=false", tag)).status, 304)
    assert.strictEqual(await usesOf(api, id), 0)
    for (const uses of [1, 2]) {
      assert.strictEqual((await get(token)).status, 200)
      assert.strictEqual(await usesOf(api, id), uses)
    }
    assert.strictEqual((await get(token)).status, 401)
  })
})

describe("GET /v1/share/verify", () => {
  const world = new World()
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start({}, world)
    await fill(api)
  })
  afterAll(() => api.stop())
  beforeEach(() => {
    world.breaks = []
    world.verifySeconds = 0
    world.verified.length = 0
  })

  it("recomputes the bounds of the link: both chains, or the events that it selects", async () => {
    const period = { from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" }
    const bounds = { from: "2026-01-01T00:00:00.000000Z", to: "2026-01-02T00:00:00.000000Z" }
    const whole = await made(api, period)
    const part = await made(api, { ...period, filters: { q: "a", to_sequence: 4 } })
    for (const { token } of [whole, part]) {
      const { body, status } = await api.call(VERIFY, { key: token })
      assert.deepStrictEqual([status, body.valid, body.tenant_id], [200, true, "acme"])
    }
    assert.deepStrictEqual(world.verified, [
      { tenantId: "acme", requireHead: true, ...bounds },
      { tenantId: "acme", requireHead: true, ...bounds, toSequence: 4, chain: "events" }
    ])
  })

  it("says where the chain breaks, and never which event it was", async () => {
    const { id, token } = await made(api)
    const broken = { reason: "content_mismatch", expected: "aa", actual: "bb" } as const
    world.breaks = [{ sequence_number: 3, event_id: "payroll-of-bob", ...broken }]
    const { body, text } = await api.call(VERIFY, { key: token })
    assert.deepStrictEqual(body.breaks, [{ sequence_number: 3, event_id: null, ...broken }])
    assert.notInclude(text, "payroll-of-bob")
    assert.strictEqual(await usesOf(api, id), 0)
  })

  it("tells its progress, one check at a time of each link", async () => {
    const [one, other] = [await made(api), await made(api)]
    const held = Deferred.makeUnsafe<void>()
    world.verifySeconds = 2
    world.verifyHeld = held
    const first = api.call(VERIFY, { key: one.token, headers: NDJSON })
    await eventuallyAsync(
      "the check is under way",
      () => world.verified,
      ({ length }) => length > 0
    )
    world.verifySeconds = 0
    world.verifyHeld = undefined
    const refused = await api.call(VERIFY, { key: one.token, headers: NDJSON })
    assert.deepStrictEqual([refused.status, refused.body.error.code], [429, "rate_limited"])
    assert.match(refused.body.error.message, /this share link has 1 verifications under way/)
    assert.strictEqual((await api.call(VERIFY, { key: other.token })).status, 200)
    Deferred.doneUnsafe(held, Effect.void)
    const { text } = await first
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.isAtLeast(lines.length, 2)
    assert.hasAllKeys(lines[0], ["events_checked", "up_to_sequence", "of", "hash", "breaks_total"])
    assert.strictEqual(lines.at(-1).status, "valid")
    assert.strictEqual((await api.call(VERIFY, { key: one.token })).status, 200)
    const { status } = await api.call(VERIFY, { key: one.token, headers: { accept: "text/csv" } })
    assert.strictEqual(status, 406)
  })
})

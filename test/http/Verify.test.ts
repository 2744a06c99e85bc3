/**
 * Verification and the chain over HTTP: what is asked of the verifier, and what is shown.
 */
import { Deferred, Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { eventuallyAsync } from "../support/Eventually.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

describe("verification and the chain", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
    await api.call("/v1/events/batch", { key: WRITE_KEY, json: { events: items(5) } })
    await api.call("/v1/events", { key: WRITE_KEY, json: item(5, { id: "sixth" }) })
  })
  afterAll(() => api.stop())
  const get = (path: string, key = READ_KEY) => api.call(path, { key })

  it("verifies the whole history with the head unless told otherwise", async () => {
    const all = await get("/v1/verify")
    assert.strictEqual(all.status, 200)
    assert.strictEqual(all.body.duration_ms, 1)
    assert.strictEqual(all.body.bounds.from, "1970-01-01T00:00:00.000000Z")
    const some = await get(
      "/v1/verify?from=2026-01-01T00:00:00Z&to_sequence=4&from_sequence=2&require_head=false"
    )
    assert.strictEqual(some.body.duration_ms, 0)
    assert.deepStrictEqual(some.body.bounds, {
      from: "2026-01-01T00:00:00.000000Z",
      to: "2261-12-31T23:59:59.999999Z",
      from_sequence: 2,
      to_sequence: 4
    })
  })

  it("answers 200 whatever the check found", async () => {
    api.world.breaks = [
      {
        sequence_number: 6,
        event_id: "sixth",
        reason: "content_mismatch",
        expected: "a",
        actual: "b"
      }
    ]
    const all = await get("/v1/verify")
    const one = await get("/v1/verify/events/sixth")
    api.world.breaks = []
    assert.deepStrictEqual([all.status, all.body.valid], [200, false])
    assert.deepStrictEqual([one.status, one.body.status], [200, "broken"])
    assert.isFalse(one.body.content.valid)
    assert.isTrue(one.body.link.valid)
  })

  it("verifies one event and shows its predecessor", async () => {
    const [fifth, sixth] = api.world.bodies.slice(4).map((body) => JSON.parse(body))
    const { body } = await get("/v1/verify/events/sixth")
    assert.deepStrictEqual(body.link, {
      valid: true,
      prev_hash: fifth.hash,
      hash: sixth.hash,
      predecessor: { sequence_number: 5, hash: fifth.hash }
    })
    assert.deepStrictEqual(body.content, { valid: true, content_hash: sixth.content_hash })
    const first = await get(`/v1/verify/events/${JSON.parse(api.world.bodies[0]!).id}`)
    assert.isNull(first.body.link.predecessor)
  })

  it("shows length and head of the tenant's own chain", async () => {
    const last = JSON.parse(api.world.bodies.at(-1)!)
    const { body } = await get("/v1/chain")
    assert.deepStrictEqual(body, {
      scheme: "alk-chain-v1",
      tenant_id: "acme",
      length: 6,
      genesis_hash: "0".repeat(64),
      head: { sequence_number: 6, hash: last.hash, created_at: last.created_at }
    })
    const other = await get("/v1/chain", OTHER_KEY)
    assert.deepStrictEqual([other.body.length, other.body.head], [0, null])
    const system = await get("/v1/chain", ADMIN_TOKEN)
    assert.strictEqual(system.body.tenant_id, "_system")
  })

  it("streams the links, ascending", async () => {
    const linesOf = async (query: string) =>
      (await get(`/v1/chain/links${query}`)).text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    const links = await linesOf("")
    assert.deepStrictEqual(
      links,
      api.world.bodies.map((body) => {
        const { content_hash, created_at, hash, prev_hash, sequence_number } = JSON.parse(body)
        return { sequence_number, created_at, content_hash, prev_hash, hash }
      })
    )
    assert.deepStrictEqual(await linesOf("?from_sequence=2&limit=3"), links.slice(1, 4))
    assert.deepStrictEqual(await linesOf("?from_sequence=7"), [])
    const { headers } = await get("/v1/chain/links")
    assert.strictEqual(headers["content-type"], "application/x-ndjson")
  })

  it("runs four of a tenant at a time, of events, traces and what was kept, and no more", async () => {
    const asked = api.world.verified.length
    const held = Deferred.makeUnsafe<void>()
    api.world.verifyHeld = held
    const all = ["", "?chain=traces", "", "?chain=traces"]
    const running = all.map((query) => get(`/v1/verify${query}`))
    await eventuallyAsync(
      "they are under way",
      () => api.world.verified,
      ({ length }) => length === asked + running.length
    )
    api.world.verifyHeld = undefined
    const lines = { accept: "application/x-ndjson" }
    const json = { events: api.world.bodies.slice(0, 1).map((body) => JSON.parse(body)) }
    const refused = [
      await get("/v1/verify"),
      await api.call("/v1/verify", { key: READ_KEY, headers: lines }),
      await api.call("/v1/verify", { key: READ_KEY, json })
    ]
    assert.deepStrictEqual(
      refused.map(({ status }) => status),
      [429, 429, 429]
    )
    assert.strictEqual((await get("/v1/verify", OTHER_KEY)).status, 200)
    assert.strictEqual((await get("/api/v1/executions/any/verify")).status, 404)
    Deferred.doneUnsafe(held, Effect.void)
    for (const answer of await Promise.all(running)) assert.strictEqual(answer.status, 200)
    assert.strictEqual((await get("/v1/verify")).status, 200)
    for (let n = 0; n < 5; n++) {
      assert.strictEqual((await get("/api/v1/executions/any/verify")).status, 404)
    }
  })
})

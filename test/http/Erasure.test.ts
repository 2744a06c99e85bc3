/** Erasing the details of an event: what the route takes and refuses, and what is left then. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { eraseEvent, faultOf, recompute } from "../../src/domain/events/HashChain.ts"
import { holderOf } from "../../src/domain/records/EventValues.ts"
import { formatMicros, microsOf } from "../../src/domain/Timestamp.ts"
import { LogUnavailable } from "../../src/ports/EventLog.ts"
import { CommandLogBusy } from "../../src/services/commands/CommandLog.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { type Answer, type Call, TestApi } from "./support/TestApi.ts"

const SYNC = "/v1/events?sync=true"
const REASON = { reason: "request 4711" }

const world = new World()
let api: TestApi

beforeAll(async () => {
  api = await TestApi.start({}, world)
})
afterAll(() => api.stop())
beforeEach(() => {
  world.storeDown = false
  world.rebuilding = false
  world.invisible = false
  world.undecided = false
  world.refuse = undefined
})

const eraseAt = (id: string, query = ""): string =>
  `/v1/events/${encodeURIComponent(id)}/erase${query}`

const erase = (id: string, call: Call = {}, query = ""): Promise<Answer> =>
  api.call(eraseAt(id, query), { method: "POST", key: WRITE_KEY, json: REASON, ...call })

let made = 0
/** An event with every detail that can be erased; answers its id. */
const sent = async (more: object = {}): Promise<string> => {
  made += 1
  const id = `event-${made}`
  const metadata = { secret: `told ${made}`, deep: [{ n: made }] }
  const json = item(made, { id, metadata, ...more })
  const { status } = await api.call(SYNC, { key: WRITE_KEY, json })
  assert.strictEqual(status, 201)
  return id
}

const ownLog = (): ReadonlyArray<AuditEvent> =>
  world.bodies
    .map((body) => JSON.parse(body) as AuditEvent)
    .filter(({ tenant_id }) => tenant_id === "acme")

const erasuresOf = (id: string): ReadonlyArray<AuditEvent> =>
  ownLog().filter(({ action, resource }) => action === "alk.event.erased" && resource.id === id)

/** Another event with the id of an earlier one, as there may be past the window of duplicates. */
const again = (id: string): void => {
  const [first] = world.bodies.filter((body) => (JSON.parse(body) as AuditEvent).id === id)
  const { sequence_number } = JSON.parse(world.bodies.at(-1)!) as AuditEvent
  const number = sequence_number + 1_000
  world.bodies.push(JSON.stringify({ ...JSON.parse(first!), sequence_number: number }))
}

/** A row whose hashes come out as they are stored: there is no secret in them. */
const forgedOf = (text: string): string => {
  const { contentHash } = recompute(text)!
  const forged = text.replace(/"content_hash":"[0-9a-f]+"/, `"content_hash":"${contentHash}"`)
  return forged.replace(/"hash":"[0-9a-f]+"/, `"hash":"${recompute(forged)!.hash}"`)
}

describe("under a legal hold", () => {
  const retained = (hold: object) => [{ kind: "retention" as const, retention: hold as never }]
  const held = {
    tenant_id: "acme",
    hold: { reason: "case 7", by: "admin", since: "2026-11-21T10:00:00.000000Z" },
    changed_at: "2026-11-21T10:00:00.000000Z"
  }

  it("nothing is erased, and its reason is not told", async () => {
    const [id, run] = [await sent(), "held-run"]
    const start = { key: WRITE_KEY, json: { id: run, agent_id: "a", metadata: { secret: 1 } } }
    assert.strictEqual((await api.call("/api/v1/executions", start)).status, 201)
    const ofRun = { method: "POST", key: WRITE_KEY, json: REASON }
    const both = async () => [
      await erase(id),
      await api.call(`/api/v1/executions/${run}/erase`, ofRun)
    ]
    world.state.registry.take(retained(held))
    for (const { body, status } of await both()) {
      assert.deepStrictEqual([status, body.code ?? body.error.code], [409, "legal_hold"])
      assert.notInclude(JSON.stringify(body), "case 7")
    }
    assert.deepStrictEqual(erasuresOf(id), [])
    assert.isUndefined(world.traces.facts.find(({ type }) => type === "execution.erased"))
    world.state.registry.take(retained({ tenant_id: "acme", changed_at: held.changed_at }))
    for (const { status } of await both()) assert.strictEqual(status, 200)
  })
})

describe("POST /v1/events/{id}/erase", () => {
  it("erases what is kept apart of metadata first, and leaves the event where that fails", async () => {
    const id = await sent({ metadata: { small: 1, big: "x".repeat(40_000) } })
    world.undecided = true
    const early = erase(id)
    await world.waitIsOver(1)
    assert.strictEqual((await early).status, 503)
    assert.deepStrictEqual(erasuresOf(id), [])
    world.undecided = false
    const before = world.commands.length
    const { status, text } = await erase(id, { headers: { "idempotency-key": "apart" } })
    assert.strictEqual(status, 200, text)
    const written = world.commands.slice(before)
    assert.deepStrictEqual(
      written.map(({ kind }) => kind),
      ["trace", "ingest"]
    )
    const event = ownLog().find((one) => one.id === id)!
    assert.deepInclude(written[0]!.traces?.[0], {
      op: "execution.erase",
      executionId: holderOf(event.content_hash)
    })
    assert.strictEqual(world.receipts.get(written[0]!.receiptId)?.accepted, 1)
    assert.strictEqual(erasuresOf(id).length, 1)
  })

  it("erases an event whose metadata only looks as if something was kept apart", async () => {
    const id = await sent({ metadata: { $ref: `sha256:${"a".repeat(64)}` } })
    assert.strictEqual((await erase(id)).status, 200)
    assert.strictEqual(erasuresOf(id).length, 1)
  })

  it("takes the details away, keeps every hash, and says what it has done in the log", async () => {
    const id = await sent()
    const before = ownLog().find((event) => event.id === id)!
    const { body, status } = await erase(id)
    assert.strictEqual(status, 200)
    const { actor, details_salt: _salt, metadata: _metadata, resource, ...kept } = before
    const [erasure] = erasuresOf(id)
    assert.deepStrictEqual(body, {
      ...kept,
      actor: { id: actor.id, type: actor.type },
      resource: { id: resource.id, type: resource.type },
      erased_at: erasure?.created_at,
      topic_copy_until: null
    })
    assert.deepInclude(erasure, {
      actor: { id: "key_write", type: "system" },
      resource: { id, type: "audit_event" },
      outcome: "success",
      metadata: {
        reason: "request 4711",
        sequence_number: before.sequence_number,
        content_hash: before.content_hash
      }
    })
    const recomputed = recompute(world.bodies.find((text) => text.includes(`"id":"${id}"`))!)!
    assert.isTrue(recomputed.exact)
    assert.isUndefined(faultOf(recomputed, undefined, true))
  })

  it("is answered 200 when it was done before, and nothing is appended", async () => {
    const id = await sent()
    const first = await erase(id)
    const length = world.bodies.length
    const second = await erase(id, { json: { reason: "another reason" } })
    assert.strictEqual(second.status, 200)
    assert.deepStrictEqual(second.body, first.body)
    assert.strictEqual(world.bodies.length, length)
  })

  it("is done once by many requests at once", async () => {
    const id = await sent()
    const before = world.commands.length
    world.undecided = true
    const asked = Array.from({ length: 8 }, () => erase(id))
    await eventuallyAsync(
      "one is written",
      () => world.commands,
      ({ length }) => length > before
    )
    // The others have their chance meanwhile.
    for (let n = 0; n < 8; n++) await api.call("/v1/events?page_size=1", { key: READ_KEY })
    world.undecided = false
    for (const command of world.commands.slice(before)) world.decide(command)
    const answers = await Promise.all(asked)
    for (const { body, status } of answers) {
      assert.deepStrictEqual([status, body.erased_at], [200, erasuresOf(id)[0]?.created_at])
    }
    assert.lengthOf(erasuresOf(id), 1)
  })

  it("takes no other event for it, whatever the store says", async () => {
    const id = await sent()
    const other = await sent()
    const at = (one: string) => world.bodies.findIndex((text) => text.includes(`"id":"${one}"`))
    // The row of the other event has this id now, or the place of this one.
    const event = JSON.parse(world.bodies[at(other)]!) as AuditEvent
    world.bodies.push(JSON.stringify({ ...event, id: "renamed" }))
    const renamed = world.bodies.length - 1
    const length = world.bodies.length
    for (const written of [world.bodies[at(other)]!, world.bodies[at(id)]!]) {
      world.written.set(renamed, written)
      assert.strictEqual((await erase("renamed")).status, 503)
    }
    // One of the service's own may be shown with another action.
    const own = { ...event, id: "renamed", action: "alk.event.erased" }
    world.written.set(renamed, JSON.stringify(own))
    assert.strictEqual((await erase("renamed")).status, 400)
    assert.strictEqual(world.bodies.length, length)
    // Nothing of it is on the topic any more: its hashes tell, and that a signed tree has them.
    world.written.set(renamed, "removed")
    assert.strictEqual((await erase("renamed")).status, 503)
    world.bodies[renamed] = forgedOf(world.bodies[renamed]!)
    assert.isUndefined(faultOf(recompute(world.bodies[renamed]!)!, undefined, false))
    assert.strictEqual((await erase("renamed")).status, 503)
    world.written.set(at(id), "removed")
    assert.strictEqual((await erase(id)).status, 200)
    world.bodies.splice(renamed, 1)
    world.written.clear()
  })

  it("believes no row that it was erased before", async () => {
    const id = await sent()
    const at = world.bodies.findIndex((text) => text.includes(`"id":"${id}"`))
    const whole = world.bodies[at]!
    world.written.set(at, whole)
    world.bodies[at] = eraseEvent(JSON.parse(whole) as AuditEvent, "2026-11-22T08:00:00.000000Z")
    const length = world.bodies.length
    assert.strictEqual((await erase(id)).status, 200)
    assert.strictEqual(erasuresOf(id).length, 1)
    assert.strictEqual((await erase(id)).status, 200)
    assert.strictEqual(world.bodies.length, length + 1)
    world.written.clear()
  })

  it("erases an event that never had details", async () => {
    const bare = { actor: { id: "u", type: "human" }, resource: { id: "r", type: "t" } }
    const id = await sent({ ...bare, metadata: undefined })
    const { body, status } = await erase(id)
    assert.strictEqual(status, 200)
    assert.isString(body.erased_at)
    assert.strictEqual(erasuresOf(id).length, 1)
  })

  it("covers every event of that id, and shows the one that is asked for", async () => {
    const id = await sent()
    again(id)
    again(id)
    const sequences = ownLog()
      .filter((event) => event.id === id)
      .map((one) => one.sequence_number)
    const last = sequences.at(-1)!
    const { body, status } = await erase(id, {}, `?sequence_number=${last}`)
    assert.strictEqual(status, 200)
    assert.strictEqual(body.sequence_number, last)
    assert.deepStrictEqual(
      erasuresOf(id).map(({ metadata }) => metadata?.["sequence_number"]),
      sequences
    )
    for (const event of ownLog().filter((one) => one.id === id)) assert.isString(event.erased_at)
  })

  it("covers more events of one id than it reads at a time", async () => {
    const id = await sent()
    for (let count = 1; count < 250; count++) again(id)
    assert.strictEqual((await erase(id)).status, 200)
    assert.strictEqual(erasuresOf(id).length, 250)
  })

  it("erases nothing for the sake of an event that is not there", async () => {
    const id = await sent()
    const { status } = await erase(id, {}, "?sequence_number=999999")
    assert.strictEqual(status, 404)
    assert.deepStrictEqual(erasuresOf(id), [])
  })

  it("leaves the service's own events alone", async () => {
    const id = await sent()
    await erase(id)
    const length = world.bodies.length
    const [erasure] = erasuresOf(id)
    const { body, status } = await erase(erasure!.id)
    assert.strictEqual(status, 400)
    assert.strictEqual(body.error.code, "invalid_request")
    assert.strictEqual(body.error.field, "id")
    assert.strictEqual(world.bodies.length, length)
  })

  it("erases a client's event that was given the id of one of the service's own", async () => {
    const first = await sent()
    await erase(first)
    const { id } = erasuresOf(first)[0]!
    await sent({ id })
    assert.strictEqual((await erase(id)).status, 200)
    const named = ownLog().filter((event) => event.id === id)
    assert.deepStrictEqual(
      named.map((event) => event.erased_at === undefined),
      [true, false]
    )
  })

  it("says until when the topics keep a copy: commands are kept for 14 days", async () => {
    const id = await sent()
    for (const [retention, days] of [
      [1, 14],
      [30, 30]
    ] as const) {
      const bounded = await TestApi.start({ topicRetentionMs: retention * 86_400_000 }, world)
      const call = { method: "POST", key: WRITE_KEY, json: REASON }
      const { body } = await bounded.call(eraseAt(id), call)
      await bounded.stop()
      const expected = formatMicros(microsOf(body.created_at) + days * 86_400_000_000)
      assert.strictEqual(body.topic_copy_until, expected)
    }
  })

  it("takes ids of any characters", async () => {
    const id = "a/b?c#d%20é;📄"
    await sent({ id })
    const { body, status } = await erase(id)
    assert.strictEqual(status, 200)
    assert.strictEqual(body.id, id)
  })
})

describe("an erasure with an Idempotency-Key", () => {
  const keyed = (key: string, json: object = REASON): Call => ({
    headers: { "idempotency-key": key },
    json
  })

  it("is done once, and the same request is answered the same", async () => {
    const id = await sent()
    const first = await erase(id, keyed("once"))
    const length = world.bodies.length
    const second = await erase(id, keyed("once"))
    assert.deepStrictEqual([first.status, second.status], [200, 200])
    assert.deepStrictEqual(second.body, first.body)
    assert.strictEqual(world.bodies.length, length)
    assert.strictEqual(erasuresOf(id).length, 1)
  })

  it("is refused under a key that came with another body", async () => {
    const id = await sent()
    await erase(id, keyed("other"))
    const { body, status } = await erase(id, keyed("other", { reason: "another" }))
    assert.strictEqual(status, 422)
    assert.strictEqual(body.error.code, "idempotency_mismatch")
  })

  it("may use the key of another event's erasure", async () => {
    const ids = [await sent(), await sent()]
    for (const id of ids) {
      assert.strictEqual((await erase(id, keyed("shared"))).status, 200)
      assert.strictEqual(erasuresOf(id).length, 1)
    }
  })

  it("remembers the key of an erasure that found everything erased", async () => {
    const id = await sent()
    await erase(id)
    assert.strictEqual((await erase(id, keyed("late"))).status, 200)
    assert.strictEqual((await erase(id, keyed("late", { reason: "another" }))).status, 422)
    assert.strictEqual(erasuresOf(id).length, 1)
  })
})

describe("an erasure that is refused", () => {
  let id: string
  beforeAll(async () => {
    id = await sent()
  })

  const assertRefused = (
    { body, status }: Answer,
    expected: number,
    code: string,
    field?: string
  ): void => {
    assert.strictEqual(status, expected)
    assert.strictEqual(body.error.code, code)
    if (field !== undefined) assert.strictEqual(body.error.field, field)
    assert.deepStrictEqual(erasuresOf(id), [])
  }

  for (const [name, json] of [
    ["no reason", {}],
    ["an empty one", { reason: "" }],
    ["null", { reason: null }],
    ["a number", { reason: 4711 }],
    ["a list", { reason: ["request"] }],
    ["1025 characters", { reason: "x".repeat(1_025) }]
  ] as const) {
    it(`with ${name} as reason`, async () => {
      assertRefused(await erase(id, { json }), 400, "invalid_request", "reason")
    })
  }

  it("with a body that is no object, or no JSON, or can't be stored", async () => {
    assertRefused(await erase(id, { json: ["reason"] }), 400, "invalid_request", "body")
    const headers = { "content-type": "application/json" }
    assertRefused(await erase(id, { json: undefined, raw: "{", headers }), 400, "invalid_json")
    const surrogate = '{"reason":"\\ud800"}'
    const call = { json: undefined, raw: surrogate, headers }
    assertRefused(await erase(id, call), 400, "invalid_request")
  })

  it("without a key, with one that only reads, and of another tenant's event", async () => {
    const { method, path } = { method: "POST", path: eraseAt(id) }
    assertRefused(await api.call(path, { method, json: REASON }), 401, "unauthenticated")
    assertRefused(await erase(id, { key: READ_KEY }), 403, "insufficient_scope")
    assertRefused(await erase(id, { key: OTHER_KEY }), 404, "not_found")
  })

  it("of an event that there is not, or an id that none can have", async () => {
    assertRefused(await erase("nobody"), 404, "not_found")
    assertRefused(await erase("x".repeat(257)), 404, "not_found")
    assertRefused(await erase("a\u0001b"), 404, "not_found")
  })

  it("of another media type or too large", async () => {
    const headers = { "content-type": "text/plain" }
    const raw = "reason"
    assertRefused(await erase(id, { json: undefined, raw, headers }), 415, "unsupported_media_type")
    const json = { reason: "x", filler: "x".repeat(70_000) }
    assertRefused(await erase(id, { json }), 413, "payload_too_large")
  })

  it("with a key or a sequence that is none", async () => {
    const headers = { "idempotency-key": "not visible" }
    assertRefused(await erase(id, { headers }), 400, "invalid_request", "Idempotency-Key")
    const strange = await erase(id, {}, "?sequence_number=x")
    assertRefused(strange, 400, "invalid_request", "sequence_number")
  })

  it("while the store, its view or the log is away", async () => {
    world.storeDown = true
    assertRefused(await erase(id), 503, "unavailable")
    world.storeDown = false
    world.rebuilding = true
    assertRefused(await erase(id), 503, "unavailable")
    world.rebuilding = false
    world.refuse = new LogUnavailable({ operation: "submit", cause: new Error("down") })
    assertRefused(await erase(id), 503, "unavailable")
    world.refuse = new CommandLogBusy({ message: "busy", maybeWritten: true })
    const { headers, status } = await erase(id)
    assert.strictEqual(status, 503)
    assert.isDefined(headers["retry-after"])
  })
})

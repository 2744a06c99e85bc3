/**
 * The ingest routes: what is accepted, what the answers promise, and that a repeated request adds
 * nothing. What is refused as a whole stands in Refusals.test.ts.
 */
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { CommandLogBusy } from "../../src/services/commands/CommandLog.ts"
import { ADMIN_TOKEN, OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { type Call, TestApi } from "./support/TestApi.ts"

const sync = { "x-service-sync": "true" }
const BATCH = "/v1/events/batch"

describe("ingest", () => {
  let api: TestApi
  beforeEach(async () => {
    api = await TestApi.start()
  })
  afterEach(() => api.stop())
  const post = (path: string, call: Call) => api.call(path, { key: WRITE_KEY, ...call })

  it("answers a batch with 202 and a receipt that becomes committed", async () => {
    const answer = await post(BATCH, { json: { events: items(3) } })
    assert.strictEqual(answer.status, 202, answer.text)
    const { accepted, errors, ids, receipt_id, rejected, status } = answer.body
    assert.deepStrictEqual(
      { accepted, errors, rejected, status },
      { accepted: 3, errors: [], rejected: 0, status: "pending" }
    )
    assert.strictEqual(answer.headers.location, `/v1/receipts/${receipt_id}`)
    assert.strictEqual(answer.headers["retry-after"], "1")
    for (const key of [READ_KEY, WRITE_KEY]) {
      const receipt = await api.call(answer.headers.location!, { key })
      assert.strictEqual(receipt.status, 200)
      assert.strictEqual(receipt.body.status, "committed")
      assert.deepStrictEqual(receipt.body.ids, ids)
      assert.strictEqual(receipt.body.first_sequence_number, 1)
      assert.strictEqual(receipt.body.last_sequence_number, 3)
      assert.isUndefined(receipt.body.command_offset)
      assert.isUndefined(receipt.body.tenant_id)
    }
  })

  it("answers a batch with sync by header or query with 200 and sequence numbers", async () => {
    const byHeader = await post(BATCH, { json: { events: items(2) }, headers: sync })
    const byQuery = await post(`${BATCH}?sync=true`, { json: { events: items(2) } })
    assert.deepStrictEqual([byHeader.status, byQuery.status], [200, 200])
    assert.deepStrictEqual(
      [byHeader, byQuery].map(({ body }) => [
        body.status,
        body.accepted,
        body.first_sequence_number,
        body.last_sequence_number
      ]),
      [
        ["committed", 2, 1, 2],
        ["committed", 2, 3, 4]
      ]
    )
    assert.sameMembers(Object.keys(byHeader.body), [
      "receipt_id",
      "status",
      "accepted",
      "rejected",
      "ids",
      "errors",
      "first_sequence_number",
      "last_sequence_number"
    ])
  })

  it("takes NDJSON, where a line that does not parse is an item error", async () => {
    const raw = `${JSON.stringify(item(1))}\n{"broken\n\n${JSON.stringify(item(2))}`
    const headers = { "content-type": "application/x-ndjson; charset=utf-8" }
    const answer = await post(`${BATCH}?sync=true`, { raw, headers })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.strictEqual(answer.body.accepted, 2)
    assert.strictEqual(answer.body.rejected, 1)
    assert.strictEqual(answer.body.errors[0].index, 1)
    assert.strictEqual(answer.body.errors[0].code, "invalid_json")
  })

  it("takes an array without the object around it, under a key by its bytes", async () => {
    const raw = JSON.stringify([item(1), { action: "read" }, item(2)])
    const headers = { "idempotency-key": "bare" }
    const answer = await post(`${BATCH}?sync=true`, { raw, headers })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.deepInclude(answer.body, { accepted: 2, rejected: 1 })
    assert.strictEqual(answer.body.errors[0].index, 1)
    const again = await post(`${BATCH}?sync=true`, { raw, headers })
    assert.strictEqual(again.text, answer.text)
    const other = await post(BATCH, { raw: `{"events":${raw}}`, headers })
    assert.strictEqual(other.status, 422, other.text)
  })

  it.each([
    ["/v1/events/", 201],
    ["//v1/events", 201],
    ["/v1//events//", 201],
    ["/V1/events/", 404]
  ] as const)("takes an event whatever the slashes of its address: %s", async (path, status) => {
    const answer = await post(`${path}?sync=true`, { json: item(1) })
    assert.strictEqual(answer.status, status, answer.text)
  })

  it("takes lines that come as JSON, if each of them is an object", async () => {
    const lines = [item(1), { action: "read" }, item(2)].map((one) => JSON.stringify(one))
    const answer = await post(`${BATCH}?sync=true`, { raw: `${lines.join("\n")}\n` })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.deepInclude(answer.body, { accepted: 2, rejected: 1 })
    assert.strictEqual(answer.body.errors[0].index, 1)
    const many = await post(BATCH, { raw: `${lines[0]}\n`.repeat(1_001) })
    assert.strictEqual(many.status, 400)
    assert.include(many.text, "1000")
  })

  const [first, second] = [JSON.stringify(item(1)), JSON.stringify(item(2))]
  it.each([
    ["/v1/events", `${first}\n${second}\n`],
    [BATCH, `${first}${second}`],
    [BATCH, `${first}\n${second.slice(0, -9)}`],
    [BATCH, `{"events":[${first}]}\n{"events":[${second}]}`]
  ])("names the type of lines that come as JSON and can't be taken: %s", async (path, raw) => {
    const answer = await post(path, { raw })
    assert.strictEqual(answer.status, 400)
    assert.include(answer.text, "application/x-ndjson")
  })

  it("keeps numbers that no double holds as texts where they are wanted, and says so", async () => {
    const numbers = '"a":9007199254740993,"b":[1.5,1e400],"c":0.333333333333333333333'
    const raw = JSON.stringify(item(1, { metadata: {} })).replace("{}", `{${numbers}}`)
    assert.strictEqual((await post("/v1/events?sync=true", { raw })).status, 400)
    const message = "kept as text: no double holds the number"
    const fields = ["metadata.a", "metadata.b[1]", "metadata.c"]
    const one = await post("/v1/events?sync=true&numbers=text", { raw })
    assert.strictEqual(one.status, 201, one.text)
    assert.deepStrictEqual(one.body.metadata, {
      a: "9007199254740993",
      b: [1.5, "1e400"],
      c: "0.333333333333333333333"
    })
    assert.deepStrictEqual(
      one.body.warnings,
      fields.map((field) => ({ index: 0, field, message }))
    )
    const many = JSON.stringify(item(1, { metadata: { n: [] } }))
    const list = Array.from({ length: 25 }, () => "18446744073709551615").join(",")
    const several = await post(`${BATCH}?sync=true&numbers=text`, {
      raw: `[${raw},${many.replace("[]", `[${list}]`)},${raw.replace("document.shared", "shared")}]`
    })
    assert.deepInclude(several.body, { accepted: 2, rejected: 1 })
    assert.strictEqual(several.body.warnings.length, 3 + 21)
    assert.deepStrictEqual(several.body.warnings.at(-1), {
      index: 1,
      field: "metadata",
      message: `${message}, as with 5 more in this item`
    })
    const elsewhere = await post("/v1/events?numbers=text", {
      raw: raw.replace(/"resource":{"id":"[^"]*"/, '"resource":{"id":9007199254740993')
    })
    assert.strictEqual(elsewhere.body.error.field, "resource.id")
    assert.strictEqual((await post("/v1/events?numbers=rounded", { raw })).status, 400)
  })

  it("takes actions of any name where the request or the service says so", async () => {
    const json = item(1, { action: "Microsoft.Compute/virtualMachines/write" })
    const query = "/v1/events?sync=true"
    const refused = await post(query, { json })
    assert.include(refused.body.error.message, "actions=any")
    const taken = await post(`${query}&actions=any`, { json })
    assert.strictEqual(taken.status, 201, taken.text)
    assert.strictEqual(taken.body.action, json.action)
    const lenient = await TestApi.start({ anyAction: true })
    const call = { key: WRITE_KEY, method: "POST", json }
    assert.strictEqual((await lenient.call(query, call)).status, 201)
    assert.strictEqual((await lenient.call(`${query}&actions=noun.verb`, call)).status, 400)
    await lenient.stop()
  })

  it("reports each wrong item with its index and code and lets the others through", async () => {
    const big = "x".repeat(40_000)
    const wrong: ReadonlyArray<readonly [string, unknown]> = [
      ["missing_field", item(1, { actor: undefined })],
      ["invalid_value", item(1, { outcome: "maybe" })],
      ["invalid_value", item(1, { actor: { id: "a", type: "robot" } })],
      ["invalid_action", item(1, { action: "read" })],
      ["invalid_action", item(1, { action: "alk.event.erased" })],
      ["invalid_timestamp", item(1, { timestamp: "2026-02-30T00:00:00Z" })],
      ["invalid_value", item(1, { metadata: [big] })],
      ["event_too_large", item(1, { unknown: big + big })],
      ["invalid_value", "no object"]
    ]
    const events = [item(0), ...wrong.map(([, value]) => value), item(1)]
    const answer = await post(`${BATCH}?sync=true`, { json: { events } })
    assert.strictEqual(answer.body.accepted, 2, answer.text)
    assert.deepStrictEqual(
      answer.body.errors.map(({ code, index }: any) => [index, code]),
      wrong.map(([code], at) => [at + 1, code])
    )
    assert.match(answer.body.errors[0].message, /^actor: /)
  })

  it("refuses what a double can't hold, item by item", async () => {
    const values = ["12345678901234567890", "1e400", '"\\ud800"', '"a\\u0000b"', '{"a":1,"a":2}']
    const events = values.map(
      (value) => `{"actor":{"id":"a"},"action":"a.b",
      "resource":{"id":"r","type":"t"},"metadata":{"v":${value}}}`
    )
    const raw = `{"events":[${[...events, JSON.stringify(item(1))].join(",")}]}`
    const answer = await post(`${BATCH}?sync=true`, { raw })
    assert.strictEqual(answer.body.accepted, 1, answer.text)
    assert.deepStrictEqual(
      answer.body.errors.map(({ code }: any) => code),
      values.map(() => "unstorable_value")
    )
    assert.isTrue(answer.body.errors.every(({ message }: any) => message.includes("metadata")))
  })

  it("writes a command for a batch whose items are all rejected", async () => {
    const answer = await post(BATCH, { json: { events: [{}] } })
    assert.strictEqual(answer.status, 202)
    assert.deepStrictEqual([answer.body.accepted, answer.body.rejected], [0, 1])
    const receipt = await api.call(answer.headers.location!, { key: WRITE_KEY })
    assert.strictEqual(receipt.body.status, "committed")
    assert.isUndefined(receipt.body.first_sequence_number)
    const waited = await post(`${BATCH}?sync=true`, { json: { events: [{}] } })
    assert.deepStrictEqual([waited.status, waited.body.accepted], [200, 0])
    assert.notProperty(waited.body, "first_sequence_number")
  })

  it("refuses a batch for what stands beside its events, and names it", async () => {
    const events = JSON.stringify([item(0), item(1)])
    for (const beside of ["1", "1e400", '"\\ud800"', '{"a":1,"a":2}']) {
      const answer = await post(BATCH, { raw: `{"event":${beside},"events":${events}}` })
      assert.strictEqual(answer.status, 400)
      assert.deepInclude(answer.body, {
        error: "event: is not a field of a batch; did you mean events?",
        code: "invalid_request",
        field: "event"
      })
    }
    assert.isEmpty(api.world.commands)
  })

  it("warns of fields that are not stored", async () => {
    const answer = await post(BATCH, { json: { events: [item(0), item(1, { colour: "red" })] } })
    assert.deepStrictEqual(answer.body.warnings, [{ index: 1, field: "colour" }])
    const one = await post("/v1/events?sync=true", { json: item(1, { colour: "red" }) })
    assert.strictEqual(one.status, 201)
    assert.deepStrictEqual(one.body.warnings, [{ index: 0, field: "colour" }])
    assert.isUndefined(one.body.colour)
  })

  it("answers a single event with 202, with sync 201 and the stored bytes", async () => {
    const later = await post("/v1/events", { json: item(1) })
    assert.strictEqual(later.status, 202)
    assert.sameMembers(Object.keys(later.body), ["receipt_id", "status", "id"])
    assert.strictEqual(later.body.status, "pending")
    const now = await post("/v1/events", { json: item(2), headers: sync })
    assert.strictEqual(now.status, 201)
    assert.strictEqual(now.text, api.world.bodies[1])
    assert.strictEqual(now.body.sequence_number, 2)
  })

  it("answers a new event from memory where it was projected, and its repeat from the store", async () => {
    const { world } = api
    world.projects = true
    world.storeDown = true
    const call = { json: item(1), headers: { ...sync, "idempotency-key": "one" } }
    const first = await post("/v1/events", call)
    assert.strictEqual(first.status, 201)
    assert.strictEqual(first.text, world.bodies[0])
    world.storeDown = false
    world.bodies[0] = world.bodies[0]!.replace(/}$/, ',"erased_at":"2026-11-22T00:00:00.000000Z"}')
    const again = await post("/v1/events", call)
    assert.strictEqual(again.text, world.bodies[0])
  })

  it("says what is wrong with a single event, naming the field", async () => {
    const answer = await post("/v1/events", { json: item(1, { outcome: null }) })
    assert.strictEqual(answer.status, 400)
    assert.strictEqual(answer.body.error.code, "invalid_request")
    assert.strictEqual(answer.body.error.field, "outcome")
    const unstorable = await post("/v1/events", { raw: '{"metadata":{"n":1e400}}' })
    assert.strictEqual(unstorable.status, 400)
    assert.strictEqual(unstorable.body.error.code, "invalid_request")
    assert.strictEqual(unstorable.body.error.field, "metadata.n")
    assert.strictEqual(api.world.commands.length, 0)
  })

  it("recognises an event that is stored already, and one with other content", async () => {
    const event = item(1, { id: "evt-1" })
    const first = await post("/v1/events?sync=true", { json: event })
    const again = await post("/v1/events?sync=true", { json: event })
    assert.deepStrictEqual([first.status, again.status], [201, 200])
    assert.strictEqual(again.text, first.text)
    const respelled = { ...item(1, { id: "evt-1" }), unknown: true }
    const spelled = await post("/v1/events?sync=true", {
      raw: JSON.stringify(respelled).replace('"evt-1"', '"evt\\u002d1"')
    })
    assert.strictEqual(spelled.status, 200, spelled.text)
    const other = await post("/v1/events?sync=true", { json: item(2, { id: "evt-1" }) })
    assert.strictEqual(other.status, 409)
    assert.strictEqual(other.body.error.code, "id_conflict")
    const batch = await post(`${BATCH}?sync=true`, {
      json: { events: [event, item(2, { id: "evt-1" }), item(3)] }
    })
    assert.deepStrictEqual(batch.body.duplicates, [{ index: 0, sequence_number: 1 }])
    assert.deepStrictEqual(
      batch.body.errors.map(({ code, index }: any) => [index, code]),
      [[1, "id_conflict"]]
    )
    assert.strictEqual(batch.body.accepted, 2)
    assert.strictEqual(batch.body.first_sequence_number, 2)
  })

  it("gives the first answer again for a repeated Idempotency-Key", async () => {
    const headers = { "idempotency-key": "key-1" }
    for (const path of [BATCH, `${BATCH}?sync=true`, "/v1/events", "/v1/events?sync=true"]) {
      const isBatch = path.startsWith(BATCH)
      const json = isBatch ? { events: items(2) } : item(1)
      const key = { "idempotency-key": `key of ${path}`.replaceAll(" ", "_") }
      const first = await post(path, { json, headers: key })
      const stored = api.world.bodies.length
      const again = await post(path, { json, headers: key })
      assert.strictEqual(again.text, first.text, path)
      assert.strictEqual(again.status, first.status, path)
      assert.strictEqual(api.world.bodies.length, stored, path)
    }
    const first = await post(BATCH, { json: { events: items(1) }, headers })
    const other = await post(BATCH, { json: { events: items(2) }, headers })
    assert.strictEqual(first.status, 202)
    assert.strictEqual(other.status, 422)
    assert.strictEqual(other.body.code, "idempotency_mismatch")
    const elsewhere = await post("/v1/events", { json: item(1), headers })
    assert.strictEqual(elsewhere.status, 202)
    const stranger = await api.call(BATCH, { key: OTHER_KEY, json: { events: items(2) }, headers })
    assert.strictEqual(stranger.status, 202)
  })

  it.each(["/v1/events", BATCH])(
    "gives the first answer again to a key that is used in the other mode: %s",
    async (path) => {
      const json = path === BATCH ? { events: [...items(2), {}] } : item(1)
      for (const [mode, other] of [
        ["", "?sync=true"],
        ["?sync=true", ""]
      ] as const) {
        const headers = { "idempotency-key": `first${mode === "" ? "-later" : "-now"}` }
        const first = await post(`${path}${mode}`, { json, headers })
        assert.strictEqual(first.status, mode === "" ? 202 : path === BATCH ? 200 : 201)
        const stored = api.world.bodies.length
        for (const again of [other, mode, other]) {
          const repeated = await post(`${path}${again}`, { json, headers })
          assert.deepStrictEqual([repeated.status, repeated.text], [first.status, first.text])
        }
        assert.strictEqual(api.world.bodies.length, stored)
        const mismatch = await post(`${path}${other}`, {
          json: path === BATCH ? { events: items(3) } : item(2),
          headers
        })
        assert.strictEqual(mismatch.status, 422)
      }
    }
  )

  it("counts what is null as not sent where an event comes again", async () => {
    const actor = { id: "alice", type: "human" }
    const resource = { id: "doc-1", type: "document" }
    const bare = { id: "evt-1", actor, action: "document.read", resource, outcome: "success" }
    await post("/v1/events?sync=true", { json: bare })
    const nulls = [
      { timestamp: null },
      { metadata: null },
      { actor: { ...actor, email: null } },
      { resource: { ...resource, name: null } },
      { timestamp: null, metadata: null, colour: null }
    ]
    for (const more of nulls) {
      const again = await post("/v1/events?sync=true", { json: { ...bare, ...more } })
      assert.strictEqual(again.status, 200, again.text)
    }
  })

  it("warns in the log of items that are rejected, with codes and nothing that was sent", async () => {
    const canary = "CANARY-4711"
    const answer = await post(BATCH, {
      json: { events: [{ [canary]: canary }, { id: 5 }, item(1, { action: canary })] },
      headers: { "x-request-id": "rejecting" }
    })
    assert.deepStrictEqual([answer.status, answer.body.accepted], [202, 0])
    const lines = api.logs.filter(({ message }) => message === "items were rejected")
    assert.strictEqual(lines.length, 1)
    assert.strictEqual(lines[0]!.level, "Warn")
    assert.deepInclude(lines[0]!.annotations, {
      request_id: "rejecting",
      accepted: 0,
      rejected: 3,
      codes: { missing_field: 1, invalid_value: 1, invalid_action: 1 }
    })
    assert.notInclude(JSON.stringify(api.logs), canary)
    assert.notInclude(JSON.stringify(api.logs), WRITE_KEY)
  })

  it("does not remember a single conflict under its key", async () => {
    await post("/v1/events?sync=true", { json: item(1, { id: "evt-1" }) })
    const headers = { "idempotency-key": "key-1" }
    const conflict = await post("/v1/events?sync=true", { json: item(2, { id: "evt-1" }), headers })
    assert.strictEqual(conflict.status, 409)
    const json = item(2, { id: "evt-2" })
    const corrected = await post("/v1/events?sync=true", { json, headers })
    assert.strictEqual(corrected.status, 201)
  })

  it("never shows another tenant's receipt", async () => {
    const { headers } = await post(BATCH, { json: { events: items(1) } })
    const stranger = await api.call(headers.location!, { key: OTHER_KEY })
    assert.strictEqual(stranger.status, 404)
    assert.strictEqual(stranger.body.error.code, "not_found")
    const forged = headers.location!.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"))
    assert.strictEqual((await api.call(forged, { key: WRITE_KEY })).status, 404)
  })

  it("shows a receipt as pending from the moment of the 202", async () => {
    api.world.undecided = true
    const { headers } = await post(BATCH, { json: { events: items(1) } })
    const receipt = await api.call(headers.location!, { key: WRITE_KEY })
    assert.strictEqual(receipt.status, 200)
    assert.strictEqual(receipt.body.status, "pending")
    assert.strictEqual(receipt.body.received_at, api.world.commands[0]!.receivedAt)
    assert.strictEqual(receipt.headers["retry-after"], "1")
  })

  it("answers 503 while the log takes nothing, and says whether it may be stored", async () => {
    api.world.refuse = new CommandLogBusy({ message: "full", maybeWritten: false })
    const full = await post(BATCH, { json: { events: items(1) } })
    assert.strictEqual(full.status, 503)
    assert.strictEqual(full.body.code, "unavailable")
    assert.strictEqual(full.headers["retry-after"], "1")
    assert.include(full.body.error, "nothing")
    api.world.refuse = new CommandLogBusy({ message: "slow", maybeWritten: true })
    const slow = await post(BATCH, { json: { events: items(1) } })
    assert.include(slow.body.error, "may still have been stored")
    assert.strictEqual(api.world.decisions.size, 0)
  })

  it("answers 503 for a command that could not be applied, and says why", async () => {
    const { world } = api
    world.undecided = true
    const reply = post(`${BATCH}?sync=true`, { json: { events: items(1) } })
    const { attempt, receiptId, receivedAt } = await world.firstCommand()
    const receipt = {
      receipt_id: receiptId,
      tenant_id: "acme",
      status: "failed" as const,
      accepted: 0,
      rejected: 1,
      ids: [],
      errors: [],
      received_at: receivedAt,
      error: { code: "unreadable_command", message: "quarantined: poison" },
      command_offset: 0,
      events_next: 0
    }
    world.receipts.set(receiptId, receipt)
    world.settle(attempt, { kind: "outcome", receipt, receiptOffset: 0 })
    const answer = await reply
    assert.strictEqual(answer.status, 503)
    assert.include(answer.body.error, "quarantined: poison")
    const shown = await api.call(`/v1/receipts/${receiptId}`, { key: WRITE_KEY })
    assert.strictEqual(shown.body.status, "failed")
    assert.strictEqual(shown.body.error.code, "unreadable_command")
  })

  it("gives the admin token no write scope", async () => {
    const answer = await api.call(BATCH, { key: ADMIN_TOKEN, json: { events: items(1) } })
    assert.strictEqual(answer.status, 403)
  })

  it("keeps ids with any characters reachable by path", async () => {
    for (const id of ["a/b?c#d", "a;b", "50%", "ü 📄", "x+y&z=1", "../up", "a".repeat(256)]) {
      await post("/v1/events?sync=true", { json: item(1, { id }) })
      const paths = [encodeURIComponent(id), ...(id === "a;b" ? [id] : [])]
      for (const path of paths) {
        const found = await api.call(`/v1/events/${path}`, { key: READ_KEY })
        assert.strictEqual(found.status, 200, `${id}: ${found.text}`)
        assert.strictEqual(found.body.id, id)
      }
    }
  })
})

/**
 * Verification of what callers kept, the inclusion of one event, and progress as lines: what is
 * refused, what is compared, and what is shown.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { SignedCheckpoints } from "../../src/verify/SignedCheckpoints.ts"
import { Chain } from "../verify/support/Chains.ts"
import { CheckpointWorld, checkpointOf } from "../verify/support/CheckpointWorld.ts"
import { OTHER_KEY, READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

const committed = { status: "committed", ids: ["a"], first_sequence_number: 1 }
const NDJSON = { accept: "application/x-ndjson" }

/** The chain of the world, as checkpoints see it. */
const chainOf = (bodies: ReadonlyArray<string>): Chain => {
  const chain = new Chain("acme")
  chain.bodies.push(...bodies)
  return chain
}

describe("POST /v1/verify", () => {
  let api: TestApi
  let receipt: any
  beforeAll(async () => {
    api = await TestApi.start()
    await api.call("/v1/events/batch", { key: WRITE_KEY, json: { events: items(5) } })
    await api.call("/v1/events", { key: WRITE_KEY, json: item(5, { id: "sixth" }) })
    const batch = await api.call("/v1/events/batch?sync=true", {
      key: WRITE_KEY,
      json: {
        events: [
          item(6, { id: "seventh" }),
          { bad: true },
          item(5, { id: "sixth" }),
          item(7, { id: "eighth" })
        ]
      }
    })
    receipt = (await api.call(`/v1/receipts/${batch.body.receipt_id}`, { key: READ_KEY })).body
  })
  afterEach(() => {
    api.world.checkpoints = SignedCheckpoints.none
    api.world.storeDown = false
    api.world.verifySeconds = 0
  })
  afterAll(() => api.stop())

  const post = (json: unknown, headers: Record<string, string> = {}, key = READ_KEY) =>
    api.call("/v1/verify", { key, json, headers })
  const kept = (n: number) => JSON.parse(api.world.bodies[n - 1]!)
  const found = (body: any) =>
    body.breaks.map(({ reason, sequence_number }: any) => [sequence_number, reason])

  it("takes events in any spelling that says the same", async () => {
    const { actor, id, ...rest } = kept(3)
    const answer = await post({ events: [kept(1), kept(2), { ...rest, id, actor }, kept(1)] })
    assert.strictEqual(answer.status, 200)
    assert.deepStrictEqual(
      [answer.body.valid, answer.body.status, answer.body.events_checked, answer.body.breaks],
      [true, "valid", 4, []]
    )
    assert.deepStrictEqual(
      [answer.body.first_sequence_number, answer.body.last_sequence_number],
      [1, 3]
    )
    assert.strictEqual(answer.body.head.sequence_number, 8)
  })

  it("names the event that was changed on either side", async () => {
    const mine = await post({ events: [kept(1), { ...kept(2), outcome: "failure" }] })
    assert.deepStrictEqual(found(mine.body), [[2, "content_mismatch"]])
    assert.strictEqual(mine.body.breaks[0].event_id, kept(2).id)
    const original = api.world.bodies[3]!
    const copy = kept(4)
    api.world.bodies[3] = original.replace("document.shared", "document.shaped")
    const theirs = await post({ events: [copy, kept(3)] })
    api.world.bodies[3] = original
    assert.strictEqual(theirs.body.status, "broken")
    assert.isTrue(found(theirs.body).every(([at]: [number]) => at === 4))
  })

  it("compares content, link and hash with the chain's", async () => {
    const other = new Chain("acme").extend(3)
    const forged = JSON.parse(other.bodies[2]!)
    const { body } = await post({ events: [forged] })
    assert.deepStrictEqual(found(body), [
      [3, "content_mismatch"],
      [3, "prev_hash_mismatch"],
      [3, "hash_mismatch"]
    ])
    assert.include(body.breaks[0].expected, forged.content_hash)
    assert.include(body.breaks[0].actual, kept(3).content_hash)
  })

  it("says where the chain does not reach, and whose event it is", async () => {
    const longer = new Chain("acme").extend(20)
    const beyond = await post({ events: [JSON.parse(longer.bodies[19]!)] })
    assert.deepStrictEqual(found(beyond.body), [[20, "tail_missing"]])
    const foreign = await post({ events: [kept(1)] }, {}, OTHER_KEY)
    assert.deepStrictEqual(found(foreign.body), [
      [1, "content_mismatch"],
      [1, "tail_missing"]
    ])
  })

  it("takes a receipt with its duplicates and errors", async () => {
    const { body, status } = await post({ receipt })
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(found(body), [])
    assert.deepStrictEqual([body.valid, body.events_checked], [true, 3])
    assert.strictEqual(receipt.duplicates.length, 1)
  })

  it("names what a receipt says otherwise", async () => {
    const head = await post({ receipt: { ...receipt, head_hash: "0".repeat(64) } })
    assert.deepStrictEqual(found(head.body), [[8, "hash_mismatch"]])
    const ids = await post({ receipt: { ...receipt, ids: ["seventh", "sixth", "other"] } })
    assert.deepStrictEqual(found(ids.body), [[8, "content_mismatch"]])
    const later = { ...receipt, first_sequence_number: 107, last_sequence_number: 108 }
    const moved = await post({ receipt: later })
    assert.deepStrictEqual(found(moved.body), [
      [107, "tail_missing"],
      [108, "tail_missing"]
    ])
  })

  it("names every member of a receipt that is not as the service stored it", async () => {
    const changes: ReadonlyArray<readonly [string, unknown]> = [
      ["received_at", "2020-01-01T00:00:00.000000Z"],
      ["committed_at", "2020-01-01T00:00:00.000000Z"],
      ["accepted", 4],
      ["rejected", 0],
      ["errors", []],
      ["errors", [{ ...receipt.errors[0], message: "another" }]],
      ["warnings", [{ index: 0, field: "x" }]],
      ["duplicates", [{ ...receipt.duplicates[0], more: 1 }]],
      ["approved", true]
    ]
    for (const [member, value] of changes) {
      const { body } = await post({ receipt: { ...receipt, [member]: value } })
      assert.deepStrictEqual([body.valid, body.status], [false, "broken"], member)
      const named = body.breaks.find(({ expected }: any) => expected.startsWith(`${member} `))
      assert.deepStrictEqual([named?.reason, named?.sequence_number], ["content_mismatch", 8])
      assert.notProperty(body, "unchecked")
    }
    const { body } = await post({ receipt })
    assert.isTrue(body.valid)
    assert.notProperty(body, "unchecked")
  })

  it("names the members of a receipt that nothing could be compared with", async () => {
    const { receipt_id: _id, ...rest } = receipt
    const nameless = await post({ receipt: rest })
    const named = await post({ receipt: { ...receipt, receipt_id: "another" } })
    const members = ["accepted", "committed_at", "errors", "received_at", "rejected"]
    assert.deepStrictEqual([nameless.body.valid, nameless.body.unchecked], [true, members])
    assert.deepStrictEqual(
      named.body.unchecked,
      [...members.slice(0, 3), "receipt_id", ...members.slice(3)].sort()
    )
  })

  it("refuses as another event one with a member that no event has", async () => {
    const changes = [
      ["approved_by", { approved_by: "alice" }],
      ["actor.role", { actor: { ...kept(2).actor, role: "admin" } }],
      ["resource.owner", { resource: { ...kept(2).resource, owner: "alice" } }],
      ["__proto__", JSON.parse('{"__proto__":{"admin":true}}')]
    ] as const
    for (const [member, change] of changes) {
      const event = { ...kept(2) }
      for (const [name, value] of Object.entries(change)) {
        Object.defineProperty(event, name, { value, enumerable: true, configurable: true })
      }
      const { body } = await post({ events: [kept(1), event] })
      assert.deepStrictEqual(found(body), [[2, "content_mismatch"]], member)
      assert.include(body.breaks[0].actual, member)
    }
  })

  it("has the chain lead to a checkpoint that a published key signed", async () => {
    const world = new CheckpointWorld().sign(chainOf(api.world.bodies), 5)
    api.world.checkpoints = world.service
    const { status } = await post({ checkpoint: "note of 5" })
    assert.strictEqual(status, 200)
    assert.deepInclude(api.world.verified.at(-1), {
      tenantId: "acme",
      toSequence: 5,
      requireHead: false,
      checkpoints: [checkpointOf(chainOf(api.world.bodies), 5)]
    })
    const problem = "none of the known keys signed it"
    world.kept[0] = { treeSize: 5, problem, note: "forged" } as never
    const forged = await post({ checkpoint: "forged" })
    assert.deepStrictEqual(found(forged.body), [[5, "checkpoint_mismatch"]])
    assert.deepStrictEqual([forged.body.valid, forged.body.status], [false, "broken"])
  })

  it.each([
    [{}, "events"],
    [{ events: [] }, "events"],
    [{ events: [{}], receipt: {} }, "receipt"],
    [{ events: "all" }, "events"],
    [{ events: Array.from({ length: 1_001 }, () => ({})) }, "events"],
    [{ events: [null] }, "events[0]"],
    [{ events: [{ sequence_number: 0 }] }, "events[0].sequence_number"],
    [{ events: [{ sequence_number: 1.5 }] }, "events[0].sequence_number"],
    [{ events: [{ sequence_number: 1 }] }, "events[0].id"],
    [{ receipt: { status: "pending" } }, "receipt.status"],
    [{ receipt: { status: "committed" } }, "receipt.ids"],
    [{ receipt: { status: "committed", ids: ["a"] } }, "receipt.last_sequence_number"],
    [{ receipt: { ...committed, last_sequence_number: 9 } }, "receipt.ids"],
    [{ receipt: { ...committed, last_sequence_number: 1 } }, "receipt.head_hash"],
    [{ checkpoint: 7 }, "checkpoint"],
    [{ checkpoint: "not a note" }, "checkpoint"],
    [{ checkpoint: "x".repeat(65_537) }, "checkpoint"]
  ])("refuses %j, naming %s", async (json, field) => {
    const { body, status } = await post(json)
    const { code, field: named } = body.error
    assert.deepStrictEqual([status, code, named], [400, "invalid_request", field])
  })

  it("refuses an event with a field that is none, naming it", async () => {
    for (const [field, change] of [
      ["events[0].hash", { hash: "A".repeat(64) }],
      ["events[0].actor", { actor: null }],
      ["events[0].actor.email", { actor: { id: "a", type: "human", email: 1 } }],
      ["events[0].resource.id", { resource: { type: "document" } }],
      ["events[0].metadata", { metadata: [] }],
      ["events[0].details_salt", { details_salt: 5 }]
    ] as const) {
      const { body, status } = await post({ events: [{ ...kept(1), ...change }] })
      assert.deepStrictEqual([status, body.error.field], [400, field])
    }
  })

  it("refuses a body that is no JSON object, and another media type", async () => {
    const raw = (text: string, type = "application/json") =>
      api.call("/v1/verify", { key: READ_KEY, raw: text, headers: { "content-type": type } })
    assert.strictEqual((await raw("{")).body.error.code, "invalid_json")
    assert.strictEqual((await raw("[1]")).status, 400)
    assert.strictEqual((await raw("{}", "text/plain")).status, 415)
    const deep = `{"events":[${"[".repeat(50_000)}${"]".repeat(50_000)}]}`
    assert.strictEqual((await raw(deep)).status, 400)
    const { sequence_number, ...event } = kept(1)
    const nested = `${"[".repeat(50_000)}${"]".repeat(50_000)}`
    const text = JSON.stringify({ events: [{ ...event, sequence_number, metadata: { a: 0 } }] })
    const answer = await raw(text.replace('{"a":0}', `{"a":${nested}}`))
    assert.include([200, 400], answer.status)
  })

  it("needs a read scope", async () => {
    assert.strictEqual((await post({ events: [kept(1)] }, {}, WRITE_KEY)).status, 403)
  })

  it("tells progress as lines, the report last", async () => {
    api.world.verifySeconds = 2
    const answer = await api.call("/v1/verify", { key: READ_KEY, headers: NDJSON })
    const lines = answer.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.strictEqual(answer.headers["content-type"], "application/x-ndjson")
    assert.deepStrictEqual(
      lines.slice(0, -1),
      [1, 2].map((n) => ({
        events_checked: n,
        up_to_sequence: n,
        of: 2,
        hash: "f".repeat(64),
        breaks_total: 0
      }))
    )
    assert.strictEqual(lines.at(-1).status, "valid")
    const plain = await api.call("/v1/verify", { key: READ_KEY })
    assert.deepStrictEqual([plain.body.status, plain.text.includes("\n")], ["valid", false])
  })

  it("refuses before the first line what can't be begun", async () => {
    api.world.storeDown = true
    const answer = await api.call("/v1/verify", { key: READ_KEY, headers: NDJSON })
    assert.deepStrictEqual([answer.status, answer.body.error.code], [503, "unavailable"])
    const html = await api.call("/v1/verify", { key: READ_KEY, headers: { accept: "text/html" } })
    assert.strictEqual(html.status, 406)
  })

  it("hands the client's time limit on", async () => {
    await api.call("/v1/verify?time_limit=7", { key: READ_KEY })
    assert.strictEqual(api.world.verified.at(-1)?.timeLimitMs, 7_000)
    const none = await api.call("/v1/verify?time_limit=0", { key: READ_KEY })
    assert.deepStrictEqual([none.status, none.body.error.field], [400, "time_limit"])
  })

  it("shows the proof of an event that a checkpoint covers", async () => {
    const path = "/v1/verify/events/sixth"
    assert.notProperty((await api.call(path, { key: READ_KEY })).body, "inclusion")
    const chain = chainOf(api.world.bodies)
    const world = new CheckpointWorld().sign(chain, 5)
    api.world.checkpoints = world.service
    assert.notProperty((await api.call(path, { key: READ_KEY })).body, "inclusion")
    world.sign(chain, 7)
    const { body } = await api.call(path, { key: READ_KEY })
    assert.deepStrictEqual(
      [body.valid, body.inclusion.valid, body.inclusion.tree_size, body.inclusion.leaf_index],
      [true, true, 7, 5]
    )
    assert.strictEqual(body.inclusion.root_hash, checkpointOf(chain, 7).rootHash)
    assert.strictEqual(body.inclusion.checkpoint, "note of 7")
    world.hashes = world.hashes.map((hash, at) => (at === 4 ? "0".repeat(64) : hash))
    const wrong = await api.call(path, { key: READ_KEY })
    assert.deepStrictEqual(
      [wrong.body.valid, wrong.body.status, wrong.body.inclusion.valid, wrong.body.link.valid],
      [false, "broken", false, true]
    )
  })
})

/**
 * The routes of commands in quarantine: what may be replayed, and that it happens once. The sequencer
 * behind them is the real step.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { SHOWN_BYTES_MAX } from "../../src/http/admin/QuarantineContract.ts"
import { ingestCommand } from "../support/Events.ts"
import { quarantined } from "../support/Quarantined.ts"
import { ADMIN_TOKEN, READ_KEY, World } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

const DAY_MS = 86_400_000

describe("commands in quarantine", () => {
  const world = new World()
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start({}, world)
  })
  afterAll(() => api.stop())

  const call = (path: string, json?: unknown, key = ADMIN_TOKEN) =>
    api.call(`/v1/admin/quarantine${path}`, { key, ...(json === undefined ? {} : { json }) })
  const events = async () =>
    (await api.call("/v1/events?page_size=1000", { key: READ_KEY })).body.events as Array<any>
  const acts = () =>
    world.bodies
      .map((body) => JSON.parse(body))
      .filter(({ action }) => action.startsWith("quarantine."))
      .map(({ action, actor, metadata, resource }) => ({
        action,
        by: actor.id,
        id: resource.id,
        reason: metadata?.reason
      }))

  it("are listed, open ones first asked for, and shown with what they hold", async () => {
    const failed = quarantined(0, 3)
    const unread = quarantined(0, 4, {
      kind: "unreadable",
      value: Buffer.alloc(SHOWN_BYTES_MAX + 1, "x"),
      bytes: SHOWN_BYTES_MAX + 1,
      command: { unreadable: "it is cut" }
    })
    world.quarantined.push(failed, unread)
    const listed = await call("")
    assert.strictEqual(listed.status, 200)
    assert.deepInclude(listed.body, { total: 2, left: 0, page: 1 })
    assert.deepInclude(listed.body.commands[0], {
      id: "0-3",
      state: "open",
      kind: "failed",
      bytes: failed.bytes
    })
    assert.notProperty(listed.body.commands[0], "content")
    const shown = await call("/0-3")
    assert.deepInclude(shown.body, { tenant_id: "acme", items: 2, truncated: false })
    assert.isTrue(Buffer.from(shown.body.content, "base64").equals(failed.value))
    const long = await call("/0-4")
    assert.deepInclude(long.body, { unreadable: "it is cut", truncated: true })
    assert.strictEqual(Buffer.from(long.body.content, "base64").length, SHOWN_BYTES_MAX)
    for (const id of ["0-5", "1-3", "03-3", "x", "0-3x"]) {
      assert.strictEqual((await call(`/${id}`)).status, 404, id)
    }
    assert.deepStrictEqual(
      acts().map(({ action, id }) => `${action} ${id}`),
      ["quarantine.listed all", "quarantine.shown 0-3", "quarantine.shown 0-4"]
    )
  })

  it("are for the admin token alone", async () => {
    for (const path of ["", "/0-3"]) {
      assert.strictEqual((await call(path, undefined, READ_KEY)).status, 401, path)
    }
    for (const path of ["/0-3/replay", "/0-3/drop"]) {
      assert.strictEqual((await call(path, {}, READ_KEY)).status, 401, path)
    }
  })

  it("are replayed once: asked again, the first outcome is said", async () => {
    const before = (await events()).length
    const replayed = await call("/0-3/replay", { reason: "mended" })
    assert.strictEqual(replayed.status, 200, replayed.text)
    assert.deepInclude(replayed.body, {
      id: "0-3",
      state: "replayed",
      status: "committed",
      tenant_id: "acme"
    })
    assert.strictEqual((await events()).length, before + 2)
    const again = await call("/0-3/replay", {})
    assert.deepStrictEqual([again.status, again.body], [200, replayed.body])
    assert.strictEqual((await events()).length, before + 2)
    const dropped = await call("/0-3/drop", {})
    assert.deepStrictEqual([dropped.status, dropped.body.error.code], [409, "id_conflict"])
    const [first] = (await call("?state=replayed")).body.commands
    assert.deepInclude(first, { id: "0-3", settled_by: "admin", settled_reason: "mended" })
    const replays = acts().filter(({ action }) => action === "quarantine.replayed")
    assert.deepStrictEqual(replays, [
      { action: "quarantine.replayed", by: "admin", id: "0-3", reason: "mended" }
    ])
  })

  it("are submitted where a replay was decided and the process ended before that", async () => {
    world.quarantined.push(quarantined(0, 20), quarantined(0, 21))
    const act = (id: string, ageDays: number) => ({
      kind: "quarantine_act" as const,
      quarantine_act: {
        id,
        state: "replayed" as const,
        settled_at: new Date(Date.now() - ageDays * DAY_MS).toISOString().replace("Z", "000Z"),
        settled_by: "admin"
      }
    })
    world.state.registry.take([act("0-20", 6.9), act("0-21", 7.1)])
    const before = (await events()).length
    assert.strictEqual((await call("/0-20/replay", {})).body.status, "committed")
    assert.strictEqual((await events()).length, before + 2)
    // Whether it was submitted can't be known any more.
    const late = await call("/0-21/replay", {})
    assert.deepStrictEqual([late.status, late.body.error.code], [409, "id_conflict"])
    assert.strictEqual((await events()).length, before + 2)
  })

  it("are not stored twice where the client has sent them again with its key", async () => {
    const idempotency = { key: "a".repeat(32), body: "b".repeat(32), forgetConflict: false }
    const command = { ...ingestCommand("acme", 1), idempotency }
    world.quarantined.push(quarantined(0, 30, {}, command))
    const retried = { ...ingestCommand("acme", 1), idempotency, receiptId: command.receiptId }
    world.decide(retried)
    const before = (await events()).length
    const replayed = await call("/0-30/replay", {})
    assert.deepInclude(replayed.body, { status: "committed", receipt_id: command.receiptId })
    assert.strictEqual((await events()).length, before)
  })

  it("that this service did not write, copies and others are refused, and can be dropped", async () => {
    const cases = [
      quarantined(0, 10, { kind: "foreign" }),
      quarantined(0, 11, { kind: "copy" }),
      quarantined(0, 12, { kind: undefined }),
      quarantined(0, 13, {}, { ...ingestCommand("acme", 0), kind: "checkpoint" }),
      quarantined(0, 14, { kind: "unreadable", command: { unreadable: "it is cut" } })
    ]
    world.quarantined.push(...cases)
    const before = (await events()).length
    for (const { id } of cases) {
      const refused = await call(`/${id}/replay`, {})
      assert.deepStrictEqual([refused.status, refused.body.error.code], [409, "not_replayable"], id)
      const dropped = await call(`/${id}/drop`, { reason: "not ours" })
      assert.deepInclude(dropped.body, { id, state: "dropped", settled_reason: "not ours" })
    }
    assert.strictEqual((await call("/0-12")).body.kind, "unknown")
    assert.strictEqual((await events()).length, before)
    const all = await call("?state=all")
    const open = await call("")
    assert.strictEqual(all.body.total, world.quarantined.length)
    assert.deepStrictEqual(
      open.body.commands.map(({ id }: any) => id),
      ["0-4"]
    )
  })
})

/**
 * A command that the running program can't apply, one of somebody else and a copy: `alk quarantine`
 * lists and shows them, replays the first once, and drops the others. The program is started again in
 * between; all of it is in the log of `_system`.
 */
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Kafka, logLevel, Partitioners } from "kafkajs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { makeReceiptId, uuidv7 } from "../../src/domain/Identifiers.ts"
import { COMMAND_FORMAT, type Command } from "../../src/domain/records/Command.ts"
import { encodeCommand } from "../../src/domain/records/CommandBytes.ts"
import { CommandWriter } from "../../src/domain/records/CommandWriter.ts"
import { RecordMac } from "../../src/domain/records/RecordMac.ts"
import { begin } from "../cli/CommandRuns.ts"
import { event } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { ingestCommand } from "../support/Events.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const TOPIC = "alk.commands"
const ADMIN_TOKEN = "admin-token-of-this-test-only"
const data = freshFolder("quarantine")
const environment = {
  ALK_DATA_DIR: data,
  ALK_EMBEDDED_OPEN: "true",
  ALK_PARTITIONS: "1",
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  ALK_BOOTSTRAP_KEYS: `${testKey("acme")}=acme:read+write`
}
let running: Started

const client = (): Client => new Client(running.url, testKey("acme"))
const idsOf = async () => (await client().all()).map(({ id }) => id).toSorted()

const kafka = () =>
  new Kafka({ brokers: [running.kafka], clientId: "operator", logLevel: logLevel.NOTHING })

type Message = {
  readonly key: string
  readonly value: Buffer
  readonly headers: Record<string, string | Buffer>
}

const produce = async (message: Message): Promise<void> => {
  const producer = kafka().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic: TOPIC, acks: -1, messages: [{ ...message, partition: 0 }] })
  await producer.disconnect()
}

/** A command that this service could have written. */
const genuine = (own: Partial<Command>, events: number, more: Record<string, string>): Message => {
  const secret = readFileSync(join(data, "secret"), "utf8").trim()
  const receiptId = makeReceiptId(secret, "acme", uuidv7())
  const command = { ...ingestCommand("acme", events), receiptId, ...own } as Command
  const bytes = encodeCommand(command)
  const headers = {
    "alk-format": String(COMMAND_FORMAT),
    "alk-receipt": command.receiptId,
    "alk-tenant": command.tenantId,
    ...more
  }
  const mac = new RecordMac(secret).of({
    topic: TOPIC,
    partition: 0,
    key: "acme",
    value: bytes,
    headers
  })
  return { key: "acme", value: bytes, headers: { ...headers, "alk-mac": mac } }
}

/** One whose time nothing can be made of. */
const poisoned = (): Message => {
  const idempotency = { key: "1".repeat(32), body: "2".repeat(32), forgetConflict: false }
  return genuine({ receivedAt: "2026-99-99T99:99:99.000000Z", idempotency }, 2, {})
}

const alk = async (...args: ReadonlyArray<string>) => {
  const ran = begin(["quarantine", ...args, "--url", running.url], { ALK_ADMIN_TOKEN: ADMIN_TOKEN })
  const { end, errors, output } = await ran.ended
  const lines = output.split("\n").filter((line) => line !== "")
  return { end, errors, rows: lines.map((line) => JSON.parse(line) as Record<string, any>) }
}

const listed = (count: number) =>
  eventuallyAsync(
    `${count} commands are in quarantine`,
    async () => (await alk("list")).rows,
    ({ length }) => length >= count
  )

/** The receipt, as soon as it is decided. */
const decided = (id: string) =>
  eventuallyAsync(
    "the receipt is decided",
    () => client().call(`/v1/receipts/${id}`),
    ({ body, status }) => status === 200 && body.status !== "pending"
  )

beforeAll(async () => {
  running = await start(environment)
})

afterAll(async () => {
  await running.stop()
  rmSync(data, { recursive: true, force: true })
})

describe("commands in quarantine", () => {
  it("are listed, shown, replayed once and dropped", async () => {
    const sent = await client().batch([{ ...event(1), id: "sent" }], {
      headers: { "x-service-sync": "true" }
    })
    assert.strictEqual(sent.status, 200, sent.text)
    assert.deepStrictEqual((await alk("list")).rows, [])
    await produce(poisoned())
    await produce({ key: "acme", value: Buffer.from("anything"), headers: {} })
    const numbered = genuine({}, 1, { "alk-writer": new CommandWriter().next(Date.now() * 1000) })
    await produce(numbered)
    await produce(numbered)
    const rows = await listed(3)
    assert.deepStrictEqual(
      rows.map(({ kind, state }) => `${kind} ${state}`),
      ["failed open", "foreign open", "copy open"]
    )
    const [failed, foreign, copy] = rows.map(({ id }) => String(id)) as [string, string, string]

    const seen = await alk("show", failed)
    assert.strictEqual(seen.end, 0, seen.errors)
    const [shown] = seen.rows
    assert.deepInclude(shown, { tenant_id: "acme", items: 2, command_kind: "ingest" })
    const receipt = await decided(String(shown!["receipt_id"]))
    assert.strictEqual(receipt.body.status, "failed", receipt.text)

    for (const id of [foreign, copy]) {
      const refused = await alk("replay", id)
      assert.strictEqual(refused.end, 1, refused.errors)
      assert.match(refused.errors, /did not write|copy/)
    }
    const before = await idsOf()
    assert.strictEqual(before.length, 2)
    assert.include(before, "sent")

    const replayed = await alk("replay", failed, "--reason", "its time is mended")
    assert.strictEqual(replayed.end, 0, replayed.errors)
    assert.deepInclude(replayed.rows[0], { state: "replayed", status: "committed" })
    assert.strictEqual((await idsOf()).length, 4)
    const dropped = await alk("drop", foreign, copy, "--reason", "not ours")
    assert.deepStrictEqual(
      dropped.rows.map(({ state }) => state),
      ["dropped", "dropped"]
    )
    assert.deepStrictEqual((await alk("list")).rows, [])

    await running.stop()
    running = await start(environment)
    const again = await alk("replay", failed)
    assert.deepInclude(again.rows[0], { receipt_id: replayed.rows[0]!["receipt_id"] })
    assert.strictEqual((await idsOf()).length, 4)
    const all = (await alk("list", "--state", "all")).rows
    assert.deepStrictEqual(
      all.map(({ state }) => state),
      ["replayed", "dropped", "dropped"]
    )
    const verified = await client().call("/v1/verify")
    assert.deepInclude(verified.body, { valid: true, events_checked: 4 })

    const admin = new Client(running.url, ADMIN_TOKEN)
    const acts = (await admin.all("&action=quarantine.*")).map(({ action }) => action)
    for (const act of ["listed", "shown", "replayed", "dropped"]) {
      assert.include(acts, `quarantine.${act}`)
    }
    assert.strictEqual(acts.filter((action) => action === "quarantine.replayed").length, 1)
  })
})

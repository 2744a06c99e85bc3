/**
 * Metadata that an event has no room for, on the real program: sent, found, read back, verified, packed,
 * repeated and erased, before and after a restart.
 */
import { createHash } from "node:crypto"
import { rmSync } from "node:fs"
import jcs from "canonicalize"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { createClient } from "../../src/client/index.ts"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { type Report, Verifiers } from "../exports/support/Verifiers.ts"
import { event, readTopic } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const TENANT = "large"
/** Bytes that brokers and clients take in a record by default. */
const RECORD_BYTES_MAX = 1_048_588
const SYNC = { "x-service-sync": "true" }

const data = freshFolder("large-metadata")
const environment = {
  ALK_DATA_DIR: data,
  ALK_BOOTSTRAP_KEYS: `${testKey(TENANT)}=${TENANT}:read+write`
}
let running: Started
let verifiers: Verifiers

beforeAll(async () => {
  running = await start(environment)
  verifiers = await Verifiers.open()
})
afterAll(async () => {
  await running.stop()
  await verifiers.close()
  rmSync(data, { recursive: true, force: true })
})

const api = (): Client => new Client(running.url, testKey(TENANT))

const responseObject = (name: string): Json => ({
  kind: "PodList",
  items: Array.from({ length: 900 }, (_, n) => ({
    name: `${name}-${n}`,
    note: "é字\u0001".repeat(30)
  }))
})

/** An audit record of a Kubernetes API server. */
const record = (name: string): Json => ({
  ...event(1),
  id: name,
  timestamp: "2026-11-21T10:00:00Z",
  action: "pods.list",
  metadata: { verb: "list", code: 200, responseObject: responseObject(name) }
})
const FIRST = record("first")
const SECOND: Json = { ...record("second"), timestamp: "2026-11-21T11:00:00Z" }
/** As large as metadata may be, and nothing but texts that are six bytes each in JSON. */
const LARGEST: Json = {
  ...event(2),
  id: "largest",
  metadata: { verb: "get", text: "\u0001".repeat((1_048_576 - 25) / 6) }
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Metadata as it was sent: what references name is fetched. */
const wholeOf = async (metadata: Json): Promise<Json> => {
  const entries = Object.entries(metadata).map(async ([name, value]) => {
    if (value?.$ref === undefined) return [name, value]
    const { status, text } = await api().call(`/api/v1/payloads/${value.$ref}`)
    assert.strictEqual(status, 200, text)
    assert.deepStrictEqual(
      [`sha256:${sha256(text)}`, value.bytes],
      [value.$ref, Buffer.byteLength(text)]
    )
    return [name, value.media_type === undefined ? text : JSON.parse(text)]
  })
  return Object.fromEntries(await Promise.all(entries))
}

const stored = async (id: string): Promise<Json> => (await api().call(`/v1/events/${id}`)).body

const packed = async (
  path = "/v1/export/evidence-pack?pdf=false",
  key = testKey(TENANT)
): Promise<{ readonly pack: PackEditor; readonly report: Report }> => {
  const response = await fetch(`${running.url}${path}`, {
    headers: { authorization: `Bearer ${key}` }
  })
  const zip = Buffer.from(await response.arrayBuffer())
  assert.strictEqual(response.status, 200, zip.toString())
  const report = await verifiers.check(zip)
  assert.deepStrictEqual([report.verdict, report.problems], ["consistent", []])
  return { pack: new PackEditor(zip), report }
}

/** What the verifiers say of values that are not in the pack. */
const missingIn = (report: Report): ReadonlyArray<string> =>
  "not_established" in report
    ? report.not_established.filter((text) => text.includes("in metadata of events"))
    : []

const assertValid = async (): Promise<void> => {
  const { body } = await api().call("/v1/verify")
  assert.deepInclude(body, { valid: true, breaks: [] })
}

describe("metadata that an event has no room for", () => {
  it("is taken, and the answer names what is kept apart", async () => {
    const { body, status, text } = await api().call("/v1/events", { headers: SYNC, body: FIRST })
    assert.strictEqual(status, 201, text)
    assert.deepStrictEqual(
      body.warnings.map(({ field, index }: Json) => [index, field]),
      [[0, "metadata.responseObject"]]
    )
    assert.deepInclude(body.metadata, { verb: "list", code: 200 })
    const plain = { ...event(3), id: "plain" }
    const batch = await api().batch([plain, SECOND, LARGEST], { headers: SYNC })
    assert.strictEqual(batch.status, 200, batch.text)
    assert.deepStrictEqual(batch.body.errors, [])
    assert.deepStrictEqual(
      batch.body.warnings.map(({ field, index }: Json) => [index, field]),
      [
        [1, "metadata.responseObject"],
        [2, "metadata.text"]
      ]
    )
  })

  it("is found by what stays, and read back as it was sent", async () => {
    const { body } = await api().call("/v1/events?metadata.verb=list&order=asc")
    assert.deepStrictEqual(
      body.events.map(({ id }: Json) => id),
      ["first", "second"]
    )
    for (const sent of [FIRST, SECOND, LARGEST]) {
      const { metadata } = await stored(sent["id"])
      assert.isBelow(Buffer.byteLength(JSON.stringify(metadata)), 32_769)
      assert.deepStrictEqual(await wholeOf(metadata), sent["metadata"])
    }
    assert.strictEqual((await api().call("/api/v1/executions")).body.total, 0)
  })

  it("is the same event again, and another one with another value", async () => {
    const again = await api().batch([{ ...SECOND, timestamp: "2026-11-21T11:00:00.000Z" }], {
      headers: SYNC
    })
    assert.strictEqual(again.body.duplicates.length, 1, again.text)
    const metadata = { ...FIRST["metadata"], responseObject: responseObject("other") }
    const other = await api().call("/v1/events", { headers: SYNC, body: { ...FIRST, metadata } })
    assert.strictEqual(other.status, 409, other.text)
    const facts = await readTopic(running.topics, "alk.traces", TENANT)
    const holders = new Set(facts.map(({ value }) => JSON.parse(value).execution_id))
    assert.strictEqual(holders.size, 3)
    const events = await readTopic(running.topics, "alk.events", TENANT)
    for (const { value } of [...facts, ...events]) {
      assert.isBelow(Buffer.byteLength(value), RECORD_BYTES_MAX - 4_096)
    }
  })

  it("is covered by the chains, and packs hold it", async () => {
    await assertValid()
    const { pack, report } = await packed()
    assert.deepStrictEqual(missingIn(report), [])
    assert.include(pack.text("facts.ndjson"), sha256(jcs(FIRST["metadata"].responseObject)!))
  })

  it("is in packs of a period, where that has the event, and named where a pack has no facts", async () => {
    const { pack, report } = await packed(
      "/v1/export/evidence-pack?pdf=false&from=2026-11-21T10:00:00Z&to=2026-11-21T10:00:00Z"
    )
    assert.deepStrictEqual(missingIn(report), [])
    assert.include(pack.text("facts.ndjson"), "first-7")
    assert.notInclude(pack.text("facts.ndjson"), "second-7")
    const link = { filters: { action: "pods.list" } }
    const { body, text } = await api().call("/v1/share/links", { body: link })
    assert.isString(body.token, text)
    const shared = await packed("/v1/share/export/evidence-pack?pdf=false", body.token)
    assert.deepStrictEqual(missingIn(shared.report), [
      "What 2 references in metadata of events stand for: the pack does not hold these values."
    ])
  })

  it("is held by nothing that clients can erase, end or add to without its event", async () => {
    const facts = await readTopic(running.topics, "alk.traces", TENANT)
    const holder = JSON.parse(facts[0]!.value).execution_id
    const path = `/api/v1/executions/${holder}`
    const span = { name: "n", span_type: "TOOL_CALL" }
    for (const [method, target, body, status, message] of [
      ["POST", `${path}/erase`, { reason: "asked" }, 404, "erase that event"],
      ["PUT", `${path}/end`, { status: "COMPLETED" }, 404, "erase that event"],
      ["POST", `${path}/spans`, span, 404, "erase that event"],
      ["POST", "/api/v1/executions", { agent_id: "a", id: holder }, 409, "is taken"]
    ] as const) {
      const answer = await api().call(target, { method, body })
      assert.strictEqual(answer.status, status, answer.text)
      assert.include(answer.text, message)
    }
    assert.strictEqual((await api().call(path)).status, 404)
    for (const sent of [FIRST, SECOND, LARGEST]) {
      const { metadata } = await stored(sent["id"])
      assert.deepStrictEqual(await wholeOf(metadata), sent["metadata"])
    }
  })

  it("is erased with its event, also after a restart", async () => {
    const { metadata } = await stored("first")
    for (const id of ["first", "largest"]) {
      if (id === "largest") {
        await running.stop()
        running = await start(environment)
      }
      const { body, status, text } = await api().call(`/v1/events/${id}/erase`, {
        body: { reason: "asked" }
      })
      assert.strictEqual(status, 200, text)
      assert.isUndefined(body.metadata)
    }
    const gone = await api().call(`/api/v1/payloads/${metadata.responseObject.$ref}`)
    assert.strictEqual(gone.status, 404, gone.text)
    assert.deepStrictEqual(await wholeOf((await stored("second")).metadata), SECOND["metadata"])
    await assertValid()
    const { pack, report } = await packed()
    assert.deepStrictEqual(missingIn(report), [])
    const facts = pack.text("facts.ndjson")
    assert.notInclude(facts, "first-7")
    assert.include(facts, "second-7")
    assert.match(facts, /"erased_at"/)
  })

  it("is no unknown field to the client", async () => {
    const warnings: Array<unknown> = []
    const alk = createClient({
      url: running.url,
      key: testKey(TENANT),
      onWarning: (warning) => warnings.push(warning)
    })
    const { event: kept } = await alk.record({
      actor: { id: "scheduler", type: "system" },
      action: "pods.list",
      resource: { id: "default/pods", type: "pods" },
      metadata: FIRST["metadata"]
    })
    await alk.close()
    assert.deepStrictEqual(warnings, [])
    assert.deepInclude((kept as Json)["metadata"].responseObject, {
      media_type: "application/json"
    })
  })
})

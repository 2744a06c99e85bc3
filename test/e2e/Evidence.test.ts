/**
 * An auditor's way through the whole program: a pack and a PDF over HTTP, the key and a checkpoint
 * taken from the service, and every verifier over what came out.
 */
import { execFileSync } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { problemsOf, Verifiers } from "../exports/support/Verifiers.ts"
import { event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, start, testKey, type Started } from "../support/Program.ts"

const COUNT = 1_200
const ERASED = 17
const PACK = "/v1/export/evidence-pack"

const folder = freshFolder("evidence")
let running: Started
let verifiers: Verifiers
const clientOf = (tenant: string): Client => new Client(running.url, testKey(tenant))

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_KAFKA_PORT: String(await freePort()),
    ALK_BOOTSTRAP_KEYS: ["audited", "silent"]
      .map((tenant) => `${testKey(tenant)}=${tenant}:read+write`)
      .join(",")
  })
  verifiers = await Verifiers.open()
})
afterAll(async () => {
  await verifiers.close()
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

const download = async (client: Client, path: string): Promise<Buffer> => {
  const response = await fetch(`${client.url}${path}`, {
    headers: { authorization: `Bearer ${client.key}` }
  })
  assert.strictEqual(response.status, 200, path)
  return Buffer.from(await response.arrayBuffer())
}

const verificationOf = (zip: Buffer): Json =>
  JSON.parse(new PackEditor(zip).text("verification.json")) as Json

describe("an evidence pack of the running service", () => {
  let kept: string
  let key: string

  it("is intact for all verifiers, against the service's key and an older checkpoint", async () => {
    const client = clientOf("audited")
    const half = COUNT / 2
    const first = Array.from({ length: half }, (_, n) => event(n))
    assert.strictEqual(
      (await client.batch(first, { headers: { "x-service-sync": "true" } })).status, 200
    )
    kept = (await client.call("/v1/chain/checkpoints/latest")).text
    key = (await client.call("/.well-known/alk-keys.json")).text
    const second = Array.from({ length: half }, (_, n) => event(half + n))
    assert.strictEqual(
      (await client.batch(second, { headers: { "x-service-sync": "true" } })).status, 200
    )
    const { body } = await client.call(`/v1/events?from_sequence=${ERASED}&to_sequence=${ERASED}`)
    const id = encodeURIComponent(body.events[0].id)
    const erasure = await client.call(`/v1/events/${id}/erase`, { body: { reason: "asked for" } })
    assert.strictEqual(erasure.status, 200, erasure.text)
    const zip = await download(client, PACK)
    const report = await verifiers.check(zip, { key, kept: [kept] })
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(report.verdict, "intact")
    const doubts = report.not_established.filter(
      (line) => /no public key|Nothing signed/.test(line)
    )
    assert.deepStrictEqual(doubts, [])
    const pack = new PackEditor(zip)
    assert.strictEqual(pack.lines("events.ndjson").length, COUNT + 1)
    assert.strictEqual(pack.files.get("evidence.pdf")!.subarray(0, 5).toString(), "%PDF-")
    const erased = JSON.parse(pack.lines("events.ndjson")[ERASED - 1]!) as Json
    assert.isUndefined(erased["metadata"])
    assert.isDefined(erased["erased_at"])
  })

  it("has the bounds of verification when none are given", async () => {
    const client = clientOf("audited")
    const { body } = await client.call("/v1/verify")
    const { bounds, events_checked, head, valid } = verificationOf(
      await download(client, `${PACK}?pdf=false`)
    )
    assert.deepStrictEqual([bounds, events_checked, head, valid], [
      body.bounds,
      body.events_checked,
      body.head,
      body.valid
    ])
  })

  it("is checked by the program's own command", async () => {
    const path = join(folder, "pack.zip")
    writeFileSync(path, await download(clientOf("audited"), `${PACK}?pdf=false&to_sequence=500`))
    writeFileSync(join(folder, "keys.json"), key)
    const args = ["src/main.ts", "verify", path, "--public-key", join(folder, "keys.json")]
    const said = execFileSync(process.execPath, args).toString()
    assert.match(said, /^INTACT/)
    assert.include(said, "500 events")
  })

  it("is found to be tampered with, at the right sequence", async () => {
    const pack = new PackEditor(await download(clientOf("audited"), `${PACK}?pdf=false`))
    pack.edit("events.ndjson", (lines) =>
      lines.with(699, lines[699]!.replace(/"outcome":"\w+"/, '"outcome":"error"'))
    )
    const report = await verifiers.check(pack.settle().zip(), { key, kept: [kept] })
    assert.include(problemsOf(report), "events.ndjson 700 content_mismatch")
    assert.include(problemsOf(report), "manifest.sig null signature_invalid")
  })

  it("is the same twice but for its time", async () => {
    const client = clientOf("audited")
    const path = `${PACK}?pdf=false&action=document.*`
    const [first, second] = [await download(client, path), await download(client, path)]
    const files = [first, second].map((zip) => new PackEditor(zip).files)
    const timed = ["verification.json", "manifest.json", "manifest.sig", "sha256sums.txt"]
    for (const [name, bytes] of files[0]!) {
      if (!timed.includes(name)) assert.isTrue(bytes.equals(files[1]!.get(name)!), name)
    }
    const { verified_at: _first, ...one } = verificationOf(first)
    const { verified_at: _second, ...other } = verificationOf(second)
    assert.deepStrictEqual(one, other)
  })

  it("says 0 events where there are none", async () => {
    const zip = await download(clientOf("silent"), `${PACK}?pdf=false`)
    const report = await verifiers.check(zip, { key })
    assert.strictEqual(report.verdict, "intact")
    assert.strictEqual(verificationOf(zip)["status"], "empty")
  })

  it("tells of the executions and spans that overlap it", async () => {
    const client = clientOf("audited")
    const { body } = await client.call("/api/v1/executions", { body: { agent_id: "agent_1" } })
    const pack = new PackEditor(await download(client, `${PACK}?pdf=false`))
    const executions = pack.lines("executions.ndjson").map((line) => JSON.parse(line) as Json)
    const spans = pack.lines("spans.ndjson").map((line) => JSON.parse(line) as Json)
    assert.deepStrictEqual(executions.map(({ id }) => id as string), [body.id])
    assert.deepStrictEqual(spans.map(({ id }) => id as string), [body.root_span_id])
    const past = await download(client, `${PACK}?pdf=false&to=2000-01-01T00:00:00Z`)
    assert.deepStrictEqual(new PackEditor(past).lines("executions.ndjson"), [])
  })
})

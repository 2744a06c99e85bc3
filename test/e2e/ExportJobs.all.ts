/**
 * Export jobs of the program: files that verify, from two processes over one folder, through a cancel,
 * a kill in the middle and the end of their time.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const COUNT = 2_000
const [key, other] = [testKey("exports"), testKey("globex")]
const folder = freshFolder("export-jobs")
const exportsFolder = join(folder, "exports")

let running: Started
let client: Client

const begin = async (): Promise<void> => {
  running = await start({
    ALK_DATA_DIR: folder,
    ALK_WORKERS: "1",
    ALK_BOOTSTRAP_KEYS: `${key}=acme:read+write,${other}=globex:read`
  })
  client = new Client(running.url, key)
}

beforeAll(async () => {
  await begin()
  for (let from = 0; from < COUNT; from += 1_000) {
    const events = Array.from({ length: 1_000 }, (_, n) => ({
      timestamp: new Date(Date.UTC(2026, 0, 1) + (from + n) * 1_000).toISOString(),
      actor: { id: `u_${n % 7}`, type: "human" },
      action: "document.read",
      resource: { id: `d_${n}`, type: "document" },
      outcome: n % 10 === 0 ? "failure" : "success"
    }))
    const { status } = await client.call("/v1/events/batch?sync=true", { body: { events } })
    assert.strictEqual(status, 200)
  }
})
afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

const ask = async (body: object): Promise<string> => {
  const answer = await client.call("/v1/exports", { body })
  assert.strictEqual(answer.status, 202, answer.text)
  return (answer.body as { id: string }).id
}

const jobOf = async (id: string): Promise<any> => (await client.call(`/v1/exports/${id}`)).body

/** Milliseconds: documents are printed one after the other. */
const PATIENCE_MS = 300_000

/** The job of an export once that is made, or won't be. */
const overOf = (id: string): Promise<any> =>
  eventuallyAsync(
    "the export is over",
    () => jobOf(id),
    ({ status }) => status !== "queued" && status !== "running",
    PATIENCE_MS
  )

const fileOf = (id: string, as = key): Promise<Response> =>
  fetch(`${running.url}/v1/exports/${id}/file`, { headers: { authorization: `Bearer ${as}` } })

/** The file of an export, once it is done; its hash and its length are those that the job says. */
const made = async (body: object): Promise<Buffer> => {
  const job = await overOf(await ask(body))
  assert.strictEqual(job.status, "done", JSON.stringify(job))
  const answer = await fileOf(job.id)
  const bytes = Buffer.from(await answer.arrayBuffer())
  // Tables are compressed on their way.
  if (!answer.headers.has("content-encoding")) {
    assert.strictEqual(answer.headers.get("content-length"), String(job.bytes))
  }
  assert.strictEqual(createHash("sha256").update(bytes).digest("hex"), job.sha256)
  return bytes
}

const recordOf = (id: string): string => {
  const name = readdirSync(exportsFolder, { recursive: true, encoding: "utf8" }).find((one) =>
    one.endsWith(`${id}.json`)
  )
  return join(exportsFolder, name!)
}

const left = (end: string): ReadonlyArray<string> =>
  readdirSync(exportsFolder, { recursive: true, encoding: "utf8" }).filter((one) =>
    one.endsWith(end)
  )

describe("export jobs", () => {
  it("make a pack with its PDF that every verifier finds consistent", async () => {
    const bytes = await made({ kind: "pack" })
    const path = join(folder, "pack.zip")
    writeFileSync(path, bytes)
    const unpacked = join(folder, "unpacked")
    assert.strictEqual(spawnSync("unzip", ["-q", path, "-d", unpacked]).status, 0)
    for (const [program, script] of [
      [process.execPath, "verify.mjs"],
      ["python3", "verify.py"]
    ] as const) {
      const { status, stdout } = spawnSync(program, [script], { cwd: unpacked, encoding: "utf8" })
      assert.strictEqual(status, 0, stdout)
      assert.match(stdout, /consistent/i)
    }
    assert.isAbove(statSync(join(unpacked, "evidence.pdf")).size, 10_000)
  })

  it("make a PDF and a table of what a filter chooses", async () => {
    const pdf = await made({ kind: "pdf", filters: { outcome: "failure" } })
    assert.strictEqual(pdf.subarray(0, 5).toString(), "%PDF-")
    const csv = await made({ kind: "csv", filters: { where: "outcome:failure" } })
    assert.strictEqual(csv.toString().trim().split("\r\n").length, COUNT / 10 + 1)
    const lines = await made({ kind: "ndjson", from: "2026-01-01T00:00:10Z" })
    assert.strictEqual(lines.toString().trim().split("\n").length, COUNT - 10)
  })

  it("are the tenant's own, whichever process answers", async () => {
    const id = await ask({ kind: "csv" })
    await overOf(id)
    // Two processes share the port: each connection may meet either.
    for (let n = 0; n < 10; n++) {
      const answer = await fetch(`${running.url}/v1/exports/${id}`, {
        headers: { authorization: `Bearer ${key}`, connection: "close" }
      })
      assert.strictEqual(answer.status, 200)
      await answer.body?.cancel()
    }
    assert.strictEqual((await fileOf(id, other)).status, 404)
    const foreign = new Client(running.url, other)
    assert.strictEqual((await foreign.call(`/v1/exports/${id}`)).status, 404)
    const removal = await foreign.call(`/v1/exports/${id}`, { method: "DELETE" })
    assert.strictEqual(removal.status, 404)
    assert.strictEqual((await fileOf(id)).status, 200)
  })

  it("are cancelled on the way, and leave no file", async () => {
    const id = await ask({ kind: "pdf" })
    const { status } = await client.call(`/v1/exports/${id}`, { method: "DELETE" })
    assert.strictEqual(status, 204)
    assert.strictEqual((await jobOf(id)).status, "cancelled")
    assert.strictEqual((await fileOf(id)).status, 404)
    await eventuallyAsync(
      "its record says so, and its file is gone",
      () => ({ record: readFileSync(recordOf(id), "utf8"), files: left(`${id}.data`) }),
      ({ files, record }) => record.includes('"status":"cancelled"') && files.length === 0
    )
  })

  it("are interrupted by a kill, said so afterwards; and expire", async () => {
    const expiring = await overOf(await ask({ kind: "csv" }))
    const id = await ask({ kind: "pack" })
    await running.kill()
    assert.match(readFileSync(recordOf(id), "utf8"), /"status":"(?:queued|running)"/)
    const path = recordOf(expiring.id)
    const past = `"expires_at":"${new Date(Date.now() - 60_000).toISOString().replace("Z", "000Z")}"`
    writeFileSync(path, readFileSync(path, "utf8").replace(/"expires_at":"[^"]+"/, past))
    await begin()
    assert.strictEqual((await jobOf(expiring.id)).status, "expired")
    assert.strictEqual((await fileOf(expiring.id)).status, 404)
    await eventuallyAsync(
      "its file is gone",
      () => left(`${expiring.id}.data`),
      ({ length }) => length === 0
    )
    const job = await overOf(id)
    assert.deepInclude(job, { status: "failed" })
    assert.strictEqual(job.error.code, "interrupted")
    assert.strictEqual((await fileOf(id)).status, 404)
  })
})

/**
 * Export jobs over HTTP: every state that one can be in, who sees it, what is refused, and that no
 * file is handed out that is not whole.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import { parseJson } from "../../src/domain/json/Json.ts"
import { UNDER_WAY_MAX } from "../../src/http/exports/jobs/JobLimits.ts"
import { BEAT_MS } from "../../src/http/exports/jobs/JobState.ts"
import type { ExportJob } from "../../src/ports/ExportJob.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import type { Answer, TestApi } from "./support/TestApi.ts"

const EXPORTS = "/v1/exports"
const COUNT = 5

let world: World
let state: ExportWorld
let folder: string
let api: TestApi

beforeEach(async () => {
  world = new World()
  state = new ExportWorld()
  folder = mkdtempSync(join(tmpdir(), "alk-jobs-"))
  api = await begin()
  const call = { key: WRITE_KEY, json: { events: items(COUNT) } }
  assert.strictEqual((await api.call("/v1/events/batch?sync=true", call)).status, 200)
})
afterEach(async () => {
  await api.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A process that sees the folder of the test. */
const begin = (exportsAtOnce?: number): Promise<TestApi> =>
  startExports(world, state, exportsAtOnce, undefined, folder)

/** Begins anew, with other limits. */
const again = async (exportsAtOnce?: number): Promise<void> => {
  await api.stop()
  api = await begin(exportsAtOnce)
}

const ask = (json: object, key = READ_KEY): Promise<Answer> => api.call(EXPORTS, { key, json })

const asked = async (json: object): Promise<string> => {
  const { body, status } = await ask(json)
  assert.strictEqual(status, 202, JSON.stringify(body))
  return body.id
}

const jobOf = async (id: string, key = READ_KEY) =>
  (await api.call(`${EXPORTS}/${id}`, { key })).body

/** The job once it has ended. */
const endOf = (id: string, key = READ_KEY) =>
  eventuallyAsync(
    "the job has ended",
    () => jobOf(id, key),
    ({ status }) => status !== "queued" && status !== "running"
  )

const ended = async (json: object) => endOf(await asked(json))

/** The time passes after which jobs give a sign of life. */
const beat = () => world.clock.forward(BEAT_MS)

const file = (id: string, headers: Record<string, string> = {}, key = READ_KEY) =>
  api.call(`${EXPORTS}/${id}/file`, { key, headers })

const remove = (id: string, key = READ_KEY) =>
  api.call(`${EXPORTS}/${id}`, { key, method: "DELETE" })

/** A printer that waits; opened with `open`. */
const gated = () => {
  const [gate, reached] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
  state.gate = Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate))
  const isReached = Effect.runPromise(Deferred.await(reached))
  return {
    reached: isReached,
    /** The job that it is at, as soon as that is told. */
    at: async (id: string) => {
      await isReached
      beat()
      return eventuallyAsync(
        "the job is said to be printed",
        () => jobOf(id),
        ({ stage }) => stage === "printing"
      )
    },
    open: () => Deferred.doneUnsafe(gate, Effect.void)
  }
}

/** What lies in the folder, by the ends of the names. */
const leftOver = (end: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(end))

const recordOf = (id: string) => {
  const path = join(folder, leftOver(`${id}.json`)[0]!)
  return {
    path,
    read: () => parseJson(readFileSync(path, "utf8")) as ExportJob,
    change: (changed: object) => {
      writeFileSync(path, JSON.stringify({ ...recordOf(id).read(), ...changed }))
    }
  }
}

describe("an export job", () => {
  it("begins its table with a byte order mark where that is asked for", async () => {
    const plain = await ended({ kind: "csv", bom: false })
    const marked = await ended({ kind: "csv", bom: true })
    assert.isTrue(marked.bom)
    assert.notProperty(plain, "bom")
    const [{ bytes: with_ }, { bytes: without }] = [await file(marked.id), await file(plain.id)]
    assert.deepStrictEqual(with_, Buffer.concat([Buffer.from("\ufeff"), without]))
  })

  it("makes the table of the list, and says how it was named, sized and hashed", async () => {
    const { body, headers, status } = await ask({
      kind: "csv",
      from: "2026-01-01T00:00:00Z",
      filters: { "metadata.n>=": 1 },
      label: "mine"
    })
    assert.strictEqual(status, 202)
    assert.strictEqual(headers["location"], `${EXPORTS}/${body.id}`)
    assert.deepInclude(body, { kind: "csv", status: "queued", stage: "waiting", label: "mine" })
    assert.deepInclude(body, { from: "2026-01-01T00:00:00.000000Z", to: null })
    assert.deepInclude(body, { created_by: "key_read", filters: { where: "metadata.n>=1" } })
    assert.notProperty(body, "pdf")

    const job = await endOf(body.id)
    assert.strictEqual(job.status, "done")
    assert.isAbove(Date.parse(job.expires_at), Date.now() + 3_000_000)
    const found = await file(job.id)
    assert.strictEqual(found.status, 200)
    const list = "/v1/events?order=asc&metadata.n%3E=1&from=2026-01-01T00:00:00Z"
    const same = await api.call(list, { key: READ_KEY, headers: { accept: "text/csv" } })
    assert.strictEqual(found.text, same.text)
    assert.strictEqual(found.text.split("\r\n").length, COUNT + 1)
    assert.strictEqual(found.headers["content-type"], "text/csv; charset=utf-8; header=present")
    assert.strictEqual(found.headers["content-length"], String(job.bytes))
    assert.strictEqual(job.bytes, found.bytes.length)
    assert.strictEqual(job.sha256, sha256Hex(found.bytes))
    assert.match(job.file_name, /^alk-events-acme-\d{8}T\d{6}Z\.csv$/)
    const disposition = `attachment; filename="${job.file_name}"`
    assert.strictEqual(found.headers["content-disposition"], disposition)
    assert.deepStrictEqual(leftOver(".partial"), [])
  })

  it.each([
    ["ndjson", "application/x-ndjson", "events", ".ndjson"],
    ["ocsf", "application/x-ndjson", "events", ".ocsf.ndjson"],
    ["pdf", "application/pdf", "audit_report", ".pdf"],
    ["pack", "application/zip", "evidence_pack", ".zip"]
  ])("makes %s, and puts it on record", async (kind, type, resource, extension) => {
    const job = await ended({ kind })
    assert.strictEqual(job.status, "done", JSON.stringify(job))
    const { bytes, headers } = await file(job.id)
    assert.strictEqual(headers["content-type"], type)
    assert.strictEqual(sha256Hex(bytes), job.sha256)
    assert.isTrue(job.file_name.endsWith(extension))
    assert.strictEqual(state.acts.length, 1)
    const [{ action, actor, metadata, resource: of }] = state.acts as [(typeof state.acts)[0]]
    assert.deepStrictEqual([action, actor], ["export.created", "key_read"])
    assert.deepStrictEqual(of, { type: resource, id: "acme" })
    assert.deepInclude(metadata, { tenant_id: "acme", events: COUNT, filter: null })
  })

  it("names in the report what asks for the same again", async () => {
    await ended({ kind: "pack", filters: { outcome: "success" }, label: "mine" })
    const body = '{"kind":"pack","pdf":true,"label":"mine","filters":{"outcome":"success"}}'
    assert.strictEqual(state.printed[0]!.request.line, `POST /v1/exports ${body}`)
  })

  it("needs no printer for a pack without the PDF", async () => {
    state.printer = "missing"
    const job = await ended({ kind: "pack", pdf: false })
    assert.deepInclude(job, { status: "done", pdf: false })
    assert.deepStrictEqual(state.printed, [])
  })

  it("says how far it is, and gives no file before it is done", async () => {
    const gate = gated()
    const id = await asked({ kind: "pdf" })
    const job = await gate.at(id)
    assert.strictEqual(job.status, "running")
    const { body, status } = await file(id)
    assert.deepStrictEqual([status, body.error.code], [409, "not_ready"])
    assert.match(body.error.message, /not ready \(running, printing\)/)
    gate.open()
    assert.strictEqual((await endOf(id)).status, "done")
  })

  it("counts the events of a table as they are written", async () => {
    const gate = Deferred.makeUnsafe<void>()
    world.storeGate = Deferred.await(gate)
    const id = await asked({ kind: "ndjson" })
    const { progress } = await eventuallyAsync(
      "some events are counted",
      () => jobOf(id),
      (job) => job.progress?.done > 0
    )
    assert.deepStrictEqual(progress, { done: 2, total: COUNT, unit: "events" })
    Deferred.doneUnsafe(gate, Effect.void)
    assert.notProperty(await endOf(id), "progress")
  })

  it("answers 304 to a client that has the file, and HEAD without it", async () => {
    const { bytes, id, sha256 } = await ended({ kind: "csv" })
    const unchanged = await file(id, { "if-none-match": `"${sha256}"` })
    assert.deepStrictEqual([unchanged.status, unchanged.text], [304, ""])
    const head = await api.call(`${EXPORTS}/${id}/file`, { key: READ_KEY, method: "HEAD" })
    assert.strictEqual(head.headers["content-length"], String(bytes))
  })

  it("is listed with the others, newest first, by any key of its tenant", async () => {
    const first = await ended({ kind: "csv" })
    const second = await ended({ kind: "ndjson" })
    world.principals.set("svc_live_another", { ...world.principals.get(READ_KEY)!, keyId: "k2" })
    const { body } = await api.call(`${EXPORTS}?page_size=1`, { key: "svc_live_another" })
    assert.deepInclude(body, { total: 2, page: 1, page_size: 1 })
    assert.deepStrictEqual(body.exports, [second])
    const rest = await api.call(`${EXPORTS}?page=2&page_size=1`, { key: READ_KEY })
    assert.deepStrictEqual(rest.body.exports, [first])
  })

  it("is nothing to another tenant, whatever it asks", async () => {
    const { id } = await ended({ kind: "csv" })
    const path = `${EXPORTS}/${id}`
    const answers = [
      await api.call(path, { key: OTHER_KEY }),
      await file(id, {}, OTHER_KEY),
      await remove(id, OTHER_KEY),
      await file("..%2F..%2Fsecret"),
      await file("exp_019a8f3c-0000-7000-8000-000000000000")
    ]
    for (const { body, status } of answers) {
      assert.deepStrictEqual([status, body.error.message], [404, "there is no such export job"])
    }
    const list = await api.call(EXPORTS, { key: OTHER_KEY })
    assert.deepStrictEqual(list.body.exports, [])
    assert.strictEqual((await file(id)).status, 200)
  })

  it("asks for a key that may read", async () => {
    assert.strictEqual((await ask({ kind: "csv" }, WRITE_KEY)).status, 403)
    const gate = gated()
    const id = await asked({ kind: "pdf" })
    await gate.at(id)
    // Revoked before there is something to hand out.
    const principal = world.principals.get(READ_KEY)!
    world.principals.delete(READ_KEY)
    world.principals.set("svc_live_another", { ...principal, keyId: "k2" })
    gate.open()
    const job = await endOf(id, "svc_live_another")
    assert.deepInclude(job, { status: "failed" })
    assert.match(job.error.message, /key_read that asked for it is no longer valid/)
    assert.deepStrictEqual(state.acts, [])
  })
})

describe("what can't be asked for", () => {
  it.each([
    [{}, "kind: must be one of pdf, pack, csv, ndjson, ocsf"],
    [{ kind: "xlsx" }, "kind: must be one of pdf, pack, csv, ndjson, ocsf"],
    [{ kind: "csv", pdf: true }, "pdf: is for packs only; leave it out for the kind csv"],
    [{ kind: "pack", pdf: "no" }, "pdf: must be true or false"],
    [{ kind: "ndjson", bom: true }, "bom: is for CSV only; leave it out for the kind ndjson"],
    [{ kind: "csv", bom: "yes" }, "bom: must be true or false"],
    [{ kind: "csv", filters: { from: "2026-01-01" } }, "filters.from: is not a filter"],
    [{ kind: "csv", from: "yesterday" }, "from: "],
    [{ kind: "csv", filters: { where: "outcome:" } }, "filters.where: "],
    [{ kind: "csv", label: "" }, "label: must be a string of 1 to 256 characters"]
  ])("%j", async (json, message) => {
    const { body, status } = await ask(json)
    assert.strictEqual(status, 400)
    assert.include(body.error.message, message)
    assert.deepStrictEqual(leftOver(".json"), [])
  })

  it("more than so many at once", async () => {
    const gate = gated()
    const ids: Array<string> = []
    for (let n = 0; n < UNDER_WAY_MAX; n++) ids.push(await asked({ kind: "pdf" }))
    const { body, status } = await ask({ kind: "csv" })
    assert.deepStrictEqual([status, body.error.code], [429, "rate_limited"])
    assert.match(body.error.message, /3 exports under way, the most allowed/)
    // Another tenant has a place of its own.
    assert.strictEqual((await ask({ kind: "csv" }, OTHER_KEY)).status, 202)
    gate.open()
    for (const id of ids) assert.strictEqual((await endOf(id)).status, "done")
    assert.strictEqual((await ask({ kind: "csv" })).status, 202)
  })

  it("more than there is room for: the file that would be too large is not kept", async () => {
    state.jobs = { keptMs: 3_600_000, bytesMax: 1_200 }
    await again()
    assert.strictEqual((await ended({ kind: "csv", filters: { to_sequence: 1 } })).status, "done")
    const job = await ended({ kind: "ndjson" })
    assert.deepInclude(job, { status: "failed" })
    assert.strictEqual(job.error.code, "too_large")
    assert.strictEqual(leftOver(".data").length, 1)
    assert.deepStrictEqual(leftOver(".partial"), [])
  })
})

describe("a job that does not come to its end", () => {
  it("is cancelled while it is made, then removed", async () => {
    const gate = gated()
    const id = await asked({ kind: "pdf" })
    await gate.at(id)
    assert.strictEqual((await remove(id)).status, 204)
    assert.strictEqual((await jobOf(id)).status, "cancelled")
    const { body, status } = await file(id)
    assert.deepStrictEqual([status, body.error.code], [404, "not_found"])
    assert.match(body.error.message, /was cancelled/)
    // Its process gives up by itself: then it can be removed.
    beat()
    await eventuallyAsync(
      "the job is gone",
      async () => (await remove(id)).status,
      (answered) => answered === 404
    )
    assert.deepStrictEqual(
      leftOver(""),
      leftOver("").filter((name) => !name.includes("exp_"))
    )
  })

  it("is removed by the key that asked for it, or by one that may write as well", async () => {
    const [reader, writer] = [`alk_live_${"p".repeat(43)}`, `alk_live_${"v".repeat(43)}`]
    const of = (keyId: string, scopes: ReadonlyArray<"read" | "write">) =>
      ({ tenantId: "acme", keyId, scopes }) as const
    world.principals.set(reader, of("key_reader", ["read"]))
    world.principals.set(writer, of("key_writer", ["read", "write"]))
    const { id } = await ended({ kind: "pdf" })
    const refused = await remove(id, reader)
    assert.strictEqual(refused.status, 403)
    assert.match(refused.body.error.message, /another one needs the scope write/)
    assert.strictEqual((await jobOf(id)).status, "done")
    assert.strictEqual((await remove(id, writer)).status, 204)
  })

  it("is cancelled by another process than the one that makes it", async () => {
    const gate = gated()
    const other = await begin()
    const id = await asked({ kind: "pdf" })
    await gate.at(id)
    const path = `${EXPORTS}/${id}`
    assert.strictEqual((await other.call(path, { key: READ_KEY, method: "DELETE" })).status, 204)
    beat()
    await eventuallyAsync(
      "its process writes down that it was cancelled",
      () => recordOf(id).read(),
      (record) => record.status === "cancelled"
    )
    await other.stop()
  })

  it("has failed where nothing prints, with what to install", async () => {
    state.printer = "missing"
    const { error, status } = await ended({ kind: "pack" })
    assert.strictEqual(status, "failed")
    assert.deepStrictEqual(error, { code: "pdf_unavailable", message: "install a Chromium" })
  })

  it("has failed where the store breaks off, and leaves nothing that looks whole", async () => {
    world.scanBreaks = true
    const job = await ended({ kind: "csv" })
    assert.deepInclude(job.error, { code: "unavailable" })
    const { body, status } = await file(job.id)
    assert.strictEqual(status, 404)
    assert.match(body.error.message, /has failed and has no file: the query store/)
    assert.deepStrictEqual([...leftOver(".data"), ...leftOver(".partial")], [])
    assert.strictEqual(api.logs.filter(({ level }) => level === "Error").length, 0)
  })

  it("has failed where the disk is full, in clear words", async () => {
    state.freeBytesMin = Number.MAX_SAFE_INTEGER
    await again()
    const { error, id } = await ended({ kind: "csv" })
    assert.strictEqual(error.code, "disk_full")
    assert.match(error.message, /is full: free some space and ask again/)
    assert.strictEqual((await file(id)).status, 404)
  })

  it("has failed as interrupted where its process goes down, and another one says so", async () => {
    const gate = gated()
    const id = await asked({ kind: "pdf" })
    await gate.at(id)
    await again()
    const job = await jobOf(id)
    assert.deepInclude(job, { status: "failed" })
    assert.strictEqual(job.error.code, "interrupted")
    assert.match(job.error.message, /ask for it again/)
    assert.deepStrictEqual(leftOver(".partial"), [])
  })

  it("has failed as interrupted where its process gives no more signs of life", async () => {
    const { id } = await ended({ kind: "csv" })
    await api.stop()
    // As a process that was killed leaves it.
    const alive_at = new Date(Date.now() - 31_000).toISOString().replace("Z", "000Z")
    recordOf(id).change({ status: "running", stage: "writing", alive_at })
    api = await begin()
    assert.deepInclude((await jobOf(id)).error, { code: "interrupted" })
    assert.strictEqual((await file(id)).status, 404)
    // And whoever sweeps writes it down.
    await eventuallyAsync(
      "the end is written down",
      () => recordOf(id).read(),
      (record) => record.status === "failed"
    )
    assert.deepStrictEqual(leftOver(".data"), [])
  })

  it("waits for a slot of its tenant", async () => {
    await again(1)
    const gate = gated()
    const document = api.call("/v1/export/pdf", { key: READ_KEY })
    await gate.reached
    const id = await asked({ kind: "csv" })
    // Between two signs of life it asks for a slot.
    for (let time = 0; time < 2; time++) {
      const { alive_at } = recordOf(id).read()
      beat()
      await eventuallyAsync(
        "the job gives a sign of life",
        () => recordOf(id).read(),
        (record) => record.alive_at !== alive_at
      )
    }
    assert.deepInclude(await jobOf(id), { status: "queued", stage: "waiting" })
    gate.open()
    assert.strictEqual((await document).status, 200)
    assert.strictEqual((await endOf(id)).status, "done")
  })
})

describe("the file of a job", () => {
  it("expires: the job stays in the list, the file is removed", async () => {
    const { id } = await ended({ kind: "csv" })
    assert.strictEqual((await file(id)).status, 200)
    recordOf(id).change({ expires_at: "2026-01-01T00:00:00.000000Z" })
    const job = await jobOf(id)
    assert.strictEqual(job.status, "expired")
    const { body, status } = await file(id)
    assert.strictEqual(status, 404)
    assert.match(body.error.message, /has expired and was removed: ask for it again/)
  })

  it("is removed by the sweep, and the record a week later", async () => {
    const { id } = await ended({ kind: "csv" })
    const other = await ended({ kind: "ndjson" })
    const daysAgo = (days: number) =>
      new Date(Date.now() - days * 86_400_000).toISOString().replace("Z", "000Z")
    recordOf(id).change({ expires_at: daysAgo(1) })
    recordOf(other.id).change({ expires_at: daysAgo(8) })
    await again()
    await eventuallyAsync(
      "both files and the older record are removed",
      () => [...leftOver(".data"), ...leftOver(`${other.id}.json`)],
      (left) => left.length === 0
    )
    assert.strictEqual((await jobOf(id)).status, "expired")
    assert.strictEqual((await api.call(`${EXPORTS}/${other.id}`, { key: READ_KEY })).status, 404)
  })

  it("is removed with its job", async () => {
    const { id } = await ended({ kind: "csv" })
    assert.strictEqual((await remove(id)).status, 204)
    assert.strictEqual((await file(id)).status, 404)
    assert.strictEqual((await remove(id)).status, 404)
    assert.deepStrictEqual(leftOver(".data"), [])
  })

  it("is not handed out when it is not the one that was written", async () => {
    const { id } = await ended({ kind: "csv" })
    writeFileSync(join(folder, leftOver(`${id}.data`)[0]!), "half")
    const { body, status } = await file(id)
    assert.strictEqual(status, 503)
    assert.match(body.error.message, /is damaged: ask for it again/)
  })

  it("is for this user only, in folders that name no tenant", async () => {
    await ended({ kind: "csv" })
    for (const name of leftOver("")) assert.notInclude(name, "acme")
    const files = [...leftOver(".json"), ...leftOver(".data")]
    assert.strictEqual(files.length, 2)
    for (const name of files) assert.strictEqual(statSync(join(folder, name)).mode & 0o777, 0o600)
  })

  it("makes room: what has ended without one goes first", async () => {
    state.printer = "missing"
    const { id } = await ended({ kind: "pdf" })
    state.printer = "prints"
    const record = recordOf(id).read()
    for (let n = 0; n < 99; n++) {
      const copy = `exp_00000000-0000-7000-8000-${String(n).padStart(12, "0")}`
      const path = recordOf(id).path.replace(id, copy)
      writeFileSync(path, JSON.stringify({ ...record, id: copy }))
    }
    const job = await ended({ kind: "csv" })
    assert.strictEqual(job.status, "done")
    const { body } = await api.call(EXPORTS, { key: READ_KEY })
    assert.strictEqual(body.total, 100)
    assert.isFalse(body.exports.some((one: any) => one.id.endsWith("000000000000")))
  })
})

/**
 * Evidence as a user and an auditor meet it: one program on its own broker and store, started once,
 * asked over HTTP, and what it has handed out checked by the programs that lie in it.
 */
import { execFile } from "node:child_process"
import { createPrivateKey, sign } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { createClient } from "@clickhouse/client"
import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { checkChain, event, readTopic } from "../support/BlackBox.ts"
import { Client, type Json, readStream } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { askIndependentTree } from "../support/IndependentTree.ts"
import { readPdf } from "../support/PdfReader.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

const tenants = ["erased", "shared", "packed", "tampered"] as const
type Tenant = (typeof tenants)[number]

const data = freshFolder("evidence")
const files = freshFolder("evidence-files")
const PACK = "/v1/export/evidence-pack"
const PDF = "/v1/export/pdf"
const SHARED = "/v1/share/export/pdf"
/** Milliseconds after which something hangs: many times what a document or a program takes. */
const ANSWER_MS = 300_000
const SYNC = { headers: { "x-service-sync": "true" } }

const environment = {
  ALK_DATA_DIR: data,
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  // The store of this process also answers others: the intruder of these tests.
  ALK_ROLES: "api,sequencer,projection,store",
  ALK_EMBEDDED_OPEN: "true",
  ALK_BOOTSTRAP_KEYS: tenants.map((name) => `${testKey(name)}=${name}:read+write`).join(",")
}
let running: Started

const client = (tenant: Tenant): Client => new Client(running.url, testKey(tenant))
const admin = (): Client => new Client(running.url, ADMIN_TOKEN)

beforeAll(async () => {
  running = await start(environment)
})

afterAll(async () => {
  await running.stop()
  for (const folder of [data, files]) rmSync(folder, { recursive: true, force: true })
})

interface Download {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

const download = async (
  path: string,
  key: string,
  headers: Record<string, string> = {}
): Promise<Download> => {
  const response = await fetch(`${running.url}${path}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    signal: AbortSignal.timeout(ANSWER_MS)
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes }
}

const file = (name: string, content: Buffer | string): string => {
  const path = join(files, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return path
}

interface Ran {
  readonly code: number
  readonly output: string
}

const run = (command: string, args: ReadonlyArray<string>, cwd?: string): Promise<Ran> =>
  new Promise((resolve) => {
    const place = cwd === undefined ? {} : { cwd }
    const options = { timeout: ANSWER_MS, maxBuffer: 64 * 1_048_576, ...place }
    execFile(command, [...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${stdout}${stderr}` })
    })
  })

/** The program's own command. */
const alkVerify = (...args: ReadonlyArray<string>): Promise<Ran> =>
  run(process.execPath, ["src/main.ts", "verify", ...args])

const sendEvents = async (tenant: Tenant, from: number, count: number): Promise<void> => {
  const events = Array.from({ length: count }, (_, n) => ({
    ...event(from + n),
    id: `${tenant}-${from + n}`
  }))
  const { status, text } = await client(tenant).batch(events, SYNC)
  assert.strictEqual(status, 200, text)
}

const textOf = async (pdf: Buffer): Promise<string> =>
  (await readPdf(pdf, { pagesLookedInto: 0 })).pages.join(" ")

/** As a table cell may have broken it. */
const unspaced = (text: string): string => text.replaceAll(/\s+/g, "")

const note = async (tenant: Tenant): Promise<string> => {
  const { body, status, text } = await client(tenant).call("/v1/chain/checkpoints/latest")
  assert.strictEqual(status, 200, text)
  return body.note
}

const keysFile = async (name: string): Promise<string> =>
  file(name, (await new Client(running.url, "").call("/.well-known/alk-keys.json")).text)

const systemActs = async (): Promise<ReadonlyArray<Json>> =>
  (await admin().all()).map(({ action, actor, metadata, resource }) => ({
    action,
    actor: actor.id,
    tenant: metadata?.tenant_id,
    resource: resource.id
  }))

describe("an erased event", () => {
  const SECRET = "Geheimnis-4711"
  let erased: Json

  it("keeps its place and loses its details", async () => {
    const api = client("erased")
    await sendEvents("erased", 1, 5)
    const told = {
      ...event(6),
      id: "told/6",
      actor: { id: "user-6", type: "human", email: `${SECRET}@example.com` },
      resource: { id: "doc-6", type: "document", name: `Akte ${SECRET}` },
      metadata: { note: SECRET, [SECRET]: [SECRET] }
    }
    assert.strictEqual((await api.call("/v1/events", { ...SYNC, body: told })).status, 201)
    await sendEvents("erased", 7, 5)
    assert.include((await api.call(`/v1/events?q=${SECRET}`)).text, "told/6")
    const path = `/v1/events/${encodeURIComponent("told/6")}/erase`
    const { body, status } = await api.call(path, { body: { reason: "request 1" } })
    assert.strictEqual(status, 200)
    assert.deepInclude(body, { id: "told/6", sequence_number: 6, topic_copy_until: null })
    assert.isString(body.erased_at)
    erased = body
    const again = await api.call(path, { body: { reason: "request 2" } })
    assert.deepStrictEqual([again.status, again.body], [200, body])
  })

  it("shows nothing of them in lists, streams, files and documents", async () => {
    const api = client("erased")
    const { bytes } = await download(PACK, api.key)
    const pack = new PackEditor(bytes)
    const report = await textOf(pack.files.get("evidence.pdf")!)
    assert.include(unspaced(report), "told/6")
    const shown = [
      (await api.call("/v1/events?page_size=100")).text,
      (await api.call("/v1/events", { headers: { accept: "text/csv" } })).text,
      (await api.call("/v1/events", { headers: { accept: "application/x-ndjson" } })).text,
      (await api.call(`/v1/events/${encodeURIComponent("told/6")}`)).text,
      ...(
        await readStream(`${running.url}/v1/events/stream?after_sequence=0`, api.key, {
          done: (messages) => messages.length >= 12
        })
      ).map(({ data }) => data),
      ...[...pack.files.keys()]
        .filter((name) => name !== "evidence.pdf")
        .map((name) => pack.text(name)),
      report
    ]
    for (const text of shown) assert.notInclude(text, SECRET)
    assert.strictEqual((await api.call(`/v1/events?q=${SECRET}`)).body.total, 0)
    // The public topic keeps its copy, as the answer has said.
    const topic = await readTopic(running.topics, "alk.events", "erased")
    assert.strictEqual(topic.filter(({ value }) => value.includes(SECRET)).length, 1)
    const path = file("erased.zip", bytes)
    assert.strictEqual((await alkVerify(path, "--public-key", await keysFile("keys.json"))).code, 0)
  })

  it("is vouched for by an event in the tenant's log, and the chain holds", async () => {
    const api = client("erased")
    const events = await api.all()
    const last = events.at(-1)!
    assert.deepInclude(last, {
      action: "alk.event.erased",
      resource: { id: "told/6", type: "audit_event" },
      sequence_number: 12,
      created_at: erased["erased_at"]
    })
    assert.deepStrictEqual(last["metadata"], {
      reason: "request 1",
      sequence_number: 6,
      content_hash: erased["content_hash"]
    })
    await checkChain(events)
    const { body } = await api.call("/v1/verify")
    assert.deepInclude(body, { valid: true, events_checked: 12, erased_events: 1, breaks: [] })
    const one = await api.call(`/v1/verify/events/${encodeURIComponent("told/6")}`)
    assert.strictEqual(one.body.valid, true)
    // Whoever kept the event before can still show that it was this one.
    const [record] = (await readTopic(running.topics, "alk.events", "erased")).slice(5)
    const kept = { events: [JSON.parse(record!.value)] }
    assert.strictEqual((await api.call("/v1/verify", { body: kept })).body.valid, true)
  })

  it("can't be claimed by a client", async () => {
    const body = { ...event(1), action: "alk.event.erased" }
    assert.strictEqual((await client("erased").call("/v1/events", { body })).status, 400)
  })
})

describe("a share link", () => {
  const create = async (body: Json): Promise<Json> => {
    const answer = await client("shared").call("/v1/share/links", { body })
    assert.strictEqual(answer.status, 201, answer.text)
    return answer.body
  }
  const open = (token: string) => download(SHARED, token)
  const links: Record<string, Json> = {}

  it("opens its document once for one of five who come at the same time", async () => {
    await sendEvents("shared", 1, 20)
    const link = (links["once"] = await create({ filters: { actor_id: "user-3" }, max_uses: 1 }))
    const answers = await Promise.all(Array.from({ length: 5 }, () => open(link["token"])))
    assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401])
    const { bytes } = answers.find(({ status }) => status === 200)!
    const text = await textOf(bytes)
    assert.include(text, "user-3")
    assert.notInclude(text, "user-4")
    const { body } = await client("shared").call(`/v1/share/links/${link["id"]}`)
    assert.strictEqual(body.uses, 1)
    assert.strictEqual((await open(link["token"])).status, 401)
  })

  it("ends when it is revoked and when its time is over", async () => {
    const short = (links["short"] = await create({ expires_in: 1 }))
    const revoked = (links["revoked"] = await create({ label: "taken back" }))
    const api = client("shared")
    const path = `/v1/share/links/${revoked["id"]}`
    assert.strictEqual((await api.call(path, { method: "DELETE" })).status, 204)
    assert.strictEqual((await open(revoked["token"])).status, 401)
    const end = Date.parse(short["expires_at"])
    await eventuallyAsync(
      "its time is over",
      () => Date.now() - end,
      (milliseconds) => milliseconds > 0
    )
    assert.strictEqual((await open(short["token"])).status, 401)
    const listed = (await api.call("/v1/share/links")).body.links as ReadonlyArray<Json>
    assert.deepStrictEqual(
      listed.map(({ id }) => id),
      ["revoked", "short", "once"].map((name) => links[name]!["id"])
    )
  })

  it("opens nothing else, and no key opens its document", async () => {
    const { token } = await create({})
    for (const path of ["/v1/events", PDF, PACK, "/v1/share/links", "/v1/verify"]) {
      assert.strictEqual((await download(path, token)).status, 401, path)
    }
    for (const key of [client("shared").key, ADMIN_TOKEN]) {
      assert.strictEqual((await open(key)).status, 401)
    }
    assert.notInclude(running.output(), token)
  })

  it("and its uses are on record in the system's own log", async () => {
    const acts = (await systemActs()).filter(({ resource }) => resource === links["once"]!["id"])
    assert.deepStrictEqual(
      acts.map(({ action }) => action),
      ["share_link.created", "share_link.used"]
    )
    const all = await systemActs()
    const exported = all.filter(
      ({ action, actor }) => action === "export.created" && actor === links["once"]!["id"]
    )
    assert.strictEqual(exported.length, 1)
    const revoked = all.filter(({ resource }) => resource === links["revoked"]!["id"])
    assert.deepStrictEqual(
      revoked.map(({ action }) => action),
      ["share_link.created", "share_link.revoked"]
    )
    assert.isTrue(all.some(({ action }) => action === "signing_key.added"))
    const { body } = await admin().call("/v1/verify")
    assert.strictEqual(body.valid, true)
  })
})

/** One execution with one span and one event, ended. */
const runAgent = async (tenant: Parameters<typeof client>[0], id: string): Promise<void> => {
  const api = client(tenant)
  const call = async (path: string, body: object, method = "POST") => {
    const answer = await api.call(`/api/v1${path}`, { method, body })
    assert.include([200, 201], answer.status, answer.text)
  }
  await call("/executions", { id, agent_id: "agent", metadata: { goal: "evidence" } })
  await call(`/executions/${id}/spans`, { id: `${id}-span`, span_type: "LLM_CALL", name: "ask" })
  await call(`/spans/${id}-span/events`, { event_type: "llm.request", payload: { prompt: "hi" } })
  await call(`/spans/${id}-span/end`, { metadata: { tokens: 7 } }, "PUT")
  await call(`/executions/${id}/end`, {}, "PUT")
}

/** Kept by the auditor from an earlier visit. */
let kept: string
let keys: string
let packPath: string

describe("an evidence pack", () => {
  let first: Download

  it("verifies for the program, for Node, for Python and for sha256sum", async () => {
    await sendEvents("packed", 1, 30)
    kept = file("kept.txt", await note("packed"))
    keys = await keysFile("alk-keys.json")
    await sendEvents("packed", 31, 25)
    await runAgent("packed", "packed-run")
    first = await download(PACK, client("packed").key)
    assert.strictEqual(first.status, 200)
    packPath = file("pack.zip", first.bytes)
    const folder = new PackEditor(first.bytes).unpack(join(files, "unpacked"))
    const pinned = ["--public-key", keys, "--checkpoint", kept]
    const [plain, json, node, python, sums] = await Promise.all([
      alkVerify(packPath),
      alkVerify(packPath, "--json", ...pinned),
      run(process.execPath, ["verify.mjs", ...pinned], folder),
      run("python3", ["verify.py", ...pinned], folder),
      run("sha256sum", ["--check", "--strict", "--quiet", "sha256sums.txt"], folder)
    ])
    for (const { code, output } of [plain, json, node, python, sums]) {
      assert.strictEqual(code, 0, output)
    }
    assert.match(plain.output, /^CONSISTENT, ORIGIN NOT CHECKED/)
    const report = JSON.parse(json.output) as Json
    const wanted = { verdict: "authentic", tenant_id: "packed", events: 55, problems: [] }
    assert.deepInclude(report, wanted)
    const facts = new PackEditor(first.bytes).lines("facts.ndjson").length
    assert.isAbove(facts, 4)
    assert.deepInclude(report, { facts, trace_links: facts })
    const open = (report["not_established"] as ReadonlyArray<string>).join()
    assert.notInclude(open, "trace-links.ndjson")
    assert.isAbove((plain.output.match(/^Not established/gm) ?? []).length, 0)
  })

  it("has its PDF and its verification speak of the same bounds and the same head", async () => {
    const pack = new PackEditor(first.bytes)
    const report = JSON.parse(pack.text("verification.json")) as Json
    assert.deepInclude(report, { valid: true, status: "valid", assurance: "signed" })
    const schema = JSON.parse(pack.text("schema/verification.schema.json")) as object
    const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
    assert.isTrue(fits(report), JSON.stringify(fits.errors))
    assert.deepInclude(report["traces"], { valid: true, scheme: "alk-trace-v1" })
    assert.deepInclude(report["bounds"], {
      from: "1970-01-01T00:00:00.000000Z",
      to: "2261-12-31T23:59:59.999999Z"
    })
    const { body } = await client("packed").call("/v1/chain")
    assert.strictEqual(report["head"].hash, body.head.hash)
    const text = await textOf(pack.files.get("evidence.pdf")!)
    assert.include(unspaced(text), body.head.hash)
    assert.include(text, "Intact")
    const alone = await download(PDF, client("packed").key)
    assert.strictEqual(alone.headers.get("content-type"), "application/pdf")
    assert.include(unspaced(await textOf(alone.bytes)), body.head.hash)
  })

  it("is the same when it is made again, but for the time", async () => {
    const etag = first.headers.get("etag")!
    const key = client("packed").key
    const unchanged = await download(PACK, key, { "if-none-match": etag })
    assert.deepStrictEqual([unchanged.status, unchanged.bytes.length], [304, 0])
    const second = await download(PACK, key)
    assert.strictEqual(second.headers.get("etag"), etag)
    const packs = [first, second].map(({ bytes }) => new PackEditor(bytes))
    const [before, after] = packs.map((pack) => [...pack.files.keys()])
    assert.deepStrictEqual(after, before)
    const times = packs.map((pack) => JSON.parse(pack.text("manifest.json")).generated_at as string)
    const timed = ["README.txt", "evidence.pdf", "verification.json"]
    const sums = ["manifest.json", "manifest.sig", "sha256sums.txt"]
    for (const name of before!) {
      if ([...timed, ...sums].includes(name)) continue
      assert.isTrue(packs[0]!.files.get(name)!.equals(packs[1]!.files.get(name)!), name)
    }
    for (const name of ["README.txt", "verification.json"]) {
      const [left, right] = packs.map((pack, at) => pack.text(name).replaceAll(times[at]!, "then"))
      assert.strictEqual(right, left, name)
    }
    const pages = await Promise.all(
      packs.map(async (pack, at) => {
        const seconds = times[at]!.slice(0, 19).replace("T", " ")
        const text = await textOf(pack.files.get("evidence.pdf")!)
        // The head may have been recorded in the same second; the id follows from the time.
        return ["Generated ", "generated "].reduce(
          (left, word) => left.replaceAll(`${word}${seconds}`, word),
          text.replaceAll(/\b([Rr]eport) [0-9a-f]{32}\b/g, "$1")
        )
      })
    )
    assert.isTrue(pages[1] === pages[0], "the text of the two PDFs differs")
    // What was appended since is in the next one.
    await sendEvents("packed", 56, 1)
    const third = await download(`${PACK}?pdf=false`, key, { "if-none-match": etag })
    assert.strictEqual(third.status, 200)
  })

  it("says tampered for one changed byte, and unreadable for what is no pack", async () => {
    const pack = new PackEditor(first.bytes)
    pack.edit("events.ndjson", (lines) =>
      lines.map((line, at) => (at === 16 ? line.replace("success", "failure") : line))
    )
    const folder = pack.unpack(join(files, "changed"))
    const changed = file("changed.zip", pack.zip())
    const noPack = file("no-pack.zip", "PK, but no pack")
    const other = file("other.txt", readFileSync(kept, "utf8").replace(/^(.*\n)\d+/, "$131"))
    const [own, node, python, sums, unreadable, forged] = await Promise.all([
      alkVerify(changed, "--json"),
      run(process.execPath, ["verify.mjs"], folder),
      run("python3", ["verify.py"], folder),
      run("sha256sum", ["--check", "--strict", "--quiet", "sha256sums.txt"], folder),
      alkVerify(noPack),
      alkVerify(packPath, "--public-key", keys, "--checkpoint", other)
    ])
    assert.deepStrictEqual([own.code, node.code, python.code], [1, 1, 1])
    assert.notStrictEqual(sums.code, 0)
    const report = JSON.parse(own.output) as Json
    assert.isTrue(
      report["problems"].some(({ sequence_number }: Json) => sequence_number === 17),
      own.output
    )
    assert.deepStrictEqual([unreadable.code, forged.code], [2, 2])
    assert.include(forged.output, "a signature that does not verify")
  })
})

describe("a row that was changed in the database", () => {
  it("is named by the API, on the cover of the PDF and by whoever checks the pack", async () => {
    const api = client("tampered")
    await sendEvents("tampered", 1, 12)
    assert.strictEqual((await api.call("/v1/verify")).body.valid, true)
    const intruder = createClient({ url: running.store })
    await intruder.command({
      query:
        "ALTER TABLE alk.events UPDATE outcome = 'failure'"
        + " WHERE tenant_id = 'tampered' AND sequence_number = 8",
      clickhouse_settings: { mutations_sync: "1" }
    })
    await intruder.close()
    const { body } = await api.call("/v1/verify")
    assert.deepInclude(body, { valid: false, status: "broken" })
    assert.deepInclude(body.breaks[0], { sequence_number: 8, reason: "content_mismatch" })
    const { bytes, status } = await download(PACK, api.key)
    assert.strictEqual(status, 200)
    const pack = new PackEditor(bytes)
    const { pages } = await readPdf(pack.files.get("evidence.pdf")!, { pagesLookedInto: 0 })
    assert.include(pages[0], "Integrity failure")
    assert.match(pages[0]!, /Sequence 8: content_mismatch/)
    assert.strictEqual(JSON.parse(pack.text("verification.json")).status, "broken")
    const path = file("tampered.zip", bytes)
    const { code, output } = await alkVerify(path, "--json")
    assert.strictEqual(code, 1)
    const { problems } = JSON.parse(output) as Json
    assert.isTrue(
      problems.some(({ sequence_number }: Json) => sequence_number === 8),
      output
    )
  })
})

describe("a forged row with the id of a genuine event", () => {
  it("is not vouched for: what is checked is the row that is shown", async () => {
    const api = client("tampered")
    await sendEvents("tampered", 101, 4)
    const { body: shown } = await api.call("/v1/events/tampered-104")
    assert.strictEqual((await api.call("/v1/verify/events/tampered-104")).body.valid, true)
    const { sequence_number: place } = shown
    const intruder = createClient({ url: running.store })
    // An edited copy in the place of an earlier event, and one below the first.
    const copy = (sequence: number) => ({
      query:
        "INSERT INTO alk.events SELECT *"
        + ` REPLACE (${sequence} AS sequence_number, 'failure' AS outcome)`
        + ` FROM (SELECT * FROM alk.events WHERE tenant_id = 'tampered'`
        + ` AND sequence_number = ${place})`
    })
    await intruder.command(copy(0))
    assert.deepStrictEqual((await api.call("/v1/events/tampered-104")).body, shown)
    assert.strictEqual((await api.call("/v1/verify/events/tampered-104")).body.valid, true)
    const whole = (await api.call("/v1/verify")).body
    assert.deepInclude(whole.breaks[0], { sequence_number: 0, reason: "duplicate_sequence" })
    await intruder.command(copy(place - 1))
    await intruder.close()
    const forged = (await api.call("/v1/events/tampered-104")).body
    assert.strictEqual(forged.outcome, "failure")
    const { body: check } = await api.call("/v1/verify/events/tampered-104")
    assert.deepInclude(check, { valid: false, status: "broken" })
    assert.isFalse(check.content.valid)
  })
})

describe("the chain of trace facts", () => {
  it("is served as that of events: head, links, checkpoints and proofs", async () => {
    const api = client("packed")
    const started = await api.call("/api/v1/executions", {
      body: { id: "chained", agent_id: "agent" },
      headers: { "x-service-sync": "true" }
    })
    assert.strictEqual(started.status, 201, started.text)
    const { body: chain } = await api.call("/v1/chain?chain=traces")
    assert.deepInclude(chain, { scheme: "alk-trace-v1", tenant_id: "packed" })
    const { text } = await api.call("/v1/chain/links?chain=traces")
    const links = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Json)
    assert.strictEqual(links.length, chain.length)
    assert.deepInclude(chain.head, {
      sequence_number: links.length,
      hash: links.at(-1)!["hash"]
    })
    links.reduce((before, link) => {
      assert.strictEqual(link["prev_hash"], before)
      return link["hash"] as string
    }, chain.genesis_hash as string)
    const { body: latest } = await api.call("/v1/chain/checkpoints/latest?chain=traces")
    assert.deepInclude(latest, { chain: "traces", tree_size: links.length })
    assert.strictEqual(latest.note.split("\n")[0], "alk/packed/traces")
    const hashes = links.map(({ hash }) => hash as string)
    const { inclusion, roots } = askIndependentTree({
      hashes,
      sizes: [hashes.length],
      inclusion: [[0, hashes.length]],
      consistency: []
    })
    assert.strictEqual(latest.root_hash, roots[0])
    const size = latest.tree_size
    const proof = await api.call(
      `/v1/chain/proofs/inclusion?chain=traces&sequence_number=1&tree_size=${size}`
    )
    assert.deepStrictEqual([proof.body.event_hash, proof.body.proof], [hashes[0], inclusion[0]])
    const kept = await api.call("/v1/verify", { body: { checkpoint: latest.note } })
    assert.deepInclude(kept.body, {
      valid: true,
      scheme: "alk-trace-v1",
      assurance: "signed",
      origin: "checked"
    })
    const { body: report } = await api.call("/v1/verify")
    assert.deepInclude(report.traces, { valid: true, events_checked: links.length })
    assert.notProperty(report, "origin")
  })
})

describe("events that try to make the printer fetch something", () => {
  let listener: Server
  let asked = 0

  beforeAll(async () => {
    listener = createServer((_, response) => {
      asked += 1
      response.end("x")
    })
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
  })
  afterAll(() => listener.close())

  it("are printed as they were sent, and nothing is asked for", async () => {
    const { port } = listener.address() as AddressInfo
    const target = `http://127.0.0.1:${port}`
    const hostile = [
      `<img src="${target}/img">`,
      `<iframe src="file:///etc/passwd"></iframe>`,
      `<script>fetch("${target}/script")</script>`,
      `<style>@import url(${target}/css);</style>`,
      `"><link rel="stylesheet" href="${target}/link">`,
      `<svg><image href="${target}/svg"/></svg>`,
      `<meta http-equiv="refresh" content="0;url=${target}/meta">`,
      `<object data="file:///etc/hostname"></object>`
    ]
    const name = `<img src=${target}/tenant>`
    const made = await admin().call("/v1/admin/tenants", { body: { id: "hostile", name } })
    assert.strictEqual(made.status, 201, made.text)
    const created = await admin().call("/v1/admin/tenants/hostile/keys", {
      body: { scopes: ["read", "write"] }
    })
    const api = new Client(running.url, created.body.key)
    const events = hostile.map((text, n) => ({
      id: `${text} ${n}`,
      timestamp: `2026-11-21T10:00:0${n}Z`,
      actor: { id: text, type: "human", email: text },
      action: "page.opened",
      resource: { id: text, type: text, name: text },
      outcome: n % 2 === 0 ? "success" : "failure",
      metadata: { [text]: text, nested: [text] }
    }))
    const sent = await api.batch(events, SYNC)
    assert.strictEqual(sent.body?.accepted, hostile.length, sent.text)
    const { body: link } = await api.call("/v1/share/links", { body: { filters: { q: "<" } } })
    const documents = [await download(PDF, api.key), await download(SHARED, link.token)]
    for (const { bytes, status } of documents) {
      assert.strictEqual(status, 200)
      const read = await readPdf(bytes, { pagesLookedInto: 0 })
      const text = unspaced(read.pages.join(""))
      for (const shown of [...hostile, name]) assert.include(text, unspaced(shown))
      assert.notInclude(text, "root:x:0:0")
      assert.deepStrictEqual(read.outsideLinks, [])
    }
    assert.strictEqual(asked, 0)
    // It would have counted.
    await (await fetch(target)).text()
    assert.strictEqual(asked, 1)
  })
})

/** A text as a C2SP signed note of the service, by a key in PEM. */
const signedNote = (pem: string, keyId: string, text: string): string => {
  const signature = sign(null, Buffer.from(text), createPrivateKey(pem))
  const base64 = Buffer.concat([Buffer.from(keyId, "hex"), signature]).toString("base64")
  return `${text}\n\u2014 alk ${base64}\n`
}

describe("a rotated key", () => {
  const vkeys = async (): Promise<ReadonlyArray<string>> =>
    (await new Client(running.url, "").call("/.well-known/alk-keys.json")).body.vkeys

  it("signs from then on, and the old one still vouches for what it has signed", async () => {
    const before = await vkeys()
    const oldNote = readFileSync(kept, "utf8")
    const rotate = () =>
      run("env", [
        ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
        process.execPath,
        "src/main.ts",
        "rotate-key"
      ])
    const refused = await rotate()
    assert.strictEqual(refused.code, 1)
    assert.include(refused.output, "in use")
    await running.stop()
    const stolen = readFileSync(join(data, "signing-key.pem"), "utf8")
    const [, stolenId = ""] = before.at(-1)!.split("+")
    const rotated = await rotate()
    assert.strictEqual(rotated.code, 0, rotated.output)
    running = await start(environment)
    const api = client("packed")
    const after = await vkeys()
    assert.strictEqual(after.length, before.length + 1)
    assert.includeMembers([...after], [...before])
    const held = await api.call("/v1/verify", { body: { checkpoint: oldNote } })
    assert.deepInclude(held.body, { valid: true, assurance: "signed" })
    const listed = await api.call("/v1/chain/checkpoints")
    assert.strictEqual(listed.status, 200, listed.text)
    await sendEvents("packed", 57, 3)
    const added = after.find((vkey) => !before.includes(vkey))!
    const [, addedId] = added.split("+")
    const { body } = await api.call("/v1/chain/checkpoints/latest")
    assert.strictEqual(body.key_id, addedId)
    // What the old key signs from now on is refused; the log says that it was the old one.
    const [origin, size, root] = String(body.note).split("\n")
    const forgery = signedNote(stolen, stolenId, `${origin}\n${size}\n${root}\n`)
    const forged = await api.call("/v1/verify", { body: { checkpoint: forgery } })
    assert.strictEqual(forged.body.valid, false, forged.text)
    assert.include(forged.text, `its key ${stolenId} was replaced by ${addedId}`)
    const document = await new Client(running.url, "").call("/.well-known/alk-keys.json")
    const [retired, endorsed] = (document.body.keys as ReadonlyArray<Json>).slice(-2)
    assert.deepInclude(retired, { kid: stolenId, trusted: "root" })
    assert.isString(retired!["retired_at"])
    assert.deepInclude(endorsed, { kid: addedId, trusted: "endorsed", endorsed_by: stolenId })
    await eventuallyAsync(
      "the previous key is deleted",
      () => readdirSync(data),
      (names) => !names.includes("signing-key.previous.pem")
    )
    const consistent = await api.call("/v1/chain/proofs/consistency?first=30")
    assert.strictEqual(consistent.status, 200, consistent.text)
    const both = await keysFile("both-keys.json")
    const path = file("rotated.zip", (await download(`${PACK}?pdf=false`, api.key)).bytes)
    const [older, newer, byTheOldKey] = await Promise.all([
      alkVerify(packPath, "--public-key", both, "--checkpoint", kept),
      alkVerify(path, "--public-key", both, "--checkpoint", kept),
      alkVerify(path, "--public-key", keys)
    ])
    assert.deepStrictEqual([older.code, newer.code], [0, 0], older.output + newer.output)
    // The key that was kept endorses the one that signs now.
    assert.strictEqual(byTheOldKey.code, 0, byTheOldKey.output)
    assert.match(byTheOldKey.output, /^AUTHENTIC/)
    assert.match(byTheOldKey.output, /endorsed by [0-9a-f]{8}; signs manifest\.json/)
    const acts = await systemActs()
    assert.strictEqual(acts.filter(({ action }) => action === "signing_key.added").length, 2)
  })
})

/** The export routes: what they take, what they refuse, and what they put on record. */
import { execFile } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { Deferred, Effect, Stream } from "effect"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { boundedFilter } from "../../src/exports/report/Evidence.ts"
import { digestCommand, reportIdOf } from "../../src/exports/report/Report.ts"
import { API_VERSION, openApiDocument } from "../../src/http/Api.ts"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { alkVerify } from "../exports/support/Verifiers.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { items } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import type { Answer, TestApi } from "./support/TestApi.ts"

const run = promisify(execFile)

const PACK = "/v1/export/evidence-pack"
const PDF = "/v1/export/pdf"

const world = new World()
const state = new ExportWorld()
let api: TestApi
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "alk-export-"))
  api = await startExports(world, state, 1)
  for (const key of [WRITE_KEY, OTHER_KEY]) {
    const call = { key, json: { events: items(key === WRITE_KEY ? 5 : 2) } }
    const { status } = await api.call("/v1/events/batch?sync=true", call)
    assert.strictEqual(status, 200)
  }
})
afterAll(async () => {
  await api.stop()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  Object.assign(state, {
    printer: "prints",
    keyMissing: false,
    recordBreaks: false,
    gate: Effect.void
  })
  world.storeDown = false
  world.scanBreaks = false
  world.rebuilding = false
  state.acts.length = 0
  state.printed.length = 0
})

const get = (path: string, headers: Record<string, string> = {}, key = READ_KEY): Promise<Answer> =>
  api.call(path, { key, headers })

const sequencesOf = (pack: PackEditor): ReadonlyArray<number> =>
  pack
    .lines("events.ndjson")
    .map((line) => (JSON.parse(line) as { sequence_number: number }).sequence_number)

describe("GET /v1/export/evidence-pack", () => {
  it("answers a ZIP that verifies, with the PDF in it", async () => {
    const { bytes, headers, status } = await get(PACK)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["content-type"], "application/zip")
    const disposition = headers["content-disposition"]!
    assert.match(disposition, /^attachment; filename="alk-evidence-acme-\d{8}T\d{6}Z\.zip"$/)
    assert.isUndefined(headers["content-encoding"])
    const path = join(folder, "pack.zip")
    writeFileSync(path, bytes)
    const { report } = await alkVerify([path, "--json"])
    assert.deepStrictEqual(report.problems, [])
    assert.strictEqual(report.verdict, "consistent")
    const pack = new PackEditor(bytes)
    assert.strictEqual(pack.text("evidence.pdf"), "%PDF-1.7 acme 5")
    assert.deepStrictEqual(sequencesOf(pack), [1, 2, 3, 4, 5])
  })

  it("gives the PDF and verification.json identical bounds, by default all history", async () => {
    const { bytes } = await get(PACK)
    const report = JSON.parse(new PackEditor(bytes).text("verification.json")) as object
    assert.deepStrictEqual({ ...state.printed[0]!.verification }, report as never)
    assert.deepInclude(report, {
      bounds: {
        from: "1970-01-01T00:00:00.000000Z",
        to: "2261-12-31T23:59:59.999999Z",
        from_sequence: null,
        to_sequence: null
      }
    })
  })

  it("goes out without a PDF where it is asked to, printer or not", async () => {
    state.printer = "missing"
    const { bytes, status } = await get(`${PACK}?pdf=false`)
    assert.strictEqual(status, 200)
    assert.isFalse(new PackEditor(bytes).files.has("evidence.pdf"))
    assert.deepStrictEqual(state.printed, [])
  })

  it("takes the filters of the list", async () => {
    const { bytes } = await get(`${PACK}?pdf=false&action=document.*&from_sequence=2&metadata.n=3`)
    const pack = new PackEditor(bytes)
    assert.deepStrictEqual(sequencesOf(pack), [4])
    const { filter } = JSON.parse(pack.text("manifest.json")) as { filter: object }
    assert.deepStrictEqual(filter, { action: "document.*", "metadata.n": "3" })
  })

  it("holds the events of the key's tenant only", async () => {
    const { bytes } = await get(PACK, {}, OTHER_KEY)
    const pack = new PackEditor(bytes)
    assert.strictEqual(pack.lines("events.ndjson").length, 2)
    for (const name of ["events.ndjson", "links.ndjson", "manifest.json", "README.txt"]) {
      assert.notInclude(pack.text(name), "acme")
    }
  })

  it("is on record, with what it covered", async () => {
    await get(`${PACK}?pdf=false&outcome=success`)
    assert.strictEqual(state.acts.length, 1)
    const [{ action, actor, metadata, resource }] = state.acts as [(typeof state.acts)[0]]
    assert.strictEqual(action, "export.created")
    assert.strictEqual(actor, "key_read")
    assert.deepStrictEqual(resource, { type: "evidence_pack", id: "acme" })
    assert.deepInclude(metadata, { tenant_id: "acme", filter: { outcome: "success" } })
  })

  it("is not given away when it can't be put on record", async () => {
    state.recordBreaks = true
    const { body, status } = await get(`${PACK}?pdf=false`)
    assert.strictEqual(status, 503)
    assert.strictEqual(body.error.code, "unavailable")
  })

  it("answers 503 before the first byte where this process can't sign", async () => {
    state.keyMissing = true
    const { body, status } = await get(`${PACK}?pdf=false`)
    assert.strictEqual(status, 503)
    assert.strictEqual(body.error.code, "unavailable")
    assert.deepStrictEqual(state.acts, [])
  })

  it("breaks off when the store fails on the way: half a pack is no pack", async () => {
    world.scanBreaks = true
    const failure = await get(`${PACK}?pdf=false`).then(
      () => undefined,
      (error: Error) => error
    )
    assert.isDefined(failure)
    const { annotations, level } = api.logs.findLast(
      ({ message }) => message === "an answer was broken off"
    )!
    assert.strictEqual(level, "Error")
    assert.include(annotations, { operation: "exportEvidencePack", tenantId: "acme" })
    assert.isAbove(annotations["bytes"] as number, 0)
    assert.match(String(annotations["reason"]), /StoreUnavailable/)
    world.scanBreaks = false
    assert.strictEqual((await get(`${PACK}?pdf=false`)).status, 200)
  })
})

interface OnItsWay {
  readonly api: TestApi
  readonly world: World
  readonly state: ExportWorld
  /** Milliseconds after which a client that takes nothing is cut off. */
  readonly stalledMs: number
}

/**
 * Runs a test on a server that cuts off soon who stops reading. The system's own timers measure that,
 * so a process that is held up itself may look like a client that stops: where a test fails and this
 * process was held up for so long, nothing is shown, and it runs again with more time.
 */
const onItsWay = async (test: (way: OnItsWay) => Promise<void>): Promise<void> => {
  for (const stalledMs of [400, 3_200, 25_600]) {
    const own = { world: new World(), state: new ExportWorld(), stalledMs }
    const started = await startExports(own.world, own.state, 1, stalledMs)
    const heldUp = monitorEventLoopDelay({ resolution: 10 })
    try {
      const call = { key: WRITE_KEY, json: { events: items(6) } }
      assert.strictEqual((await started.call("/v1/events/batch?sync=true", call)).status, 200)
      heldUp.enable()
      await test({ ...own, api: started })
      return
    } catch (error) {
      heldUp.disable()
      const heldUpMs = heldUp.max / 1e6
      if (heldUpMs < stalledMs / 2) throw error
      console.log(`again with more time: this process was held up for ${heldUpMs} ms`, error)
    } finally {
      await started.stop()
    }
  }
  assert.fail("this process was held up in every attempt")
}

describe("a pack on its way", () => {
  it("waits for a store that is slower than a client may be", () =>
    onItsWay(async ({ api: own, stalledMs, world: ownWorld }) => {
      ownWorld.scanMs = 2 * stalledMs
      const { bytes, status } = await own.call(`${PACK}?pdf=false`, { key: READ_KEY })
      assert.strictEqual(status, 200)
      const path = join(folder, "slow.zip")
      writeFileSync(path, bytes)
      const { report } = await alkVerify([path, "--json"])
      assert.deepStrictEqual(report.problems, [])
      assert.deepStrictEqual(own.logs, [])
    }))

  it("is cut off when its client stops reading, with a line in the log", () =>
    onItsWay(async ({ api: own, state: ownState }) => {
      const isEnded = Deferred.makeUnsafe<void>()
      ownState.spans = Stream.fromEffectRepeat(
        Effect.sync(() => [randomBytes(100_000).toString("base64")])
      ).pipe(Stream.ensuring(Deferred.succeed(isEnded, undefined)))
      const answer = await own.open(`${PACK}?pdf=false`, { key: READ_KEY })
      assert.strictEqual(answer.statusCode, 200)
      answer.pause()
      await Effect.runPromise(Deferred.await(isEnded))
      const isBroken = new Promise<boolean>((resolve) => {
        answer.on("end", () => resolve(false))
        answer.on("error", () => resolve(true))
      })
      answer.resume()
      assert.isTrue(await isBroken)
      const { annotations } = own.logs.at(-1)!
      assert.include(annotations, { tenantId: "acme", reason: "the client stopped reading" })
      // Its slot is free again.
      ownState.spans = Stream.empty
      const next = await own.call(`${PACK}?pdf=false`, { key: READ_KEY })
      assert.strictEqual(next.status, 200)
    }))

  it("goes on for as long as a slow client reads", () =>
    onItsWay(async ({ api: own, stalledMs, state: ownState }) => {
      const lines = Array.from({ length: 120 }, () => [randomBytes(100_000).toString("base64")])
      ownState.spans = Stream.fromIterable(lines).pipe(Stream.rechunk(1))
      const answer = await own.open(`${PACK}?pdf=false`, { key: READ_KEY })
      const chunks: Array<Buffer> = []
      let pausedMs = 0
      for await (const chunk of answer) {
        chunks.push(chunk as Buffer)
        if (chunks.length % 16 === 0) {
          await sleep(stalledMs / 8)
          pausedMs += stalledMs / 8
        }
      }
      assert.isAbove(pausedMs, stalledMs, "as a whole it pauses for longer than it may at once")
      const pack = new PackEditor(Buffer.concat(chunks))
      assert.deepStrictEqual(pack.lines("spans.ndjson"), lines.flat())
    }))
})

describe("GET /v1/export/pdf", () => {
  it("answers the document", async () => {
    const { headers, status, text } = await get(PDF)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["content-type"], "application/pdf")
    assert.match(headers["content-disposition"]!, /filename="alk-audit-report-acme-.*\.pdf"$/)
    assert.strictEqual(text, "%PDF-1.7 acme 5")
    assert.deepStrictEqual(state.acts[0]!.resource, { type: "audit_report", id: "acme" })
  })

  it("has another ETag when the operator's settings of reports change", async () => {
    const tags: Array<string> = []
    for (const settings of ["as they come", "another mapping"]) {
      state.reportSettings = settings
      for (const path of [PDF, PACK, `${PACK}?pdf=false`])
        tags.push((await get(path)).headers["etag"]!)
    }
    state.reportSettings = "as they come"
    assert.notStrictEqual(tags[3], tags[0])
    assert.notStrictEqual(tags[4], tags[1])
    assert.strictEqual(tags[5], tags[2])
    const { status } = await get(PDF, { "if-none-match": tags[3]! })
    assert.strictEqual(status, 200)
  })

  it("is told who asked for it and how, and is on record under its id", async () => {
    await get(`${PDF}?outcome=success`)
    const [input] = state.printed as [(typeof state.printed)[0]]
    assert.deepStrictEqual(input.request, {
      askedBy: { kind: "API key", id: "key_read" },
      line: `GET ${PDF}?outcome=success`,
      serviceUrl: api.url,
      apiVersion: API_VERSION
    })
    const [act] = state.acts as [(typeof state.acts)[0]]
    assert.deepInclude(act.metadata, { report_id: reportIdOf(input) })
  })

  it("is told of the executions up to the head of their chain, or of none", async () => {
    await get(PDF)
    assert.isUndefined(state.printed[0]!.traces)
    state.traceHead = { sequence_number: 7, hash: "f".repeat(64) }
    await get(`${PDF}?from=2020-01-01T00:00:00Z`)
    state.traceHead = undefined
    assert.deepStrictEqual(state.printed[1]!.traces, {
      tenantId: "acme",
      from: "2020-01-01T00:00:00.000000Z",
      to: "2261-12-31T23:59:59.999999Z",
      last: 7
    })
  })

  it("prints a command that hashes the very events of the pack of the same bounds", async () => {
    const queries = [
      "",
      "from_sequence=2&action=document.*",
      "metadata.n=3&to_sequence=4",
      "q=it's"
    ]
    for (const query of queries) {
      state.printed.length = 0
      const pack = new PackEditor((await get(`${PACK}?${query}`)).bytes)
      const { filter, request, verification } = state.printed[0]!
      const command = digestCommand(request, boundedFilter(filter, verification))
      const { stdout } = await run("sh", ["-c", command], {
        env: { PATH: process.env["PATH"], ALK_API_KEY: READ_KEY }
      })
      const expected = createHash("sha256").update(pack.text("events.ndjson")).digest("hex")
      assert.strictEqual(stdout.split(" ")[0], expected, query)
    }
  })

  for (const path of [PDF, PACK]) {
    it(`answers 503 pdf_unavailable without a Chromium: ${path}`, async () => {
      state.printer = "missing"
      const { body, headers, status } = await get(path)
      assert.strictEqual(status, 503)
      assert.strictEqual(body.error.code, "pdf_unavailable")
      assert.include(body.error.message, "install a Chromium")
      assert.isDefined(headers["retry-after"])
      assert.deepStrictEqual(state.acts, [])
    })
  }

  it("says when to come back while the printer is busy", async () => {
    state.printer = "busy"
    const { headers, status } = await get(PDF)
    assert.strictEqual(status, 503)
    assert.strictEqual(headers["retry-after"], "5")
  })
})

describe("both", () => {
  for (const path of [PACK, PDF]) {
    it(`refuse what they don't know or can't read: ${path}`, async () => {
      const refused = {
        "nope=1": "nope",
        "page=1": "page",
        "order=asc": "order",
        "from=yesterday": "from",
        "from=2027-01-01T00:00:00Z&to=2026-01-01T00:00:00Z": "from",
        "outcome=maybe": "outcome",
        "action=": "action",
        "q=a&q=b": "q",
        ...(path === PACK ? { "pdf=no": "pdf" } : { "pdf=false": "pdf" })
      }
      for (const [query, field] of Object.entries(refused)) {
        const { body, status } = await get(`${path}?${query}`)
        assert.strictEqual(status, 400, query)
        assert.strictEqual(body.error.field, field)
      }
      assert.deepStrictEqual(state.acts, [])
    })

    it(`need a key with the scope read: ${path}`, async () => {
      assert.strictEqual((await api.call(path)).status, 401)
      assert.strictEqual((await get(path, {}, WRITE_KEY)).status, 403)
    })

    it(`answer 304 while the export would be the same: ${path}`, async () => {
      const first = await get(path)
      const etag = first.headers.etag!
      assert.match(etag, /^W\/"[0-9a-f]{32}"$/)
      state.acts.length = 0
      for (const known of [etag, etag.slice(2), `"other", ${etag}`, "*"]) {
        const { bytes, headers, status } = await get(path, { "if-none-match": known })
        assert.strictEqual(status, 304, known)
        assert.strictEqual(bytes.length, 0)
        assert.strictEqual(headers.etag, etag)
      }
      assert.deepStrictEqual(state.acts, [])
      assert.strictEqual((await get(path, { "if-none-match": '"other"' })).status, 200)
      const narrower = await get(`${path}?outcome=success`, { "if-none-match": etag })
      assert.strictEqual(narrower.status, 200)
      assert.notStrictEqual(narrower.headers.etag, etag)
      const other = await get(path, { "if-none-match": etag }, OTHER_KEY)
      assert.strictEqual(other.status, 200)
    })

    it(`answer 503 while the store is away or its view is rebuilt: ${path}`, async () => {
      world.rebuilding = true
      assert.strictEqual((await get(path)).status, 503)
    })

    it(`make nothing for HEAD: ${path}`, async () => {
      const { bytes, headers, status } = await api.call(path, { key: READ_KEY, method: "HEAD" })
      assert.strictEqual(status, 200)
      assert.strictEqual(bytes.length, 0)
      assert.isDefined(headers.etag)
      assert.isDefined(headers["content-disposition"])
      assert.deepStrictEqual([state.acts.length, state.printed.length], [0, 0])
    })
  }

  it("change their ETag with the traces, the keys and the checkpoint", async () => {
    const path = `${PACK}?pdf=false`
    const changes: ReadonlyArray<Partial<ExportWorld>> = [
      { traceHead: { sequence_number: 1, hash: "a".repeat(64) } },
      { traceHead: { sequence_number: 2, hash: "b".repeat(64) } },
      { otherKeys: ["alk+00000000+other"] },
      { sealed: { handOvers: [], signer: "alk+00000000+other" } },
      { sealed: { handOvers: [{ vkey: "alk+00000000+other", note: "a tree handed over" }] } },
      { checkpoint: "the newest checkpoint" },
      { checkpoint: "a newer one" }
    ]
    let etag = (await get(path)).headers.etag!
    for (const change of changes) {
      Object.assign(state, change)
      const answer = await get(path, { "if-none-match": etag })
      assert.strictEqual(answer.status, 200, JSON.stringify(change))
      assert.notStrictEqual(answer.headers.etag, etag)
      etag = answer.headers.etag!
      assert.strictEqual((await get(path, { "if-none-match": etag })).status, 304)
    }
    Object.assign(state, {
      traceHead: undefined,
      otherKeys: [],
      sealed: { handOvers: [] },
      checkpoint: undefined
    })
  })

  it("change their ETag with the chain, and with what is in them", async () => {
    const tags = [
      (await get(PACK)).headers.etag,
      (await get(`${PACK}?pdf=false`)).headers.etag,
      (await get(PDF)).headers.etag
    ]
    const call = { key: WRITE_KEY, json: { events: items(1) } }
    assert.strictEqual((await api.call("/v1/events/batch?sync=true", call)).status, 200)
    tags.push((await get(PACK)).headers.etag)
    assert.strictEqual(new Set(tags).size, 4)
  })

  it("are limited at once per tenant, and free again when one is done or given up", async () => {
    const gate = Deferred.makeUnsafe<void>()
    state.gate = Deferred.await(gate)
    const first = get(PDF)
    const second = async () => {
      const { body, headers, status } = await get(`${PACK}?pdf=false`)
      return { status, headers, code: body?.error.code }
    }
    const isRefused = ({ status }: { readonly status: number }) => status === 429
    const refused = await eventuallyAsync("the slot is taken", second, isRefused)
    assert.strictEqual(refused.code, "rate_limited")
    assert.strictEqual(refused.headers["ratelimit-limit"], "1")
    assert.isDefined(refused.headers["retry-after"])
    assert.strictEqual((await get(`${PACK}?pdf=false`, {}, OTHER_KEY)).status, 200)
    Deferred.doneUnsafe(gate, Effect.void)
    assert.strictEqual((await first).status, 200)
    const download = await api.open(`${PACK}?pdf=false`, { key: READ_KEY })
    download.destroy()
    const isDecided = (answer: { readonly status: number }) => !isRefused(answer)
    const next = await eventuallyAsync("the slot is free", second, isDecided)
    assert.strictEqual(next.status, 200)
  })

  it("document the parameters that they read", () => {
    const { parameters = [] } = openApiDocument().paths["/v1/export/evidence-pack"]!.get!
    assert.includeMembers(
      parameters.map((parameter) => "name" in parameter && parameter.name),
      ["from", "to", "action", "metadata", "q", "where", "pdf"]
    )
  })
})

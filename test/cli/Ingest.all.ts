/** `alk ingest` that is killed while it sends, and called again: every line once, refused ones listed. */
import { rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { createClient } from "../../src/client/index.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import {
  beginIngest,
  checkRejects,
  checkStored,
  ended,
  Gate,
  type IngestFile,
  ingestThroughKills,
  lineOf,
  offsetOf,
  writeLines
} from "./KilledIngest.ts"

const KILLS = 5

const folder = freshFolder("ingest")
const file: IngestFile = { path: join(folder, "events.ndjson"), lines: 20_000, refusedEvery: 1_000 }
const key = testKey("ingest")
const otherKey = testKey("other")
let running: Started
let gate: Gate

const begin = (withKey = key) => beginIngest(file, gate.url, withKey, "--batch", "100")

beforeAll(async () => {
  writeLines(file)
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_BOOTSTRAP_KEYS: `${key}=ingest:read+write,${otherKey}=other:read+write`
  })
  gate = await Gate.start(file, running.url)
})

afterAll(async () => {
  gate?.stop()
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("alk ingest", () => {
  it("stores every line once, and lists every refused one once, through kill -9", async () => {
    await ingestThroughKills(file, KILLS, gate, begin)
    checkRejects(file)
    await checkStored(file, running.url, key)
  })

  it("goes on with lines that were appended, and sends nothing a second time", async () => {
    writeFileSync(file.path, `${lineOf(file, file.lines + 1)}\n`, { flag: "a" })
    await ended(begin())
    await ended(begin())
    const client = createClient({ url: running.url, key })
    const { total } = await eventuallyAsync(
      "the line that was appended is listed",
      () => {
        const query = { resource_id: `doc-${file.lines + 1}` }
        return client.request("GET /v1/events", { query })
      },
      (page) => page.total > 0
    )
    assert.strictEqual(total, 1)
    const { size } = statSync(file.path)
    assert.strictEqual(offsetOf(file), size)
  })

  it("does not take what one tenant has for what another one has", async () => {
    assert.strictEqual(await ended(begin(otherKey)), 1)
    const client = createClient({ url: running.url, key: otherKey })
    const { total } = await client.request("GET /v1/events")
    assert.strictEqual(total, 0)
  })

  it("does not take another file for the one that was begun", async () => {
    writeFileSync(file.path, `${lineOf(file, 5)}\n`)
    assert.strictEqual(await ended(begin()), 1)
  })
})

/** A million lines through `alk ingest` that is killed five times: every line once, refused ones listed. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, it } from "vitest"
import {
  beginIngest,
  checkRejects,
  checkStored,
  Gate,
  type IngestFile,
  ingestThroughKills,
  writeLines
} from "../cli/KilledIngest.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const KILLS = 5

const folder = freshFolder("ingest-large")
const file: IngestFile = {
  path: join(folder, "events.ndjson"),
  lines: 1_000_000,
  refusedEvery: 2_500
}
const key = testKey("ingest")
let running: Started
let gate: Gate

beforeAll(async () => {
  writeLines(file)
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_BOOTSTRAP_KEYS: `${key}=ingest:read+write`
  })
  gate = await Gate.start(file, running.url)
})

afterAll(async () => {
  gate?.stop()
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("alk ingest of a million lines", () => {
  it("stores every line once, and lists every refused one once, through kill -9", async () => {
    const startedAt = performance.now()
    await ingestThroughKills(file, KILLS, gate, () => beginIngest(file, gate.url, key))
    const seconds = (performance.now() - startedAt) / 1_000
    process.stdout.write(
      `${file.lines} lines in ${seconds.toFixed(0)} s with ${KILLS} kills: `
        + `${Math.round(file.lines / seconds)} a second\n`
    )
    checkRejects(file)
    await checkStored(file, running.url, key)
  })
})

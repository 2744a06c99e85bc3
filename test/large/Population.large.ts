/** A large tenant: everything that holds for a thousand events holds for a million. */
import { rmSync } from "node:fs"
import { afterAll, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { assertPopulation, populate } from "../support/Population.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const EVENTS = Number(process.env["LARGE_EVENTS"] ?? 1_000_000)
const folder = freshFolder("large")
let running: Started

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: folder,
    LOG_LEVEL: "warn",
    ALK_BOOTSTRAP_KEYS: `${testKey("large")}=large:read+write`
  })
})
afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe(`${EVENTS} events of one tenant`, () => {
  it("are listed, counted, filtered, chained and verified like a few", async () => {
    const api = new Client(running.url, testKey("large"))
    await populate(api, EVENTS)
    await assertPopulation(api, "large", running.topics, "alk.events", EVENTS)
  })
})

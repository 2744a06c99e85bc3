/** `alk doctor` beside the program: what the service lacks on this machine, and what it has. */
import { rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { begin, type Ended, endCommands } from "./CommandRuns.ts"

const folder = freshFolder("doctor")
const key = testKey("doctor")
let running: Started

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_BOOTSTRAP_KEYS: `${key}=doctor:read+write`
  })
})

afterAll(async () => {
  endCommands()
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("alk doctor", () => {
  const doctor = (more: Readonly<Record<string, string>> = {}): Promise<Ended> => {
    const { HOME } = process.env
    return begin(["doctor"], {
      ...(HOME && { HOME }),
      XDG_CONFIG_HOME: folder,
      ALK_URL: running.url,
      ALK_API_KEY: key,
      PORT: new URL(running.url).port,
      ALK_DATA_DIR: join(folder, "other-data"),
      CHROMIUM_PATH: join(folder, "none"),
      ...more
    }).ended
  }

  it("finds the service that answers, and says what may be missed", async () => {
    const { end, errors, output } = await doctor()
    assert.strictEqual(end, 0, output + errors)
    assert.match(output, /^ok +port +\d+: a service answers there already$/m)
    assert.match(output, /^warning +Chromium .*set CHROMIUM_PATH$/m)
    assert.match(output, /^ok +clock .*\n(?:ok|warning) +key +tenant doctor: /m)
  })

  it("says what the first start would miss", async () => {
    const { output } = await doctor({
      ALK_CACHE_DIR: join(folder, "no-cache"),
      PATH: dirname(process.execPath)
    })
    assert.match(output, /^MISSING +Maven +mvn was not found/m)
  })

  it("says what does not answer, and ends as a failure", async () => {
    const nothing = { KAFKA_BROKERS: "127.0.0.1:1", ALK_SECRET: "s".repeat(40) }
    const { end, output } = await doctor(nothing)
    assert.strictEqual(end, 1)
    assert.match(output, /^MISSING +Kafka +127.0.0.1:1 .*KAFKA_BROKERS/m)
  })
})

/** The log of a large tenant, read whole by a client of C2SP tlog-tiles: with flat memory. */
import { rmSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { fsck, hasGo, installFsck } from "../support/Fsck.ts"
import { peakWhile, residentBytes } from "../support/Memory.ts"
import { populate } from "../support/Population.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { readLog } from "../support/TlogReader.ts"

const EVENTS = Number(process.env["LARGE_EVENTS"] ?? 1_000_000)
/** Bytes by which the program may grow while its log is read. */
const GROWTH_MAX = 256 * 1_048_576

const folder = freshFolder("large-tlog")
let running: Started
let api: Client

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: folder,
    LOG_LEVEL: "warn",
    ALK_BOOTSTRAP_KEYS: `${testKey("large")}=large:read+write`
  })
  api = new Client(running.url, testKey("large"))
  await populate(api, EVENTS)
}, 1_800_000)
afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Waits for the work, and says how long it took and what it cost. */
const measured = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  const before = residentBytes(running.pid)
  const startedAt = performance.now()
  const grown = (await peakWhile(running.pid, work())) - before
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
  console.log(`${name}: ${seconds} s; the program grew by ${grown} bytes from ${before}`)
  assert.isBelow(grown, GROWTH_MAX)
}

describe(`the log of ${EVENTS} events of one tenant`, () => {
  it.skipIf(!hasGo)("is in order for fsck (skipped where Go is not installed)", async () => {
    const program = await installFsck()
    const { body } = await new Client(running.url, "").call("/.well-known/alk-keys.json")
    await measured("fsck", async () => {
      const { output, size } = await fsck(program, {
        url: `${running.url}/v1/tlog/events/`,
        key: api.key,
        origin: "alk/large",
        vkey: body.vkeys[0]
      })
      assert.strictEqual(size, EVENTS, output)
    })
  })

  it("is read whole by a client made from the specification", async () => {
    await measured("one request after the other", async () => {
      const { size } = await readLog(async (path) => {
        const response = await fetch(`${running.url}/v1/tlog/events/${path}`, {
          headers: { authorization: `Bearer ${api.key}` }
        })
        assert.strictEqual(response.status, 200, path)
        return Buffer.from(await response.arrayBuffer())
      })
      assert.strictEqual(size, EVENTS)
    })
  })
})

/** Reads of large traces in a program as a user starts it: memory stays flat, nothing else waits. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { fillSpan, openSpan, readLines, readPages, watched } from "../support/TraceLoad.ts"

/** Enough that four readers who are each given everything at once need a gigabyte. */
const EVENTS = 1_500
const READERS = 4
const GROWTH_MAX = 200 * 1_048_576
/** As long as nobody waits for a store, however slow the machine is that runs the tests. */
const HEALTH_MS_MAX = 2_000

const folder = freshFolder("trace-reads")
let running: Started
let client: Client

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_BOOTSTRAP_KEYS: `${testKey("traces")}=traces:read+write`
  })
  client = new Client(running.url, testKey("traces"))
  await openSpan(client, "run")
  await fillSpan(client, "run-span", EVENTS)
  // What the first answer needs for itself, code and buffers, is not what is measured.
  await client.call("/api/v1/spans/run-span/events?page_size=10")
}, 300_000)
afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const everything = Array.from({ length: EVENTS }, (_, at) => at + 1)

describe(`a span with ${EVENTS} large events`, () => {
  for (const [name, read] of [
    ["pages", readPages],
    ["one stream", readLines]
  ] as const) {
    it(`is read by ${READERS} readers in ${name} while memory stays flat`, async () => {
      const { growth, healthMax, healthMedian, value } = await watched(running, () =>
        Promise.all(Array.from({ length: READERS }, () => read(client, "run-span")))
      )
      console.info(
        `${READERS} readers of ${EVENTS} events in ${name}: grew by`
          + ` ${(growth / 1_048_576).toFixed(0)} MiB, /healthz median ${healthMedian.toFixed(0)} ms,`
          + ` longest ${healthMax.toFixed(0)} ms`
      )
      for (const found of value) assert.deepStrictEqual(found, everything)
      assert.isBelow(growth, GROWTH_MAX)
      assert.isBelow(healthMax, HEALTH_MS_MAX)
      assert.notInclude(running.output(), "the projection starts over")
    }, 300_000)
  }
})

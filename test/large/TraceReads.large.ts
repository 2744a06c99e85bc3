/**
 * A tenant with a gigabyte of trace payloads in a program as a user starts it: reading it leaves
 * memory flat, health quick, the projection at work, and another tenant served as before.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import {
  fillSpan,
  LARGE_PAYLOAD,
  median,
  openSpan,
  readLines,
  readPages,
  watched
} from "../support/TraceLoad.ts"

/** Events of the span that is read, and of one beside it: together a gigabyte. */
const EVENTS = Number(process.env["LARGE_TRACE_EVENTS"] ?? 12_000)
const OTHERS = Number(process.env["LARGE_TRACE_OTHERS"] ?? 5_500)
const GROWTH_MAX = 200 * 1_048_576
/** Median time of GET /healthz while everything else runs, readers included, on two cores. */
const HEALTH_MEDIAN_MS_MAX = 500
/** How much longer the other tenant's requests may take in the median. */
const SLOWER_MAX = 15
const QUIET_SAMPLES = 40

const folder = freshFolder("large-traces")
let running: Started
let large: Client
let small: Client

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: join(folder, "data"),
    ALK_BOOTSTRAP_KEYS: [
      `${testKey("large")}=large:read+write`,
      `${testKey("small")}=small:read+write`
    ].join(",")
  })
  large = new Client(running.url, testKey("large"))
  small = new Client(running.url, testKey("small"))
  const startedAt = performance.now()
  await openSpan(large, "run")
  await openSpan(large, "beside")
  await openSpan(small, "own")
  await fillSpan(small, "own-span", 20, 500)
  await fillSpan(large, "run-span", EVENTS)
  await fillSpan(large, "beside-span", OTHERS)
  const gigabytes = ((EVENTS + OTHERS) * LARGE_PAYLOAD) / 1e9
  const seconds = (performance.now() - startedAt) / 1_000
  console.info(`${gigabytes.toFixed(2)} GB of payloads written in ${seconds.toFixed(0)} s`)
}, 1_800_000)
afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** What the other tenant does: a write that is answered when it can be read, and two reads. */
const rounds = async (isDone: (count: number) => boolean): Promise<ReadonlyArray<number>> => {
  const times: Array<number> = []
  while (!isDone(times.length)) {
    const startedAt = performance.now()
    const event = { event_type: "decision", payload: { n: times.length } }
    const written = await small.call("/api/v1/spans/own-span/events", { body: event })
    assert.strictEqual(written.status, 201, written.text)
    const read = await small.call("/api/v1/spans/own-span/events?page_size=10")
    assert.strictEqual(read.body.events.length, 10)
    assert.strictEqual((await small.call("/v1/events")).status, 200)
    times.push(performance.now() - startedAt)
  }
  return times
}

describe(`a tenant with ${EVENTS + OTHERS} large events`, () => {
  it("is read by four readers while memory stays flat and the other tenant goes on", async () => {
    await large.call("/api/v1/spans/run-span/events?page_size=10")
    const quiet = await rounds((count) => count === QUIET_SAMPLES)
    let isDone = false
    const startedAt = performance.now()
    const { growth, healthMax, healthMedian, value } = await watched(running, async () => {
      const others = rounds(() => isDone)
      const read = await Promise.all(
        [readPages, readPages, readLines, readLines].map((by) => by(large, "run-span"))
      ).finally(() => (isDone = true))
      return { read, others: await others }
    })
    const seconds = (performance.now() - startedAt) / 1_000
    const ratio = median(value.others) / median(quiet)
    console.info(
      `4 readers of ${EVENTS} events in ${seconds.toFixed(0)} s: the program grew by`
        + ` ${(growth / 1_048_576).toFixed(0)} MiB; /healthz median ${healthMedian.toFixed(0)} ms,`
        + ` longest ${healthMax.toFixed(0)} ms; the other tenant took ${ratio.toFixed(1)} times as`
        + ` long (${median(quiet).toFixed(0)} ms, then ${median(value.others).toFixed(0)} ms,`
        + ` ${value.others.length} rounds)`
    )
    const everything = Array.from({ length: EVENTS }, (_, at) => at + 1)
    for (const found of value.read) assert.deepStrictEqual(found, everything)
    assert.isBelow(growth, GROWTH_MAX)
    assert.isBelow(healthMedian, HEALTH_MEDIAN_MS_MAX)
    assert.isBelow(ratio, SLOWER_MAX)
    assert.notInclude(running.output(), "the projection starts over")
  })
})

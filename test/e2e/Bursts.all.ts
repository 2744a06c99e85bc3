/**
 * A burst of large events through broker, sequencer and live feed: a reader that reads gets all of
 * it on one connection, as events and as changes of an execution; one that doesn't is closed.
 */
import { once } from "node:events"
import { connect } from "node:net"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { event } from "../support/BlackBox.ts"
import { Client, readStream } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { type Started, start, testKey } from "../support/Program.ts"
import { sharedParts } from "../support/SharedParts.ts"

const BATCHES = 8
const BATCH_EVENTS = 1_000
const TOTAL = BATCHES * BATCH_EVENTS
/** Characters that make an event large: 32 MB in all, eight times what a reader may be late with. */
const TEXT = "x".repeat(4_000)
/** Milliseconds for all of it. */
const READ_MS = 500_000
/** Many times what it takes until a connection on which nothing moves is given up. */
const STALLED_MS = 300_000

const key = testKey("bursts")
let program: Started
let client: Client

beforeAll(async () => {
  program = await start({
    ALK_ROLES: "api,sequencer,projection",
    ...sharedParts("bursts"),
    ALK_PARTITIONS: "1",
    ALK_BOOTSTRAP_KEYS: `${key}=bursts:read+write`
  })
  client = new Client(program.url, key)
})

afterAll(() => program.stop())

const closedReaders = async (): Promise<number> => {
  const { text } = await client.call("/metrics")
  return [...text.matchAll(/^alk_live_readers_closed_total\{.*\} (\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0
  )
}

describe("a burst of 8 x 1,000 large events", () => {
  it("reaches a reader that reads whole, on one connection", async () => {
    const batch = Array.from({ length: BATCH_EVENTS }, (_, n) => ({
      ...event(n),
      metadata: { text: TEXT }
    }))
    const messages = await readStream(`${program.url}/v1/events/stream`, key, {
      opened: async () => {
        const answers = await Promise.all(
          Array.from({ length: BATCHES }, () => client.batch(batch))
        )
        for (const { status, text } of answers) assert.strictEqual(status, 202, text)
      },
      done: (seen) => seen.length >= TOTAL,
      timeoutMs: READ_MS
    })
    const ids = messages.map(({ id }) => Number(id))
    assert.deepStrictEqual(
      ids,
      Array.from({ length: TOTAL }, (_, n) => n + 1)
    )
    assert.strictEqual(await closedReaders(), 0)
  })

  it("closes a reader that does not read, with a metric and a line in the log", async () => {
    const { hostname, port } = new URL(program.url)
    const socket = connect({ host: hostname, port: Number(port) })
    await once(socket, "connect")
    socket.pause().on("error", () => {})
    socket.write(
      "GET /v1/events/stream?after_sequence=0 HTTP/1.1\r\nHost: a\r\n"
        + `Authorization: Bearer ${key}\r\n\r\n`
    )
    const closed = await eventuallyAsync(
      "a reader is closed",
      closedReaders,
      (count) => count > 0,
      STALLED_MS
    )
    assert.strictEqual(closed, 1)
    // Counted first, then said.
    const lines = await eventuallyAsync(
      "the log says so",
      () =>
        program
          .output()
          .split("\n")
          .filter((line) => line.includes("a live stream was closed")),
      ({ length }) => length > 0
    )
    assert.strictEqual(lines.length, 1)
    assert.include(lines[0]!, '"reason":"stalled"')
    assert.include(lines[0]!, '"tenant":"bursts"')
    await eventuallyAsync(
      "nobody is counted as a subscriber",
      async () => (await client.call("/metrics")).text.match(/^alk_live_subscribers.*$/gm),
      (counts) => /^alk_live_subscribers(?:\{.*\})? 0$/m.test(counts?.join("\n") ?? "")
    )
    socket.destroy()
  })
})

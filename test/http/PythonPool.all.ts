/**
 * A pool of Python's httpx, and httpx-sse: connections that are kept through errors, starts and
 * stops, and what its reader of event streams makes of ours.
 */
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Stream } from "effect"
import { assert, beforeAll, describe, it } from "vitest"
import { RETRY_LINE } from "../../src/actors/feeds/LiveStream.ts"
import {
  LiveBlock,
  type LiveMessage,
  openReader,
  Readers
} from "../../src/actors/feeds/Subscriber.ts"
import { freePort } from "../support/FreePort.ts"
import { resultOf, startPython } from "../support/Python.ts"
import { OTHER_KEY } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

const PROGRAM = "http_pool.py"
/** Requests of each kind that the program sends: 8 threads, 6 rounds. */
const EACH = 48
/** Threads of the program: none of them loses more than the one request that ends it. */
const THREADS = 8
/** Milliseconds that the pool is served before the server stops. */
const SERVED_MS = 1_500
const TIMEOUT_MS = 120_000

const expected: Readonly<Record<string, number>> = {
  list: 200,
  write: 200,
  "bad json": 400,
  "no route": 404,
  "no key": 401,
  "too large": 413,
  "too large in chunks": 413,
  "wrong type": 415,
  expectation: 417
}

describe("a pool of httpx", () => {
  // The packages come from PyPI the first time.
  beforeAll(async () => {
    await resultOf(await startPython(PROGRAM, ["install", "", ""]))
  }, 300_000)

  it(
    "gets an answer to every request, however many of them are refused",
    async () => {
      const api = await TestApi.start()
      const result = await resultOf(await startPython(PROGRAM, ["errors", api.url, OTHER_KEY]))
      const all = Object.entries(expected).map(([name, status]) => [`${name}: ${status}`, EACH])
      assert.deepStrictEqual(result.counts, Object.fromEntries(all))
      assert.deepStrictEqual(result.bodies, [true])
      await api.stop()
    },
    TIMEOUT_MS
  )

  it(
    "loses no request that the server took, from its start to its end",
    async () => {
      const port = await freePort()
      const child = await startPython(PROGRAM, ["life", `http://127.0.0.1:${port}`, OTHER_KEY])
      const result = resultOf(child)
      await once(child.stdout!, "data")
      const api = await TestApi.start({ port })
      await sleep(SERVED_MS)
      await api.stop()
      const { counts, lost } = await result
      const wrong = Object.keys(counts).filter(
        (outcome) => !/^(?:nobody listens|.*: (?:200|400|401|503|\w+Error: .*))$/.test(outcome)
      )
      assert.deepStrictEqual(wrong, [], JSON.stringify(counts))
      // A new connection that waits to be accepted while the server closes is reset by the system:
      // its request has not been taken. Every one that was has had its answer.
      const taken = new Set(api.logs.map(({ annotations }) => annotations["request_id"]))
      assert.isAbove(taken.size, 10)
      const unanswered = (lost as ReadonlyArray<string>).filter((id) => taken.has(id))
      assert.deepStrictEqual(unanswered, [], JSON.stringify(counts))
      assert.isAtMost(lost.length, THREADS)
      assert.isAbove(counts["write: 200"], 10)
      assert.isAbove(counts["nobody listens"], 0)
    },
    TIMEOUT_MS
  )
})

describe("httpx-sse", () => {
  it(
    "hands out events, and nothing for retry and comments",
    async () => {
      const api = await TestApi.start()
      const event = (sequenceNumber: number): LiveMessage => ({
        sequenceNumber,
        message: Buffer.from(`event: audit.event\nid: ${sequenceNumber}\ndata: {"n":1}\n\n`)
      })
      api.world.sse = Stream.unwrap(
        Effect.map(openReader(new Readers(), { details: {} }), (reader) => {
          reader.begin(0)
          reader.keepAlive()
          reader.deliver(new LiveBlock([event(1)]))
          reader.keepAlive()
          reader.keepAlive()
          reader.deliver(new LiveBlock([event(2)]))
          return Stream.concat(Stream.make(RETRY_LINE), reader.messages())
        })
      ).pipe(Stream.scoped)
      const given = ["stream", api.url, OTHER_KEY, "2"]
      const { events } = await resultOf(await startPython(PROGRAM, given))
      assert.deepStrictEqual(events, [
        ["audit.event", "1", '{"n":1}', 3_000],
        ["audit.event", "2", '{"n":1}', null]
      ])
      await api.stop()
    },
    TIMEOUT_MS
  )
})

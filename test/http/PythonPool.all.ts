/**
 * A pool of Python's httpx, and httpx-sse: connections that are kept through errors, starts and
 * stops, and what its reader of event streams makes of ours.
 */
import { once } from "node:events"
import { Effect, Stream } from "effect"
import { assert, beforeAll, describe, it } from "vitest"
import { RETRY_LINE } from "../../src/actors/feeds/LiveStream.ts"
import {
  LiveBlock,
  type LiveMessage,
  openReader,
  Readers
} from "../../src/actors/feeds/Subscriber.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import { resultOf, startPython } from "../support/Python.ts"
import { OTHER_KEY } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

const PROGRAM = "http_pool.py"
/** Requests of each kind that the program sends: 8 threads, 6 rounds. */
const EACH = 48
/** Connections that the pool of the program has at most. */
const CONNECTIONS = 8
/** Writes that are answered before the server stops. */
const SERVED = 100
/** Route and status of such a write in the log. */
const WRITTEN = "/v1/events/batch 200"

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

  it("gets an answer to every request, however many of them are refused", async () => {
    const api = await TestApi.start()
    const result = await resultOf(await startPython(PROGRAM, ["errors", api.url, OTHER_KEY]))
    const all = Object.entries(expected).map(([name, status]) => [`${name}: ${status}`, EACH])
    assert.deepStrictEqual(result.counts, Object.fromEntries(all))
    assert.deepStrictEqual(result.bodies, [true])
    await api.stop()
  })

  it("loses no request that the server took, from its start to its end", async () => {
    // Where the pool looks for the server before it is there.
    const port = await freePort()
    const child = await startPython(PROGRAM, ["life", `http://127.0.0.1:${port}`, OTHER_KEY])
    const result = resultOf(child)
    // It has found that nobody listens yet.
    await once(child.stdout!, "data")
    const api = await TestApi.start({ port })
    await eventuallyAsync(
      `${SERVED} writes are answered`,
      () =>
        api.logs.filter(({ annotations: { route, status } }) => `${route} ${status}` === WRITTEN)
          .length,
      (answered) => answered >= SERVED
    )
    await api.stop()
    const { counts, lost } = await result
    const wrong = Object.keys(counts).filter(
      (outcome) => !/^(?:nobody listens|.*: (?:200|400|401|503|\w+Error: .*))$/.test(outcome)
    )
    assert.deepStrictEqual(wrong, [], JSON.stringify(counts))
    // A new connection that waits to be accepted while the server closes is reset by the system:
    // its request has not been taken. Every one that was has had its answer.
    const taken = new Set(api.logs.map(({ annotations }) => annotations["request_id"]))
    assert.isAtLeast(taken.size, SERVED)
    const unanswered = (lost as ReadonlyArray<string>).filter((id) => taken.has(id))
    assert.deepStrictEqual(unanswered, [], JSON.stringify(counts))
    // Each takes a connection of the pool with it, and a server that goes accepts no others.
    assert.isAtMost(lost.length, CONNECTIONS)
    assert.isAtLeast(counts["write: 200"], SERVED)
    assert.isAbove(counts["nobody listens"], 0)
  })
})

describe("httpx-sse", () => {
  it("hands out events, and nothing for retry and comments", async () => {
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
  })
})

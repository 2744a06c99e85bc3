/**
 * The live stream over HTTP: what reaches the feed, what reaches the client, and how it ends.
 */
import type { IncomingMessage } from "node:http"
import { Stream } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { READ_KEY, WRITE_KEY } from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

const bytes = (text: string): Uint8Array => Buffer.from(text)
const RETRY = "retry: 3000\n"
const EVENT = 'event: audit.event\nid: 1\ndata: {"sequence_number":1}\n\n'

const firstText = (response: IncomingMessage): Promise<string> =>
  new Promise((resolve) => response.once("data", (data: Buffer) => resolve(data.toString())))

const ended = (response: IncomingMessage): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    response.on("data", (data: Buffer) => (text += data.toString()))
    response.on("close", () => resolve(text))
  })

describe("the stream", () => {
  let api: TestApi
  let stopped: boolean
  beforeEach(async () => {
    api = await TestApi.start()
    stopped = false
  })
  afterEach(async () => {
    if (!stopped) await api.stop()
  })
  const open = (query = "", headers: Record<string, string> = {}) =>
    api.open(`/v1/events/stream${query}`, { key: READ_KEY, headers })

  it("passes on the feed's bytes, uncached and uncompressed", async () => {
    api.world.sse = Stream.make(bytes(RETRY), bytes(EVENT))
    const response = await open("", { "accept-encoding": "gzip" })
    assert.strictEqual(response.statusCode, 200)
    assert.strictEqual(response.headers["content-type"], "text/event-stream")
    assert.strictEqual(response.headers["cache-control"], "no-store")
    assert.strictEqual(response.headers["x-accel-buffering"], "no")
    assert.isUndefined(response.headers["content-encoding"])
    assert.strictEqual(await ended(response), RETRY + EVENT)
  })

  it("gives filter and resume point to the feed, the header before the parameter", async () => {
    api.world.sse = Stream.make(bytes(RETRY))
    await api.call("/v1/events/batch", { key: WRITE_KEY, json: { events: items(9) } })
    await ended(await open("?after_sequence=3&action=document.*&metadata.n=1"))
    await ended(await open("?after_sequence=3", { "last-event-id": "7" }))
    await ended(await open("?after_sequence=3", { "last-event-id": "" }))
    await ended(await open("", { "last-event-id": " " }))
    await ended(await open("?after_sequence=3&lastEventId=5"))
    await ended(await open("?lastEventId=5", { "last-event-id": "7" }))
    await ended(await open("?after_sequence=3&last-event-id=6"))
    await ended(await open("?after_sequence=3&evs_last_event_id=8"))
    for (const garbage of ["abc", "-1", "1.5", "1,2", "99999999999999999999"]) {
      assert.strictEqual((await open("", { "last-event-id": garbage })).statusCode, 400, garbage)
    }
    assert.deepStrictEqual(api.world.streams, [
      {
        after: 3,
        filter: { actionPrefix: "document.", metadata: [{ path: "n", value: "1" }] }
      },
      { after: 7, filter: { metadata: [] } },
      { after: 3, filter: { metadata: [] } },
      { after: undefined, filter: { metadata: [] } },
      { after: 5, filter: { metadata: [] } },
      { after: 7, filter: { metadata: [] } },
      { after: 6, filter: { metadata: [] } },
      { after: 8, filter: { metadata: [] } }
    ])
  })

  it("sends what there is at once, and ends first when the server goes down", async () => {
    const { world } = api
    world.sse = Stream.concat(Stream.make(bytes(RETRY)), Stream.never)
    const response = await open()
    assert.strictEqual(await firstText(response), RETRY)
    world.undecided = true
    const reply = api.call("/v1/events?sync=true", { key: WRITE_KEY, json: item(1) })
    const command = await world.firstCommand()
    const end = ended(response)
    const down = api.stop()
    stopped = true
    await end
    world.decide(command)
    assert.strictEqual((await reply).status, 201)
    await down
    const closed = api.logs.find(({ annotations }) => annotations["route"] === "/v1/events/stream")
    assert.strictEqual(closed?.annotations["status"], 200)
  })
})

/** Streams that are cut wherever they may be: each event once, in order, and none missed. */
import fc from "fast-check"
import { assert, describe, it, vi } from "vitest"
import { followStream } from "../../src/client/events/FollowStream.ts"
import { MessageReader } from "../../src/client/events/ServerSentEvents.ts"
import { type TailOptions, tail } from "../../src/client/events/Tail.ts"
import { ApiFailure } from "../../src/client/index.ts"
import { makeTransport, type Transport } from "../../src/client/Transport.ts"
import { runs } from "../support/Runs.ts"
import { JumpingClock } from "./FakeService.ts"

const messageOf = (sequence: number): string =>
  `event: audit.event\nid: ${sequence}\ndata: {"sequence_number":${sequence}}\n\n`

/** How one connection goes. */
type Connection =
  /** So many characters, then the connection is cut. */
  { readonly cutAfter: number } | { readonly status: number }

/** A stream with the events 1 to `last`, of which those up to `head` were there before. */
const fakeStream = (connections: ReadonlyArray<Connection>, head: number, last: number) => {
  const asked: Array<string> = []
  let rest = connections
  const fetchIt: typeof fetch = async (address, init) => {
    if (String(address).endsWith("/v1/chain")) {
      return new Response(JSON.stringify({ head: { sequence_number: head } }))
    }
    const [connection = { cutAfter: Infinity }, ...others] = rest
    rest = others
    if ("status" in connection) return new Response("", { status: connection.status })
    const after = Number((init!.headers as Record<string, string>)["last-event-id"])
    asked.push(String(after))
    const numbers = Array.from({ length: last - after }, (_, index) => after + 1 + index)
    const text = `retry: 3000\n\n: hello\n\n${numbers.map(messageOf).join("")}`
    return new Response(text.slice(0, connection.cutAfter))
  }
  return { asked, fetch: fetchIt }
}

interface Stream {
  readonly fetch: typeof fetch
}

const partsOf = ({ fetch: fetchIt }: Stream) => ({
  clock: new JumpingClock(),
  transport: makeTransport({
    url: "http://service.test",
    key: "k",
    headers: {},
    timeoutMs: 1_000,
    fetch: fetchIt
  })
})

const read = async (stream: Stream, until: number, options: TailOptions) => {
  const sequences: Array<number> = []
  for await (const event of tail(partsOf(stream), {}, options)) {
    sequences.push(event.sequence_number)
    if (event.sequence_number === until) break
  }
  return sequences
}

const upTo = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, index) => from + 1 + index)

describe("a stream that is followed", () => {
  it("is asked for again where no answer comes, after the silence of a connection", async () => {
    vi.useFakeTimers()
    const end = new AbortController()
    const states: Array<unknown> = []
    let asked = 0
    const open: Transport["open"] = ({ signal }) => {
      asked += 1
      const never = new Promise<Response>((_, reject) => {
        signal!.addEventListener("abort", () => reject(signal!.reason))
      })
      if (asked === 2) end.abort()
      return never
    }
    const messages = followStream({ clock: new JumpingClock(), transport: { open } }, "/stream", {
      firstId: async () => "",
      signal: end.signal,
      onConnection: (state) => states.push(state instanceof ApiFailure ? state.code : state)
    })
    const next = messages.next()
    await vi.advanceTimersByTimeAsync(40_000)
    assert.strictEqual((await next).done, true)
    assert.deepStrictEqual([asked, states], [2, ["cut_off"]])
    vi.useRealTimers()
  })
})

describe("tail", () => {
  it("gives each event once, in order, wherever the connection is cut", async () => {
    const connection = fc.oneof(
      fc.record({ cutAfter: fc.integer({ min: 0, max: 400 }) }),
      fc.record({ status: fc.constantFrom(429, 500, 502, 503) })
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(connection, { maxLength: 8 }),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 4, max: 12 }),
        async (connections, head, last) => {
          const live = await read(fakeStream(connections, head, last), last, {})
          assert.deepStrictEqual(live, upTo(head, last))
          const resumed = await read(fakeStream(connections, head, last), last, { after: 1 })
          assert.deepStrictEqual(resumed, upTo(1, last))
        }
      ),
      { numRuns: runs(300) }
    )
  })

  it("begins at the end of the chain, so that a cut before the first event loses none", async () => {
    const stream = fakeStream([{ cutAfter: 0 }], 5, 7)
    assert.deepStrictEqual(await read(stream, 7, {}), [6, 7])
    assert.deepStrictEqual(stream.asked, ["5", "5"])
  })

  it("throws what the service refuses, and tells of what it does not", async () => {
    const states: Array<string> = []
    const onConnection = (state: "live" | ApiFailure) => {
      states.push(state === "live" ? state : state.code)
    }
    await read(fakeStream([{ cutAfter: 0 }], 0, 1), 1, { onConnection })
    assert.deepStrictEqual(states, ["live", "cut_off", "live"])
    const refused = await read(fakeStream([{ status: 403 }], 0, 1), 1, {}).catch((error) => error)
    assert.instanceOf(refused, ApiFailure)
    assert.strictEqual(refused.status, 403)
  })

  it("ends with its signal, without an error", async () => {
    const controller = new AbortController()
    const parts = partsOf(fakeStream([], 0, 2))
    const seen: Array<number> = []
    for await (const event of tail(parts, {}, { signal: controller.signal })) {
      seen.push(event.sequence_number)
      controller.abort()
    }
    assert.deepStrictEqual(seen, [1])
  })
})

describe("the reader of Server-Sent Events", () => {
  it("reads the same messages in whatever pieces the text comes", () => {
    const text =
      ": comment\n\nretry: 10\nevent: a\nid: 1\ndata: x\ndata:  y\n\r\nid: 2\n\ndata\r\n\r\nnone\n\n"
    const whole = [...new MessageReader().read(text)]
    assert.deepStrictEqual(whole, [
      { type: "a", data: "x\n y", id: "1" },
      { type: "message", data: "", id: "2" },
      { type: "message", data: "", id: "2" }
    ])
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length })), (cuts) => {
        const places = [0, ...cuts.sort((left, right) => left - right), text.length]
        const reader = new MessageReader()
        const pieces = places.slice(1).map((end, index) => text.slice(places[index], end))
        assert.deepStrictEqual(
          pieces.flatMap((piece) => [...reader.read(piece)]),
          whole
        )
        assert.strictEqual(reader.retryMs, 10)
      }),
      { numRuns: runs(500) }
    )
  })
})

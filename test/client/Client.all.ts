/** The client against the program, which is killed and started again while it is used. */
import { rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import {
  type AuditEvent,
  ChainVerifier,
  type Client,
  createClient,
  type Rejection,
  verifyEvent
} from "../../src/client/index.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

/** Events that are acknowledged before and after it is killed. */
const ACKNOWLEDGED = 250
/** Milliseconds for what was put off while the program was away. */
const PATIENCE_MS = 300_000

const folder = freshFolder("client")
const key = testKey("client")
const rejections: Array<Rejection> = []
let environment: Record<string, string>
let running: Started
let client: Client

const eventOf = (number: number) =>
  ({
    actor: { id: `user-${number % 7}`, type: "human", email: "ada@example.com" },
    action: number % 2 === 0 ? "document.read" : "document.shared",
    resource: { id: `doc-${number}`, type: "document" },
    metadata: { number }
  }) as const

const collect = async (events: AsyncIterable<AuditEvent>): Promise<ReadonlyArray<AuditEvent>> => {
  const all: Array<AuditEvent> = []
  for await (const event of events) all.push(event)
  return all
}

beforeAll(async () => {
  environment = {
    // Where the client looks for it after it was killed.
    PORT: String(await freePort()),
    ALK_DATA_DIR: folder,
    ALK_BOOTSTRAP_KEYS: `${key}=client:read+write`
  }
  running = await start(environment)
  client = createClient({
    url: running.url,
    key,
    batchItems: 50,
    onReject: (rejection) => rejections.push(rejection),
    onWarning: () => {}
  })
})

afterAll(async () => {
  await client.close()
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("the client", () => {
  it("stores every flushed event once and in order through kill -9, and a tail sees the same", async () => {
    const tailed: Array<string> = []
    const stop = new AbortController()
    const connections: Array<string> = []
    const onConnection = (state: "live" | Error) => {
      connections.push(state === "live" ? state : "cut")
    }
    const tailing = (async () => {
      for await (const { id } of client.tail({}, { after: 0, signal: stop.signal, onConnection })) {
        tailed.push(id)
      }
    })()
    const logged: Array<string> = []
    let isLogging = true
    /** Once so many events more are acknowledged. */
    const more = async (count: number): Promise<void> => {
      const wanted = client.counters.events.acknowledged + count
      await eventuallyAsync(
        `${wanted} events are acknowledged`,
        () => client.counters.events,
        ({ acknowledged }) => acknowledged >= wanted,
        PATIENCE_MS
      )
    }
    const logging = (async () => {
      while (isLogging) {
        for (let count = 0; count < 10; count++) logged.push(client.log(eventOf(logged.length)))
        await sleep(20)
      }
    })()
    await more(ACKNOWLEDGED)
    await eventuallyAsync("the tail gets them", () => tailed.length > 0)
    await running.kill()
    running = await start(environment)
    await more(ACKNOWLEDGED)
    isLogging = false
    await logging
    await client.flush({ timeoutMs: PATIENCE_MS })
    const recorded = await client.record(eventOf(logged.length))
    logged.push(recorded.id)
    const stored = await collect(client.events({ order: "asc" }))
    assert.deepStrictEqual(
      stored.map(({ id }) => id),
      logged
    )
    await eventuallyAsync(
      `the tail has all ${logged.length} events`,
      () => tailed.length,
      (count) => count >= logged.length,
      PATIENCE_MS
    )
    stop.abort()
    await tailing
    assert.deepStrictEqual(tailed, logged)
    assert.includeMembers(connections, ["live", "cut"])
    assert.deepStrictEqual(rejections, [])
    const { acknowledged, waiting } = client.counters.events
    assert.deepStrictEqual([acknowledged, waiting], [logged.length - 1, 0])
  })

  it("gives what it recorded, and the chain of all of it holds", async () => {
    const { event, id, sequence_number } = await client.record(eventOf(1))
    assert.deepStrictEqual([event?.id, event?.sequence_number], [id, sequence_number])
    assert.deepStrictEqual(await verifyEvent(event!), { valid: true, isErased: false })
    const chain = new ChainVerifier()
    for await (const one of client.events({ order: "asc" }))
      assert.isUndefined(await chain.add(one))
    assert.strictEqual(chain.heads[0]?.hash, event?.hash)
    const newest = await collect(client.events({ action: "document.shared", from: "-1h" }))
    assert.isAbove(newest.length, 200)
    assert.isTrue(newest.every(({ action }) => action === "document.shared"))
    assert.strictEqual(newest[0]?.id, id)
  })

  it("stores an id of the caller once, and says aloud where it belongs to another event", async () => {
    const event = { ...eventOf(2), id: "of-the-caller" }
    client.log(event)
    client.log(event)
    await client.flush()
    client.log({ ...event, outcome: "failure" })
    const failure = await client.flush().catch((error: Error) => error)
    assert.match(String(failure), /1 not stored; of-the-caller: id_conflict, id: /)
    assert.deepStrictEqual(
      rejections.map(({ code, id }) => ({ code, id })),
      [{ code: "id_conflict", id: "of-the-caller" }]
    )
    assert.strictEqual((await collect(client.events({ id: "of-the-caller" }))).length, 1)
  })

  it("records runs as trees of spans, whole once they are flushed", async () => {
    await client
      .run("researcher", { id: "run-1", trigger: "test" }, async (run) => {
        const found = await client.tool("search", { input: { q: "tides" } }, async () => 3)
        await client.span("answer", { type: "LLM_CALL" }, async (span) => {
          span.event("llm.response", { found })
          throw new Error("no answer")
        })
        run.set({ never: true })
      })
      .catch(() => {})
    await client.flush()
    const execution = await client.request("GET /api/v1/executions/{id}", { path: { id: "run-1" } })
    assert.deepInclude(execution, { agent_id: "researcher", status: "FAILED", trigger: "test" })
    const { spans } = await client.request("GET /api/v1/executions/{id}/spans", {
      path: { id: "run-1" }
    })
    assert.sameDeepMembers(
      spans.map(({ name, span_type, status }) => [name, span_type, status]),
      [
        ["researcher", "AGENT", "FAILED"],
        ["search", "TOOL_CALL", "COMPLETED"],
        ["answer", "LLM_CALL", "FAILED"]
      ]
    )
    const ids: Array<string> = []
    for await (const { id } of client.executions({ agent_id: "researcher" })) ids.push(id)
    assert.deepStrictEqual(ids, ["run-1"])
    assert.strictEqual(client.counters.traces.refused, 0)
  })
})

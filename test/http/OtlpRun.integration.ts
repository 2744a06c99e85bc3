/** Real exporters against the API over the doubles: what the whole service has to do as well. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { DAG_SPANS_MAX } from "../../src/http/traces/TraceContract.ts"
import { END, exportOf, START, span } from "../services/ingest/otlp/support/Exports.ts"
import { Client, type Json } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { otlpBlackBox } from "../support/OtlpBlackBox.ts"
import { recordedBlackBox } from "../support/RecordedBlackBox.ts"
import { OTHER_KEY } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

let api: TestApi
let grpcPort: number
beforeAll(async () => {
  grpcPort = await freePort()
  api = await TestApi.start({ otlpGrpcPort: grpcPort })
})
afterAll(() => api.stop())

otlpBlackBox(() => ({
  url: api.url,
  grpcUrl: `http://127.0.0.1:${grpcPort}`,
  key: OTHER_KEY
}))
// Requests have at most 1 MiB here.
recordedBlackBox(() => ({ url: api.url, key: OTHER_KEY }), 12_000)

describe("a span that can't be stored as it was sent, or not in one operation", () => {
  /** Sends a span, and reads what there is of its trace. */
  const sent = async (changes: Json) => {
    const client = new Client(api.url, OTHER_KEY)
    const { text } = await client.call("/v1/traces", { body: exportOf([span(changes)]) })
    const { body } = await client.call("/api/v1/executions?page_size=1000")
    const trace = changes["traceId"]
    const { id } = body.executions.find(({ metadata }: Json) => metadata["trace_id"] === trace)
    const { spans } = (await client.call(`/api/v1/executions/${id}/spans`)).body
    const events = await client.call(`/api/v1/spans/${spans[0].id}/events`, {
      headers: { accept: "application/x-ndjson" }
    })
    const { facts_checked, valid } = (await client.call(`/api/v1/executions/${id}/verify`)).body
    assert.isTrue(valid)
    return { text, spans, events: events.text.trim().split("\n"), facts_checked }
  }
  const eventsOf = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ timeUnixNano: START, name: `e${n}` }))

  it("is repaired, says so in its fact, and is the same when it comes again", async () => {
    const broken = {
      traceId: "a".repeat(32),
      name: "half \ud83d",
      startTimeUnixNano: "1763700009000000000",
      events: eventsOf(2)
    }
    const first = await sent(broken)
    assert.include(first.text, "name: broken_text")
    assert.notInclude(first.text, "rejectedSpans")
    const [{ ended_at, name, repairs, started_at }] = first.spans
    assert.deepStrictEqual([name, ended_at], ["half \ufffd", started_at])
    assert.deepStrictEqual(
      repairs.map(({ code, path, sent: was }: Json) => [code, path, was]),
      [
        ["end_before_start", "end_time_unix_nano", END],
        ["broken_text", "name", undefined]
      ]
    )
    assert.deepStrictEqual(await sent(broken), first)
  })

  it("has all its events", async () => {
    const { events, text } = await sent({ traceId: "b".repeat(32), events: eventsOf(2_500) })
    assert.strictEqual(text, "{}")
    assert.deepStrictEqual(
      events.map((event) => JSON.parse(event).event_type),
      eventsOf(2_500).map(({ name }) => name)
    )
  })
})

it("log records that name more spans than one graph may have are answered with how to read them", async () => {
  const client = new Client(api.url, OTHER_KEY)
  const [traceId, half] = ["e".repeat(32), DAG_SPANS_MAX / 2 + 1]
  for (const from of [1, 1 + half]) {
    const logRecords = Array.from({ length: half }, (_, n) => ({
      timeUnixNano: START,
      eventName: "gen_ai.x",
      traceId,
      spanId: (from + n).toString(16).padStart(16, "0")
    }))
    const body = { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }
    assert.strictEqual((await client.call("/v1/logs", { body })).text, "{}")
  }
  const { executions } = (await client.call("/api/v1/executions?agent_id=unknown_service")).body
  const { id } = executions.find(({ metadata }: Json) => metadata["trace_id"] === traceId)
  const { body, status } = await client.call(`/api/v1/executions/${id}/dag`)
  assert.deepStrictEqual([status, body.code], [413, "payload_too_large"])
  assert.include(body.error, `events of ${2 * half} spans`)
})

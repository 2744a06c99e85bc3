/**
 * Traces with large payloads and what reading them costs: a span filled with events, readers of it
 * that follow cursors to the end, and a watch on the memory, the health and the words of a process.
 */
import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { type Answer, Client } from "./Client.ts"
import { residentBytes } from "./Memory.ts"
import type { Started } from "./Program.ts"

/** Characters of a payload: near the most that an event may have. */
export const LARGE_PAYLOAD = 60_000
/** Bytes of one request: well below the limit on bodies. */
const REQUEST_BYTES = 4 * 1_048_576
/** How often a request is sent again that could not be answered in time. */
const ATTEMPTS_MAX = 20
const SAMPLE_MS = 50

const succeeded = (answer: Answer): Answer => {
  assert.include([200, 201], answer.status, answer.text.slice(0, 500))
  return answer
}

/** A new execution with one span that runs. */
export const openSpan = async (client: Client, id: string): Promise<void> => {
  succeeded(await client.call("/api/v1/executions", { body: { agent_id: "agent", id } }))
  const span = { id: `${id}-span`, span_type: "TOOL_CALL", name: "large" }
  succeeded(await client.call(`/api/v1/executions/${id}/spans`, { body: span }))
}

/** Add events to a span; no two payloads are alike, and none compresses well. */
export const fillSpan = async (
  client: Client,
  spanId: string,
  count: number,
  payload = LARGE_PAYLOAD
): Promise<void> => {
  const patient = new Client(client.url, client.key, true, ATTEMPTS_MAX)
  const atOnce = Math.max(1, Math.min(1_000, Math.floor(REQUEST_BYTES / (payload + 200))))
  for (let done = 0; done < count; ) {
    const events = Array.from({ length: Math.min(atOnce, count - done) }, () => ({
      event_type: "llm.response",
      payload: { text: randomBytes(Math.ceil((payload * 3) / 4)).toString("base64") }
    }))
    const raw = JSON.stringify({ events })
    const headers = { "idempotency-key": `fill-${spanId}-${done}` }
    const path = `/api/v1/spans/${spanId}/events`
    const answer = succeeded(await patient.call(path, { raw, headers }))
    assert.strictEqual(answer.body.accepted, events.length)
    done += events.length
  }
}

/** Sequence numbers of all events of a span, page by page. */
export const readPages = async (client: Client, spanId: string): Promise<Array<number>> => {
  const found: Array<number> = []
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const query: string = cursor === "" ? "" : `?cursor=${encodeURIComponent(cursor)}`
    const { body } = succeeded(await client.call(`/api/v1/spans/${spanId}/events${query}`))
    for (const event of body.events) found.push(event.sequence_number)
    cursor = body.next_cursor
  }
  return found
}

/** The same by one stream, of which never more than a line is kept. */
export const readLines = async (client: Client, spanId: string): Promise<Array<number>> => {
  const response = await fetch(`${client.url}/api/v1/spans/${spanId}/events`, {
    headers: { authorization: `Bearer ${client.key}`, accept: "application/x-ndjson" }
  })
  assert.strictEqual(response.status, 200)
  const found: Array<number> = []
  const decoder = new TextDecoder()
  let rest = ""
  for await (const chunk of response.body!) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n")
    rest = lines.pop()!
    for (const line of lines) found.push((JSON.parse(line) as any).sequence_number)
  }
  assert.strictEqual(rest, "")
  return found
}

export interface Watched<A> {
  readonly value: A
  /** Bytes by which the process has grown at most. */
  readonly growth: number
  /** Longest and median time of one GET /healthz, milliseconds. */
  readonly healthMax: number
  readonly healthMedian: number
}

export const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((left, right) => left - right)[values.length >> 1] ?? 0

/** Watch a process while something happens. */
export const watched = async <A>(program: Started, work: () => Promise<A>): Promise<Watched<A>> => {
  const before = residentBytes(program.pid)
  let peak = before
  let isDone = false
  const times: Array<number> = []
  const watch = (async () => {
    while (!isDone) {
      const startedAt = performance.now()
      const { status } = await fetch(`${program.url}/healthz`)
      times.push(performance.now() - startedAt)
      assert.strictEqual(status, 200)
      peak = Math.max(peak, residentBytes(program.pid))
      await sleep(SAMPLE_MS)
    }
  })()
  try {
    const value = await work()
    isDone = true
    await watch
    return {
      value,
      growth: peak - before,
      healthMax: Math.max(...times),
      healthMedian: median(times)
    }
  } finally {
    isDone = true
  }
}

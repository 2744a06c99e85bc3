/**
 * Everything that the trace routes refuse, as a table: each status and code, always in the string
 * form, and nothing written; then the writes whose outcome is not known, and the stream.
 */
import type { IncomingMessage } from "node:http"
import { Stream } from "effect"
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { type ErrorCode, errorStatuses } from "../../src/http/messages/ApiError.ts"
import { CommandLogBusy } from "../../src/services/commands/CommandLog.ts"
import { OTHER_KEY, READ_KEY, type World, WRITE_KEY } from "./support/Doubles.ts"
import { type Call, TestApi } from "./support/TestApi.ts"

const EXECUTIONS = "/api/v1/executions"
const RUN = `${EXECUTIONS}/run`
const SPAN = "/api/v1/spans/s"
const BATCH = "/api/v1/traces/batch"
const STARTED = "2026-11-21T10:00:00.000000Z"

const read = { key: READ_KEY }
const write = { key: WRITE_KEY }
const other = { key: OTHER_KEY }
const posting = (json: unknown, call: Call = write): Call => ({ ...call, method: "POST", json })
const putting = (json: unknown, call: Call = write): Call => ({ ...call, method: "PUT", json })
const span = { span_type: "A", name: "n" }

interface Refusal {
  readonly why: string
  readonly path: string
  readonly call?: Call
  readonly code: ErrorCode
  readonly field?: string
  readonly headers?: Readonly<Record<string, string>>
}

const reads = [
  EXECUTIONS,
  RUN,
  `${RUN}/spans`,
  `${RUN}/dag`,
  `${RUN}/dag/aggregated`,
  `${RUN}/stream`,
  `${RUN}/verify`,
  SPAN,
  `${SPAN}/events`
]
/** In an order in which none stands in the way of another. */
const writes: ReadonlyArray<readonly [path: string, call: (more: Call) => Call]> = [
  [EXECUTIONS, (more) => posting({ agent_id: "a" }, more)],
  [`${RUN}/spans`, (more) => posting(span, more)],
  [`${SPAN}/events`, (more) => posting({ event_type: "a" }, more)],
  [`${SPAN}/end`, (more) => putting({}, more)],
  [`${RUN}/end`, (more) => putting({}, more)],
  [`${RUN}/erase`, (more) => posting({ reason: "r" }, more)],
  [BATCH, (more) => posting({ operations: [{ op: "span.end", span_id: "s" }] }, more)]
]

const list = (query: string, field: string, code: ErrorCode = "invalid_request"): Refusal => ({
  why: `GET ${EXECUTIONS}?${query}`,
  path: `${EXECUTIONS}?${query}`,
  call: read,
  code,
  field
})

const refusals: ReadonlyArray<Refusal> = [
  ...[...reads, ...writes.map(([path]) => path)].map(
    (path): Refusal => ({
      why: `no key on ${path}`,
      path,
      call: reads.includes(path) ? {} : { method: path.endsWith("/end") ? "PUT" : "POST" },
      code: "unauthenticated",
      headers: { "www-authenticate": "Bearer" }
    })
  ),
  ...reads.map(
    (path): Refusal => ({
      why: `a write key reads ${path}`,
      path,
      call: write,
      code: "insufficient_scope"
    })
  ),
  ...writes.map(
    ([path, call]): Refusal => ({
      why: `a read key writes ${path}`,
      path,
      call: call(read),
      code: "insufficient_scope"
    })
  ),
  ...reads.slice(1).map(
    (path): Refusal => ({
      why: `another tenant reads ${path}`,
      path,
      call: other,
      code: "not_found"
    })
  ),
  ...writes.slice(1, -1).map(
    ([path, call]): Refusal => ({
      why: `another tenant writes ${path}`,
      path,
      call: call(other),
      code: "not_found"
    })
  ),
  ...reads.slice(1).map(
    (path): Refusal => ({
      why: `an id with U+0000 in ${path}`,
      path: path.replace(/run|s(?=$|\/)(?<=spans\/s)/, "%00"),
      call: read,
      code: "not_found"
    })
  ),
  ...["/nobody/end", "/%00/end"].map(
    (path): Refusal => ({
      why: `ending ${path}`,
      path: `${EXECUTIONS}${path}`,
      call: putting({}),
      code: "not_found"
    })
  ),
  ...writes.map(
    ([path, call]): Refusal => ({
      why: `no JSON on ${path}`,
      path,
      call: { ...call(write), json: undefined, raw: "{" },
      code: "invalid_json"
    })
  ),
  ...writes.map(
    ([path, call]): Refusal => ({
      why: `another media type on ${path}`,
      path,
      call: { ...call(write), json: undefined, raw: "{}", headers: { "content-type": "text/csv" } },
      code: "unsupported_media_type",
      field: "Content-Type"
    })
  ),
  ...writes.map(
    ([path, call]): Refusal => ({
      why: `a body over the limit on ${path}`,
      path,
      call: { ...call(write), json: undefined, raw: "x".repeat(1_048_577) },
      code: "payload_too_large"
    })
  ),
  ...writes.map(
    ([path, call]): Refusal => ({
      why: `a bad Idempotency-Key on ${path}`,
      path,
      call: { ...call(write), headers: { "idempotency-key": "two words" } },
      code: "invalid_request",
      field: "Idempotency-Key"
    })
  ),
  ...writes.slice(0, -1).map(
    ([path, call]): Refusal => ({
      why: `an array on ${path}`,
      path,
      call: { ...call(write), json: [] },
      code: "invalid_request",
      // Where there may be several, none are too few.
      ...(path.endsWith("/events") ? {} : { field: "operation" })
    })
  ),
  ...writes.slice(0, -1).map(([path, call]): Refusal => {
    const known = call(write)
    return {
      why: `an unknown field on ${path}`,
      path,
      call: { ...known, json: { ...(known.json as object), state: "FAILED" } },
      code: "invalid_request",
      field: "state"
    }
  }),
  {
    why: "an unknown field beside the operations",
    path: BATCH,
    call: posting({ operations: [{ op: "span.end", span_id: "s" }], sync: true }),
    code: "invalid_request",
    field: "sync"
  },
  {
    why: "an unknown field beside the events",
    path: `${SPAN}/events`,
    call: posting({ events: [{ event_type: "a" }], event_type: "a" }),
    code: "invalid_request",
    field: "event_type"
  },
  {
    why: "a number that no double holds",
    path: EXECUTIONS,
    call: posting(undefined, { ...write, raw: '{"agent_id":"a","metadata":{"n":1e400}}' }),
    code: "invalid_request",
    field: "metadata.n"
  },
  {
    why: "no agent",
    path: EXECUTIONS,
    call: posting({}),
    code: "invalid_request",
    field: "agent_id"
  },
  {
    why: "an empty body where one is needed",
    path: EXECUTIONS,
    call: { ...write, method: "POST" },
    code: "invalid_json"
  },
  {
    why: "a status that is none",
    path: `${RUN}/end`,
    call: putting({ status: "DONE" }),
    code: "invalid_request",
    field: "status"
  },
  {
    why: "an end before the start",
    path: `${RUN}/end`,
    call: putting({ ended_at: "2026-11-21T09:59:59Z" }),
    code: "invalid_request",
    field: "ended_at"
  },
  {
    why: "another end",
    path: `${EXECUTIONS}/done/end`,
    call: putting({ status: "FAILED" }),
    code: "already_ended",
    field: "status"
  },
  {
    why: "a span in an execution that has ended",
    path: `${EXECUTIONS}/done/spans`,
    call: posting(span),
    code: "already_ended"
  },
  {
    why: "an event in a span that has ended",
    path: "/api/v1/spans/over/events",
    call: posting({ event_type: "a" }),
    code: "already_ended"
  },
  {
    why: "another start of the same key",
    path: EXECUTIONS,
    call: posting({ agent_id: "a", id: "run", started_at: "2026-11-21T10:00:01Z" }),
    code: "idempotency_conflict",
    field: "started_at"
  },
  {
    why: "a parent that is not there",
    path: `${RUN}/spans`,
    call: posting({ ...span, parent_span_id: "nobody" }),
    code: "not_found",
    field: "parent_span_id"
  },
  {
    why: "a cause of another execution",
    path: `${RUN}/spans`,
    call: posting({ ...span, caused_by_span_ids: ["over", "elsewhere"] }),
    code: "not_found",
    field: "caused_by_span_ids"
  },
  {
    why: "a span that causes itself",
    path: `${RUN}/spans`,
    call: posting({ ...span, id: "self", caused_by_span_ids: ["self"] }),
    code: "cycle_detected"
  },
  {
    why: "the id of another span",
    path: `${RUN}/spans`,
    call: posting({ ...span, id: "over" }),
    code: "id_conflict",
    field: "id"
  },
  {
    why: "no events",
    path: `${SPAN}/events`,
    call: posting({ events: [] }),
    code: "invalid_request"
  },
  {
    why: "events that are no array",
    path: `${SPAN}/events`,
    call: posting({ events: {} }),
    code: "invalid_request"
  },
  {
    why: "too many events",
    path: `${SPAN}/events`,
    call: posting({ events: Array.from({ length: 1_001 }, () => 0) }),
    code: "invalid_request"
  },
  { why: "no operations", path: BATCH, call: posting({}), code: "invalid_request" },
  {
    why: "too many operations",
    path: BATCH,
    call: posting({ operations: Array.from({ length: 1_001 }, () => 0) }),
    code: "invalid_request"
  },
  {
    why: "sync that is not true",
    path: `${BATCH}?sync=yes`,
    call: posting({ operations: [{}] }),
    code: "invalid_request",
    field: "sync"
  },
  {
    why: "no reason",
    path: `${RUN}/erase`,
    call: posting({}),
    code: "invalid_request",
    field: "reason"
  },
  list("page=0", "page"),
  list("page=", "page"),
  list("page=1&page=2", "page"),
  list("page_size=1001", "page_size"),
  list("page=10001&page_size=1000", "page", "invalid_range"),
  list("status=DONE", "status"),
  list("status=running", "status"),
  list("from=yesterday", "from"),
  list("to=2026-02-30T00:00:00Z", "to"),
  list("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from", "invalid_range"),
  {
    why: "a resume point that is no integer",
    path: `${RUN}/stream?after_sequence=x`,
    call: read,
    code: "invalid_request",
    field: "after_sequence"
  },
  {
    why: "a last id that is no integer",
    path: `${RUN}/stream`,
    call: { ...read, headers: { "last-event-id": "1.5" } },
    code: "invalid_request",
    field: "Last-Event-ID"
  },
  {
    why: "a resume point beyond the head",
    path: `${RUN}/stream?after_sequence=1000`,
    call: read,
    code: "invalid_request"
  },
  ...[EXECUTIONS, RUN, SPAN, BATCH].map(
    (path): Refusal => ({
      why: `DELETE on ${path}`,
      path,
      call: { ...write, method: "DELETE" },
      code: "method_not_allowed"
    })
  )
]

/** An execution that runs with a span, one that has ended, a span that has, and another's. */
const prepare = async (api: TestApi) => {
  const operations = [
    { op: "execution.start", id: "run", agent_id: "a", started_at: STARTED },
    { op: "span.start", execution_id: "run", id: "s", ...span },
    { op: "span.start", execution_id: "run", id: "over", ...span, started_at: STARTED },
    { op: "span.end", span_id: "over" },
    { op: "execution.start", id: "done", agent_id: "a", started_at: STARTED },
    { op: "execution.end", execution_id: "done" },
    { op: "execution.start", id: "other", agent_id: "a" },
    { op: "span.start", execution_id: "other", id: "elsewhere", ...span }
  ]
  const { body } = await api.call(`${BATCH}?sync=true`, posting({ operations }))
  assert.strictEqual(body.accepted, operations.length)
}

describe("what is refused", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
    await prepare(api)
  })
  afterAll(() => api.stop())

  it.each(refusals)("$why: $code", async ({ call, code, field, headers = {}, path }) => {
    const before = api.world.traces.facts.length
    const answer = await api.call(path, call)
    assert.strictEqual(answer.status, errorStatuses[code], answer.text)
    assert.isString(answer.body.error)
    assert.strictEqual(answer.body.code, code, answer.text)
    assert.strictEqual(answer.body.request_id, answer.headers["x-request-id"])
    if (field !== undefined) assert.strictEqual(answer.body.field, field, answer.text)
    for (const [name, value] of Object.entries(headers)) {
      assert.strictEqual(answer.headers[name], value)
    }
    assert.strictEqual(api.world.traces.facts.length, before)
  })
})

describe("what can't be done for now", () => {
  let api: TestApi
  beforeEach(async () => {
    api = await TestApi.start()
    await prepare(api)
  })
  afterEach(() => api.stop())

  const unavailable = async (path: string, call: Call) => {
    const answer = await api.call(path, call)
    assert.strictEqual(answer.status, 503, `${path} ${answer.text}`)
    assert.strictEqual(answer.body.code, "unavailable")
    assert.strictEqual(answer.headers["retry-after"], "1")
    return answer.body.error as string
  }

  it("is not read while the view is rebuilt or the store is away", async () => {
    const switches: ReadonlyArray<(world: World, on: boolean) => void> = [
      (world, on) => (world.rebuilding = on),
      (world, on) => (world.traces.storeDown = on)
    ]
    for (const turn of switches) {
      turn(api.world, true)
      // The doubles of feed and verifier know no store.
      const paths = reads.filter((path) => !/stream|verify/.test(path))
      for (const path of paths) await unavailable(path, read)
      turn(api.world, false)
    }
    api.world.rebuilding = true
    for (const path of [`${RUN}/stream`, `${RUN}/verify`]) await unavailable(path, read)
  })

  it("is not written while the log is busy", async () => {
    for (const [path, call] of writes) {
      api.world.refuse = new CommandLogBusy({ message: "busy", maybeWritten: true })
      assert.include(await unavailable(path, call(write)), "retry")
    }
  })

  it("may have happened if it does not become visible in time", async () => {
    api.world.invisible = true
    const facts = api.world.traces.facts.length
    const single = writes.slice(0, -1)
    const [answers] = await Promise.all([
      Promise.all(single.map(([path, call]) => unavailable(path, call(write)))),
      api.world.waitIsOver(single.length)
    ])
    for (const message of answers) assert.include(message, "may still happen")
    assert.isAbove(api.world.traces.facts.length, facts)
  })

  it("is a 202 where the batch was to be waited for", async () => {
    api.world.invisible = true
    const [path, call] = writes.at(-1)!
    const [answer] = await Promise.all([
      api.call(`${path}?sync=true`, call(write)),
      api.world.waitIsOver(1)
    ])
    assert.strictEqual(answer.status, 202, answer.text)
    assert.strictEqual(answer.body.status, "pending")
  })

  it("is said where what is committed is not found", async () => {
    api.world.traces.forgetful = true
    for (const [path, call] of writes.slice(0, -1)) {
      assert.include(await unavailable(path, call(write)), "committed")
    }
  })

  it("is counted against the quota of the tenant", async () => {
    await api.stop()
    api = await TestApi.start({ eventsPerSecondMax: 1 })
    // More than a slow machine has forgiven by the next call.
    const operations = Array.from({ length: 900 }, () => ({ op: "execution.start", agent_id: "a" }))
    assert.strictEqual((await api.call(BATCH, posting({ operations }))).status, 202)
    const answer = await api.call(EXECUTIONS, posting({ agent_id: "a" }))
    assert.strictEqual(answer.status, 429)
    assert.strictEqual(answer.body.code, "rate_limited")
    assert.isString(answer.body.error)
  })
})

describe("the stream", () => {
  let api: TestApi
  beforeEach(async () => {
    api = await TestApi.start()
    await prepare(api)
  })
  afterEach(() => api.stop())
  const bytes = (text: string): Uint8Array => Buffer.from(text)
  const ended = (response: IncomingMessage): Promise<string> =>
    new Promise((resolve) => {
      let text = ""
      response.on("data", (data: Buffer) => (text += data.toString()))
      response.on("close", () => resolve(text))
    })

  it("passes on the feed's bytes, uncached and uncompressed", async () => {
    api.world.traces.sse = Stream.make(bytes("retry: 3000\n"), bytes("id: 1\ndata: {}\n\n"))
    const headers = { "accept-encoding": "gzip" }
    const response = await api.open(`${RUN}/stream`, { ...read, headers })
    assert.strictEqual(response.statusCode, 200)
    assert.strictEqual(response.headers["content-type"], "text/event-stream")
    assert.strictEqual(response.headers["cache-control"], "no-store")
    assert.strictEqual(response.headers["x-accel-buffering"], "no")
    assert.isUndefined(response.headers["content-encoding"])
    assert.strictEqual(await ended(response), "retry: 3000\nid: 1\ndata: {}\n\n")
  })

  it("gives the resume point to the feed, the header before the parameter", async () => {
    api.world.traces.sse = Stream.make(bytes("retry: 3000\n"))
    await ended(await api.open(`${RUN}/stream?after_sequence=3`, read))
    const headers = { "last-event-id": "5" }
    await ended(await api.open(`${RUN}/stream?after_sequence=3`, { ...read, headers }))
    await ended(await api.open(`${RUN}/stream`, read))
    assert.deepStrictEqual(
      api.world.traces.subscriptions.map(({ onStalled: _, ...asked }) => asked),
      [3, 5, undefined].map((after) => ({
        tenantId: "acme",
        keyId: "key_read",
        executionId: "run",
        after
      }))
    )
  })

  it("is refused beyond the tenant's limit", async () => {
    api.world.traces.streamsMax = 0
    const answer = await api.call(`${RUN}/stream`, read)
    assert.strictEqual(answer.status, 429)
    assert.strictEqual(answer.body.code, "rate_limited")
    assert.strictEqual(answer.headers["ratelimit-remaining"], "0")
  })
})

/**
 * Executions, spans and trace events seen from outside, over HTTP alone: the same tests run against
 * the doubles, the embedded parts and separate roles. Every tenant is used by one test only.
 */
import { assert, describe, it } from "vitest"
import { Client, type Json, readStream } from "./Client.ts"

export interface TraceTarget {
  /** Base URLs of API processes; at least one. */
  readonly urls: ReadonlyArray<string>
  /** A key with read and write scope for a tenant of this name that nobody else uses. */
  readonly keyOf: (tenant: string) => string
}

export const traceTenants = {
  starts: "tb-starts",
  ends: "tb-ends",
  orders: ["tb-order-0", "tb-order-1", "tb-order-2", "tb-order-3"],
  times: "tb-times",
  reads: "tb-reads",
  numbers: "tb-numbers",
  graphs: "tb-graphs",
  lists: "tb-lists",
  stream: "tb-stream",
  verify: "tb-verify",
  erase: "tb-erase",
  values: "tb-values",
  stranger: "tb-stranger"
} as const

export const allTraceTenants: ReadonlyArray<string> = Object.values(traceTenants).flat()

const EXECUTIONS = "/api/v1/executions"
const SPANS = "/api/v1/spans"
const BATCH = "/api/v1/traces/batch?sync=true"
const STARTED = "2026-11-21T10:00:00.123456Z"
const CONCURRENT = 50
const ATTEMPTS_MAX = 5

const pathOf = (base: string, id: string, rest = ""): string =>
  `${base}/${encodeURIComponent(id)}${rest}`

/** What one run says, as operations of a batch; ids are the client's own. */
const run = "run/1 “ü”"
const operations: ReadonlyArray<Json> = [
  {
    op: "execution.start",
    id: run,
    agent_id: "agent",
    agent_name: "Agent",
    trigger: "cron",
    started_at: STARTED,
    metadata: { run: 1, nested: { list: [1, 1.5, null, "ü"] } }
  },
  {
    op: "span.start",
    execution_id: run,
    id: "plan",
    span_type: "PLANNING",
    name: "plan",
    started_at: "2026-11-21T10:00:01Z"
  },
  {
    op: "span.start",
    execution_id: run,
    id: "left",
    span_type: "TOOL_CALL",
    name: "left",
    parent_span_id: "plan",
    started_at: "2026-11-21T10:00:02Z",
    metadata: { side: "left" }
  },
  {
    op: "span.start",
    execution_id: run,
    id: "right",
    span_type: "TOOL_CALL",
    name: "right",
    parent_span_id: "plan",
    started_at: "2026-11-21T10:00:02.5Z"
  },
  {
    op: "span.start",
    execution_id: run,
    id: "join",
    span_type: "LLM_CALL",
    name: "join",
    caused_by_span_ids: ["left", "right"],
    started_at: "2026-11-21T10:00:05Z"
  },
  {
    op: "span.event",
    span_id: "left",
    id: "e1",
    event_type: "tool.request",
    timestamp: STARTED,
    payload: { q: "“ü” 📄" }
  },
  { op: "span.event", span_id: "join", id: "e2", event_type: "llm.response", timestamp: STARTED },
  { op: "span.end", span_id: "left", ended_at: "2026-11-21T10:00:03Z", metadata: { hits: 3 } },
  {
    op: "span.end",
    span_id: "right",
    status: "FAILED",
    ended_at: "2026-11-21T10:00:04Z",
    error: { type: "timeout" }
  },
  {
    op: "execution.end",
    execution_id: run,
    ended_at: "2026-11-21T10:00:09Z",
    metadata: { done: true }
  }
]

/** Kinds in an order that makes sense, operations of a kind reversed where that still does. */
const shuffled: ReadonlyArray<Json> = [
  ...operations.filter(({ op }) => op === "execution.end"),
  ...operations.filter(({ op }) => op === "span.end").reverse(),
  ...operations.filter(({ op }) => op === "span.event"),
  ...operations.filter(({ op }) => op === "span.start").reverse(),
  ...operations.filter(({ op }) => op === "execution.start")
]

const sendOne = (api: Client, { op, ...rest }: Json): ReturnType<Client["call"]> => {
  const { execution_id = "", span_id = "", ...body } = rest
  switch (op) {
    case "execution.start":
      return api.call(EXECUTIONS, { body: rest })
    case "execution.end":
      return api.call(pathOf(EXECUTIONS, execution_id, "/end"), { method: "PUT", body })
    case "span.start":
      return api.call(pathOf(EXECUTIONS, execution_id, "/spans"), { body })
    case "span.end":
      return api.call(pathOf(SPANS, span_id, "/end"), { method: "PUT", body })
    default:
      return api.call(pathOf(SPANS, span_id, "/events"), { body })
  }
}

/** Everything that can be read of the run, but for the times that the service has set. */
const seen = async (api: Client, id = run): Promise<Json> => {
  const get = async (path: string): Promise<Json> => {
    const { body, status, text } = await api.call(path)
    assert.strictEqual(status, 200, `${path} ${text}`)
    return body
  }
  const { created_at: _at, ...execution } = await get(pathOf(EXECUTIONS, id))
  const { spans } = await get(pathOf(EXECUTIONS, id, "/spans"))
  const dag = await get(pathOf(EXECUTIONS, id, "/dag"))
  const singles = await Promise.all(spans.map(({ id: span }: Json) => get(pathOf(SPANS, span))))
  return { execution, spans, dag, singles }
}

const started = async (api: Client, body: Json = {}): Promise<Json> => {
  const answer = await api.call(EXECUTIONS, { body: { agent_id: "agent", ...body } })
  assert.strictEqual(answer.status, 201, answer.text)
  return answer.body
}

/**
 * Register the tests. `target` is asked when they run; `isWhole` is false where the stream and
 * verification are doubles, which have tests of their own.
 */
export const traceBlackBox = (target: () => TraceTarget, isWhole = true): void => {
  const client = (tenant: string, process = 0): Client => {
    const { keyOf, urls } = target()
    return new Client(urls[process % urls.length]!, keyOf(tenant), true, ATTEMPTS_MAX)
  }

  describe("traces from outside", () => {
    it("make one execution of 50 starts at once under one key, whatever process they reach", async () => {
      const answers = await Promise.all(
        Array.from({ length: CONCURRENT }, (_, n) =>
          client(traceTenants.starts, n).call(EXECUTIONS, {
            body: { agent_id: "agent", idempotency_key: "run 1", trigger: `try ${n}` }
          })
        )
      )
      const statuses = answers.map(({ status }) => status).sort()
      assert.deepStrictEqual(statuses, [...Array(CONCURRENT - 1).fill(200), 201])
      assert.strictEqual(new Set(answers.map(({ text }) => text)).size, 1)
      const list = await client(traceTenants.starts).call(EXECUTIONS)
      assert.strictEqual(list.body.total, 1)
      assert.deepStrictEqual(list.body.executions, [answers[0]!.body])
    })

    it("end once, however many ends with different statuses come at once", async () => {
      const api = client(traceTenants.ends)
      const { id } = await started(api, { started_at: STARTED })
      const sent = Array.from({ length: CONCURRENT }, (_, n) => ({
        status: ["COMPLETED", "FAILED", "CANCELLED"][n % 3]!,
        ended_at: `2026-11-21T10:01:${String(n).padStart(2, "0")}.000000Z`
      }))
      const answers = await Promise.all(
        sent.map((body, n) =>
          client(traceTenants.ends, n).call(pathOf(EXECUTIONS, id, "/end"), { method: "PUT", body })
        )
      )
      const { body } = await client(traceTenants.ends, 1).call(pathOf(EXECUTIONS, id))
      const winner = sent.find(({ ended_at }) => ended_at === body.ended_at)
      assert.strictEqual(winner?.status, body.status)
      answers.forEach((answer, n) => {
        if (sent[n]!.status === body.status) {
          assert.strictEqual(answer.status, 200, answer.text)
          assert.deepStrictEqual(answer.body, body)
        } else {
          assert.strictEqual(answer.status, 409, answer.text)
          assert.strictEqual(answer.body.code, "already_ended")
          assert.isString(answer.body.error)
        }
      })
    })

    it("are the same in one batch, in any order, in two, and one by one", async () => {
      const [straight, mixed, halves, single] = traceTenants.orders
      const whole = await client(straight).call(BATCH, { body: { operations } })
      assert.deepStrictEqual([whole.status, whole.body.rejected], [200, 0], whole.text)
      const turned = await client(mixed).call(BATCH, { body: { operations: shuffled } })
      assert.deepStrictEqual([turned.status, turned.body.rejected], [200, 0], turned.text)
      for (const part of [operations.slice(0, 4), operations.slice(4)]) {
        const answer = await client(halves, part.length).call(BATCH, { body: { operations: part } })
        assert.deepStrictEqual([answer.status, answer.body.rejected], [200, 0], answer.text)
      }
      for (const [n, operation] of operations.entries()) {
        const answer = await sendOne(client(single, n), operation)
        assert.include([200, 201], answer.status, answer.text)
      }
      const expected = await seen(client(straight))
      assert.strictEqual(expected["spans"].length, 5)
      assert.strictEqual(expected["dag"].edges.length, 6)
      // Root span ids are made of the tenant, so only the others can be compared.
      const root = expected["execution"].root_span_id
      for (const tenant of [mixed, halves, single]) {
        const found = await seen(client(tenant, 1))
        const own = found["execution"].root_span_id
        const { digest: _one, ...dag } = found["dag"]
        const { digest: _other, ...first } = expected["dag"]
        const comparable = JSON.stringify({ ...found, dag }).replaceAll(own, root)
        assert.deepStrictEqual(JSON.parse(comparable), { ...expected, dag: first })
      }
      const again = await client(straight, 1).call(BATCH, { body: { operations } })
      assert.strictEqual(again.status, 200, again.text)
      assert.isTrue(again.body.results.every(({ outcome }: Json) => outcome === "existing"))
      assert.deepStrictEqual(await seen(client(straight)), expected)
    })

    it("keep the start to the microsecond, and refuse a retry with another", async () => {
      const api = client(traceTenants.times)
      const body = { agent_id: "agent", idempotency_key: "k" }
      const first = await api.call(EXECUTIONS, { body: { ...body, started_at: STARTED } })
      assert.strictEqual(first.body.started_at, STARTED)
      for (const same of [STARTED, "2026-11-21T12:00:00.1234569+02:00", undefined]) {
        const retry = await client(traceTenants.times, 1).call(EXECUTIONS, {
          body: { ...body, ...(same === undefined ? {} : { started_at: same }) }
        })
        assert.strictEqual(retry.status, 200)
        assert.strictEqual(retry.text, first.text)
      }
      const other = await api.call(EXECUTIONS, {
        body: { ...body, started_at: "2026-11-21T10:00:00.123457Z" }
      })
      assert.strictEqual(other.status, 409)
      assert.strictEqual(other.body.code, "idempotency_conflict")
      const read = await api.call(pathOf(EXECUTIONS, first.body.id))
      assert.strictEqual(read.text, first.text)
    })

    it("can be read as soon as they are answered, from any process", async () => {
      const tenant = traceTenants.reads
      for (let n = 0; n < 5; n++) {
        const execution = await started(client(tenant, n))
        const read = await client(tenant, n + 1).call(pathOf(EXECUTIONS, execution["id"]))
        assert.deepStrictEqual(read.body, execution)
        const { body: span } = await client(tenant, n).call(
          pathOf(EXECUTIONS, execution["id"], "/spans"),
          { body: { span_type: "TOOL_CALL", name: "search" } }
        )
        const { body: event } = await client(tenant, n + 1).call(
          pathOf(SPANS, span.id, "/events"),
          { body: { event_type: "tool.request" } }
        )
        const whole = await client(tenant, n).call(pathOf(SPANS, span.id))
        assert.deepStrictEqual(whole.body, { span, events: [event], events_total: 1 })
        const { body: end } = await client(tenant, n).call(pathOf(SPANS, span.id, "/end"), {
          method: "PUT"
        })
        const ended = await client(tenant, n + 1).call(pathOf(SPANS, span.id))
        assert.deepStrictEqual(ended.body.span, end)
        assert.strictEqual((await client(tenant, n + 1).call(EXECUTIONS)).body.total, n + 1)
      }
    })

    it("number their events without gaps, however many come at once", async () => {
      const tenant = traceTenants.numbers
      const { id, root_span_id } = await started(client(tenant))
      const answers = await Promise.all(
        Array.from({ length: CONCURRENT }, (_, n) =>
          client(tenant, n).call(pathOf(SPANS, root_span_id, "/events"), {
            body:
              n % 2 === 0
                ? { event_type: "tick", payload: { n } }
                : { events: [{ event_type: "tick" }, { event_type: "tock" }] }
          })
        )
      )
      const numbers = answers.flatMap(({ body }) =>
        body.results === undefined
          ? [body.sequence_number]
          : body.results.map(({ sequence_number }: Json) => sequence_number)
      )
      const total = (CONCURRENT / 2) * 3
      const all = Array.from({ length: total }, (_, n) => n + 1)
      assert.deepStrictEqual(
        numbers.sort((left, right) => left - right),
        all
      )
      const { body } = await client(tenant, 1).call(pathOf(SPANS, root_span_id, "/events"))
      assert.deepStrictEqual(
        body.events.map(({ sequence_number }: Json) => sequence_number),
        all
      )
      const { body: dag } = await client(tenant).call(pathOf(EXECUTIONS, id, "/dag"))
      assert.strictEqual(dag.nodes[0].event_count, total)
    })

    it("have a graph with what metadata tells of, a critical path, and a short form", async () => {
      const tenant = traceTenants.graphs
      const turns = 29
      const second = (n: number) => `2026-11-21T10:00:${String(n).padStart(2, "0")}.000000Z`
      const span = (id: string, span_type: string, startedAt: number, metadata: Json) => [
        {
          op: "span.start",
          execution_id: "loop",
          id,
          span_type,
          name: span_type,
          started_at: second(startedAt),
          metadata: { long: "x".repeat(20_000), "gen_ai.usage.input_tokens": 2 }
        },
        { op: "span.end", span_id: id, ended_at: second(startedAt + 1), metadata }
      ]
      const spans = Array.from({ length: turns }, (_, n) => n).flatMap((n) => {
        const output = [{ parts: [{ type: "tool_call", id: `call ${n}`, arguments: { n } }] }]
        const input = [{ parts: [{ type: "tool_call_response", id: `call ${n - 1}` }] }]
        const attributes = {
          "gen_ai.output.messages": output,
          "gen_ai.input.messages": JSON.stringify(input)
        }
        return [
          ...span(`ask ${n}`, "LLM_CALL", 2 * n, { attributes }),
          ...span(`call ${n}`, "TOOL_CALL", 2 * n + 1, { "tool_call.id": `call ${n}` })
        ]
      })
      const [start, end] = [
        { op: "execution.start", id: "loop", agent_id: "a", started_at: second(0) },
        { op: "execution.end", execution_id: "loop", ended_at: second(2 * turns) }
      ]
      for (const part of [
        [start, ...spans.slice(0, 60)],
        [...spans.slice(60), end]
      ]) {
        const answer = await client(tenant).call(BATCH, { body: { operations: part } })
        assert.deepStrictEqual([answer.status, answer.body.rejected], [200, 0], answer.text)
      }
      const { body: dag } = await client(tenant, 1).call(pathOf(EXECUTIONS, "loop", "/dag"))
      const found = dag.inferred_edges.map(({ rule, source, target }: Json) =>
        [rule, source, target].join("|")
      )
      assert.sameMembers(
        found,
        Array.from({ length: turns }, (_, n) => [
          `tool_call|ask ${n}|call ${n}`,
          ...(n === 0 ? [] : [`tool_result|call ${n - 1}|ask ${n}`])
        ]).flat()
      )
      assert.deepStrictEqual(
        dag.critical_path.map(({ span_id }: Json) => span_id),
        Array.from({ length: turns }, (_, n) => [`ask ${n}`, `call ${n}`]).flat()
      )
      const short = pathOf(EXECUTIONS, "loop", "/dag/aggregated")
      const { body: aggregated } = await client(tenant, 1).call(short)
      assert.deepStrictEqual(
        aggregated.nodes.map(({ count, input_tokens = 0, name }: Json) => [
          name,
          count,
          input_tokens
        ]),
        [
          ["a", 1, 0],
          ["LLM_CALL", turns, 2 * turns],
          ["TOOL_CALL", turns, 2 * turns]
        ]
      )
      const { body: same } = await client(tenant).call(
        pathOf(EXECUTIONS, "loop", "/diff/loop?all=true&limit=20000")
      )
      assert.deepStrictEqual(same.counts, { same: 1 + 2 * turns, changed: 0, added: 0, removed: 0 })
      assert.deepStrictEqual(
        [same.a, same.a.input_tokens, same.a.calls],
        [same.b, 2 * turns, turns]
      )
      const counts = aggregated.edges.map(({ count, rule, type }: Json) => [rule ?? type, count])
      assert.sameDeepMembers(counts, [
        ["parent", turns],
        ["parent", turns],
        ["tool_call", turns],
        ["tool_result", turns - 1]
      ])
    })

    it("are listed with filters and exact totals", async () => {
      const tenant = traceTenants.lists
      const starts = Array.from({ length: 60 }, (_, n) => ({
        op: "execution.start",
        id: `run-${String(n).padStart(2, "0")}`,
        agent_id: `agent-${n % 3}`,
        started_at: `2026-11-21T10:00:${String(n).padStart(2, "0")}Z`
      }))
      const ends = starts.slice(0, 20).map(({ id }) => ({
        op: "execution.end",
        execution_id: id,
        status: "FAILED"
      }))
      const answer = await client(tenant).call(BATCH, {
        body: { operations: [...starts, ...ends] }
      })
      assert.strictEqual(answer.body.accepted, 80, answer.text)
      const list = async (query: string) =>
        (await client(tenant, 1).call(`${EXECUTIONS}?${query}`)).body
      const first = await list("")
      assert.deepStrictEqual([first.total, first.page, first.page_size], [60, 1, 50])
      const rest = await list("page=2")
      assert.deepStrictEqual(
        [...first.executions, ...rest.executions].map(({ id }: Json) => id),
        starts.map(({ id }) => id).reverse()
      )
      assert.strictEqual((await list("status=FAILED")).total, 20)
      assert.strictEqual((await list("status=RUNNING&agent_id=agent-1")).total, 13)
      assert.strictEqual(
        (await list("from=2026-11-21T10:00:10Z&to=2026-11-21T10:00:19Z")).total,
        10
      )
    })

    it("are another tenant's nowhere", async () => {
      const api = client(traceTenants.stranger)
      const paths = ["", "/spans", "/dag", "/verify", "/stream"].map((rest) =>
        pathOf(EXECUTIONS, run, rest)
      )
      for (const path of [...paths, pathOf(SPANS, "left"), pathOf(SPANS, "left", "/events")]) {
        assert.strictEqual((await api.call(path)).status, 404, path)
      }
      for (const operation of operations.slice(1)) {
        assert.strictEqual((await sendOne(api, operation)).status, 404)
      }
      assert.strictEqual((await api.call(EXECUTIONS)).body.total, 0)
    })

    it("keep values of any size, until they are erased", async () => {
      const api = client(traceTenants.values)
      const other = client(traceTenants.values, 1)
      const prompts = ["0", "1"].map((n) =>
        `${n} “字” A long prompt.\n`.repeat(isWhole ? 10_000 : 1_000)
      )
      const message = (part: object, at: number) =>
        JSON.stringify([{ role: "user", parts: [part, { type: "text", content: prompts[at] }] }])
      const traceId = "5b8efff798038103d269b633813fc60c"
      const spanOf = (
        spanId: string,
        name: string,
        attributes: Record<string, string>,
        parent = ""
      ) => ({
        traceId,
        spanId,
        parentSpanId: parent,
        name,
        startTimeUnixNano: `1763719200${spanId.slice(-1)}00000000`,
        endTimeUnixNano: `1763719200${spanId.slice(-1)}50000000`,
        attributes: Object.entries(attributes).map(([key, stringValue]) => ({
          key,
          value: { stringValue }
        }))
      })
      const asked = message({ type: "tool_call", id: "call_1", name: "search" }, 0)
      const answered = message({ type: "tool_call_response", id: "call_1" }, 1)
      const [root, first, second, third] = ["1", "2", "3", "4"].map((n) => n.repeat(16)) as [
        string,
        string,
        string,
        string
      ]
      const spans = [
        spanOf(root, "invoke_agent", { "gen_ai.operation.name": "invoke_agent" }),
        spanOf(
          first,
          "chat",
          { "gen_ai.operation.name": "chat", "gen_ai.output.messages": asked },
          root
        ),
        spanOf(
          second,
          "execute_tool search",
          {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.result": prompts[1]!
          },
          root
        ),
        spanOf(
          third,
          "chat",
          {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": answered,
            "gen_ai.system_instructions": asked
          },
          root
        )
      ]
      const sent = await api.call("/v1/traces", {
        body: { resourceSpans: [{ scopeSpans: [{ spans }] }] }
      })
      assert.deepStrictEqual([sent.status, sent.body], [200, {}], sent.text)
      const [{ id }] = (await api.call(EXECUTIONS)).body.executions
      const payloadOf = (reference: Json, from = other) =>
        from.call(`/api/v1/payloads/${reference["$ref"].slice("sha256:".length)}`)
      const { body } = await other.call(pathOf(EXECUTIONS, id, "/spans"))
      const [, chat, tool, last] = body.spans.map(({ metadata }: Json) => metadata.attributes)
      for (const [reference, value] of [
        [chat["gen_ai.output.messages"], asked],
        [tool["gen_ai.tool.call.result"], prompts[1]!],
        [last["gen_ai.input.messages"], answered],
        [last["gen_ai.system_instructions"], asked]
      ] as const) {
        assert.strictEqual(reference.bytes, Buffer.byteLength(value))
        assert.isTrue(value.startsWith(reference.preview))
        const found = await payloadOf(reference)
        assert.strictEqual(found.status, 200)
        assert.strictEqual(found.text, value)
      }
      const { body: dag } = await other.call(pathOf(EXECUTIONS, id, "/dag"))
      assert.sameMembers(
        dag.inferred_edges.map(({ rule }: Json) => rule),
        ["tool_call", "tool_result"]
      )
      // By the API too, as large as a body may be, and with what is no text.
      const large = "x".repeat(isWhole ? 7_000_000 : 300_000)
      const list = Array.from({ length: 5_000 }, (_, n) => ({ n, text: "a short text" }))
      const late = await api.call(pathOf(EXECUTIONS, id, "/spans"), {
        body: {
          id: "large",
          name: "large",
          span_type: "CUSTOM",
          metadata: { kept: 1, large, list }
        }
      })
      assert.strictEqual(late.status, 409, "an execution of OpenTelemetry that has ended")
      const made = await api.call(BATCH, {
        body: {
          operations: [
            { op: "execution.start", id: "by-api", agent_id: "a" },
            {
              op: "span.start",
              execution_id: "by-api",
              id: "large",
              name: "large",
              span_type: "CUSTOM",
              metadata: { kept: 1, large, list }
            },
            { op: "span.event", span_id: "large", event_type: "llm.request", payload: { large } }
          ]
        }
      })
      assert.deepStrictEqual([made.status, made.body.rejected], [200, 0], made.text)
      const { events, span: shown } = (await other.call(pathOf(SPANS, "large"))).body
      assert.strictEqual(shown.metadata.kept, 1)
      assert.deepStrictEqual(events[0].payload.large, shown.metadata.large)
      assert.strictEqual((await payloadOf(shown.metadata.large)).text, large)
      assert.strictEqual(shown.metadata.list.media_type, "application/json")
      assert.deepStrictEqual(JSON.parse((await payloadOf(shown.metadata.list)).text), list)
      const report = (await other.call(pathOf(EXECUTIONS, "by-api", "/verify"))).body
      // The large value is there once, in pieces of 256 KiB.
      const pieces = Math.ceil(large.length / 262_144) + 1
      assert.deepInclude(report, { valid: true, facts_checked: 4 + pieces })
      const stranger = client(traceTenants.stranger)
      assert.strictEqual((await payloadOf(shown.metadata.large, stranger)).status, 404)
      await api.call(pathOf(EXECUTIONS, "by-api", "/erase"), { body: { reason: "asked" } })
      for (const reference of [shown.metadata.large, shown.metadata.list]) {
        assert.strictEqual((await payloadOf(reference)).status, 404)
      }
      assert.strictEqual((await payloadOf(chat["gen_ai.output.messages"])).status, 200)
      const erased = (await other.call(pathOf(EXECUTIONS, "by-api", "/verify"))).body
      assert.isTrue(erased.valid)
    })

    it("say nothing of their details any more once they are erased", async () => {
      const api = client(traceTenants.erase)
      await api.call(BATCH, { body: { operations } })
      const answer = await api.call(pathOf(EXECUTIONS, run, "/erase"), {
        body: { reason: "asked" }
      })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.isString(answer.body.erased_at)
      const left = await seen(client(traceTenants.erase, 1))
      const text = JSON.stringify(left)
      for (const secret of ["nested", "cron", "timeout", "hits", "📄", '"Agent"']) {
        assert.notInclude(text, secret)
      }
      assert.deepStrictEqual(left["spans"].map(({ id, status }: Json) => [id, status]).slice(1), [
        ["plan", "COMPLETED"],
        ["left", "COMPLETED"],
        ["right", "FAILED"],
        ["join", "COMPLETED"]
      ])
    })

    if (!isWhole) return

    it("can be followed live and from the beginning", async () => {
      const tenant = traceTenants.stream
      const api = client(tenant)
      await api.call(BATCH, { body: { operations: operations.slice(0, 2) } })
      const url = `${client(tenant, 1).url}${pathOf(EXECUTIONS, run, "/stream")}`
      const ended = (messages: ReadonlyArray<{ readonly data: string }>) =>
        messages.some(
          ({ data }) =>
            (JSON.parse(data) as Json)["trigger"] !== undefined
            && (JSON.parse(data) as Json)["status"] === "COMPLETED"
        )
      // The stream is ahead of the lists: only the answer says that they show it all.
      let answered: Promise<unknown> = Promise.resolve()
      const live = await readStream(url, api.key, {
        opened: () => {
          answered = client(tenant).call(BATCH, { body: { operations: operations.slice(2) } })
        },
        done: ended
      })
      await answered
      const { execution, spans } = await seen(api)
      const last = (messages: typeof live, id: string) =>
        messages.map(({ data }) => JSON.parse(data) as Json).findLast((data) => data["id"] === id)
      const all = await readStream(url, api.key, { lastEventId: "0", done: ended })
      for (const messages of [live, all]) {
        const { summary: _, ...changing } = execution
        assert.deepInclude(last(messages, run), changing)
        for (const span of spans.slice(1)) {
          assert.deepStrictEqual(last(messages, span.id), span)
        }
        const ids = messages.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
        assert.deepStrictEqual(
          ids,
          [...new Set(ids)].sort((left, right) => left - right)
        )
      }
      assert.deepStrictEqual(all.slice(-live.length), live)
      assert.strictEqual(all.filter(({ event }) => event === "trace.event").length, 2)
      const middle = all[4]!.id!
      const resumed = await readStream(url, api.key, { lastEventId: middle, done: ended })
      assert.deepStrictEqual(resumed, all.slice(5))
      const beyond = await api.call(`${pathOf(EXECUTIONS, run, "/stream")}?after_sequence=1000000`)
      assert.strictEqual(beyond.status, 400)
    })

    it("verify, also once they are erased", async () => {
      const api = client(traceTenants.verify)
      await api.call(BATCH, { body: { operations } })
      const path = pathOf(EXECUTIONS, run, "/verify")
      const { body: report } = await api.call(path)
      assert.deepInclude(report, {
        valid: true,
        status: "valid",
        scheme: "alk-trace-v1",
        facts_checked: operations.length + 1
      })
      await api.call(pathOf(EXECUTIONS, run, "/erase"), { body: { reason: "asked" } })
      const { body: erased } = await client(traceTenants.verify, 1).call(path)
      assert.deepInclude(erased, { valid: true, facts_checked: operations.length + 2 })
    })
  })
}

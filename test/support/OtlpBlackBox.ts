/**
 * A real OpenTelemetry SDK against a running service, seen through the API alone: what an agent run
 * is exported as has to come out as the right execution, spans, events and DAG, in whatever order
 * and grouping its spans arrive.
 */
import { execFile, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { promisify } from "node:util"
import { ROOT_CONTEXT, trace } from "@opentelemetry/api"
import { resourceFromAttributes } from "@opentelemetry/resources"
import { BatchSpanProcessor, type ReadableSpan, TracerProvider } from "@opentelemetry/sdk-trace"
import { assert, describe, it } from "vitest"
import { Client, type Json } from "./Client.ts"
import {
  type AgentRun,
  deliver,
  type Encoding,
  encodings,
  exporterTo,
  type OtlpTarget,
  ROOT,
  recordAgentRun
} from "./OtlpAgentRun.ts"

const PYTHON_AGENT = "test/support/otlp_agent.py"
const run = promisify(execFile)

/** True if python3 has the OpenTelemetry SDK with an OTLP/HTTP exporter. */
const hasPython =
  spawnSync("python3", ["-c", "import opentelemetry.sdk, opentelemetry.exporter.otlp.proto.http"])
    .status === 0

const agentId = (): string => `otlp-${randomUUID()}`

const ok = async (client: Client, path: string): Promise<Json> => {
  const { body, status, text } = await client.call(path)
  assert.strictEqual(status, 200, `${path}: ${text}`)
  return body as Json
}

/** The only execution of an agent. */
const executionOf = async (client: Client, agent: string): Promise<Json> => {
  const { executions, total } = await ok(client, `/api/v1/executions?agent_id=${agent}`)
  assert.strictEqual(total, 1, JSON.stringify(executions))
  return executions[0]
}

/** The spans of an execution by name. */
const spansOf = async (client: Client, execution: Json): Promise<ReadonlyMap<string, Json>> => {
  const { spans } = await ok(client, `/api/v1/executions/${execution["id"]}/spans`)
  return new Map(spans.map((span: Json) => [span["name"], span]))
}

const checkExecution = (execution: Json, run: AgentRun): void => {
  const root = run.expected.find(({ name }) => name === ROOT)!
  const { agent_id, agent_name, ended_at, metadata, started_at, status } = execution
  assert.deepStrictEqual(
    { agent_id, agent_name, started_at, ended_at, status },
    {
      agent_id: run.agentId,
      agent_name: run.agentName,
      started_at: root.startedAt,
      ended_at: root.endedAt,
      status: root.status
    }
  )
  assert.strictEqual(metadata.trace_id, run.traceId)
  assert.strictEqual(metadata.name, ROOT)
}

const checkSpans = (spans: ReadonlyMap<string, Json>, execution: Json, run: AgentRun): void => {
  assert.sameMembers(
    [...spans.keys()],
    run.expected.map(({ name }) => name)
  )
  const idOf = (name: string): string => spans.get(name)!["id"]
  assert.strictEqual(execution["root_span_id"], idOf(ROOT))
  for (const expected of run.expected) {
    const span = spans.get(expected.name)!
    const { caused_by_span_ids, ended_at, error, parent_span_id, span_type, started_at, status } =
      span
    assert.deepStrictEqual(
      { span_type, status, started_at, ended_at, parent_span_id, error },
      {
        span_type: expected.type,
        status: expected.status,
        started_at: expected.startedAt,
        ended_at: expected.endedAt,
        parent_span_id: expected.parent && idOf(expected.parent),
        error: expected.error
      },
      expected.name
    )
    assert.sameMembers(caused_by_span_ids, expected.causes.map(idOf), expected.name)
    assert.notProperty(span, "synthetic")
    const sent = run.spans.find(({ name }) => name === expected.name)!
    assert.deepStrictEqual(span["metadata"].attributes, { ...sent.attributes })
    assert.strictEqual(span["metadata"].span_id, sent.spanContext().spanId)
    assert.strictEqual(span["metadata"].resource.attributes["service.name"], "planner-service")
  }
}

const checkEvents = async (
  client: Client,
  spans: ReadonlyMap<string, Json>,
  run: AgentRun
): Promise<void> => {
  const numbers: Array<number> = []
  for (const expected of run.expected) {
    const { events } = await ok(client, `/api/v1/spans/${spans.get(expected.name)!["id"]}/events`)
    assert.deepStrictEqual(
      events.map(({ event_type, timestamp }: Json) => [event_type, timestamp]),
      expected.events,
      expected.name
    )
    numbers.push(...events.map(({ sequence_number }: Json) => sequence_number))
  }
  numbers.sort((left, right) => left - right)
  assert.deepStrictEqual(
    numbers,
    numbers.map((_, index) => index + 1)
  )
}

const checkDag = async (
  client: Client,
  spans: ReadonlyMap<string, Json>,
  execution: Json,
  run: AgentRun
): Promise<void> => {
  const dag = await ok(client, `/api/v1/executions/${execution["id"]}/dag`)
  const idOf = (name: string): string => spans.get(name)!["id"]
  const nodes = new Map<string, Json>(dag["nodes"].map((node: Json) => [node["name"], node]))
  assert.strictEqual(dag["nodes"].length, run.expected.length)
  for (const expected of run.expected) {
    const { depth, duration_us, event_count, status, type } = nodes.get(expected.name)!
    assert.deepStrictEqual(
      { type, status, duration_us, depth, event_count },
      {
        type: expected.type,
        status: expected.status,
        duration_us: expected.durationMicros,
        depth: expected.depth,
        event_count: expected.events.length
      },
      expected.name
    )
  }
  assert.sameDeepMembers(
    dag["edges"].map(({ source, target, type }: Json) => [source, target, type]),
    run.expected.flatMap(({ causes, name, parent }) => [
      ...(parent === undefined ? [] : [[idOf(parent), idOf(name), "parent"]]),
      ...causes.map((cause) => [idOf(cause), idOf(name), "caused_by"])
    ])
  )
  const places = new Map<string, number>(
    dag["nodes"].map(({ id }: Json, index: number) => [id, index])
  )
  for (const { source, target } of dag["edges"]) {
    assert.isBelow(places.get(source)!, places.get(target)!, "source first")
  }
}

/** Everything that the API says of a run that has arrived completely. */
export const checkAgentRun = async ({ key, url }: OtlpTarget, run: AgentRun): Promise<void> => {
  const client = new Client(url, key)
  const execution = await executionOf(client, run.agentId)
  checkExecution(execution, run)
  const spans = await spansOf(client, execution)
  checkSpans(spans, execution, run)
  await checkEvents(client, spans, run)
  await checkDag(client, spans, execution, run)
  const report = await ok(client, `/api/v1/executions/${execution["id"]}/verify`)
  assert.isTrue(report["valid"], JSON.stringify(report))
}

/** Groupings of the same spans, which end children first and root last. */
const groupings: Readonly<
  Record<string, (spans: ReadonlyArray<ReadableSpan>) => ReadonlyArray<ReadonlyArray<ReadableSpan>>>
> = {
  "in one request": (spans) => [spans],
  "one by one, children before their parents": (spans) => spans.map((span) => [span]),
  "one by one after the end, parents before their children": (spans) =>
    spans.toReversed().map((span) => [span]),
  "root in the middle": (spans) => [
    [...spans.slice(0, 3), spans.at(-1)!],
    spans.slice(3, -1).toReversed()
  ],
  "twice, and overlapping": (spans) => [spans.slice(2), spans, spans.slice(0, 4)]
}

/** Register the tests. `target` is asked when they run. */
export const otlpBlackBox = (target: () => OtlpTarget): void => {
  const send = async (encoding: Encoding, spans: ReadonlyArray<ReadableSpan>) => {
    await deliver(exporterTo(target(), encoding), spans)
  }

  describe("an agent run exported by OpenTelemetry", () => {
    for (const encoding of encodings) {
      for (const [name, group] of Object.entries(groupings)) {
        it(`is the right execution: ${encoding}, ${name}`, async () => {
          const run = await recordAgentRun(agentId())
          for (const spans of group(run.spans)) await send(encoding, spans)
          await checkAgentRun(target(), run)
        })
      }

      it(`is the same execution however many exporters send it at once: ${encoding}`, async () => {
        const run = await recordAgentRun(agentId())
        await Promise.all(run.spans.map((span) => send(encoding, [span])))
        await checkAgentRun(target(), run)
      })
    }

    it.each(["protobuf", "grpc"] as const)("is taken compressed: %s", async (encoding) => {
      const run = await recordAgentRun(agentId())
      await deliver(exporterTo(target(), encoding, true), run.spans)
      await checkAgentRun(target(), run)
    })

    it("is under a root that is not there yet until the root arrives", async () => {
      const client = new Client(target().url, target().key)
      const run = await recordAgentRun(agentId())
      const [root] = run.spans.filter(({ name }) => name === ROOT)
      const below = run.spans.find(({ name }) => name === "retrieval stations")!
      await send("json", [below])
      const found = await ok(client, "/api/v1/executions?agent_id=planner-service&page_size=1000")
      const early = found["executions"].find(
        ({ metadata }: Json) => metadata.trace_id === run.traceId
      )
      // The run is long over: no parent is waited for.
      assert.strictEqual(early.status, "COMPLETED")
      const { nodes } = await ok(client, `/api/v1/executions/${early.id}/dag`)
      assert.strictEqual(nodes.filter(({ synthetic }: Json) => synthetic === true).length, 1)
      assert.strictEqual(nodes.filter(({ missing }: Json) => missing === true).length, 1)
      await send(
        "json",
        run.spans.filter((span) => span !== root && span !== below)
      )
      await send("json", [root!])
      const execution = await executionOf(client, run.agentId)
      assert.strictEqual(execution["id"], early.id)
      await checkAgentRun(target(), run)
    })

    it.each(["protobuf", "grpc"] as const)(
      "is complete when the SDK's own batches have gone out: %s",
      async (encoding) => {
        const { key, url } = target()
        const agent = agentId()
        const provider = new TracerProvider({
          resource: resourceFromAttributes({ "service.name": agent }),
          spanProcessors: [
            new BatchSpanProcessor({
              exporter: exporterTo(target(), encoding),
              maxExportBatchSize: 100
            })
          ]
        })
        const tracer = provider.getTracer("alk-tests")
        const root = tracer.startSpan("root")
        const inside = trace.setSpan(ROOT_CONTEXT, root)
        for (let n = 0; n < 250; n++) tracer.startSpan(`step ${n}`, {}, inside).end()
        root.end()
        await provider.shutdown()
        const client = new Client(url, key)
        const execution = await executionOf(client, agent)
        assert.strictEqual(execution["status"], "COMPLETED")
        assert.strictEqual((await spansOf(client, execution)).size, 251)
      }
    )

    it("has log records of models as events of their span, before it, after it and once", async () => {
      const { key, url } = target()
      const client = new Client(url, key)
      const [agent, traceId] = [agentId(), randomUUID().replaceAll("-", "")]
      const [root, call] = ["00000000000000a1", "00000000000000a2"]
      const resource = { attributes: [{ key: "service.name", value: { stringValue: agent } }] }
      const post = async (path: string, body: object) => {
        const answer = await client.call(path, { body })
        assert.deepStrictEqual([answer.status, answer.text], [200, "{}"])
      }
      const log = (eventName: string, nanos: number) =>
        post("/v1/logs", {
          resourceLogs: [
            {
              resource,
              scopeLogs: [
                {
                  logRecords: [
                    {
                      timeUnixNano: String(1_763_700_000_000_000_000n + BigInt(nanos)),
                      eventName,
                      traceId,
                      spanId: call,
                      body: { stringValue: eventName }
                    }
                  ]
                }
              ]
            }
          ]
        })
      const span = (spanId: string, more: object) => ({
        traceId,
        spanId,
        startTimeUnixNano: "1763700000000000000",
        endTimeUnixNano: "1763700001000000000",
        ...more
      })
      await log("gen_ai.user.message", 1_000)
      await log("gen_ai.user.message", 1_000)
      // Until the span comes, or if it never does, the graph shows it and leads to its events.
      const before = await executionOf(client, agent)
      const { nodes } = await ok(client, `/api/v1/executions/${before["id"]}/dag`)
      const { event_count, id } = nodes.find(({ missing }: Json) => missing)
      assert.strictEqual(event_count, 1)
      const absent = `/api/v1/spans/${id}/events`
      const told = await ok(client, `${absent}?execution_id=${before["id"]}`)
      assert.deepStrictEqual(
        told.events.map(({ span_id }: Json) => span_id),
        [id]
      )
      for (const path of [absent, `${absent}?execution_id=none`]) {
        assert.strictEqual((await client.call(path)).status, 404)
      }
      await post("/v1/traces", {
        resourceSpans: [
          {
            resource,
            scopeSpans: [
              {
                spans: [
                  span(root, { name: "root" }),
                  span(call, { name: "call", parentSpanId: root })
                ]
              }
            ]
          }
        ]
      })
      await log("gen_ai.choice", 2_000)
      const execution = await executionOf(client, agent)
      assert.strictEqual(execution["status"], "COMPLETED")
      const spans = await spansOf(client, execution)
      assert.sameMembers([...spans.keys()], ["root", "call"])
      assert.strictEqual(spans.get("call")!["id"], id)
      const { events } = await ok(client, absent)
      assert.deepStrictEqual(
        (await ok(client, `${absent}?execution_id=${execution["id"]}`)).events,
        events
      )
      assert.deepStrictEqual(
        events.map(({ event_type, payload }: Json) => [event_type, payload]),
        ["gen_ai.user.message", "gen_ai.choice"].map((name) => [name, { body: name }])
      )
      const { valid } = await ok(client, `/api/v1/executions/${execution["id"]}/verify`)
      assert.isTrue(valid)
    })

    it("has the edges that log records tell of, in either form of the conventions", async () => {
      const { key, url } = target()
      const client = new Client(url, key)
      const [agent, traceId] = [agentId(), randomUUID().replaceAll("-", "")]
      const resource = { attributes: [{ key: "service.name", value: { stringValue: agent } }] }
      const text = (name: string, stringValue: string) => ({ key: name, value: { stringValue } })
      const idAt = (at: number) => at.toString(16).padStart(16, "0")
      const [root, asks, gets, asksToo] = [1, 2, 4, 5].map(idAt)
      const span = (at: number, name: string, attributes: ReadonlyArray<object>) => ({
        traceId,
        spanId: idAt(at),
        ...(at === 1 ? {} : { parentSpanId: root }),
        name,
        attributes,
        startTimeUnixNano: String(1_763_700_000_000_000_000n + BigInt(at) * 1_000_000n),
        endTimeUnixNano: String(1_763_700_001_000_000_000n + BigInt(at) * 1_000_000n)
      })
      const chat = text("gen_ai.operation.name", "chat")
      const executes = (id: string) => [
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.call.id", id)
      ]
      const spans = [
        span(1, "root", []),
        span(2, "asks", [chat]),
        span(3, "tool", executes("c1")),
        span(4, "gets", [chat]),
        span(5, "asks too", [chat]),
        span(6, "tool too", executes("c2"))
      ]
      const kvlist = (key: string, value: object) => ({ kvlistValue: { values: [{ key, value }] } })
      const calls = { arrayValue: { values: [kvlist("id", { stringValue: "c1" })] } }
      const output = [{ role: "assistant", parts: [{ type: "tool_call", id: "c2", name: "t" }] }]
      const record = (spanId: string, eventName: string, more: object) => ({
        timeUnixNano: "1763700000500000000",
        traceId,
        spanId,
        eventName,
        ...more
      })
      const logRecords = [
        record(asks!, "gen_ai.choice", { body: kvlist("message", kvlist("tool_calls", calls)) }),
        record(gets!, "gen_ai.tool.message", { body: kvlist("id", { stringValue: "c1" }) }),
        record(asksToo!, "gen_ai.client.inference.operation.details", {
          attributes: [text("gen_ai.output.messages", JSON.stringify(output))]
        })
      ]
      for (const [path, body] of [
        ["/v1/logs", { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] }],
        ["/v1/traces", { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }]
      ] as const) {
        const answer = await client.call(path, { body })
        assert.deepStrictEqual([answer.status, answer.text], [200, "{}"])
      }
      const execution = await executionOf(client, agent)
      const { inferred_edges, nodes } = await ok(
        client,
        `/api/v1/executions/${execution["id"]}/dag`
      )
      const nameOf = (id: string) => nodes.find((node: Json) => node["id"] === id)["name"]
      assert.sameMembers(
        inferred_edges
          .filter(({ rule }: Json) => rule !== "timing")
          .map(({ rule, source, target }: Json) => `${rule}: ${nameOf(source)} ${nameOf(target)}`),
        ["tool_call: asks tool", "tool_result: tool gets", "tool_call: asks too tool too"]
      )
    })

    const python = hasPython
      ? "is the right execution from the Python SDK"
      : "is not exported from Python here: python3 has no OpenTelemetry SDK"
    it(python, async () => {
      if (!hasPython) return
      const { key, url } = target()
      const agent = agentId()
      await run("python3", [PYTHON_AGENT, url, key, agent])
      const client = new Client(url, key)
      const execution = await executionOf(client, agent)
      const spans = await spansOf(client, execution)
      assert.deepStrictEqual(
        ["invoke_agent", "chat", "execute_tool"].map((name) => spans.get(name)!["span_type"]),
        ["AGENT", "LLM_CALL", "TOOL_CALL"]
      )
      assert.strictEqual(spans.get("execute_tool")!["status"], "FAILED")
      assert.deepStrictEqual(spans.get("execute_tool")!["caused_by_span_ids"], [
        spans.get("chat")!["id"]
      ])
    })
  })
}

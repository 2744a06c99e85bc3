/** Runs that SDKs have sent, recorded under test/examples: what alk makes of them. */

import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { inferEdges } from "../../../../src/domain/traces/InferredEdges.ts"
import { comparedSpan, totalsOf } from "../../../../src/domain/traces/RunDiff.ts"
import { spanGraphOf } from "../../../../src/domain/traces/SpanGraph.ts"
import { summaryOf } from "../../../../src/domain/traces/SpanSummary.ts"
import type { Span } from "../../../../src/domain/traces/TraceResources.ts"
import { operationsOf, plain } from "./support/Exports.ts"

const recorded = (name: string): ReadonlyArray<Span & { readonly agent_id: string }> => {
  const text = readFileSync(`test/examples/${name}/run.json`, "utf8")
  return operationsOf(JSON.parse(text)).map((operation) => {
    const { agentId, details, spanId, spanType, startedAt, ...rest } = plain(operation) as {
      readonly agentId: string
      readonly details: { readonly name: string; readonly metadata: JsonObject }
      readonly spanId: string
      readonly spanType: string
      readonly startedAt: string
      readonly endedAt?: string
      readonly parentSpanId?: string
    }
    return {
      id: spanId,
      agent_id: agentId,
      execution_id: "x",
      ...(rest.parentSpanId === undefined ? {} : { parent_span_id: rest.parentSpanId }),
      caused_by_span_ids: [],
      span_type: spanType,
      name: details.name,
      status: "COMPLETED",
      started_at: startedAt,
      ...(rest.endedAt === undefined ? {} : { ended_at: rest.endedAt }),
      metadata: details.metadata
    }
  })
}

type Shown = ReturnType<typeof recorded>

const namesOf = (spans: Shown) => spans.map(({ name, span_type }) => `${span_type} ${name}`)

/** Model and tokens of the calls of models. */
const callsOf = (spans: Shown) =>
  spans
    .filter(({ span_type }) => span_type === "LLM_CALL")
    .map((span) => summaryOf(span))
    .map((summary) => [summary?.model, summary?.input_tokens, summary?.output_tokens])

/** Inferred edges, by rule and the names of the spans. */
const edgesOf = (spans: Shown) => {
  const root = spans.find(({ parent_span_id }) => parent_span_id === undefined)!
  const graph = finish(spanGraphOf({ rootSpanId: root.id, spans, eventCounts: new Map() }))
  const nameOf = (id: string) => spans.find((span) => span.id === id)!.name
  return finish(inferEdges(graph)).edges.map(({ rule, source, target }) =>
    [rule, nameOf(source), nameOf(target)].join("|")
  )
}

describe("a run of the Vercel AI SDK", () => {
  const spans = recorded("vercel-ai-sdk")

  it("has agents, calls of models and tools by their names", () => {
    assert.sameMembers(namesOf(spans), [
      "CUSTOM handle question",
      "AGENT tide-agent",
      "LLM_CALL ai.generateText.doGenerate",
      "TOOL_CALL tides",
      "LLM_CALL ai.generateText.doGenerate",
      "AGENT tide-agent",
      "LLM_CALL ai.streamText.doStream",
      "WORKFLOW ai.embed",
      "EMBEDDING ai.embed.doEmbed"
    ])
    assert.isTrue(spans.some(({ agent_id }) => agent_id === "tide-agent"))
    const tool = spans.find(({ name }) => name === "tides")!
    assert.strictEqual(tool.metadata["name"], "ai.toolCall")
  })

  it("has model, tokens, finish reason, session and user in summaries", () => {
    assert.sameDeepMembers(callsOf(spans), [
      ["mock-model-1", 120, 14],
      ["mock-model-1", 150, 9],
      ["mock-model-1", 40, 6]
    ])
    const calls = spans.filter(({ span_type }) => span_type === "LLM_CALL").map(summaryOf)
    for (const summary of calls) {
      assert.deepStrictEqual([summary?.session_id, summary?.user_id], ["session-1", "user-7"])
      assert.strictEqual(summary?.finish_reasons?.length, 1)
    }
    const [embedding] = spans.filter(({ span_type }) => span_type === "EMBEDDING").map(summaryOf)
    assert.deepStrictEqual([embedding?.model, embedding?.input_tokens], ["mock-embedding-1", 5])
  })

  it("has edges from the model to the tool, and from the tool to the answer", () => {
    const model = "ai.generateText.doGenerate"
    assert.includeMembers(edgesOf(spans), [
      `tool_call|${model}|tides`,
      `tool_result|tides|${model}`
    ])
  })
})

describe("a run of LangGraph, by OpenInference", () => {
  const spans = recorded("langgraph-openinference")

  it("has nodes, calls of the model and the tool", () => {
    assert.sameMembers(namesOf(spans), [
      "AGENT tide-agent",
      "AGENT agent",
      "LLM_CALL FakeModel",
      "WORKFLOW goes_on",
      "WORKFLOW tools",
      "TOOL_CALL tides",
      "AGENT agent",
      "LLM_CALL FakeModel",
      "WORKFLOW goes_on"
    ])
    assert.sameDeepMembers(callsOf(spans), [
      ["fake-model-1", 120, 14],
      ["fake-model-1", 150, 9]
    ])
    for (const span of spans) {
      assert.deepInclude(summaryOf(span), { session_id: "session-1", user_id: "user-7" })
    }
  })

  it("has edges between the steps of the graph", () => {
    const steps = edgesOf(spans).filter((edge) => edge.startsWith("langgraph_"))
    assert.includeMembers(
      steps.map((edge) => edge.slice(edge.indexOf("|") + 1)),
      ["agent|tools", "tools|agent"]
    )
  })
})

describe("a run of the OpenAI Agents SDK, by OpenInference", () => {
  const spans = recorded("openai-agents-openinference")

  it("has agents, the hand-over, calls of the model and the tool", () => {
    assert.includeMembers(namesOf(spans), [
      "AGENT Front desk",
      "AGENT Tide agent",
      "HANDOFF handoff to Tide agent",
      "LLM_CALL generation",
      "TOOL_CALL tides"
    ])
    assert.sameDeepMembers(callsOf(spans), [
      ["fake-model-1", 60, 5],
      ["fake-model-1", 120, 14],
      ["fake-model-1", 150, 9]
    ])
  })

  it("has an edge from the agent that hands over to the one that goes on", () => {
    assert.include(edgesOf(spans), "graph_node|Front desk|Tide agent")
  })
})

describe("a run of LangGraph, by OpenLLMetry", () => {
  const spans = recorded("langgraph-openllmetry")

  it("has the agent, nodes, calls of the model and the tool", () => {
    assert.includeMembers(namesOf(spans), [
      "AGENT invoke_agent tide-agent",
      "AGENT tide-agent.workflow",
      "WORKFLOW execute_task agent",
      "WORKFLOW execute_task tools",
      "LLM_CALL FakeModel.chat",
      "TOOL_CALL execute_tool tides"
    ])
    assert.sameDeepMembers(callsOf(spans), [
      ["unknown", 120, 14],
      ["unknown", 150, 9]
    ])
    const call = spans.find(({ span_type }) => span_type === "LLM_CALL")!
    assert.deepInclude(summaryOf(call), { session_id: "session-1", user_id: "user-7" })
  })

  it("has edges between the steps of the graph", () => {
    assert.includeMembers(
      edgesOf(spans).map((edge) => edge.slice(edge.indexOf("|") + 1)),
      ["execute_task agent|execute_task tools", "execute_task tools|execute_task agent"]
    )
  })
})

describe("calls of the Anthropic SDK, by OpenLLMetry", () => {
  const spans = recorded("anthropic-openllmetry")

  it("have model, tokens and finish reasons", () => {
    assert.sameDeepMembers(callsOf(spans), [
      ["fake-model-1", 120, 14],
      ["fake-model-1", 150, 9]
    ])
    const reasons = spans.flatMap((span) => summaryOf(span)?.finish_reasons ?? [])
    assert.sameMembers(reasons, ["tool_call", "stop"])
  })

  it("have edges to the tool between them, and back", () => {
    assert.includeMembers(edgesOf(spans), [
      "tool_call|anthropic.chat|execute_tool tides",
      "tool_result|execute_tool tides|anthropic.chat"
    ])
  })
})

describe("a run of the Claude Agent SDK, by OpenInference", () => {
  const spans = recorded("claude-agent-sdk-openinference")

  it("has the agent, what it has used, and the tool", () => {
    assert.sameMembers(namesOf(spans), ["AGENT ClaudeAgent.query", "TOOL_CALL mcp__almanac__tides"])
    const agent = spans.find(({ span_type }) => span_type === "AGENT")!
    assert.deepInclude(summaryOf(agent), {
      model: "claude-mock-1",
      input_tokens: 240,
      output_tokens: 23,
      finish_reasons: ["end_turn"],
      cost: 0.00142
    })
    assert.isString(summaryOf(agent)?.session_id)
  })

  it("has the totals that its agent says, for it tells of no calls", () => {
    const totals = totalsOf({
      spans: spans.map((span) => comparedSpan(span, false)),
      startedAt: spans[0]!.started_at,
      endedAt: undefined
    })
    const { calls, cost, input_tokens, output_tokens } = totals
    assert.deepStrictEqual(
      { calls, cost, input_tokens, output_tokens },
      { calls: 0, cost: 0.00142, input_tokens: 240, output_tokens: 23 }
    )
  })
})

describe("a question to LlamaIndex, by OpenInference", () => {
  it("has embeddings, retrievals and calls of the model", () => {
    const types = recorded("llamaindex-openinference").map(({ span_type }) => span_type)
    const counts = Map.groupBy(types, (type) => type)
    assert.sameMembers([...counts.keys()], ["EMBEDDING", "LLM_CALL", "RETRIEVAL", "WORKFLOW"])
  })
})

describe("a crew of CrewAI, by OpenInference", () => {
  it("has the crew and its agent", () => {
    const spans = recorded("crewai-openinference")
    assert.sameMembers(
      spans.map(({ span_type }) => span_type),
      ["WORKFLOW", "AGENT"]
    )
    for (const span of spans) {
      assert.deepInclude(summaryOf(span), { session_id: "session-1", user_id: "user-7" })
    }
  })
})

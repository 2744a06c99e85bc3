/** Runs that SDKs have sent, recorded under test/examples: what alk makes of them. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import type { JsonObject } from "../../../../src/domain/json/StrictJson.ts"
import { inferEdges } from "../../../../src/domain/traces/InferredEdges.ts"
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

describe("a run of the Vercel AI SDK", () => {
  const spans = recorded("vercel-ai-sdk")
  const shown = spans.map(({ name, span_type }) => `${span_type} ${name}`)

  it("has agents, calls of models and tools by their names", () => {
    assert.sameMembers(shown, [
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
    const calls = spans.filter(({ span_type }) => span_type === "LLM_CALL").map(summaryOf)
    assert.sameDeepMembers(
      calls.map((summary) => [summary?.model, summary?.input_tokens, summary?.output_tokens]),
      [
        ["mock-model-1", 120, 14],
        ["mock-model-1", 150, 9],
        ["mock-model-1", 40, 6]
      ]
    )
    for (const summary of calls) {
      assert.deepStrictEqual([summary?.session_id, summary?.user_id], ["session-1", "user-7"])
      assert.strictEqual(summary?.finish_reasons?.length, 1)
    }
    const [embedding] = spans.filter(({ span_type }) => span_type === "EMBEDDING").map(summaryOf)
    assert.deepStrictEqual([embedding?.model, embedding?.input_tokens], ["mock-embedding-1", 5])
  })

  it("has edges from the model to the tool, and from the tool to the answer", () => {
    const root = spans.find(({ name }) => name === "handle question")!
    const graph = spanGraphOf({ rootSpanId: root.id, spans, eventCounts: new Map() })
    const { edges } = inferEdges(graph)
    const typeOf = (id: string) => spans.find((span) => span.id === id)!.span_type
    const found = edges.map(({ rule, source, target }) =>
      [rule, typeOf(source), typeOf(target)].join(" ")
    )
    assert.includeMembers(found, ["tool_call LLM_CALL TOOL_CALL", "tool_result TOOL_CALL LLM_CALL"])
  })
})

/** Calls of tools that only the events of spans tell of, as instrumentations write them. */

import { assert, describe, it } from "vitest"
import { finish } from "../../../../src/domain/Slices.ts"
import { callsInEvents } from "../../../../src/domain/traces/GraphHints.ts"
import { inferEdges } from "../../../../src/domain/traces/InferredEdges.ts"
import { spanGraphOf } from "../../../../src/domain/traces/SpanGraph.ts"
import { attribute, exportOf, type Json, operationsOf, plain, span } from "./support/Exports.ts"

const CALL = "call_77"
const asked = [{ id: CALL, type: "function", function: { name: "search", arguments: "{}" } }]

/** Who writes them, what a model answers with a call, and what tells the next one its result. */
const forms: ReadonlyArray<readonly [of: string, choice: Json, result: Json]> = [
  [
    "core 1.28 to 1.36",
    { name: "gen_ai.choice", attributes: { message: { tool_calls: asked } } },
    { name: "gen_ai.tool.message", attributes: { id: CALL, content: "3 hits" } }
  ],
  [
    "the same as JSON texts",
    { name: "gen_ai.choice", attributes: { tool_calls: JSON.stringify(asked) } },
    { name: "gen_ai.tool.message", attributes: { tool_call_id: CALL } }
  ],
  [
    "Azure",
    {
      name: "gen_ai.choice",
      attributes: { "gen_ai.event.content": JSON.stringify({ message: { tool_calls: asked } }) }
    },
    {
      name: "gen_ai.tool.message",
      attributes: { "gen_ai.event.content": JSON.stringify({ id: CALL, content: "3 hits" }) }
    }
  ],
  [
    "Strands",
    {
      name: "gen_ai.choice",
      attributes: {
        finish_reason: "tool_use",
        message: JSON.stringify([{ toolUse: { toolUseId: CALL, name: "search", input: {} } }])
      }
    },
    {
      name: "gen_ai.user.message",
      attributes: {
        content: JSON.stringify([{ toolResult: { toolUseId: CALL, status: "success" } }])
      }
    }
  ],
  [
    "Anthropic",
    {
      name: "gen_ai.choice",
      attributes: { message: { content: [{ type: "tool_use", id: CALL, name: "search" }] } }
    },
    {
      name: "gen_ai.user.message",
      attributes: { content: [{ type: "tool_result", tool_use_id: CALL, content: "3 hits" }] }
    }
  ],
  [
    "core from 1.37 on",
    {
      name: "gen_ai.client.inference.operation.details",
      attributes: {
        "gen_ai.output.messages": [{ role: "assistant", parts: [{ type: "tool_call", id: CALL }] }]
      }
    },
    {
      name: "gen_ai.client.inference.operation.details",
      attributes: {
        "gen_ai.input.messages": JSON.stringify([
          { role: "tool", parts: [{ type: "tool_call_response", id: CALL }] }
        ])
      }
    }
  ]
]

const anyValue = (value: unknown): Json => {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  if (typeof value === "string") return { stringValue: value }
  const pairs = Object.entries(value as Json).map(([key, one]) => ({ key, value: anyValue(one) }))
  return { kvlistValue: { values: pairs } }
}

const eventOf = ({ attributes, name }: Json): Json => ({
  name,
  timeUnixNano: "1763700000500000000",
  attributes: Object.entries(attributes).map(([key, value]) => attribute(key, anyValue(value)))
})

const NANOS = 1_763_700_000_000_000_000n

const spanAt = (at: number, name: string, operation: string, more: Json = {}): Json => ({
  ...span({
    name,
    spanId: String(at + 1).padStart(16, "0"),
    startTimeUnixNano: String(NANOS + BigInt(at) * 1_000_000n),
    endTimeUnixNano: String(NANOS + BigInt(at) * 1_000_000n + 500_000n),
    ...(at === 0 ? {} : { parentSpanId: "1".padStart(16, "0") })
  }),
  ...more,
  attributes: [
    attribute("gen_ai.operation.name", { stringValue: operation }),
    ...(more["attributes"] ?? [])
  ]
})

/** Inferred edges of an export, by rule and the names of the spans. */
const edgesOf = (spans: ReadonlyArray<Json>): ReadonlyArray<string> => {
  const shown = operationsOf(exportOf(spans)).map((operation) => {
    const { details, endedAt, parentSpanId, spanId, spanType, startedAt } = plain(operation) as Json
    return {
      id: spanId as string,
      execution_id: "x",
      ...(parentSpanId === undefined ? {} : { parent_span_id: parentSpanId }),
      caused_by_span_ids: [],
      span_type: spanType,
      name: details.name,
      status: "COMPLETED" as const,
      started_at: startedAt,
      ended_at: endedAt,
      metadata: details.metadata
    }
  })
  const nameOf = (id: string) => shown.find((one) => one.id === id)!.name
  const graph = finish(
    spanGraphOf({ rootSpanId: shown[0]!.id, spans: shown, eventCounts: new Map() })
  )
  return finish(inferEdges(graph))
    .edges.map(({ rule, source, target }) => `${rule} ${nameOf(source)} ${nameOf(target)}`)
    .filter((edge) => edge.startsWith("tool_"))
}

const DUE = ["tool_call ask tool", "tool_result tool answer"]
const tool = spanAt(2, "tool", "execute_tool", {
  attributes: [attribute("gen_ai.tool.call.id", { stringValue: CALL })]
})

describe("a call of a tool in events of spans", () => {
  for (const [of, choice, result] of forms) {
    it(`leads from the model to the tool and back: ${of}`, () => {
      const edges = edgesOf([
        spanAt(0, "root", "invoke_agent"),
        spanAt(1, "ask", "chat", { events: [eventOf(choice)] }),
        tool,
        spanAt(3, "answer", "chat", { events: [eventOf(result)] })
      ])
      assert.sameMembers([...edges], DUE)
    })
  }

  it("is read out of Pydantic AI's list of events too", () => {
    const events = (...some: ReadonlyArray<Json>) => ({
      attributes: [
        attribute("events", {
          stringValue: JSON.stringify(
            some.map(({ attributes, name }) => ({ ...attributes, "event.name": name }))
          )
        })
      ]
    })
    const [, choice, result] = forms[0]!
    const edges = edgesOf([
      spanAt(0, "root", "invoke_agent"),
      spanAt(1, "ask", "chat", events(choice)),
      tool,
      spanAt(3, "answer", "chat", events(result))
    ])
    assert.sameMembers([...edges], DUE)
  })

  it("is not what the history of a model says that it has asked before", () => {
    const history = { name: "gen_ai.assistant.message", attributes: { tool_calls: asked } }
    const { answered, asked: found } = callsInEvents([history as never], {})
    assert.deepStrictEqual([[...found], [...answered]], [[], []])
  })

  it("is nothing that other events, or texts that are no messages, hold", () => {
    const calls = callsInEvents(
      [
        { name: "log", attributes: { tool_calls: asked as never } },
        { name: "gen_ai.choice", attributes: { message: '{"tool_calls":[{"id":' } },
        { name: "gen_ai.choice", attributes: { message: { text: { tool_calls: asked } } as never } }
      ],
      { events: "[{]" }
    )
    assert.deepStrictEqual([[...calls.asked], [...calls.answered]], [[], []])
  })
})

/** One turn with a tool, as each convention writes it into metadata. */
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import type { Shape } from "./Spans.ts"

/** A model asks for a tool, which runs, and is asked again with the result. */
const turn = (ask: JsonObject, call: JsonObject, answer: JsonObject): ReadonlyArray<Shape> => [
  { id: "ask", parent: "r", type: "LLM_CALL", start: 1, end: 5, metadata: ask },
  // Overlaps what comes next, so that times tell of nothing.
  { id: "other", parent: "r", start: 0, end: 99 },
  { id: "call", parent: "r", type: "TOOL_CALL", start: 6, end: 9, metadata: call },
  { id: "again", parent: "r", type: "LLM_CALL", start: 10, end: 12, metadata: answer },
  { id: "later", parent: "r", type: "LLM_CALL", start: 13, end: 14, metadata: answer }
]

const messages = (type: string, id: string) => [
  { role: "user", parts: [{ type: "text", content: "?" }] },
  { role: "any", parts: [{ type, id, name: "search" }] }
]

export const attributes = (of: JsonObject): JsonObject => ({ attributes: of })

export const conventions: Readonly<Record<string, ReadonlyArray<Shape>>> = {
  "OpenTelemetry, structured": turn(
    attributes({ "gen_ai.output.messages": messages("tool_call", "c1") }),
    attributes({ "gen_ai.tool.call.id": "c1" }),
    attributes({ "gen_ai.input.messages": messages("tool_call_response", "c1") })
  ),
  "OpenTelemetry, as text": turn(
    attributes({ "gen_ai.output.messages": JSON.stringify(messages("tool_call", "c1")) }),
    attributes({ "gen_ai.tool.call.id": "c1" }),
    attributes({ "gen_ai.input.messages": JSON.stringify(messages("tool_call_response", "c1")) })
  ),
  OpenInference: turn(
    attributes({ "llm.output_messages.0.message.tool_calls.1.tool_call.id": "c1" }),
    attributes({ "tool_call.id": "c1" }),
    attributes({ "llm.input_messages.2.message.tool_call_id": "c1" })
  ),
  OpenLLMetry: turn(
    attributes({ "gen_ai.completion.0.tool_calls.0.id": "c1" }),
    attributes({ "tool.id": "c1" }),
    attributes({ "gen_ai.prompt.3.tool_call_id": "c1" })
  ),
  "the Vercel AI SDK": turn(
    attributes({
      "ai.response.toolCalls": JSON.stringify([{ toolCallId: "c1", toolName: "search" }])
    }),
    attributes({ "ai.toolCall.id": "c1" }),
    attributes({
      "ai.prompt.messages": JSON.stringify([
        { role: "system", content: "You know tides." },
        { role: "assistant", content: [{ type: "tool-call", toolCallId: "c1" }] },
        { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", output: {} }] }
      ])
    })
  ),
  "the API itself": turn(
    { tool_calls: [{ id: "c0" }, { id: "c1", name: "search" }] },
    { tool_call_id: "c1" },
    { tool_results: ["c0", { tool_call_id: "c1" }] }
  )
}

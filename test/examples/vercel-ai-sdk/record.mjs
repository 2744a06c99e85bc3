/**
 * Records what the Vercel AI SDK sends for one run of an agent with a tool, a streamed answer and an
 * embedding: run.json, an export of OTLP in JSON. The models are the SDK's own test doubles, so nothing
 * leaves the machine. To record anew, in an empty folder with a copy of this file:
 *
 *   npm install ai@6.0.326 zod@4.6.7 @opentelemetry/api@1.9.1 \
 *     @opentelemetry/sdk-trace-node@2.12.0 @opentelemetry/otlp-transformer@0.223.1
 *   node record.mjs
 */
import { writeFileSync } from "node:fs"
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer"
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor
} from "@opentelemetry/sdk-trace-node"
import { embed, generateText, stepCountIs, streamText, tool } from "ai"
import { MockEmbeddingModelV3, MockLanguageModelV3, simulateReadableStream } from "ai/test"
import { z } from "zod"

const memory = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] })
// With its context manager: without it each span would be a trace of its own.
provider.register()
const tracer = provider.getTracer("ai")
const usage = (input, output) => ({
  inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: output, text: output, reasoning: undefined }
})
const answers = [
  {
    content: [
      {
        type: "tool-call",
        toolCallId: "call_tide_1",
        toolName: "tides",
        input: '{"place":"Husum"}'
      }
    ],
    finishReason: { unified: "tool-calls", raw: "tool_calls" },
    usage: usage(120, 14),
    warnings: []
  },
  {
    content: [{ type: "text", text: "High water is at 14:20." }],
    finishReason: { unified: "stop", raw: "stop" },
    usage: usage(150, 9),
    warnings: []
  }
]
let turn = 0
const model = new MockLanguageModelV3({
  provider: "mock-provider",
  modelId: "mock-model-1",
  doGenerate: async () => answers[turn++],
  doStream: async () => ({
    stream: simulateReadableStream({
      chunks: [
        { type: "stream-start", warnings: [] },
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "Low water " },
        { type: "text-delta", id: "1", delta: "is at 20:31." },
        { type: "text-end", id: "1" },
        { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: usage(40, 6) }
      ]
    })
  })
})
const telemetry = {
  isEnabled: true,
  tracer,
  functionId: "tide-agent",
  metadata: { sessionId: "session-1", userId: "user-7" }
}
await tracer.startActiveSpan("handle question", async (root) => {
  await generateText({
    model,
    experimental_telemetry: telemetry,
    stopWhen: stepCountIs(3),
    system: "You know tides.",
    prompt: "When is high water in Husum?",
    tools: {
      tides: tool({
        description: "Tide tables",
        inputSchema: z.object({ place: z.string() }),
        execute: async ({ place }) => ({ place, high: "14:20" })
      })
    }
  })
  const streamed = streamText({
    model,
    experimental_telemetry: telemetry,
    prompt: "And low water?"
  })
  for await (const _ of streamed.textStream) {
    /* read to its end */
  }
  await embed({
    model: new MockEmbeddingModelV3({
      provider: "mock-provider",
      modelId: "mock-embedding-1",
      doEmbed: async () => ({ embeddings: [[0.1, 0.2]], usage: { tokens: 5 }, warnings: [] })
    }),
    value: "tide tables",
    experimental_telemetry: telemetry
  })
  root.end()
})
await provider.forceFlush()
const spans = memory.getFinishedSpans()
const bytes = JsonTraceSerializer.serializeRequest(spans)
writeFileSync("run.json", JSON.stringify(JSON.parse(Buffer.from(bytes).toString()), null, 2) + "\n")

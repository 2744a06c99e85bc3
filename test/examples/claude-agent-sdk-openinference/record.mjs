/**
 * Records what OpenInference's instrumentation of the Claude Agent SDK sends for one run with a tool:
 * run.json, an export of OTLP in JSON. The model answers from a list on the loopback interface, so
 * nothing leaves the machine. To record anew, in an empty folder with a copy of this file:
 *
 *   npm install @anthropic-ai/claude-agent-sdk@0.3.330 zod@4.6.7 \
 *     @arizeai/openinference-instrumentation-claude-agent-sdk@0.3.1 @opentelemetry/api@1.9.1 \
 *     @opentelemetry/sdk-trace-node@2.12.0 @opentelemetry/resources@2.12.1 \
 *     @opentelemetry/otlp-transformer@0.223.1
 *   node record.mjs
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as sdk from "@anthropic-ai/claude-agent-sdk"
import { ClaudeAgentSDKInstrumentation } from "@arizeai/openinference-instrumentation-claude-agent-sdk"
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer"
import { resourceFromAttributes } from "@opentelemetry/resources"
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor
} from "@opentelemetry/sdk-trace-node"
import { z } from "zod"

const MODEL = "claude-mock-1"
const memory = new InMemorySpanExporter()
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "tide-service" }),
  spanProcessors: [new SimpleSpanProcessor(memory)]
})

const question = [
  {
    start: {
      type: "tool_use",
      id: "toolu_tide_1",
      name: "mcp__almanac__tides",
      input: {}
    },
    delta: { type: "input_json_delta", partial_json: '{"place":"Husum"}' }
  },
  "tool_use",
  14
]
const answer = [
  {
    start: { type: "text", text: "" },
    delta: { type: "text_delta", text: "High water is at 14:20." }
  },
  "end_turn",
  9
]

/** The stream of one message, as the Messages API sends it. */
const messageOf = ([block, stopReason, outputTokens], id) =>
  [
    {
      type: "message_start",
      message: {
        id,
        type: "message",
        role: "assistant",
        model: MODEL,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 120, output_tokens: 1 }
      }
    },
    { type: "content_block_start", index: 0, content_block: block.start },
    { type: "content_block_delta", index: 0, delta: block.delta },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { output_tokens: outputTokens }
    },
    { type: "message_stop" }
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("")

let messages = 0
const server = createServer((request, response) => {
  const parts = []
  request.on("data", (part) => parts.push(part))
  request.on("end", () => {
    const body = Buffer.concat(parts).toString()
    const isAnswered = body.includes('"tool_result"')
    messages += 1
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(messageOf(isAnswered ? answer : question, `msg_${messages}`))
  })
})
await new Promise((done) => server.listen(0, "127.0.0.1", done))

const home = mkdtempSync(join(tmpdir(), "recording-"))
const almanac = sdk.createSdkMcpServer({
  name: "almanac",
  version: "1.0.0",
  tools: [
    sdk.tool("tides", "When the tides of a place are", { place: z.string() }, async () => ({
      content: [{ type: "text", text: "14:20" }]
    }))
  ]
})
const { query } = new ClaudeAgentSDKInstrumentation({
  tracerProvider: provider
}).manuallyInstrument(sdk)
try {
  for await (const message of query({
    prompt: "When is high water in Husum?",
    options: {
      cwd: home,
      model: MODEL,
      systemPrompt: "You know tides.",
      tools: [],
      allowedTools: ["mcp__almanac__tides"],
      mcpServers: { almanac },
      settingSources: [],
      persistSession: false,
      maxTurns: 3,
      stderr: (text) => process.stderr.write(text),
      env: {
        PATH: process.env.PATH,
        HOME: home,
        ANTHROPIC_API_KEY: "a-key-of-nobody",
        ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1"
      }
    }
  })) {
    if (message.type === "result") console.log(message.subtype)
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}
await provider.forceFlush()
const bytes = JsonTraceSerializer.serializeRequest(memory.getFinishedSpans())
writeFileSync("run.json", `${JSON.stringify(JSON.parse(Buffer.from(bytes)), null, 2)}\n`)
server.close()

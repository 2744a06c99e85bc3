/**
 * Agent runs that SDKs have sent, recorded under test/examples, sent to a running service twice: as
 * they were, and with prompts of 200 KB. The second must be the same run: names, types, edges and
 * tokens, and every text can be read whole.
 */
import { createHash, randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { Client, type Json } from "./Client.ts"
import type { OtlpTarget } from "./OtlpAgentRun.ts"

const recordedRuns = [
  "anthropic-openllmetry",
  "claude-agent-sdk-openinference",
  "crewai-openinference",
  "langgraph-openinference",
  "langgraph-openllmetry",
  "llamaindex-openinference",
  "openai-agents-openinference",
  "vercel-ai-sdk"
]

/** What these tell of agents has no calls of models. */
const withoutCalls = ["claude-agent-sdk-openinference", "crewai-openinference"]

/** Part of a prompt of every recorded run, without anything that JSON would escape. */
const PROMPT = "high water"
const longPrompt = (bytes: number): string => PROMPT.padEnd(bytes, " and low")

/** The same export with trace ids of its own. */
const copyOf = (text: string) => {
  const traces = new Map<string, string>()
  const copy = text.replace(/"(traceId": ?)"([0-9a-f]{32})"/g, (_, name: string, id: string) => {
    const own = traces.get(id) ?? randomBytes(16).toString("hex")
    traces.set(id, own)
    return `"${name}"${own}"`
  })
  return { copy, traces: [...traces.values()] }
}

const ok = async (client: Client, path: string): Promise<Json> => {
  const { body, status, text } = await client.call(path)
  assert.strictEqual(status, 200, `${path}: ${text}`)
  return body as Json
}

/** The references in a value. */
const refsIn = (
  value: unknown
): ReadonlyArray<{ readonly $ref: string; readonly bytes: number }> => {
  if (typeof value !== "object" || value === null) return []
  if ("$ref" in value && "bytes" in value) return [value as { $ref: string; bytes: number }]
  return Object.values(value).flatMap(refsIn)
}

/** What must not depend on how long the prompts are. */
const runOf = async (client: Client, execution: Json) => {
  const path = `/api/v1/executions/${execution["id"]}`
  const { spans } = await ok(client, `${path}/spans`)
  const dag = await ok(client, `${path}/dag`)
  const nameOf = (id: string) => spans.find((span: Json) => span["id"] === id)?.name
  const edges = (list: ReadonlyArray<Json>) =>
    list
      .map(({ rule = "", source, target, type }) =>
        [type, rule, nameOf(source), nameOf(target)].join("|")
      )
      .sort()
  const { valid } = await ok(client, `${path}/verify`)
  return {
    spans,
    run: {
      valid,
      agent: [execution["agent_id"], execution["agent_name"], execution["status"]],
      summary: execution["summary"],
      spans: spans.map((span: Json) => [
        span["span_type"],
        span["name"],
        span["status"],
        nameOf(span["parent_span_id"]),
        span["summary"]
      ]),
      edges: edges(dag["edges"]),
      inferred: edges(dag["inferred_edges"])
    }
  }
}

/** Register the tests. `target` is asked when they run. */
export const recordedBlackBox = (
  target: () => Pick<OtlpTarget, "url" | "key">,
  promptBytes = 204_800
): void => {
  const prompt = longPrompt(promptBytes)
  /** Send an export, and read the executions that it made, in the order of its traces. */
  const sent = async (client: Client, text: string) => {
    const { copy, traces } = copyOf(text)
    const answer = await client.call("/v1/traces", { body: JSON.parse(copy) })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.notProperty(answer.body, "partialSuccess", answer.text)
    const { executions } = await ok(client, "/api/v1/executions?page_size=1000")
    return Promise.all(
      traces.map((trace) =>
        runOf(
          client,
          executions.find(({ metadata }: Json) => metadata["trace_id"] === trace)
        )
      )
    )
  }

  describe(`a recorded run with prompts of ${promptBytes} bytes`, () => {
    it.each(recordedRuns)(
      "arrives whole: %s",
      async (name) => {
        const { key, url } = target()
        const client = new Client(url, key)
        const text = readFileSync(`test/examples/${name}/run.json`, "utf8")
        const plain = await sent(client, text)
        const long = await sent(client, text.replaceAll(PROMPT, prompt))
        assert.deepStrictEqual(
          long.map(({ run }) => run),
          plain.map(({ run }) => run)
        )
        assert.isTrue(long.every(({ run }) => run.valid))
        const calls = long.reduce((sum, { run }) => sum + run.summary["calls"], 0)
        assert.strictEqual(calls > 0, !withoutCalls.includes(name))
        const refs = long.flatMap(({ spans }) => refsIn(spans))
        assert.isNotEmpty(refs)
        const own = new Map(refs.map((ref) => [ref.$ref, ref]))
        for (const { $ref, bytes } of own.values()) {
          const hash = $ref.slice("sha256:".length)
          const payload = await client.call(`/api/v1/payloads/${hash}`)
          assert.strictEqual(payload.status, 200, payload.text.slice(0, 300))
          assert.strictEqual(Buffer.byteLength(payload.text), bytes)
          assert.strictEqual(createHash("sha256").update(payload.text).digest("hex"), hash)
          assert.include(payload.text, prompt)
        }
      },
      120_000
    )
  })
}

/** What the console shows of conversations and tools: read off runs that SDKs have sent. */
import { readFileSync } from "node:fs"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  conversationOf,
  inputAndOutput,
  isRef,
  type Message,
  refsIn
} from "../../src/console/parts/Messages.ts"
import { operationsOf, plain } from "../services/ingest/otlp/support/Exports.ts"

interface Shown {
  readonly spanType: string
  readonly details: { readonly name: string; readonly metadata: Record<string, unknown> }
}

const recorded = (name: string): ReadonlyArray<Shown> => {
  const text = readFileSync(`test/examples/${name}/run.json`, "utf8")
  return operationsOf(JSON.parse(text)).map((one) => plain(one) as unknown as Shown)
}

const line = ({ parts, role }: Message): string =>
  [
    role,
    ...parts.map((part) =>
      part.kind === "call"
        ? `calls ${part.name} ${JSON.stringify(part.input)}`
        : part.kind === "result"
          ? `result ${JSON.stringify(part.output)}`
          : String(part.text)
    )
  ].join("|")

/** The conversations of the calls of models. */
const talks = (name: string) =>
  recorded(name)
    .filter(({ spanType }) => spanType === "LLM_CALL")
    .map(({ details }) => conversationOf(details.metadata)!)

const QUESTION = "user|When is high water in Husum?"
const CALL = 'assistant|calls tides {"place":"Husum"}'
const ANSWER = "assistant|High water is at 14:20."

describe("the conversation of a call of a model", () => {
  for (const [name, result] of [
    ["anthropic-openllmetry", 'user|result "14:20"'],
    ["langgraph-openinference", 'tool|result "High water in Husum at 14:20"'],
    ["langgraph-openllmetry", 'tool|result "High water in Husum at 14:20"'],
    ["vercel-ai-sdk", 'tool|result {"type":"json","value":{"place":"Husum","high":"14:20"}}']
  ] as const) {
    it(`is what was said, by ${name}`, () => {
      const [first, second] = talks(name)
      const withoutSystem = (messages: ReadonlyArray<Message>) =>
        messages.filter(({ role }) => role !== "system").map(line)
      assert.deepStrictEqual(withoutSystem(first!.asked), [QUESTION])
      assert.deepStrictEqual(first!.answered.map(line), [CALL])
      assert.deepStrictEqual(withoutSystem(second!.asked), [QUESTION, CALL, result])
      assert.deepStrictEqual(second!.answered.map(line), [ANSWER])
    })
  }

  it("has the system's instructions and hand-overs, by openai-agents-openinference", () => {
    const [first, second, third] = talks("openai-agents-openinference")
    assert.deepStrictEqual(first!.asked.map(line), ["system|Hand over.", QUESTION])
    assert.match(line(first!.answered[0]!), /^assistant\|calls transfer_to_tide_agent/)
    assert.include(second!.asked.map(line), "system|You know tides.")
    assert.deepStrictEqual(second!.answered.map(line), [CALL])
    assert.deepStrictEqual(third!.answered.map(line), [ANSWER])
  })

  it("is that of the semantic conventions, as lists or as their JSON", () => {
    const asked = [
      { role: "user", parts: [{ type: "text", content: "Hi" }] },
      {
        role: "tool",
        parts: [{ type: "tool_call_response", id: "1", response: { ok: true } }]
      }
    ]
    const answered = [
      { role: "assistant", parts: [{ type: "tool_call", id: "1", name: "f", arguments: { a: 1 } }] }
    ]
    const expected = {
      asked: ["system|Be brief.", "user|Hi", 'tool|result {"ok":true}'],
      answered: ['assistant|calls f {"a":1}']
    }
    for (const write of [(value: unknown) => value, JSON.stringify]) {
      const found = conversationOf({
        attributes: {
          "gen_ai.system_instructions": write([{ type: "text", content: "Be brief." }]),
          "gen_ai.input.messages": write(asked),
          "gen_ai.output.messages": write(answered)
        }
      })!
      assert.deepStrictEqual(
        { asked: found.asked.map(line), answered: found.answered.map(line) },
        expected
      )
    }
  })

  it("names values that are stored apart", () => {
    const value = { $ref: `sha256:${"0".repeat(64)}`, bytes: 200_000, preview: "When" }
    assert.isTrue(isRef(value))
    for (const attributes of [
      { "gen_ai.input.messages": value },
      {
        "llm.input_messages.0.message.content": value,
        "llm.input_messages.0.message.role": "user"
      },
      { "gen_ai.prompt.0.content": value, "gen_ai.prompt.0.role": "user" }
    ]) {
      const { asked } = conversationOf({ attributes })!
      assert.deepStrictEqual(asked[0]!.parts, [{ kind: "text", text: value }])
    }
  })

  it("is none where nothing is said, and never fails", () => {
    assert.isUndefined(conversationOf({}))
    assert.isUndefined(conversationOf({ attributes: { "gen_ai.input.messages": "[oh" } }))
    const names = [
      "gen_ai.input.messages",
      "gen_ai.output.messages",
      "gen_ai.system_instructions",
      "llm.input_messages.0.message.content",
      "llm.output_messages.1.message.tool_calls.0.tool_call.function.name",
      "gen_ai.prompt.0.content",
      "gen_ai.completion.0.tool_calls.0.arguments",
      "ai.prompt",
      "ai.prompt.messages",
      "ai.response.toolCalls",
      "input.value"
    ]
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.jsonValue()), (attributes) => {
        for (const metadata of [attributes, { attributes }]) {
          conversationOf(metadata)
          inputAndOutput(metadata)
        }
        const texts = Object.entries(attributes).map(([name, value]) => [
          name,
          JSON.stringify(value)
        ])
        conversationOf(Object.fromEntries(texts))
      })
    )
  })
})

describe("references in a value", () => {
  it("are found with their paths, wherever they are", () => {
    const value = { $ref: "sha256:0", bytes: 9, preview: "p" }
    assert.deepStrictEqual(refsIn({ a: [1, value, { "b.c": value }], d: "$ref", e: null }), [
      { path: "a[1]", value },
      { path: "a[2].b.c", value }
    ])
    assert.deepStrictEqual(refsIn(undefined), [])
  })
})

describe("what a tool was given, and what it returned", () => {
  it("is what SDKs have recorded", () => {
    const toolOf = (name: string) => {
      const tool = recorded(name).find(({ spanType }) => spanType === "TOOL_CALL")!
      return inputAndOutput(tool.details.metadata)
    }
    assert.deepStrictEqual(toolOf("vercel-ai-sdk"), {
      input: { place: "Husum" },
      output: { place: "Husum", high: "14:20" }
    })
    assert.deepStrictEqual(toolOf("claude-agent-sdk-openinference"), {
      input: { place: "Husum" },
      output: [{ type: "text", text: "14:20" }]
    })
    assert.deepStrictEqual(toolOf("openai-agents-openinference").input, { place: "Husum" })
  })
})

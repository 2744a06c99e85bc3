/** The pages of executions, over recorded runs and some made here: what their files share. */
import { readFileSync } from "node:fs"
import type { Locator, Page } from "playwright-core"
import { assert, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { sharedParts } from "../support/SharedParts.ts"
import type { VisitOptions } from "./ConsoleBrowser.ts"
import { type ConsoleWorld, consoleWorld } from "./ConsoleWorld.ts"

/** Reads; the other one writes. */
const key = testKey("runs")
export const writer = testKey("agent")

export const HOSTILE = '<img src=x onerror="document.title=1">'
/** Part of a prompt that was recorded. */
export const LONG = "high water ".repeat(20_000)
/** Spans of the large execution where it has to be large. */
export const MANY = 2_500
/** Those made here and the recorded one. */
export const EXECUTIONS = 3 + 1
const START = Date.parse("2026-11-20T08:00:00Z")

const at = (milliseconds: number): string => new Date(START + milliseconds).toISOString()

/** Sends them as one agent does, and waits until they are stored. */
export const sendOperations = async (client: Client, operations: ReadonlyArray<object>) => {
  for (let from = 0; from < operations.length; from += 500) {
    const body = { operations: operations.slice(from, from + 500) }
    const { status, text } = await client.call("/api/v1/traces/batch?sync=true", { body })
    assert.strictEqual(status, 200, text)
    assert.deepStrictEqual(JSON.parse(text).errors, [])
  }
}

/** An agent that asks a model, whose tool fails. */
const failing = [
  {
    op: "execution.start",
    id: "failing",
    agent_id: "invoice",
    agent_name: HOSTILE,
    started_at: at(0)
  },
  {
    op: "span.start",
    execution_id: "failing",
    id: "ask",
    span_type: "LLM_CALL",
    name: "chat",
    started_at: at(10),
    metadata: {
      "gen_ai.request.model": "gpt-5.2",
      "gen_ai.usage.input_tokens": 120,
      "gen_ai.usage.output_tokens": 30,
      "gen_ai.input.messages": [
        { role: "user", parts: [{ type: "text", content: "Whose invoice?" }] }
      ],
      "gen_ai.output.messages": [
        {
          role: "assistant",
          parts: [{ type: "tool_call", name: "customer", arguments: { id: 7 } }]
        }
      ]
    }
  },
  { op: "span.end", span_id: "ask", status: "COMPLETED", ended_at: at(130) },
  {
    op: "span.start",
    execution_id: "failing",
    id: "customer",
    span_type: "TOOL_CALL",
    name: "customer",
    started_at: at(130),
    metadata: { input: { id: 7 } }
  },
  {
    op: "span.end",
    span_id: "customer",
    status: "FAILED",
    ended_at: at(220),
    error: { type: "Timeout", message: "the CRM did not answer", stack: "at customer (crm.ts:7)" }
  },
  { op: "execution.end", execution_id: "failing", status: "FAILED", ended_at: at(240) }
]

const largeOf = (spans: number) => [
  { op: "execution.start", id: "large", agent_id: "crawler", started_at: at(1_000) },
  ...Array.from({ length: spans }, (_, n) => ({
    op: "span.start",
    execution_id: "large",
    id: `page-${n}`,
    span_type: "TOOL_CALL",
    name: `page ${n}`,
    started_at: at(1_000 + n)
  }))
]

const loop = [
  { op: "execution.start", id: "loop", agent_id: "searcher", started_at: at(2_000) },
  ...Array.from({ length: 200 }, (_, n) => ({
    op: "span.start",
    execution_id: "loop",
    id: `loop-${n}`,
    span_type: n % 2 === 0 ? "LLM_CALL" : "TOOL_CALL",
    name: n % 2 === 0 ? "chat" : "search",
    started_at: at(2_000 + n)
  }))
]

interface Exported {
  readonly resourceSpans: ReadonlyArray<{
    readonly scopeSpans: ReadonlyArray<{
      readonly spans: ReadonlyArray<{ readonly attributes: Array<object> }>
    }>
  }>
}

/** Every span has an attribute twice, which is repaired. */
const repeated = (request: Exported): Exported => {
  const scopes = request.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)
  const attribute = { key: HOSTILE, value: { stringValue: "said twice" } }
  for (const { spans } of scopes) {
    for (const { attributes } of spans) attributes.push(attribute, attribute)
  }
  return request
}

export interface RunsWorld {
  readonly world: ConsoleWorld
  /** Opens a path of the console, signed in. */
  readonly begin: (path: string, options?: VisitOptions) => Promise<Page>
  /** Rows of the list. */
  readonly rowsIn: () => Locator
  /** Of the list: a test for each look. */
  readonly itIsUsable: () => void
  /** Of an execution: a test for each look. */
  readonly itShowsWhatFailed: () => void
}

/** `spans`: of the large execution. */
export const runsWorld = (spans: number): RunsWorld => {
  const keys = `${key}=acme:read,${writer}=acme:write`
  const world = consoleWorld(
    "runs",
    keys,
    async ({ url }) => {
      const client = new Client(url, writer)
      await sendOperations(client, failing)
      await sendOperations(client, largeOf(spans))
      await sendOperations(client, loop)
      const text = readFileSync("test/examples/vercel-ai-sdk/run.json", "utf8")
      const long = text.replaceAll("When is high water in Husum?", `When? ${LONG}`)
      const { status } = await client.call("/v1/traces", { body: repeated(JSON.parse(long)) })
      assert.strictEqual(status, 200)
    },
    sharedParts("runs")
  )
  const begin: RunsWorld["begin"] = async (path, options) => {
    await world.open(path, options)
    await world.visit.signIn(key)
    return world.visit.page
  }
  return {
    world,
    begin,
    rowsIn: () => world.visit.page.locator("main tbody tr"),
    itIsUsable: () => {
      it("is usable in every look", async () => {
        const page = await begin("/executions")
        await page.getByText(`${EXECUTIONS} executions`).waitFor()
        await world.visit.assertSound("executions")
        world.assertQuiet()
      })
    },
    itShowsWhatFailed: () => {
      it("shows what failed and what was said", async () => {
        const page = await begin("/executions/failing?span=customer")
        await page.getByText("7 facts verified").waitFor()
        await page.getByText("the CRM did not answer").first().waitFor()
        await page.getByText("at customer (crm.ts:7)").first().waitFor()
        assert.isAbove(await page.locator(".critical").count(), 1)
        await world.visit.assertSound("execution")
        await page
          .locator(".span-rows")
          .getByRole("button", { name: /LLM_CALL chat/ })
          .click()
        await page.getByText("Whose invoice?").first().waitFor()
        await page.getByText("calls customer").waitFor()
        world.assertQuiet()
      })
    }
  }
}

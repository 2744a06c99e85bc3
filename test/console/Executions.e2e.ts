/** The pages of executions as people use them: runs that SDKs have recorded, and some made here. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { consoleWorld } from "./ConsoleWorld.ts"

const [key, writer] = [testKey("runs"), testKey("agent")]
const HOSTILE = '<img src=x onerror="document.title=1">'
const LONG = "high water ".repeat(20_000)
const MANY = 2_500
/** Those made here and the recorded one. */
const EXECUTIONS = 3 + 1
const START = Date.parse("2026-11-20T08:00:00Z")

const at = (milliseconds: number): string => new Date(START + milliseconds).toISOString()

const send = async (client: Client, operations: ReadonlyArray<object>) => {
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

const large = [
  { op: "execution.start", id: "large", agent_id: "crawler", started_at: at(1_000) },
  ...Array.from({ length: MANY }, (_, n) => ({
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

const world = consoleWorld("runs", `${key}=acme:read,${writer}=acme:write`, async ({ url }) => {
  const client = new Client(url, writer)
  await send(client, failing)
  await send(client, large)
  await send(client, loop)
  const text = readFileSync("test/examples/vercel-ai-sdk/run.json", "utf8")
  const long = text.replaceAll("When is high water in Husum?", `When? ${LONG}`)
  const { status } = await client.call("/v1/traces", { body: JSON.parse(long) })
  assert.strictEqual(status, 200)
})
const { assertQuiet, open } = world

const begin = async (path: string, options?: Parameters<typeof open>[1]) => {
  await open(path, options)
  await world.visit.signIn(key)
  return world.visit.page
}

const rowsIn = () => world.visit.page.locator("main tbody tr")

describe("the list of executions", () => {
  it("is filtered, sorted, and leads to each of them", async () => {
    const page = await begin("/executions")
    await page.getByText(`${EXECUTIONS} executions`).waitFor()
    assert.strictEqual(await rowsIn().count(), EXECUTIONS)
    await page.getByRole("checkbox", { name: "failed" }).check()
    await rowsIn().nth(1).waitFor({ state: "detached" })
    await rowsIn().getByText("<img src=x").waitFor()
    await page.getByRole("checkbox", { name: "failed" }).uncheck()
    await page.getByLabel("Model").fill("mock*")
    await page.getByRole("button", { name: "Search" }).click()
    // The list without the filter shows this model too.
    await rowsIn().nth(1).waitFor({ state: "detached" })
    await rowsIn().getByText("mock-model-1").waitFor()
    await page.getByLabel("Model").fill("nobody's")
    await page.getByRole("button", { name: "Search" }).click()
    await page.getByRole("heading", { name: "No execution matches" }).waitFor()
    await page.goto(`${world.running.url}/executions?sort=errors`)
    await rowsIn().nth(3).waitFor()
    assert.include((await rowsIn().first().textContent()) ?? "", "<img src=x")
    await rowsIn().first().getByRole("link").click()
    await world.visit.heading(/<img src=x/).waitFor()
    assert.strictEqual(await page.title(), "alk")
    assertQuiet()
  })

  for (const [width, isDark] of [
    [1_440, false],
    [1_440, true],
    [375, false]
  ] as const) {
    it(`is usable at ${width} px, ${isDark ? "dark" : "light"}`, async () => {
      const page = await begin("/executions", { width, isDark })
      await page.getByText(`${EXECUTIONS} executions`).waitFor()
      assert.deepStrictEqual(await world.visit.faults(), [])
      assert.isFalse(await world.visit.overflows())
      await world.visit.picture(`executions-${width}-${isDark ? "dark" : "light"}`)
      assertQuiet()
    })
  }
})

describe("an execution", () => {
  for (const [width, isDark] of [
    [1_440, false],
    [1_440, true],
    [768, false],
    [375, false]
  ] as const) {
    it(`shows what failed and what was said, at ${width} px, ${isDark ? "dark" : "light"}`, async () => {
      const page = await begin("/executions/failing?span=customer", { width, isDark })
      await page.getByText("7 facts verified").waitFor()
      await page.getByText("the CRM did not answer").first().waitFor()
      await page.getByText("at customer (crm.ts:7)").first().waitFor()
      assert.isAbove(await page.locator(".critical").count(), 1)
      assert.deepStrictEqual(await world.visit.faults(), [])
      assert.isFalse(await world.visit.overflows())
      await world.visit.picture(`execution-${width}-${isDark ? "dark" : "light"}`)
      await page
        .locator(".span-rows")
        .getByRole("button", { name: /LLM_CALL chat/ })
        .click()
      await page.getByText("Whose invoice?").first().waitFor()
      await page.getByText("calls customer").waitFor()
      assertQuiet()
    })
  }

  it("is folded, zoomed and read as a log and as JSON", async () => {
    const page = await begin("/executions/failing")
    const rows = page.locator(".span-row")
    await rows.nth(2).waitFor()
    await page.getByRole("button", { name: /^Fold/ }).click()
    assert.strictEqual(await rows.count(), 1)
    await page.getByRole("button", { name: /^Unfold/ }).click()
    assert.strictEqual(await rows.count(), 3)
    await page.getByText("+240 ms").waitFor()
    await page.keyboard.press("w")
    await page.getByText("+180 ms").waitFor()
    await page.keyboard.press("d")
    await page.getByText("+210 ms").waitFor()
    await page.getByRole("button", { name: "All", exact: true }).click()
    await page.getByText("+240 ms").waitFor()
    const map = (await page.locator(".minimap").boundingBox())!
    await page.mouse.move(map.x + map.width * 0.25, map.y + 5)
    await page.mouse.down()
    await page.mouse.move(map.x + map.width * 0.75, map.y + 5, { steps: 3 })
    await page.mouse.up()
    await page.getByText(/^\+18[01] ms$|^\+179 ms$/).waitFor()
    await page.getByRole("link", { name: "Log" }).click()
    assert.strictEqual(await page.locator(".log li").count(), 6)
    await page.getByRole("link", { name: "JSON" }).click()
    await page.locator(".json").getByText("crm.ts:7").waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    assertQuiet()
  })

  it("is drawn as it ran, with what was recorded and what is inferred", async () => {
    const page = await begin("/executions/failing?view=graph")
    const graph = page.getByRole("group", { name: "Graph of the execution" })
    await graph
      .getByRole("button", { name: "customer the CRM did not answer, TOOL_CALL, failed" })
      .waitFor()
    assert.strictEqual(await graph.getByRole("button").count(), 3)
    assert.isAbove(await graph.locator(".graph-edge.inferred").count(), 0)
    assert.strictEqual(await graph.locator(".graph-edge.parent").count(), 2)
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("execution-graph")
    await page.getByRole("checkbox", { name: "inferred edges" }).uncheck()
    await graph.locator(".graph-edge.inferred").first().waitFor({ state: "detached" })
    assert.strictEqual(await graph.locator(".graph-edge.parent").count(), 2)
    await graph.getByRole("button", { name: "chat LLM_CALL" }).focus()
    await page.keyboard.press("Enter")
    await page.getByText("Whose invoice?").first().waitFor()
    assertQuiet()
  })

  it("is gathered by name where it is large", async () => {
    const page = await begin("/executions/large?view=graph")
    await page.getByRole("heading", { name: "Too many nodes to draw" }).waitFor()
    await page.goto(`${world.running.url}/executions/loop?view=graph`)
    const graph = page.getByRole("group", { name: "Graph of the execution" })
    await graph.getByRole("button", { name: "search 100 times" }).waitFor()
    assert.strictEqual(await graph.getByRole("button").count(), 3)
    await graph.locator(".note").getByText("100 times").first().waitFor()
    await world.visit.picture("execution-gathered")
    await page.getByRole("checkbox", { name: "gathered by name" }).uncheck()
    await graph.getByRole("button").nth(200).waitFor()
    assert.strictEqual(await graph.getByRole("button").count(), 201)
    assertQuiet()
  })

  it("has few rows in the document, however many spans", async () => {
    const page = await begin("/executions/large")
    await page.getByText("2,501 spans").waitFor()
    const scroller = page.locator(".span-rows")
    await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight))
    await page.getByRole("button", { name: `TOOL_CALL page ${MANY - 1}` }).waitFor()
    assert.isBelow(await page.locator(".span-row").count(), 80)
    assertQuiet()
  })

  it("gives a long prompt as it is asked for", async () => {
    const page = await begin("/executions?model=mock*")
    await rowsIn().first().getByRole("link").click()
    await page
      .getByRole("button", { name: /LLM_CALL ai.generateText/ })
      .first()
      .click()
    await page
      .getByRole("button", { name: /^Load all/ })
      .first()
      .click()
    await page
      .getByRole("button", { name: /^Show all 2\d\d,\d{3} characters/ })
      .first()
      .click()
    const shown = await page
      .locator(".drawer .text")
      .evaluateAll((texts) => Math.max(...texts.map((text) => text.textContent?.length ?? 0)))
    assert.isAbove(shown, LONG.length)
    assertQuiet()
  })

  it("is live while it runs", async () => {
    const client = new Client(world.running.url, writer)
    await send(client, [{ op: "execution.start", id: "running", agent_id: "live-agent" }])
    const page = await begin("/executions/running")
    await page.getByText("live", { exact: true }).waitFor()
    await page.getByText("running", { exact: true }).first().waitFor()
    await send(client, [
      {
        op: "span.start",
        execution_id: "running",
        id: "late",
        span_type: "TOOL_CALL",
        name: "came later"
      }
    ])
    await page.getByRole("button", { name: "TOOL_CALL came later" }).waitFor()
    await world.visit.picture("execution-live")
    await send(client, [
      { op: "span.end", span_id: "late", status: "COMPLETED" },
      { op: "execution.end", execution_id: "running", status: "COMPLETED" }
    ])
    await page.getByText("completed", { exact: true }).first().waitFor()
    await page.getByText("live", { exact: true }).waitFor({ state: "detached" })
    assertQuiet()
  })

  it("says so where there is none", async () => {
    const page = await begin("/executions/nobody")
    await page.getByRole("alert").getByText("there is no such execution").waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("execution-none")
  })
})

/** More of the pages of executions as people use them: other looks, and what is large. */
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { HOSTILE, LONG, MANY, runsWorld, writer } from "./RunsWorld.ts"

const { begin, rowsIn, world } = runsWorld(MANY)
const { assertQuiet } = world

describe("an execution", () => {
  it("is gathered by name where it is large", async () => {
    const page = await begin("/executions/large?view=graph")
    await page.getByRole("heading", { name: "Too many nodes to draw" }).waitFor()
    await page.goto(`${world.running.url}/executions/loop?view=graph`)
    const graph = page.getByRole("group", { name: "Graph of the execution" })
    await graph.getByRole("button", { name: "search 100 times" }).waitFor()
    assert.strictEqual(await graph.getByRole("button").count(), 3)
    await graph.locator(".note").getByText("100 times").first().waitFor()
    await world.visit.assertSound("execution-gathered")
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

  it("shows a span that was never sent with the events that name it", async () => {
    const record = {
      timeUnixNano: "1763700000000000000",
      eventName: "gen_ai.user.message",
      traceId: "c".repeat(32),
      spanId: "d".repeat(16),
      body: { stringValue: "Who has seen this span?" }
    }
    const client = new Client(world.running.url, writer)
    const body = { resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] }
    assert.strictEqual((await client.call("/v1/logs", { body })).text, "{}")
    const page = await begin("/executions?agent_id=unknown_service")
    await rowsIn().first().getByRole("link").click()
    await page.getByRole("link", { name: "Graph" }).click()
    const graph = page.getByRole("group", { name: "Graph of the execution" })
    await graph.getByRole("button", { name: /never sent/ }).click()
    await page.getByText("This span was never sent.").waitFor()
    await page.locator(".drawer").getByText("gen_ai.user.message").waitFor()
    await page.locator(".drawer").getByText("Payload").click()
    await page.getByText("Who has seen this span?").waitFor()
    await world.visit.assertSound("execution-never-sent")
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
    const repairs = await page.getByRole("list", { name: "Repairs" }).textContent()
    assert.include(repairs, `repeated_key attributes[${JSON.stringify(HOSTILE)}]`)
    assertQuiet()
  })
})

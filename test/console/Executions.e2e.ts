/** The pages of executions as people use them: runs that SDKs have recorded, and some made here. */
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { EXECUTIONS, runsWorld, sendOperations, writer } from "./RunsWorld.ts"

const { begin, itIsUsable, itShowsWhatFailed, rowsIn, world } = runsWorld(100)
const { assertQuiet } = world

describe("the list of executions", () => {
  it("is filtered, sorted, and leads to each of them", async () => {
    const page = await begin("/executions")
    await page.getByText(`${EXECUTIONS} executions`).waitFor()
    assert.strictEqual(await rowsIn().count(), EXECUTIONS)
    await page.getByRole("checkbox", { name: "failed" }).check()
    await rowsIn().nth(1).waitFor({ state: "detached" })
    await rowsIn().getByText("<img src=x").waitFor()
    await page.getByRole("checkbox", { name: "failed" }).uncheck()
    await rowsIn()
      .nth(EXECUTIONS - 1)
      .waitFor()
    await page.getByLabel("Model").fill("mock*")
    await page.getByRole("button", { name: "Search" }).click()
    // The list without the filter shows this model too.
    await rowsIn().nth(1).waitFor({ state: "detached" })
    await rowsIn().getByText("mock-model-1").waitFor()
    await page.getByLabel("Model").fill("nobody's")
    await page.getByRole("button", { name: "Search" }).click()
    await page.getByRole("heading", { name: "No execution matches" }).waitFor()
    await page.goto(`${world.running.url}/executions?sort=errors`)
    await rowsIn()
      .nth(EXECUTIONS - 1)
      .waitFor()
    assert.include((await rowsIn().first().textContent()) ?? "", "<img src=x")
    await rowsIn().first().getByRole("link").click()
    await world.visit.heading(/<img src=x/).waitFor()
    assert.match(await page.title(), /^(\w+ · )?alk$/)
    assertQuiet()
  })

  itIsUsable()
})

describe("an execution", () => {
  itShowsWhatFailed()

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
    await page.locator(".log li").nth(5).waitFor()
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
    await world.visit.assertSound("execution-graph")
    await page.getByRole("checkbox", { name: "inferred edges" }).uncheck()
    await graph.locator(".graph-edge.inferred").first().waitFor({ state: "detached" })
    assert.strictEqual(await graph.locator(".graph-edge.parent").count(), 2)
    await graph.getByRole("button", { name: "chat LLM_CALL" }).focus()
    await page.keyboard.press("Enter")
    await page.getByText("Whose invoice?").first().waitFor()
    assertQuiet()
  })

  it("is live while it runs", async () => {
    const client = new Client(world.running.url, writer)
    await sendOperations(client, [{ op: "execution.start", id: "running", agent_id: "live-agent" }])
    const page = await begin("/executions/running")
    await page.getByText("live", { exact: true }).waitFor()
    await page.getByText("running", { exact: true }).first().waitFor()
    await sendOperations(client, [
      {
        op: "span.start",
        execution_id: "running",
        id: "late",
        span_type: "TOOL_CALL",
        name: "came later"
      }
    ])
    await page.getByRole("button", { name: "TOOL_CALL came later" }).waitFor()
    await world.visit.assertSound("execution-live")
    await sendOperations(client, [
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
    await world.visit.assertSound("execution-none")
  })
})

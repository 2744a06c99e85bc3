/** The pages of health and of receipts, and the palette that leads there. */
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { consoleWorld } from "./ConsoleWorld.ts"

const [key, writer] = [testKey("health"), testKey("writer")]

const event = (n: number) => ({
  id: `e-${n}`,
  actor: { id: `u_${n}`, type: "human" },
  action: "document.read",
  resource: { id: `doc-${n}`, type: "document" },
  outcome: "success"
})

/** Ids of receipts: two new events; one new, one there already and one refused. */
const receipts = { whole: "", mixed: "" }
let execution = ""

const world = consoleWorld(
  "health",
  `${key}=acme:read+write,${writer}=acme:write`,
  async (running) => {
    const api = new Client(running.url, writer)
    const send = async (events: ReadonlyArray<object>): Promise<string> => {
      const { body } = await api.call("/v1/events/batch?sync=true", { body: { events } })
      return body.receipt_id
    }
    receipts.whole = await send([event(1), event(2)])
    receipts.mixed = await send([event(2), { ...event(3), outcome: "perhaps" }, event(4)])
    const { body } = await api.call("/api/v1/executions", {
      body: { agent_id: "invoice-triage" }
    })
    execution = body.id
  }
)
const { assertQuiet, open } = world

const begin = async (
  path: string,
  name: RegExp | string,
  options?: Parameters<typeof open>[1],
  own = key
) => {
  await open(path, options)
  await world.visit.signIn(own)
  await world.visit.heading(name).waitFor()
  return world.visit.page
}

const fact = (title: string) =>
  world.visit.page.locator(".health-facts > div", {
    has: world.visit.page.getByText(title, { exact: true })
  })

describe("the page of health", () => {
  it("shows parts, numbers and versions", async () => {
    const page = await begin("/health", "Health")
    await fact("Service").getByText("ready", { exact: true }).waitFor()
    await fact("Store (ClickHouse)").locator(".good").waitFor()
    await fact("Waiting for the sequencer").getByText("0 commands").waitFor()
    await fact("Chains with a break").getByText("0", { exact: true }).waitFor()
    await fact("Newest signed checkpoint").locator(".good").waitFor()
    await fact("Disk")
      .getByText(/ of .* free$/)
      .waitFor()
    await fact("Data folder")
      .getByText(/ [KMG]?B$/)
      .waitFor()
    await fact("Memory").getByText(/ MB$/).waitFor()
    await fact("Node").getByText(process.versions.node).waitFor()
    await fact("ClickHouse")
      .getByText(/^\d+\.\d+/)
      .waitFor()
    await fact("Kafka")
      .getByText(/^\d+\.\d+/)
      .waitFor()
    const codes = page.getByRole("region", { name: "Refused items by code, as a table" })
    await codes.getByRole("row", { name: "invalid_value" }).waitFor()
    // Two readings make a rate, three a line.
    await page.getByRole("row", { name: /^Requests, without streams/ }).waitFor()
    await page.locator(".rate polyline").first().waitFor({ state: "attached" })
    assert.strictEqual(await page.getByText("unknown").count(), 0)
    await world.visit.assertSound("health")
    assertQuiet()
  })

  it("stops calling things good when it can't read them, and goes on by itself", async () => {
    const page = await begin("/health", "Health")
    await fact("Disk").locator(".good").waitFor()
    await world.visit.context.setOffline(true)
    await page.getByText("not up to date").waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await world.visit.assertSound("health-unreachable")
    await world.visit.context.setOffline(false)
    await fact("Disk").locator(".good").waitFor()
    assert.strictEqual(await page.getByText("not up to date").count(), 0)
    assert.deepStrictEqual(world.visit.foreign, [])
  })

  it("says which part is not ready, and that a chain is broken", async () => {
    await open("/health")
    const { page } = world.visit
    await page.route("**/readyz", (route) =>
      route.fulfill({
        status: 503,
        json: {
          status: "not ready",
          kafka: { state: "ready", bootstrap: "127.0.0.1:9092" },
          sequencer: { state: "not ready", partitions: [2] },
          projection: { state: "ready" },
          follower: { state: "not ready", reason: "the log does not answer" },
          clickhouse: { state: "ready" },
          roles: ["api"]
        }
      })
    )
    await page.route("**/metrics", (route) =>
      route.fulfill({
        contentType: "text/plain; version=0.0.4",
        body:
          `process_start_time_seconds ${Date.now() / 1_000}\n`
          + "alk_self_verification_broken_tenants 1\n"
          + 'alk_sequencer_lag_commands{partition="0"} 200000\n'
      })
    )
    await world.visit.signIn(key)
    await fact("Sequencer").getByText("Waiting: partitions 2").waitFor()
    await fact("Follower of the log").getByText("the log does not answer").waitFor()
    await fact("Chains with a break").locator(".bad").waitFor()
    await fact("Waiting for the sequencer").locator(".bad").waitFor()
    await fact("Memory").getByText("unknown").waitFor()
    await world.visit.assertSound("health-bad")
  })
})

describe("the page of receipts", () => {
  it("shows where the events are, what was refused, and what was there already", async () => {
    const page = await begin("/receipts", "Receipts")
    await page.getByText("Paste the id of a receipt").waitFor()
    await page.getByLabel("Receipt id").fill(` ${receipts.whole} `)
    await page.getByRole("button", { name: "Show" }).click()
    await page.waitForURL(new RegExp(`/receipts/${receipts.whole}$`))
    await page.getByText("All of it is in the chain").waitFor()
    await page.getByRole("link", { name: "#2" }).waitFor()
    await page.getByLabel("Receipt id").fill(receipts.mixed)
    await page.getByLabel("Receipt id").press("Enter")
    await page.getByRole("heading", { name: "1 refused item" }).waitFor()
    await page.getByRole("row", { name: /^1 invalid_value .*outcome/ }).waitFor()
    await page.getByText("Item 0 is").getByRole("link", { name: "#2" }).waitFor()
    await world.visit.assertSound("receipt-mixed")
    await page.getByLabel("Receipt", { exact: true }).getByRole("link", { name: "#3" }).click()
    await page.waitForURL(/\/events\?event=3$/)
    assertQuiet()
  })

  it("is read with a key that may write", async () => {
    const page = await begin(`/receipts/${receipts.mixed}`, "Receipts", {}, writer)
    await page.getByRole("heading", { name: "1 duplicate" }).waitFor()
    assertQuiet()
  })

  it("follows one that is pending until it is final, and says why one failed", async () => {
    await open(`/receipts/${receipts.whole}`)
    const { page } = world.visit
    let state: object = { status: "pending", received_at: "2026-01-31T12:00:00.000000Z" }
    await page.route("**/v1/receipts/*", (route) =>
      route.fulfill({ json: { receipt_id: receipts.whole, ...state } })
    )
    await world.visit.signIn(key)
    await page.getByText("pending", { exact: true }).waitFor()
    await world.visit.assertSound("receipt-pending")
    state = {
      status: "failed",
      error: { code: "conflict", message: "the idempotency key has another body" }
    }
    await page.getByText("failed", { exact: true }).waitFor()
    await page.getByText("the idempotency key has another body").waitFor()
    await world.visit.assertSound("receipt-failed")
    assertQuiet()
  })

  it("says so where there is none", async () => {
    const page = await begin("/receipts/rcp_none", "Receipts")
    await page.getByRole("heading", { name: "There is no such receipt" }).waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
  })
})

describe("the palette", () => {
  it("leads to pages, events, receipts, executions and searches by the keyboard alone", async () => {
    const page = await begin("/", "Overview")
    const go = async (text: string) => {
      // The one before has closed, and this one has the focus.
      await page.getByRole("dialog").waitFor({ state: "hidden" })
      await page.keyboard.press("Control+k")
      const box = page.getByRole("combobox", { name: "Page, action" })
      await box.and(page.locator(":focus")).waitFor()
      await page.getByRole("dialog").getByRole("option").first().waitFor()
      await page.keyboard.type(text)
    }
    await go("chai")
    await page.getByRole("option", { name: "Chain", selected: true }).waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    await page.keyboard.press("Enter")
    await world.visit.heading("Chain").waitFor()
    await go("#2")
    await page.keyboard.press("Enter")
    await page.waitForURL(/\/events\?event=2$/)
    await go(receipts.whole)
    await page.keyboard.press("Enter")
    await page.waitForURL(new RegExp(`/receipts/${receipts.whole}$`))
    await go(execution)
    await page.keyboard.press("Enter")
    await page.waitForURL(new RegExp(`/executions/${execution}$`))
    await go("u_4 document")
    await page.keyboard.press("Enter")
    await page.waitForURL(/\/events\?where=u_4\+document$/)
    await go("dark")
    await page.keyboard.press("Enter")
    assert.strictEqual(await page.getByLabel("Colours").inputValue(), "dark")
    await go("")
    await page.keyboard.press("ArrowUp")
    await page.getByRole("option", { name: "Sign out", selected: true }).waitFor()
    await world.visit.assertSound("palette-dark")
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "hidden" })
    assertQuiet()
  })

  it("copies the view for a terminal and as a link, and is in the help", async () => {
    const page = await begin("/events?where=action:document.read", "Events", { width: 375 })
    await world.visit.context.grantPermissions(["clipboard-read", "clipboard-write"])
    const copied = () => page.evaluate("navigator.clipboard.readText()")
    await page.keyboard.press("c")
    await page.getByText("Copied: the search as curl").waitFor()
    assert.strictEqual(
      await copied(),
      'curl -H "Authorization: Bearer $ALK_API_KEY" '
        + `'${world.running.url}/v1/events?where=action%3Adocument.read&page_size=50'`
    )
    await page.keyboard.press("y")
    await page.getByText("Copied: the link").waitFor()
    assert.strictEqual(await copied(), page.url())
    await page.getByRole("button", { name: "Go to …" }).click()
    await world.visit.assertSound("palette-375")
    await page.getByRole("option", { name: "Keyboard help" }).click()
    const help = page.getByRole("dialog", { name: "Keyboard" })
    await help.getByText("run a command").waitFor()
    assertQuiet()
  })
})

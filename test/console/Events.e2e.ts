/** The page of events as people use it, over some thousand events. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { actions, COUNT, countOf, eventsWorld, LARGE_TEXT, LONG_TEXT } from "./EventsWorld.ts"

const { becomes, begin, itIsUsable, parameter, send, total, world } = eventsWorld()
const { assertQuiet } = world

/** Rows that are in the document, by their number. */
const rowNumbers = async (): Promise<ReadonlyArray<number>> => {
  const rows = world.visit.page.locator("table.events tbody tr[aria-rowindex]")
  const numbers = await rows.evaluateAll((found) =>
    found.map((row) => Number(row.getAttribute("aria-rowindex")))
  )
  return numbers
}

describe("the list of events", () => {
  it("has all of them, however few are in the document", async () => {
    const page = await begin("/events")
    await page.getByText("3,000 events, the first of them").waitFor()
    const scroller = page.locator(".rows-scroller")
    await page.locator('tr[aria-rowindex="2"]').waitFor()
    assert.deepInclude(await rowNumbers(), 2)
    await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight / 2))
    const half = page.locator('tr[aria-rowindex="1502"] td >> nth=2')
    await half.getByText(actions[(COUNT - 1_501) % 3]!).waitFor()
    await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight))
    await page.locator('tr[aria-rowindex="3001"]').getByText("document.read").waitFor()
    assert.isBelow((await rowNumbers()).length, 80)
    assertQuiet()
  })

  itIsUsable()

  it("says what to do where nothing matches", async () => {
    const page = await begin("/events?where=action:nothing")
    await page.getByRole("heading", { name: "No event matches" }).waitFor()
    await world.visit.assertSound("events-none")
    assertQuiet()
  })
})

describe("the query", () => {
  it("is completed, applied and part of the address", async () => {
    const page = await begin("/events")
    await page.getByText(`${total()} events, the first of them`).waitFor()
    await page.keyboard.press("/")
    await page.keyboard.type("outc")
    await page.getByRole("option", { name: "outcome:" }).waitFor()
    await page.keyboard.press("Tab")
    await page.getByRole("option", { name: "outcome:failure" }).waitFor()
    await page.keyboard.type("f")
    await page.getByRole("option", { name: "outcome:success" }).waitFor({ state: "hidden" })
    await page.keyboard.press("ArrowDown")
    assert.deepStrictEqual(await world.visit.faults(), [])
    await page.keyboard.press("Enter")
    await page.keyboard.type("metadata.amount>2000")
    await page
      .getByText("Read as: outcome is “failure” and metadata.amount is more than 2000")
      .waitFor()
    await page.keyboard.press("Enter")
    const found = countOf(
      ({ metadata, outcome }) => outcome === "failure" && metadata.amount > 2_000
    )
    await page.getByText(`${found} events, the first of them`).waitFor()
    await becomes("where", "outcome:failure metadata.amount>2000")
    await page.getByText(`${found} events, ${found} failures, 0 errors`).waitFor()
    await page.goBack()
    await page.getByText(`${total()} events, the first of them`).waitFor()
    assert.strictEqual(await page.getByLabel("Query").inputValue(), "")
    // What was asked before is offered to an empty box.
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.getByRole("option", { name: "outcome:failure metadata.amount>2000" }).waitFor()
    await world.visit.assertSound("events-asked-before")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await page.getByText(`${found} events, the first of them`).waitFor()
    assertQuiet()
  })

  it("is completed with what the rest of it finds", async () => {
    const page = await begin("/events?where=metadata.amount<2")
    await page.getByText("2 events, the first of them").waitFor()
    await page.keyboard.press("/")
    await page.keyboard.press("End")
    await page.keyboard.type(" -action:")
    await page.getByRole("option", { name: `action:${actions[0]} 1` }).waitFor()
    const offers = page.getByRole("listbox", { name: "Fields and values" }).getByRole("option")
    assert.strictEqual(await offers.count(), 2)
    await page.keyboard.press("Escape")
    await page.keyboard.type("x OR action:")
    await page
      .getByRole("option", { name: `action:${actions[0]} 1,000` })
      .or(page.getByRole("option", { name: `action:${actions[0]} 1000` }))
      .waitFor()
    assertQuiet()
  })

  it("points at what is wrong with it", async () => {
    const page = await begin("/events?where=outcome:sucess")
    await page.getByRole("alert").getByText("column 9").first().waitFor()
    await world.visit.assertSound("events-refused")
  })

  it("is narrowed and widened by clicks on values", async () => {
    const page = await begin("/events?where=metadata.request.region:eu")
    await page.getByText("1,500 events, the first of them").waitFor()
    await page.getByRole("checkbox", { name: "failure" }).check()
    await page.getByText("250 events, the first of them").waitFor()
    await page.getByRole("checkbox", { name: "error" }).check()
    await becomes("where", "metadata.request.region:eu outcome:failure,error")
    await page.getByRole("checkbox", { name: "failure" }).uncheck()
    await page.getByRole("checkbox", { name: "error" }).uncheck()
    await page.getByText("1,500 events, the first of them").waitFor()
    await becomes("where", "metadata.request.region:eu")
    assertQuiet()
  })
})

describe("an event", () => {
  it("is walked through with the keyboard", async () => {
    const page = await begin("/events?where=action:user.login")
    await page.getByText("1,000 events, the first of them").waitFor()
    await page.keyboard.press("j")
    await page.getByRole("heading", { level: 2, name: "user.login" }).waitFor()
    const first = Number(parameter("event"))
    await page.keyboard.press("j")
    await page.waitForURL(new RegExp(`event=${first - 3}$`))
    await page.keyboard.press("k")
    await page.waitForURL(new RegExp(`event=${first}$`))
    await page.keyboard.press("Escape")
    await page.locator(".drawer").waitFor({ state: "detached" })
    await page.keyboard.press("?")
    await page.getByText("next event").waitFor()
    assertQuiet()
  })

  it("shows long texts when they are asked for, and copies them whole", async () => {
    const page = await begin("/events?event=42")
    const json = page.getByRole("region", { name: "The event as JSON" })
    await json.getByText("(6,000 characters)").waitFor()
    await page.getByRole("button", { name: "Show the long text" }).click()
    await json.getByText(LONG_TEXT.trim()).waitFor()
    await page.getByRole("button", { name: "Cut long texts" }).click()
    await json.getByText("(6,000 characters)").waitFor()
    await world.visit.context.grantPermissions(["clipboard-read", "clipboard-write"])
    await page.getByRole("button", { name: "Copy JSON" }).click()
    const copied = await page.evaluate("navigator.clipboard.readText()")
    assert.strictEqual(JSON.parse(String(copied)).metadata.note, LONG_TEXT)
    assertQuiet()
  })

  it("loads values that are stored apart when they are asked for", async () => {
    const page = await begin("/events?event=43")
    const apart = page.getByRole("list", { name: "Values stored apart" })
    await apart.getByText("answer", { exact: true }).waitFor()
    await apart.getByRole("button", { name: "Load all" }).click()
    await apart.getByRole("button", { name: "Show all" }).click()
    await apart.getByText(LARGE_TEXT).waitFor()
    await world.visit.assertSound("events-apart")
    assertQuiet()
  })

  it("is proved up to the signed root, and the proof can be kept", async () => {
    const page = await begin("/events?event=1234")
    await page.getByText("in the signed tree of").waitFor()
    for (const step of ["details", "content", "link", "event before", "path", "signature"]) {
      await page.locator(".steps .good").getByText(step, { exact: true }).waitFor()
    }
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save the proof" }).click()
    ])
    const kept = JSON.parse(readFileSync(await download.path(), "utf8"))
    assert.strictEqual(kept.event.sequence_number, 1_234)
    assert.strictEqual(kept.previous.hash, kept.event.prev_hash)
    assert.match(kept.inclusion.checkpoint.note, /^alk\/acme\n/)
    assertQuiet()
  })

  it("says so where the chain has no such event", async () => {
    const page = await begin("/events?event=999999")
    await page.getByText("The chain has no event #999,999.").waitFor()
    assertQuiet()
  })
})

describe("the live page", () => {
  it("begins with the newest events and shows those that come", async () => {
    const page = await begin("/live", { width: 768 })
    await page.getByText("live", { exact: true }).waitFor()
    await page.getByText("50 events shown so far").waitFor()
    await send("live.first")
    await page.locator('tr[aria-rowindex="2"]').getByText("live.first").waitFor()
    await world.visit.assertSound("live")
    assertQuiet()
  })
})

/** More of the page of events as people use it: other looks, time, views, what comes, breaks. */
import { readFileSync } from "node:fs"
import type { Route } from "playwright-core"
import { assert, describe, it } from "vitest"
import { countOf, eventsWorld, key } from "./EventsWorld.ts"
import { openWire } from "./Wire.ts"

const HOUR_MS = 3_600_000

const { becomes, begin, countSince, parameter, send, total, world } = eventsWorld()
const { assertQuiet, open } = world

describe("the list of events", () => {
  it("tells of new events, and shows them when asked to", async () => {
    const page = await begin("/events")
    await page.getByText(`${total()} events, the first of them`).waitFor()
    await send("late.arrival")
    const news = page.getByRole("button", { name: "Show 1 new event" })
    await news.waitFor()
    assert.strictEqual(await page.locator("table.events").getByText("late.arrival").count(), 0)
    await news.click()
    await page.locator('tr[aria-rowindex="2"]').getByText("late.arrival").waitFor()
    assertQuiet()
  })

  it("goes on where the service was away", async () => {
    const page = await begin("/events?where=outcome:failure")
    await page.getByText("500 events, the first of them").waitFor()
    await world.visit.context.setOffline(true)
    await page.locator(".rows-scroller").evaluate((one) => (one.scrollTop = one.scrollHeight))
    await page.getByRole("alert").getByText("can't be reached").waitFor()
    await world.visit.assertSound("events-unreachable")
    await world.visit.context.setOffline(false)
    await page.locator('tr[aria-rowindex="501"]').getByText("failure").waitFor()
    await world.visit.context.setOffline(true)
    await page.getByLabel("Query").fill("outcome:error")
    await page.getByLabel("Query").press("Enter")
    await page.locator(".list, .facets").getByText("Not loaded.").first().waitFor()
    assert.strictEqual(await page.getByText("can't be reached").count(), 1)
    await world.visit.assertSound("events-search-unreachable")
    await world.visit.context.setOffline(false)
    await page.getByText("500 events, the first of them").waitFor()
    await page.getByRole("checkbox", { name: "failure" }).waitFor()
    const failed = page.getByText(/can't be reached|Not loaded/)
    await failed.first().waitFor({ state: "hidden" })
    assert.strictEqual(await failed.count(), 0)
    assert.deepStrictEqual(world.visit.foreign, [])
  })
})

describe("the query", () => {
  it("is about the time that somebody drags over, or names", async () => {
    const beganAt = Date.now()
    const page = await begin("/events")
    const bars = page.locator("svg.histogram")
    await bars.waitFor()
    const { height, width, x, y } = (await bars.boundingBox())!
    await page.mouse.move(x + width * 0.3, y + height / 2)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.5, y + height / 2, { steps: 4 })
    await page.mouse.up()
    await page.waitForURL(/from=/)
    const [from, to] = [parameter("from"), parameter("to")].map((at) => Date.parse(at!))
    assert.isBelow(from!, to!)
    const isInside = (at: number): boolean => at >= from! && at <= to!
    const inside = countOf(({ timestamp }) => isInside(Date.parse(timestamp)))
    await page.getByText(`${inside} events, the first of them`).waitFor()
    await page.getByLabel("Time range").selectOption("-1h")
    await page.getByText(`${inside} events, the first of them`).waitFor({ state: "hidden" })
    const ofHour = await page.getByText(/^\d+ events, the first of them/).textContent()
    const shown = Number.parseInt(ofHour!, 10)
    // The hour ends at some moment between these two.
    assert.isAtMost(shown, countSince(beganAt - HOUR_MS))
    assert.isAtLeast(shown, countSince(Date.now() - HOUR_MS))
    await page.getByText("From … to …").last().click()
    await page.getByLabel("From", { exact: true }).fill("2020-01-01")
    await page.getByLabel("To", { exact: true }).fill("2020-01-02")
    await page.getByRole("button", { name: "Show", exact: true }).click()
    await page.getByRole("heading", { name: "No event matches" }).waitFor()
    assertQuiet()
  })

  it("is downloaded as it is", async () => {
    const page = await begin("/events?where=outcome:failure metadata.amount<100")
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "CSV" }).click()
    ])
    const text = readFileSync(await download.path(), "utf8")
    assert.isTrue(text.startsWith("\ufeffsequence_number,"))
    assert.lengthOf(text.trim().split("\r\n"), 1 + 16)
    assert.strictEqual(download.suggestedFilename(), "events.csv")
  })
})

describe("columns and views", () => {
  it("are chosen, kept under a name, and opened again", async () => {
    const page = await begin("/events?where=outcome:error")
    await page.getByText("Columns", { exact: true }).first().click()
    await page.getByRole("checkbox", { name: "No." }).check()
    await page.getByLabel("metadata.").fill("request.region")
    await page.getByRole("button", { name: "Add" }).click()
    await page.getByRole("columnheader", { name: "metadata.request.region" }).waitFor()
    await page.waitForURL((url) => {
      const columns = url.searchParams.get("columns") ?? ""
      return columns.includes("sequence_number,metadata.request.region")
    })
    await page.locator('tr[aria-rowindex="2"]').getByText("us", { exact: true }).waitFor()
    await page.getByText("Saved views").click()
    await page.getByRole("textbox", { name: "Name" }).fill("Errors & regions")
    await page.getByRole("button", { name: "Save this view" }).click()
    await page.goto(`${world.running.url}/events`)
    await page.locator("table.events tbody td a").first().waitFor()
    await page.getByText("Saved views").click()
    await page.getByRole("link", { name: "Errors & regions" }).waitFor()
    await world.visit.assertSound("events-views")
    await page.getByRole("link", { name: "Errors & regions" }).click()
    await page.getByRole("columnheader", { name: "metadata.request.region" }).waitFor()
    await becomes("where", "outcome:error")
    await page.getByRole("button", { name: "Forget Errors & regions" }).click()
    await page.getByText("None yet").waitFor()
    assertQuiet()
  })
})

describe("an event", () => {
  it("leads to what is near it", async () => {
    const page = await begin("/events?event=100")
    await page.getByRole("link", { name: "Next #101" }).click()
    await page.waitForURL(/event=101$/)
    await page.getByRole("link", { name: "Same resource" }).click()
    await page.getByText("60 events, the first of them").waitFor()
    await becomes("where", "resource_type:document resource_id:doc-0")
    assertQuiet()
  })

  it("is shown as broken when the service says something else than was signed", async () => {
    await open("/events")
    await world.visit.page.route(/events\?sequence_number=500$/, async (route: Route) => {
      const response = await route.fetch({ headers: { authorization: `Bearer ${key}` } })
      const body = await response.json()
      body.events[0].outcome = "error"
      body.events[0].metadata.amount = 1
      await route.fulfill({ response, json: body })
    })
    await world.visit.signIn(key)
    await world.visit.heading("Events").waitFor()
    await world.visit.page.goto(`${world.running.url}/events?event=500`)
    const { page } = world.visit
    await page.getByText("does not match the signed tree").waitFor()
    await page.locator(".steps .bad").getByText("details", { exact: true }).waitFor()
    await page.locator(".steps .bad").getByText("content", { exact: true }).waitFor()
    assert.strictEqual(await page.getByText("in the signed tree of").count(), 0)
    await world.visit.assertSound("events-broken")
    assertQuiet()
  })
})

describe("the live page", () => {
  const countOfRows = (action: string): Promise<number> =>
    world.visit.page.locator("table.events").getByText(action, { exact: true }).count()

  it("counts what comes during a pause, and shows it afterwards", async () => {
    const page = await begin("/live")
    await page.getByText("live", { exact: true }).waitFor()
    await page.keyboard.press("p")
    await page.getByText("paused", { exact: true }).waitFor()
    await send("live.paused")
    await send("live.paused")
    await page.getByText("2 events since the pause").waitFor()
    assert.strictEqual(await countOfRows("live.paused"), 0)
    await world.visit.assertSound("live-paused")
    await page.getByRole("button", { name: "Go on" }).click()
    await page.locator('tr[aria-rowindex="3"]').getByText("live.paused").waitFor()
    assert.strictEqual(await countOfRows("live.paused"), 2)
    assertQuiet()
  })

  it("shows what matches its query alone, and what is wrong with that", async () => {
    const page = await begin("/live?where=action:live.wanted")
    await page.getByRole("heading", { name: "Nothing yet" }).waitFor()
    await page.getByText("live", { exact: true }).waitFor()
    await send("live.other")
    await send("live.wanted")
    await page.locator('tr[aria-rowindex="2"]').getByText("live.wanted").waitFor()
    assert.strictEqual(await countOfRows("live.other"), 0)
    await page.getByLabel("Query").fill("outcome:sucess")
    await page.getByLabel("Query").press("Enter")
    await page.getByRole("alert").getByText("column 9").waitFor()
    await page.getByText("not live").waitFor()
    await world.visit.assertSound("live-refused")
  })

  it("says that it is cut, and shows once what came meanwhile", async () => {
    const wire = await openWire(world.running.url)
    try {
      await open("/live", {}, wire.url)
      await world.visit.page.clock.install()
      await world.visit.signIn(key)
      const { page } = world.visit
      await page.getByText("live", { exact: true }).waitFor()
      await send("live.before")
      await page.locator('tr[aria-rowindex="2"]').getByText("live.before").waitFor()
      wire.change("cut")
      await page.getByText("cut", { exact: true }).waitFor()
      assert.strictEqual(await page.getByText("live", { exact: true }).count(), 0)
      await world.visit.assertSound("live-cut")
      await send("live.during")
      wire.change("whole")
      await page.locator('tr[aria-rowindex="2"]').getByText("live.during").waitFor()
      await page
        .locator('tr[aria-rowindex="3"]')
        .getByText(/^cut at .+ for \d+ s; /)
        .waitFor()
      await page.locator('tr[aria-rowindex="4"]').getByText("live.before").waitFor()
      await world.visit.assertSound("live-after-cut")
      assert.strictEqual(await countOfRows("live.before"), 1)
      // A wire that carries nothing looks like a quiet tenant, but for the comments that lack.
      await page.getByText("live", { exact: true }).waitFor()
      wire.change("silent")
      await send("live.silent")
      await page.clock.fastForward(41_000)
      await page.getByText("cut", { exact: true }).waitFor()
      wire.change("cut")
      wire.change("whole")
      await page.clock.fastForward(11_000)
      await page.locator('tr[aria-rowindex="2"]').getByText("live.silent").waitFor()
      assert.strictEqual(await countOfRows("live.during"), 1)
    } finally {
      await wire.close()
    }
  })
})

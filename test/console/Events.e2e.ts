/** The page of events as people use it, over some thousand events. */
import { readFileSync } from "node:fs"
import type { Route } from "playwright-core"
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { consoleWorld } from "./ConsoleWorld.ts"
import { openWire } from "./Wire.ts"

const [key, writer] = [testKey("events"), testKey("writer")]
const COUNT = 3_000
const HOSTILE = '<img src=x onerror="document.title=1">'
/** One a minute, the last of them now. */
const START = Date.now() - COUNT * 60_000

const actions = ["document.read", "user.login", "payment.approve"]
const outcomes = ["success", "success", "success", "success", "failure", "error"]
const event = (n: number) => ({
  timestamp: new Date(START + n * 60_000).toISOString(),
  actor: { id: n % 1_000 === 7 ? HOSTILE : `u_${n % 20}`, type: "human" },
  action: actions[n % 3],
  resource: { id: `doc-${n % 50}`, type: "document" },
  outcome: outcomes[(n >> 1) % 6],
  metadata: { amount: n, request: { region: n % 2 === 0 ? "eu" : "us" } }
})

/** How many of the first events are so. */
const countOf = (isSo: (one: ReturnType<typeof event>) => boolean): string =>
  Array.from({ length: COUNT }, (_, n) => event(n))
    .filter(isSo)
    .length.toLocaleString("en-US")

const world = consoleWorld("events", `${key}=acme:read,${writer}=acme:write`, async ({ url }) => {
  const client = new Client(url, writer)
  for (let from = 0; from < COUNT; from += 1_000) {
    const events = Array.from({ length: 1_000 }, (_, n) => event(from + n))
    const { status } = await client.call("/v1/events/batch?sync=true", { body: { events } })
    assert.strictEqual(status, 200)
  }
})
const { assertQuiet, open } = world

const begin = async (path: string, options?: Parameters<typeof open>[1]) => {
  await open(path, options)
  await world.visit.signIn(key)
  await world.visit.heading(/^(?:Events|Live)$/).waitFor()
  return world.visit.page
}

const parameter = (name: string): string | null =>
  new URL(world.visit.page.url()).searchParams.get(name)

/** Waits until the address holds it. */
const becomes = (name: string, value: string) =>
  world.visit.page.waitForURL(({ searchParams }) => searchParams.get(name) === value)

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
    assert.deepInclude(await rowNumbers(), 2)
    await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight / 2))
    const half = page.locator('tr[aria-rowindex="1502"] td >> nth=2')
    await half.getByText(actions[(COUNT - 1_501) % 3]!).waitFor()
    await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight))
    await page.locator('tr[aria-rowindex="3001"]').getByText("document.read").waitFor()
    assert.isBelow((await rowNumbers()).length, 80)
    assertQuiet()
  })

  for (const [width, isDark] of [
    [1_440, false],
    [1_440, true],
    [768, false],
    [375, false]
  ] as const) {
    it(`is usable at ${width} px, ${isDark ? "dark" : "light"}`, async () => {
      const page = await begin("/events?event=8", { width, isDark })
      await page.getByText("in the signed tree of").waitFor()
      await page.locator(".json").getByText("<img src=x onerror=").waitFor()
      await page.locator("svg.histogram").waitFor()
      assert.strictEqual(await page.title(), "alk")
      assert.deepStrictEqual(await world.visit.faults(), [])
      assert.isFalse(await world.visit.overflows())
      await world.visit.picture(`events-${width}-${isDark ? "dark" : "light"}`)
      assertQuiet()
    })
  }

  it("says what to do where nothing matches", async () => {
    const page = await begin("/events?where=action:nothing")
    await page.getByRole("heading", { name: "No event matches" }).waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("events-none")
    assertQuiet()
  })

  it("tells of new events, and shows them when asked to", async () => {
    const page = await begin("/events")
    await page.getByText("3,000 events, the first of them").waitFor()
    const client = new Client(world.running.url, writer)
    const own = { ...event(1), action: "late.arrival", timestamp: new Date().toISOString() }
    await client.call("/v1/events?sync=true", { body: own })
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
    await world.visit.picture("events-unreachable")
    await world.visit.context.setOffline(false)
    await page.locator('tr[aria-rowindex="501"]').getByText("failure").waitFor()
    await world.visit.context.setOffline(true)
    await page.getByLabel("Query").fill("outcome:error")
    await page.getByLabel("Query").press("Enter")
    await page.locator(".list, .facets").getByText("Not loaded.").first().waitFor()
    assert.strictEqual(await page.getByText("can't be reached").count(), 1)
    await world.visit.picture("events-search-unreachable")
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
  it("is completed, applied and part of the address", async () => {
    const page = await begin("/events")
    await page.getByText(/^3,00\d events, the first of them/).waitFor()
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
    await page.keyboard.press("Enter")
    const found = countOf(
      ({ metadata, outcome }) => outcome === "failure" && metadata.amount > 2_000
    )
    await page.getByText(`${found} events, the first of them`).waitFor()
    await becomes("where", "outcome:failure metadata.amount>2000")
    await page.getByText(`${found} events, ${found} failures, 0 errors`).waitFor()
    await page.goBack()
    await page.getByText(/^3,00\d events, the first of them/).waitFor()
    assert.strictEqual(await page.getByLabel("Query").inputValue(), "")
    assertQuiet()
  })

  it("points at what is wrong with it", async () => {
    const page = await begin("/events?where=outcome:sucess")
    await page.getByRole("alert").getByText("column 9").first().waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("events-refused")
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

  it("is about the time that somebody drags over, or names", async () => {
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
    // One event a minute, of which one may leave the hour meanwhile.
    const isOfHour = (at: number): boolean => at >= Date.now() - 3_600_000
    const ofHour = Number(countOf(({ timestamp }) => isOfHour(Date.parse(timestamp))))
    const shown = [ofHour - 1, ofHour, ofHour + 1].join("|")
    await page.getByText(new RegExp(`^(?:${shown}) events, the first of them`)).waitFor()
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
    const lines = readFileSync(await download.path(), "utf8")
      .trim()
      .split("\r\n")
    assert.lengthOf(lines, 1 + 16)
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
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("events-views")
    await page.getByRole("link", { name: "Errors & regions" }).click()
    await page.getByRole("columnheader", { name: "metadata.request.region" }).waitFor()
    await becomes("where", "outcome:error")
    await page.getByRole("button", { name: "Forget Errors & regions" }).click()
    await page.getByText("None yet").waitFor()
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

  it("leads to what is near it", async () => {
    const page = await begin("/events?event=100")
    await page.getByRole("link", { name: "Next #101" }).click()
    await page.waitForURL(/event=101$/)
    await page.getByRole("link", { name: "Same resource" }).click()
    await page.getByText("60 events, the first of them").waitFor()
    await becomes("where", "resource_type:document resource_id:doc-0")
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
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("events-broken")
    assertQuiet()
  })

  it("says so where the chain has no such event", async () => {
    const page = await begin("/events?event=999999")
    await page.getByText("The chain has no event #999,999.").waitFor()
    assertQuiet()
  })
})

describe("the live page", () => {
  const send = async (action: string) => {
    const client = new Client(world.running.url, writer)
    const own = { ...event(1), action, timestamp: new Date().toISOString() }
    const { status } = await client.call("/v1/events?sync=true", { body: own })
    assert.strictEqual(status, 201)
  }
  const countOfRows = (action: string): Promise<number> =>
    world.visit.page.locator("table.events").getByText(action, { exact: true }).count()

  it("begins with the newest events and shows those that come", async () => {
    const page = await begin("/live", { width: 768 })
    await page.getByText("live", { exact: true }).waitFor()
    await page.getByText("50 events shown so far").waitFor()
    await send("live.first")
    await page.locator('tr[aria-rowindex="2"]').getByText("live.first").waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    assert.isFalse(await world.visit.overflows())
    await world.visit.picture("live")
    assertQuiet()
  })

  it("counts what comes during a pause, and shows it afterwards", async () => {
    const page = await begin("/live")
    await page.getByText("live", { exact: true }).waitFor()
    await page.keyboard.press("p")
    await page.getByText("paused", { exact: true }).waitFor()
    await send("live.paused")
    await send("live.paused")
    await page.getByText("2 events since the pause").waitFor()
    assert.strictEqual(await countOfRows("live.paused"), 0)
    await world.visit.picture("live-paused")
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
    assert.deepStrictEqual(await world.visit.faults(), [])
    await world.visit.picture("live-refused")
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
      await world.visit.picture("live-cut")
      await send("live.during")
      wire.change("whole")
      await page.locator('tr[aria-rowindex="2"]').getByText("live.during").waitFor()
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

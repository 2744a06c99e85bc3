/**
 * The console as people meet it: the program started as a user starts it, pages in a real Chromium.
 */

import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { testKey } from "../support/Program.ts"
import { itShowsTheOverview, key, overviewWorld, reader } from "./OverviewWorld.ts"

const empty = testKey("nothing")
const world = overviewWorld(`${empty}=nothing:read+write`)
const { assertQuiet, open } = world

describe("the address of the service", () => {
  it("is the console for browsers and JSON for everybody else", async () => {
    await open("/")
    await world.visit.page.getByLabel("API key").waitFor()
    const plain = await fetch(world.running.url)
    assert.match(plain.headers.get("content-type") ?? "", /^application\/json/)
    assert.include(plain.headers.get("vary"), "Accept")
    assertQuiet()
  })

  it("runs nothing but its own files, in nobody's frame", async () => {
    await open("/")
    const { headers } = await fetch(world.running.url, { headers: { accept: "text/html" } })
    const policy = headers.get("content-security-policy") ?? ""
    for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]) {
      assert.include(policy, rule)
    }
    assert.notInclude(policy, "unsafe")
    const run = "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
    await world.visit.page.evaluate(`${run} document.body.append(s)`)
    assert.isUndefined(await world.visit.page.evaluate("window.ran"))
  })
})

/** Bytes of the first paint, compressed, at most. */
const FIRST_PAINT_MAX = 60 * 1_024

describe("the first paint", () => {
  it("takes under 60 KiB, compressed", async () => {
    await open("/healthz")
    const { page } = world.visit
    const sizes: Array<Promise<readonly [url: string, bytes: number]>> = []
    page.on("requestfinished", (request) => {
      sizes.push(request.sizes().then(({ responseBodySize }) => [request.url(), responseBodySize]))
    })
    await page.goto(world.running.url)
    await page.getByLabel("API key").waitFor()
    const sent = await Promise.all(sizes)
    assert.include(
      sent.map(([url]) => url.split(".").at(-1)),
      "js"
    )
    assert.isBelow(
      sent.reduce((sum, [, bytes]) => sum + bytes, 0),
      FIRST_PAINT_MAX,
      JSON.stringify(sent)
    )
  })
})

describe("signing in", () => {
  it("takes a key, keeps it nowhere, and ends with signing out", async () => {
    await open("/")
    await world.visit.signIn(`${key.slice(0, -1)}Z`)
    await world.visit.page.getByRole("alert").getByText("missing, unknown or revoked").waitFor()
    // The browser writes every refused request into its console.
    world.visit.errors.length = 0
    await world.visit.assertSound("sign-in-refused")
    await world.visit.signIn(key)
    await world.visit.heading("Overview").waitFor()
    const kept = await world.visit.page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])"
    )
    assert.notInclude(String(kept), key)
    assert.notInclude(String(kept), "ses_")
    const [cookie] = await world.visit.context.cookies()
    assert.include(cookie, { name: "alk_session", httpOnly: true, sameSite: "Strict" })
    assert.notInclude(world.running.output(), key)
    assert.notInclude(world.running.output(), cookie!.value)

    await world.visit.page.reload()
    await world.visit.heading("Overview").waitFor()
    await world.visit.page.getByRole("button", { name: "Sign out" }).click()
    await world.visit.page.getByLabel("API key").waitFor()
    const { status } = await fetch(`${world.running.url}/v1/events`, {
      headers: { cookie: `alk_session=${cookie!.value}` }
    })
    assert.strictEqual(status, 401)
    assertQuiet()
  })

  it("is asked for again when the session has ended meanwhile", async () => {
    await open("/")
    await world.visit.signIn(key)
    await world.visit.heading("Overview").waitFor()
    await world.visit.page.getByText("verified #1 to #6").waitFor()
    await world.visit.context.clearCookies()
    // The page asks by itself, too: then there is no button any more.
    const ended = world.visit.page.getByText("Your session has ended")
    await world.visit.page.getByRole("button", { name: "Verify again" }).or(ended).click()
    await ended.waitFor()
    await world.visit.assertSound("sign-in-again")
    await world.visit.signIn(key)
    await world.visit.heading("Overview").waitFor()
    assert.deepStrictEqual(world.visit.foreign, [])
  })
})

describe("the overview", () => {
  itShowsTheOverview(world)

  it("shows an empty tenant how to begin, and ticks what has arrived", async () => {
    await open("/")
    await world.visit.signIn(empty)
    await world.visit.heading("Welcome").waitFor()
    await world.visit.page.getByText(`${world.running.url}/v1/events?sync=true`).first().waitFor()
    await world.visit.assertSound("onboarding")
    const { page } = world.visit
    await world.visit.open("/executions")
    await page.getByText("Authorization=Bearer%20$ALK_API_KEY").waitFor()
    await world.visit.assertSound("executions-none")
    await page.getByRole("link", { name: "How to send" }).click()
    await world.visit.heading("Welcome").waitFor()
    await world.visit.open("/")
    await world.visit.heading("Welcome").waitFor()
    await page.getByRole("button", { name: "Send a test event" }).click()
    await page.locator(".good").getByText("event arrived").waitFor()
    await page.locator(".good").getByText("verified #1 to #1").waitFor()
    await page.getByRole("link", { name: "#1 document.read" }).waitFor()
    const client = new Client(world.running.url, empty)
    await client.call("/api/v1/executions", { body: { agent_id: "first-agent" } })
    await page.getByRole("link", { name: "first-agent" }).waitFor()
    await world.visit.assertSound("onboarding-done")
    await page.getByRole("link", { name: "Go to the overview" }).click()
    await world.visit.heading("Overview").waitFor()
    await page.goto(`${world.running.url}/settings`)
    await page.getByRole("link", { name: "How to send" }).click()
    await page.getByText("export ALK_API_KEY=").waitFor()
    assertQuiet()
  })

  it("is worked with the keyboard alone", async () => {
    await open("/settings")
    const { clock, keyboard } = world.visit.page
    await clock.install()
    await world.visit.signIn(reader)
    await world.visit.heading("Settings").waitFor()
    await keyboard.press("?")
    await world.visit.page.getByRole("dialog", { name: "Keyboard" }).waitFor()
    await keyboard.press("Escape")
    await world.visit.page.getByRole("dialog").waitFor({ state: "hidden" })
    // Nobody is too slow for the second letter, which has to follow within a second.
    await clock.pauseAt(Date.now() + 60_000)
    await keyboard.press("g")
    await keyboard.press("o")
    await clock.resume()
    await world.visit.heading("Overview").waitFor()
    // Who reads by ear hears where they are, and is there.
    await eventuallyAsync(
      "the title and the focus are those of the page",
      async () => [
        await world.visit.page.title(),
        await world.visit.page.evaluate("document.activeElement.id")
      ],
      ([title, id]) => title === "Overview · alk" && id === "content"
    )
    await keyboard.press("g")
    await keyboard.press("s")
    await world.visit.page.getByLabel("off; Ctrl K and Tab").check()
    await world.visit.page.locator("main").focus()
    await keyboard.press("?")
    await keyboard.press("Control+k")
    await world.visit.page.getByRole("dialog", { name: "Go to" }).waitFor()
    assert.strictEqual(await world.visit.page.getByRole("dialog").count(), 1)
  })

  it("says that a page can't be loaded, and loads it when it can be", async () => {
    await open("/healthz")
    const { page } = world.visit
    await page.route("**/console/Chain-*.js", (route) => route.abort())
    await world.visit.open("/chain")
    await world.visit.signIn(reader)
    await page.getByRole("alert").getByText("This page can't be loaded").waitFor()
    await world.visit.assertSound("page-not-loaded")
    await page.unroute("**/console/Chain-*.js")
    await page.getByRole("button", { name: "Try again" }).click()
    await world.visit.heading("Chain").waitFor()
    assert.deepStrictEqual(world.visit.foreign, [])
  })

  it("keeps the colours and the zone that somebody has chosen", async () => {
    await open("/")
    await world.visit.signIn(reader)
    await world.visit.page.getByLabel("Colours").selectOption("dark")
    await world.visit.page.getByLabel("Times").selectOption("local")
    await world.visit.page.reload()
    await world.visit.heading("Overview").waitFor()
    assert.strictEqual(await world.visit.page.getByLabel("Colours").inputValue(), "dark")
    assert.strictEqual(await world.visit.page.getByLabel("Times").inputValue(), "local")
    const back = await world.visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert.strictEqual(back, "rgb(20, 24, 29)")
    assertQuiet()
  })
})

describe("an address that nothing has", () => {
  it("leads people back, and is an error to everybody else", async () => {
    await open("/no-such-page-of-the-console")
    await world.visit.signIn(key)
    await world.visit.heading("There is no such page").waitFor()
    assert.deepStrictEqual(world.visit.foreign, [])
    const plain = await fetch(`${world.running.url}/no-such-page-of-the-console`)
    assert.match(await plain.text(), /"not_found"/)
  })
})

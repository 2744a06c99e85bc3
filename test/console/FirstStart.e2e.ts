/**
 * The first start, as a person at a terminal meets it: an address that opens the console signed in,
 * once.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "vitest"
import { examples } from "../../src/console/state/Snippets.ts"
import { Visit } from "./ConsoleBrowser.ts"
import { addressIn, firstStart } from "./FirstStartWorld.ts"

const run = promisify(execFile)
const started = firstStart()

describe("the address of the first start", () => {
  it("opens the console signed in, forgets its code and works once", async () => {
    const { browser, running } = started
    const address = addressIn(running.output())
    assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/#code=/)
    assert.isBelow(running.output().trim().split("\n").length, 45)
    const first = await Visit.start(browser, running.url)
    await first.page.goto(address)
    await first.heading("Welcome").waitFor()
    assert.strictEqual(first.page.url(), `${running.url}/`)
    await first.page.getByRole("button", { name: "Send a test event" }).click()
    await first.page.getByText("verified #1 to #1").waitFor()
    assert.deepStrictEqual([first.errors, first.foreign], [[], []])
    await first.end()

    const second = await Visit.start(browser, running.url)
    await second.page.goto(address)
    await second.page.getByText("the sign-in code is unknown, expired or used").waitFor()
    await second.page.getByLabel("API key").waitFor()
    assert.strictEqual(second.page.url(), `${running.url}/`)
    await second.end()

    // Printed for the person once, not logged with requests.
    const code = address.split("#code=")[1]!
    assert.strictEqual(running.output().split(code).length, 2)
  })

  it("leads to an event that is sent, seen live, found and proved", async () => {
    const { browser, running } = started
    const key = /API key +(\S+)/.exec(running.output())![1]!
    const visit = await Visit.start(browser, running.url)
    const { page } = visit
    const menu = page.getByRole("navigation", { name: "Pages" })
    await visit.open("/start")
    await visit.signIn(key)
    // What the page shows is what a person pastes into a terminal.
    const shown = page.locator("details[open] pre").first()
    const command = await shown.textContent()
    await menu.getByRole("link", { name: "Live" }).click()
    await visit.heading("Live").waitFor()
    await page.getByText("live", { exact: true }).waitFor()
    const before = await page.getByRole("row", { name: /document\.read/ }).count()
    const environment = { PATH: process.env["PATH"], ALK_API_KEY: key }
    const { stdout } = await run("bash", ["-c", command!], { env: environment })
    const { sequence_number } = JSON.parse(stdout)
    await page
      .getByRole("row", { name: /document\.read/ })
      .nth(before)
      .waitFor()
    await menu.getByRole("link", { name: "Events" }).click()
    await visit.heading("Events").waitFor()
    await page.keyboard.press("/")
    await page.keyboard.type("actor_id:alice action:document.read")
    await page.keyboard.press("Enter")
    await page.waitForURL(/where=actor_id/)
    await page.locator(`table.events tr[aria-rowindex]`, { hasText: "doc-1" }).first().click()
    await page.waitForURL(new RegExp(`event=${sequence_number}$`))
    await page.getByText("in the signed tree of").waitFor()
    assert.deepStrictEqual([visit.errors, visit.foreign], [[], []])
    await visit.end()
  })

  it("leads to lines that send an event from a program as they are", async () => {
    const { running } = started
    const key = /API key +(\S+)/.exec(running.output())![1]!
    const snippets = new Map(examples(running.url))
    const python = join(process.cwd(), "test/examples/python")
    const environment = { PATH: process.env["PATH"], ALK_API_KEY: key, PYTHONPATH: python }
    for (const [name, command] of [
      ["curl", ["bash", "-c"]],
      ["TypeScript", [process.execPath, "--input-type=module", "-e"]],
      ["Python", ["python3", "-c"]]
    ] as const) {
      const [program, ...args] = command
      const { stdout } = await run(program, [...args, snippets.get(name)!], { env: environment })
      assert.match(stdout, /\d+/, name)
    }
    const answer = await fetch(`${running.url}/v1/events?actor_id=alice&action=document.read`, {
      headers: { authorization: `Bearer ${key}` }
    })
    assert.strictEqual(((await answer.json()) as { total: number }).total, 5)
  })
})

/**
 * The first start, as a person at a terminal meets it: an address that opens the console signed in,
 * once.
 */
import { execFile } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { examples } from "../../src/console/state/Snippets.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, type Started, start } from "../support/Program.ts"
import { startChromium, Visit } from "./ConsoleBrowser.ts"

const run = promisify(execFile)
const folder = freshFolder("first-start")
let running: Started
let browser: Browser

const begin = async () =>
  start({
    ALK_DATA_DIR: folder,
    ALK_KAFKA_PORT: String(await freePort()),
    ALK_LOG_FORMAT: "pretty"
  })

/** The console's address as it is printed. */
const addressIn = (output: string): string => /console +(\S+)/.exec(output)?.[1] ?? ""

beforeAll(async () => {
  running = await begin()
  browser = await startChromium()
})
afterAll(async () => {
  await browser.close()
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("the address of the first start", () => {
  it("opens the console signed in, forgets its code and works once", async () => {
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

  it("leads to lines that send an event from a program as they are", async () => {
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
    assert.strictEqual(((await answer.json()) as { total: number }).total, 4)
  })

  it("is printed by later starts too, while the first key is valid", async () => {
    const before = addressIn(running.output())
    await running.stop()
    running = await begin()
    const address = addressIn(running.output())
    assert.include(address, "#code=")
    assert.notStrictEqual(address.split("#")[1], before.split("#")[1])
    const visit = await Visit.start(browser, running.url)
    await visit.page.goto(address)
    await visit.heading("Overview").waitFor()
    await visit.end()
  })
})

/**
 * `npm run pictures` makes those of the README and the documents: the program and its demo as a user
 * starts them, and a real Chromium. They go to docs/images.
 */
import { execFile } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Page } from "playwright-core"
import { freshFolder, start, testKey } from "../support/Program.ts"
import { startChromium, Visit } from "./ConsoleBrowser.ts"

const FOLDER = "docs/images"
const SIZE = { width: 1_180, height: 760 }
const key = testKey("pictures")

/** What is pictured: its file, and how a person comes to it. */
const pictures: ReadonlyArray<readonly [name: string, show: (page: Page) => Promise<void>]> = [
  [
    "overview",
    async (page) => {
      await page.getByText("executions hold").waitFor()
      await page.getByRole("link", { name: /^Signed to / }).waitFor()
    }
  ],
  [
    "events",
    async (page) => {
      await page.goto(new URL("/events?where=outcome:failure", page.url()).href)
      await page.getByText(/events, the first of them/).waitFor()
      await page.locator("svg.histogram").waitFor()
      await page.keyboard.press("j")
      await page.getByText("in the signed tree of").waitFor()
      await page.locator(".drawer").evaluate((drawer) => drawer.scrollTo(0, drawer.scrollHeight))
    }
  ],
  [
    "console",
    async (page) => {
      await page.goto(new URL("/executions", page.url()).href)
      await page.locator("main tbody tr").first().getByRole("link").first().click()
      await page.getByText("facts verified").waitFor()
    }
  ],
  [
    "chain",
    async (page) => {
      await page.goto(new URL("/chain?run=1", page.url()).href)
      await page.getByText("audit events verified").first().waitFor()
    }
  ]
]

const folder = freshFolder("pictures")
const running = await start({
  ALK_DATA_DIR: folder,
  ALK_BOOTSTRAP_KEYS: `${key}=acme:read+write`
})
const browser = await startChromium()
try {
  const environment = { ...process.env, ALK_URL: running.url, ALK_API_KEY: key }
  const alk = [process.execPath, "src/cli/alk.mjs", "demo"] as const
  await promisify(execFile)(alk[0], alk.slice(1), { env: environment })
  mkdirSync(FOLDER, { recursive: true })
  const visit = await Visit.start(browser, running.url, SIZE)
  await visit.open("/")
  await visit.signIn(key)
  await visit.heading("Overview").waitFor()
  for (const [name, show] of pictures) {
    await show(visit.page)
    const path = join(FOLDER, `${name}.png`)
    await visit.page.screenshot({ path })
    console.log(path)
  }
  if (visit.errors.length > 0) throw new Error(visit.errors.join("\n"))
} finally {
  await browser.close()
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
}

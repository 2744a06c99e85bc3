/** The pages in a real Chromium: they work with the network off, and ask nobody but alk. */
import { existsSync } from "node:fs"
import { type Browser, chromium } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { TestApi } from "./support/TestApi.ts"

/** Milliseconds; many times what a page needs on a busy machine. */
const PAGE_MS = 120_000

/** The configured browser, one that is installed, or the one that npm brings. */
const launch = async (): Promise<Browser> => {
  const { CHROMIUM_PATH } = process.env
  const installed = [CHROMIUM_PATH, "/usr/bin/chromium"].find(
    (path) => path !== undefined && existsSync(path)
  )
  if (installed !== undefined) {
    return chromium.launch({ executablePath: installed, args: ["--no-sandbox"] })
  }
  const { default: packaged } = await import("@sparticuz/chromium")
  return chromium.launch({
    executablePath: await packaged.executablePath(),
    args: [...packaged.args, "--no-sandbox"]
  })
}

describe("the reference page", () => {
  let browser: Browser
  let api: TestApi

  beforeAll(async () => {
    browser = await launch()
    api = await TestApi.start()
  })
  afterAll(async () => {
    await browser.close()
    await api.stop()
  })

  it("shows every operation and makes no request to anywhere else", async () => {
    const page = await browser.newPage()
    page.setDefaultTimeout(PAGE_MS)
    const asked: Array<string> = []
    const errors: Array<string> = []
    await page.route("**/*", (route) => {
      asked.push(route.request().url())
      return route.request().url().startsWith(api.url) ? route.continue() : route.abort()
    })
    page.on("pageerror", (error) => errors.push(error.message))
    await page.goto(`${api.url}/docs`, { waitUntil: "load" })
    await page
      .getByText("POST /v1/events/batch", { exact: false })
      .or(page.getByText("/v1/events/batch"))
      .first()
      .waitFor()
    const text = await page.evaluate("document.body.innerText")
    for (const path of ["/v1/events/batch", "/v1/verify", "/v1/chain"]) {
      assert.include(String(text), path)
    }
    assert.deepStrictEqual(
      asked.filter((url) => !url.startsWith(api.url)),
      []
    )
    assert.deepStrictEqual(errors, [])
    await page.screenshot({ path: "coverage/docs.png" })
    await page.close()
  })
})

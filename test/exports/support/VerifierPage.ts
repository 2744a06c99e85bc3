/** verify.html in a real Chromium, opened from the disk as an auditor would. */
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { type Browser, chromium, type Page } from "playwright-core"
import { candidatesOf } from "../../../src/adapters/chromium/FindChromium.ts"
import type { PackReport, UnreadablePack } from "../../../src/exports/checker/Report.ts"

/** Milliseconds that the check of a small pack may take. */
const CHECK_MS_MAX = 120_000

export interface Given {
  /** Text of the field for the public key. */
  readonly key?: string
  /** Paths of checkpoints. */
  readonly kept?: ReadonlyArray<string>
}

export class VerifierPage {
  readonly page: Page
  /** Addresses that the page has asked for, itself included. */
  readonly requests: Array<string> = []
  /** What the page has complained about. */
  readonly errors: Array<string> = []
  readonly #browser: Browser

  private constructor(browser: Browser, page: Page) {
    this.#browser = browser
    this.page = page
  }

  static async open(
    path: string,
    options: { readonly width?: number; readonly dark?: boolean; readonly before?: string } = {}
  ): Promise<VerifierPage> {
    const cacheFolder = join(homedir(), ".cache", "alk")
    const [candidate] = await candidatesOf({ path: process.env["CHROMIUM_PATH"], cacheFolder })
    const { environment, path: executablePath } = await candidate!.program()
    const browser = await chromium.launch({
      executablePath,
      headless: true,
      chromiumSandbox: false,
      env: { ...environment, PATH: process.env["PATH"] ?? "", HOME: tmpdir(), TMPDIR: tmpdir() }
    })
    const { before, dark = false, width = 1_100 } = options
    const page = await browser.newPage({
      viewport: { width, height: 900 },
      colorScheme: dark ? "dark" : "light"
    })
    const opened = new VerifierPage(browser, page)
    page.on("request", (request) => opened.requests.push(request.url()))
    page.on("crash", () => opened.errors.push("the page crashed"))
    page.on("pageerror", (error) => opened.errors.push(error.message))
    page.on("console", (message) => {
      if (message.type() === "error") opened.errors.push(message.text())
    })
    if (before !== undefined) await page.addInitScript(before)
    await page.goto(pathToFileURL(path).href)
    return opened
  }

  /** Choose a pack and wait for the verdict. */
  async check(
    pack: string,
    given: Given = {},
    timeout = CHECK_MS_MAX
  ): Promise<PackReport | UnreadablePack> {
    const { page } = this
    const { kept = [], key = "" } = given
    await page.fill("#key", key)
    // A browser holds on to a file as it was: choosing the same path again is no new choice.
    await page.setInputFiles("#kept", [])
    await page.setInputFiles("#kept", [...kept])
    await page.evaluate("delete document.documentElement.dataset.verdict")
    await page.setInputFiles("#pack", [])
    await page.setInputFiles("#pack", pack)
    await page.waitForSelector("html[data-verdict]", { timeout, state: "attached" })
    return JSON.parse((await page.textContent("#json"))!) as PackReport | UnreadablePack
  }

  close(): Promise<void> {
    return this.#browser.close()
  }
}

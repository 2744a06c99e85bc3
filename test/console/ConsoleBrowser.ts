/**
 * A person with a real Chromium in front of the console. Whatever is opened is watched: nothing may
 * be asked of another server, no error may appear in the browser's console.
 */
import { mkdirSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { AxeBuilder } from "@axe-core/playwright"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { assert } from "vitest"
import { candidatesOf } from "../../src/adapters/chromium/FindChromium.ts"
import { isWhole } from "../support/Runs.ts"

const PICTURES = "coverage/console"
/** Milliseconds that anything on a page may take: many programs and browsers share the machine. */
const PAGE_TIMEOUT_MS = 120_000

export const startChromium = async (): Promise<Browser> => {
  const cacheFolder = join(homedir(), ".cache", "alk")
  const [candidate] = await candidatesOf({ path: process.env["CHROMIUM_PATH"], cacheFolder })
  const { environment, path: executablePath } = await candidate!.program()
  return chromium.launch({
    executablePath,
    headless: true,
    chromiumSandbox: false,
    env: { ...environment, PATH: process.env["PATH"] ?? "", HOME: tmpdir(), TMPDIR: tmpdir() }
  })
}

export interface VisitOptions {
  readonly width?: number
  readonly height?: number
  /** Pixels of the screen for one of CSS: what zooming changes. */
  readonly scale?: number
  readonly isDark?: boolean
}

/** How a page is looked at: width of the window in pixels, and whether the system has it dark. */
type Look = readonly [width: number, isDark: boolean]

/** All of them in `npm run test:all`, the two that differ most in `npm test`. */
const looks: ReadonlyArray<Look> = isWhole
  ? [1_440, 768, 375].flatMap(
      (width): ReadonlyArray<Look> => [
        [width, false],
        [width, true]
      ]
    )
  : [
      [1_440, false],
      [375, true]
    ]

const coloursOf = (isDark: boolean): "dark" | "light" => (isDark ? "dark" : "light")

export class Visit {
  readonly page: Page
  readonly context: BrowserContext
  readonly url: string
  /** Addresses of other servers that were asked for. */
  readonly foreign: Array<string> = []
  /** What the browser complained about. */
  readonly errors: Array<string> = []

  private constructor(url: string, context: BrowserContext, page: Page) {
    this.url = url
    this.context = context
    this.page = page
    page.on("request", (request) => {
      const asked = request.url()
      if (!asked.startsWith(url) && !asked.startsWith("data:")) this.foreign.push(asked)
    })
    page.on("pageerror", (error) => this.errors.push(error.message))
    page.on("console", (message) => {
      if (message.type() === "error") this.errors.push(message.text())
    })
  }

  static async start(browser: Browser, url: string, options: VisitOptions = {}): Promise<Visit> {
    const { height = 900, isDark = false, scale = 1, width = 1_440 } = options
    const context = await browser.newContext({
      viewport: { width, height },
      deviceScaleFactor: scale,
      colorScheme: isDark ? "dark" : "light",
      timezoneId: "Europe/Berlin"
    })
    context.setDefaultTimeout(PAGE_TIMEOUT_MS)
    return new Visit(url, context, await context.newPage())
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.url}${path}`)
  }

  async signIn(key: string): Promise<void> {
    await this.page.getByLabel("API key").fill(key)
    await this.page.getByRole("button", { name: "Sign in" }).click()
  }

  heading(name: string | RegExp) {
    return this.page.getByRole("heading", { level: 1, name })
  }

  /** What an accessibility check finds that is serious. */
  async faults(): Promise<ReadonlyArray<string>> {
    // What is about to appear has no colours yet; what went away meanwhile needs none.
    await this.page.evaluate(
      "Promise.allSettled(document.getAnimations().map((animation) => animation.finished))"
    )
    const { violations } = await new AxeBuilder({ page: this.page }).analyze()
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)
  }

  /** True if the page is wider than the window. */
  overflows(): Promise<boolean> {
    return this.page.evaluate(
      "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
  }

  /**
   * What is shown now is whole in every look: no wider than the window, without serious faults of
   * accessibility. Leaves a picture of each to be looked at, and the page as it was.
   */
  async assertSound(name: string): Promise<void> {
    const { height, width: widthBefore } = this.page.viewportSize()!
    const before = await this.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    mkdirSync(PICTURES, { recursive: true })
    for (const [width, isDark] of looks) {
      const look = `${name}-${width}-${coloursOf(isDark)}`
      await this.page.setViewportSize({ width, height })
      await this.page.emulateMedia({ colorScheme: coloursOf(isDark) })
      await this.page.screenshot({ path: join(PICTURES, `${look}.png`), fullPage: true })
      assert.isFalse(await this.overflows(), `${look} is wider than the window`)
      // Wide pages show the most, narrow ones fold it: between them is nothing new.
      if (width !== 768) assert.deepStrictEqual(await this.faults(), [], look)
    }
    await this.page.setViewportSize({ width: widthBefore, height })
    await this.page.emulateMedia({ colorScheme: coloursOf(before === true) })
  }

  end(): Promise<void> {
    return this.context.close()
  }
}

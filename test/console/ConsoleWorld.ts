/** One service and one Chromium for the tests of a file, and a visit for each test. */
import { rmSync } from "node:fs"
import type { Browser } from "playwright-core"
import { afterAll, afterEach, assert, beforeAll } from "vitest"
import { ADMIN_TOKEN, freshFolder, type Started, start } from "../support/Program.ts"
import { startChromium, Visit, type VisitOptions } from "./ConsoleBrowser.ts"

export interface ConsoleWorld {
  readonly running: Started
  /** Of the test that runs. */
  readonly visit: Visit
  /** Opens a path of the service, or of `url` in front of it. */
  readonly open: (path: string, options?: VisitOptions, url?: string) => Promise<void>
  /** Nothing was asked of another server, and the browser had nothing to complain about. */
  readonly assertQuiet: () => void
}

/**
 * Started for the file that calls it, with these keys as `ALK_BOOTSTRAP_KEYS` has them, and further
 * variables.
 */
export const consoleWorld = (
  name: string,
  keys: string,
  prepare: (running: Started) => Promise<void>,
  environment: Readonly<Record<string, string>> = {}
): ConsoleWorld => {
  const folder = freshFolder(name)
  let running: Started
  let browser: Browser
  let visit: Visit
  beforeAll(async () => {
    running = await start({
      ALK_DATA_DIR: folder,
      ALK_ADMIN_TOKEN: ADMIN_TOKEN,
      LOG_LEVEL: "info",
      ALK_BOOTSTRAP_KEYS: keys,
      ...environment
    })
    browser = await startChromium()
    await prepare(running)
  })
  afterAll(async () => {
    await browser.close()
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  afterEach(async () => {
    await visit.end()
  })
  return {
    get running() {
      return running
    },
    get visit() {
      return visit
    },
    open: async (path, options, url = running.url) => {
      visit = await Visit.start(browser, url, options)
      await visit.open(path)
    },
    assertQuiet: () => {
      assert.deepStrictEqual(visit.foreign, [])
      assert.deepStrictEqual(visit.errors, [])
    }
  }
}

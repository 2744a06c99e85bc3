/**
 * The program as a person starts it for the first time at a terminal, and a Chromium: one of each
 * for the file that calls it.
 */
import { rmSync } from "node:fs"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { freshFolder, type Started, start } from "../support/Program.ts"
import { startChromium } from "./ConsoleBrowser.ts"

export interface FirstStart {
  readonly running: Started
  readonly browser: Browser
  /** Ends the program and starts it again over what it has kept. */
  readonly startAgain: () => Promise<void>
}

/** The console's address as it is printed. */
export const addressIn = (output: string): string => /console +(\S+)/.exec(output)?.[1] ?? ""

export const firstStart = (): FirstStart => {
  const folder = freshFolder("first-start")
  const begin = () => start({ ALK_DATA_DIR: folder, ALK_KAFKA_PORT: "0", ALK_LOG_FORMAT: "pretty" })
  let running: Started
  let browser: Browser
  beforeAll(async () => {
    running = await begin()
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser.close()
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    get running() {
      return running
    },
    get browser() {
      return browser
    },
    startAgain: async () => {
      await running.stop()
      running = await begin()
    }
  }
}

/** The page of events over a million events: how soon it shows them, and how it scrolls. */
import { assert, describe, it } from "vitest"
import { consoleWorld } from "../console/ConsoleWorld.ts"
import { Client } from "../support/Client.ts"
import { populate } from "../support/Population.ts"
import { testKey } from "../support/Program.ts"

const COUNT = 1_000_000
const VIEWS = 7
/** Milliseconds from the answer to the first rows on the screen, the median of the views. */
const SHOWN_MAX_MS = 300
/** Rows that are scrolled through. */
const SCROLLED = 100_000
/** Milliseconds of a frame that a reader does not see as a stop; of 95 in 100. */
const FRAME_MAX_MS = 100

const key = testKey("large-console")
const world = consoleWorld("large-console", `${key}=acme:read+write`, ({ url }) =>
  populate(new Client(url, key, false, 10), COUNT)
)

/** Notes in the page when the first row was drawn. */
const NOTE_FIRST_ROW = `
  new MutationObserver((_, observer) => {
    if (document.querySelector("table.events tr[aria-rowindex]") === null) return
    observer.disconnect()
    requestAnimationFrame(() => { window.drawnAt = performance.now() })
  }).observe(document, { childList: true, subtree: true })`

/** Milliseconds between the end of the answer with the rows and their first frame. */
const SHOWN_AFTER = `(() => {
  const [answer] = performance.getEntriesByType("resource")
    .filter(({ name }) => /\\/v1\\/events\\?/.test(name))
  return window.drawnAt - answer.responseEnd
})()`

/** Scrolls through so many rows in steps, and gives the milliseconds of each frame. */
const scrollThrough = (rows: number): string => `(async () => {
  const scroller = document.querySelector(".rows-scroller")
  const height = document.querySelector("tr[aria-rowindex]").getBoundingClientRect().height
  const frame = () => new Promise(requestAnimationFrame)
  const frames = []
  let before = await frame()
  for (let step = 1; step <= 300; step++) {
    scroller.scrollTop = (height * ${rows} * step) / 300
    const now = await frame()
    frames.push(now - before)
    before = now
  }
  return frames
})()`

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> =>
  values.toSorted((left, right) => left - right)
const at = (values: ReadonlyArray<number>, share: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * share))]!

describe(`the page of events over ${COUNT.toLocaleString("en-US")} events`, () => {
  it("shows the first of them soon after the answer, and scrolls through them", async () => {
    await world.open("/")
    await world.visit.signIn(key)
    await world.visit.heading("Overview").waitFor()
    const { page } = world.visit
    await page.addInitScript(NOTE_FIRST_ROW)
    const shown: Array<number> = []
    for (let view = 0; view < VIEWS; view++) {
      await world.visit.open("/events")
      await page.getByText("1,000,000 events, the first of them").waitFor()
      shown.push(Number(await page.evaluate(SHOWN_AFTER)))
    }
    const frames = (await page.evaluate(scrollThrough(SCROLLED))) as ReadonlyArray<number>
    const measured = {
      shown_ms: sorted(shown).map(Math.round),
      frame_ms: [0.5, 0.95, 1].map((share) => Math.round(at(frames, share)))
    }
    console.log(JSON.stringify(measured))
    const last = await page.locator("tr[aria-rowindex]").last().getAttribute("aria-rowindex")
    assert.isAtLeast(Number(last), SCROLLED)
    assert.isBelow(at(shown, 0.5), SHOWN_MAX_MS)
    assert.isBelow(at(frames, 0.95), FRAME_MAX_MS)
    world.assertQuiet()
  })
})

/** How long a person waits for the list of events in the console, in a real Chromium. */
import type { Page } from "playwright-core"
import { startChromium, Visit } from "../../console/ConsoleBrowser.ts"
import { testKey } from "../../support/Program.ts"
import { LARGE_TENANT, type LargeStore } from "../harness/LargeStore.ts"
import { recordTimes, sizeText } from "../harness/Samples.ts"
import type { Bench, LargeScenario } from "../Scenario.ts"

/** Openings of the page in a run. */
const SAMPLES = { quick: 3, full: 20 }
/** Those that are not measured: the first one builds the console. */
const WARM_UPS = 2
/** The size that the goal is about, in milliseconds after the answer. */
const GOAL = { size: 1e6, ms: 300 }

const ROW = "table.events tbody td a"

/** A promise of when the first frame with a row of an event was over. Runs in the page. */
const WATCH = `
  window.rowsAt = new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (document.querySelector(${JSON.stringify(ROW)}) === null) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
    }).observe(document, { childList: true, subtree: true })
  })
`

interface View {
  /** Milliseconds after the answer with the events had come. */
  readonly afterAnswer: number
  /** Milliseconds after the address was opened. */
  readonly afterOpening: number
}

/** Opens the page of events and waits for its rows. */
const viewOnce = async (page: Page, url: string): Promise<View> => {
  await page.goto(`${url}/events`)
  return page.evaluate<View>(`window.rowsAt.then((rowsAt) => {
    const answers = performance.getEntriesByType("resource")
      .map(({ name, responseEnd }) => name.includes("/v1/events?") ? responseEnd : 0)
      .filter((came) => came > 0 && came < rowsAt)
    return { afterAnswer: rowsAt - Math.min(...answers), afterOpening: rowsAt }
  })`)
}

const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const { url } = (await store.program()).process
  const browser = await startChromium()
  try {
    const visit = await Visit.start(browser, url)
    await visit.page.addInitScript(WATCH)
    await visit.open("/events")
    await visit.signIn(testKey(LARGE_TENANT))
    await visit.page.locator(ROW).first().waitFor()
    for (let n = 0; n < WARM_UPS; n++) await viewOnce(visit.page, url)
    for (let run = 0; run < options.runs; run++) {
      say(`run ${run + 1} of ${options.runs}`)
      const views: Array<View> = []
      for (let n = 0; n < SAMPLES[options.quick ? "quick" : "full"]; n++) {
        views.push(await viewOnce(visit.page, url))
      }
      const goal = size === GOAL.size ? GOAL.ms : undefined
      const of = (what: keyof View) => views.map((view) => view[what])
      const at = sizeText(size)
      recordTimes(recorder, `${at}: rows after the answer`, of("afterAnswer"), {
        p50: undefined,
        p95: goal
      })
      recordTimes(recorder, `${at}: rows after opening the page`, of("afterOpening"), {
        p50: undefined,
        p95: undefined
      })
    }
  } finally {
    await browser.close()
  }
}

export const eventsPage: LargeScenario = {
  name: "console",
  title: "The list of events in the console",
  about: ({ quick }) =>
    "A headless Chromium beside the program opens the page of events, "
    + `${SAMPLES[quick ? "quick" : "full"]} times in a run, its files in its cache: until the first `
    + "frame with rows is drawn, from the moment that the answer with the events had come, and from "
    + "the moment that the address was opened.",
  runAt
}

/**
 * The page of events over some thousand events: what its files share. Knows how many of them are
 * so, and how many were sent since.
 */
import type { Page } from "playwright-core"
import { assert, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { sharedParts } from "../support/SharedParts.ts"
import type { VisitOptions } from "./ConsoleBrowser.ts"
import { type ConsoleWorld, consoleWorld } from "./ConsoleWorld.ts"

/** Reads; another one writes. */
export const key = testKey("events")
const writer = testKey("writer")

export const COUNT = 3_000
const HOSTILE = '<img src=x onerror="document.title=1">'
/** An event with a long text, by its sequence number less one. */
const LONG_EVENT = 41
export const LONG_TEXT = "a long text ".repeat(500)
/** One whose metadata has no room in it, after that. */
const LARGE_EVENT = 42
export const LARGE_TEXT = `${"a large text ".repeat(4_000)}ends`
/** One a minute, the last of them now. */
const START = Date.now() - COUNT * 60_000

export const actions = ["document.read", "user.login", "payment.approve"]
const outcomes = ["success", "success", "success", "success", "failure", "error"]
const event = (n: number) => ({
  timestamp: new Date(START + n * 60_000).toISOString(),
  actor: { id: n % 1_000 === 7 ? HOSTILE : `u_${n % 20}`, type: "human" },
  action: actions[n % 3],
  resource: { id: `doc-${n % 50}`, type: "document" },
  outcome: outcomes[(n >> 1) % 6],
  metadata: {
    amount: n,
    request: { region: n % 2 === 0 ? "eu" : "us" },
    ...(n === LONG_EVENT ? { note: LONG_TEXT } : {}),
    ...(n === LARGE_EVENT ? { answer: LARGE_TEXT } : {})
  }
})

const matching = (isSo: (one: ReturnType<typeof event>) => boolean): number =>
  Array.from({ length: COUNT }, (_, n) => event(n)).filter(isSo).length

/** As the page writes a number. */
const written = (count: number): string => count.toLocaleString("en-US")

/** How many of the first events are so. */
export const countOf = (isSo: (one: ReturnType<typeof event>) => boolean): string =>
  written(matching(isSo))

export interface EventsWorld {
  readonly world: ConsoleWorld
  /** Opens a path of the page of events or of the live page, signed in. */
  readonly begin: (path: string, options?: VisitOptions) => Promise<Page>
  /** An event of now, which no count of the first ones has. */
  readonly send: (action: string) => Promise<void>
  /** How many there are, with those that were sent. */
  readonly total: () => string
  /** How many there are since a time before those that were sent, milliseconds since 1970. */
  readonly countSince: (time: number) => number
  /** What the address has of it. */
  readonly parameter: (name: string) => string | null
  /** Waits until the address holds it. */
  readonly becomes: (name: string, value: string) => Promise<void>
  readonly itIsUsable: () => void
}

export const eventsWorld = (): EventsWorld => {
  const keys = `${key}=acme:read,${writer}=acme:write`
  const world = consoleWorld(
    "events",
    keys,
    async ({ url }) => {
      const client = new Client(url, writer)
      for (let from = 0; from < COUNT; from += 1_000) {
        const events = Array.from({ length: 1_000 }, (_, n) => event(from + n))
        const { status } = await client.call("/v1/events/batch?sync=true", { body: { events } })
        assert.strictEqual(status, 200)
      }
    },
    sharedParts("events")
  )
  let sent = 0
  const begin: EventsWorld["begin"] = async (path, options) => {
    await world.open(path, options)
    await world.visit.signIn(key)
    await world.visit.heading(/^(?:Events|Live)$/).waitFor()
    return world.visit.page
  }
  const addressed = (address: URL, name: string) => address.searchParams.get(name)
  return {
    world,
    begin,
    send: async (action) => {
      const client = new Client(world.running.url, writer)
      const own = { ...event(1), action, timestamp: new Date().toISOString() }
      const { status } = await client.call("/v1/events?sync=true", { body: own })
      assert.strictEqual(status, 201)
      sent++
    },
    total: () => written(COUNT + sent),
    countSince: (time) => matching(({ timestamp }) => Date.parse(timestamp) >= time) + sent,
    parameter: (name) => addressed(new URL(world.visit.page.url()), name),
    becomes: (name, value) =>
      world.visit.page.waitForURL((address) => addressed(address, name) === value),
    itIsUsable: () => {
      it("is usable in every look", async () => {
        const page = await begin("/events?event=8")
        await page.getByText("in the signed tree of").waitFor()
        await page.locator(".json").getByText("<img src=x onerror=").waitFor()
        await page.locator("svg.histogram").waitFor()
        assert.match(await page.title(), /^(\w+ · )?alk$/)
        await world.visit.assertSound("events")
        world.assertQuiet()
      })
    }
  }
}

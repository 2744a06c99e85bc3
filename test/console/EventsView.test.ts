/** What the page of events asks for: bounds of one moment, and no end beyond it that was not asked for. */
import { assert, it } from "vitest"
import { filterOf, filterOfNews } from "../../src/console/state/EventsView.ts"

const NOW = Date.parse("2026-03-01T00:00:00Z")

const bounds = (filter: string): ReadonlyArray<string | null> => {
  const parameters = new URLSearchParams(filter)
  return [parameters.get("from"), parameters.get("to")]
}

const cases: ReadonlyArray<
  readonly [string | undefined, string | undefined, string | null, string | null, string | null]
> = [
  // from, to, what is sent as from, what as to, and what as to for the news
  [undefined, undefined, null, null, null],
  ["-24h", undefined, "2026-02-28T00:00:00.000Z", "2026-03-01T00:00:00.000Z", "now"],
  ["-24h", "now", "2026-02-28T00:00:00.000Z", "2026-03-01T00:00:00.000Z", "now"],
  ["-24h", "-1h", "2026-02-28T00:00:00.000Z", "2026-02-28T23:00:00.000Z", "-1h"],
  ["-24h", "+1h", "2026-02-28T00:00:00.000Z", "2026-03-01T01:00:00.000Z", "+1h"],
  ["2026-01-01", undefined, "2026-01-01", null, null],
  ["+1h", undefined, "2026-03-01T01:00:00.000Z", null, null]
]

it.each(cases)("from %s to %s", (from, to, sentFrom, sentTo, ofNews) => {
  const view = { where: "", from, to }
  assert.deepStrictEqual(bounds(filterOf(view, NOW)), [sentFrom, sentTo])
  assert.deepStrictEqual(bounds(filterOfNews(view, NOW)), [sentFrom, ofNews])
})

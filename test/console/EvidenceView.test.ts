/** What the page of evidence covers, and how long an export may take. */
import { assert, describe, it } from "vitest"
import { exportWords, linkWords } from "../../src/console/pages/evidence/CoverWords.ts"
import { isLoopback } from "../../src/console/parts/Loopback.ts"
import {
  boundsText,
  evidenceAddress,
  evidenceLink,
  evidenceViewOf,
  type Period,
  scopeOf
} from "../../src/console/state/EvidenceView.ts"
import { firstSeen, timeLeft } from "../../src/console/state/ExportProgress.ts"

const viewOf = (address: string) =>
  evidenceViewOf(Object.fromEntries(new URL(address, "http://localhost").searchParams))

const scopeAt = (period: Period, now: string) =>
  scopeOf(viewOf(`/evidence?period=${period}`), Date.parse(now))

describe("the period of evidence", () => {
  it.each<[Period, string, string | undefined, string | undefined]>([
    ["this-quarter", "2026-11-24T08:00:00Z", "2026-10-01", "2026-12-31"],
    ["last-quarter", "2026-11-24T08:00:00Z", "2026-07-01", "2026-09-30"],
    ["last-quarter", "2026-02-24T08:00:00Z", "2025-10-01", "2025-12-31"],
    ["this-month", "2028-02-10T08:00:00Z", "2028-02-01", "2028-02-29"],
    ["last-month", "2026-01-01T00:00:00Z", "2025-12-01", "2025-12-31"],
    ["this-year", "2026-12-31T23:59:59Z", "2026-01-01", "2026-12-31"],
    ["last-year", "2026-12-31T23:59:59Z", "2025-01-01", "2025-12-31"],
    ["all", "2026-12-31T23:59:59Z", undefined, undefined]
  ])("%s as of %s", (period, now, from, to) => {
    const { from: begin, to: end } = scopeAt(period, now)
    assert.deepStrictEqual([begin, end], [from, to])
  })

  it("of another page is the one that it shows, fixed at one moment", () => {
    const address = evidenceLink({ from: "-24h", to: undefined, where: "outcome:failure" })
    const view = viewOf(address)
    assert.strictEqual(view.period, "own")
    assert.deepStrictEqual(scopeOf(view, Date.parse("2026-11-24T08:00:00Z")), {
      from: "2026-11-23T08:00:00.000Z",
      where: "outcome:failure"
    })
    assert.strictEqual(viewOf(evidenceLink({ from: undefined, to: undefined })).period, "all")
    assert.strictEqual(viewOf("/evidence?where=actor:a").period, "all")
    assert.strictEqual(viewOf("/evidence?to=2026-01-01").period, "own")
  })

  it("is this quarter at first, and what is unknown is passed over", () => {
    assert.strictEqual(viewOf("/evidence").period, "this-quarter")
    assert.strictEqual(viewOf("/evidence?period=decade").period, "this-quarter")
  })

  it("is the same again by its address", () => {
    for (const address of [
      "/evidence?period=last-year&where=a+%22b%22&export=exp_1",
      "/evidence?period=own&from=2026-01-01&to=2026-02-01",
      "/evidence?period=own&to=2026-02-01",
      "/evidence?period=own&from=2026-02-01&execution=run_1"
    ]) {
      assert.strictEqual(evidenceAddress(viewOf(address)), address)
    }
  })

  it("is said in words", () => {
    assert.strictEqual(boundsText({}), "the whole log")
    assert.strictEqual(boundsText({ from: null, to: null }), "the whole log")
    assert.strictEqual(boundsText({ from: "a", to: "b" }), "a to b")
    assert.strictEqual(boundsText({ from: "a" }), "from a on")
    assert.strictEqual(boundsText({ to: "b" }), "up to b")
    const [from, to] = ["2026-01-01T00:00:00.000000Z", "2026-01-31T23:59:59.999999Z"]
    assert.strictEqual(boundsText({ from, to }), "2026-01-01 to 2026-01-31")
    assert.strictEqual(boundsText({ from: to }), "from 2026-01-31 on")
  })
})

describe("the time that is left of an export", () => {
  const stage = "verifying" as const
  const at = (done: number, total?: number) => ({
    stage,
    progress: { done, ...(total === undefined ? {} : { total }), unit: "events" as const }
  })

  it("follows from the speed that was seen", () => {
    const first = firstSeen(undefined, at(1_000, 10_000), 0)
    assert.strictEqual(firstSeen(first, at(4_000, 10_000), 3_000), first)
    assert.strictEqual(timeLeft(first, at(4_000, 10_000), 3_000), 6_000)
  })

  it("is not said before something was seen, of what has no end, or stands still", () => {
    const first = firstSeen(undefined, at(0, 10), 0)
    assert.isUndefined(timeLeft(first, at(5, 10), 1_000))
    assert.isUndefined(timeLeft(first, at(0, 10), 9_000))
    assert.isUndefined(timeLeft(first, at(5), 9_000))
    assert.isUndefined(timeLeft(undefined, at(5, 10), 9_000))
    assert.isUndefined(firstSeen(first, { stage }, 9_000))
  })

  it("begins anew with a stage, and where the count begins anew", () => {
    const first = firstSeen(undefined, at(5, 10), 0)
    const writing = { ...at(6, 10), stage: "writing" as const }
    assert.deepStrictEqual(firstSeen(first, writing, 7), { stage: "writing", done: 6, at: 7 })
    assert.deepStrictEqual(firstSeen(first, at(1, 10), 7), { stage, done: 1, at: 7 })
  })
})

describe("an address of this machine alone", () => {
  it.each([
    ["http://127.0.0.1:8080/v1/share", true],
    ["http://localhost:8080/share#shr_a", true],
    ["http://[::1]/", true],
    ["https://alk.example/share", false],
    ["https://127.0.0.1.example/", false],
    ["https://notlocalhost/", false]
  ])("%s: %s", (url, isOne) => assert.strictEqual(isLoopback(url), isOne))
})

describe("what will be in a document", () => {
  const cover = { events: 8, executions: { inPeriod: 5, before: 0 }, hasQuery: false }
  const narrowed = { ...cover, hasQuery: true }

  it("names the executions of agents where they go out with it", () => {
    const whole = "8 events and 5 agent executions, with their inputs and outputs"
    assert.deepStrictEqual([exportWords("pack", cover), linkWords(cover)], [whole, whole])
    assert.strictEqual(
      exportWords("pdf", cover),
      "8 events and 5 agent executions, without their inputs and outputs"
    )
    assert.strictEqual(exportWords("csv", cover), "8 events, no agent executions")
  })

  it("says that a query narrows a link to events, and leaves the executions of a pack", () => {
    assert.strictEqual(linkWords(narrowed), "8 events of the query, no agent executions")
    assert.strictEqual(
      exportWords("pack", narrowed),
      "8 events of the query and 5 agent executions, with their inputs and outputs"
    )
  })

  it("claims no number that is not known", () => {
    const earlier = { ...cover, executions: { inPeriod: 0, before: 1 } }
    assert.include(linkWords(earlier), "0 agent executions, and those of 1 earlier one that still")
    const none = { ...cover, executions: { inPeriod: 0, before: 0 } }
    assert.strictEqual(linkWords(none), "8 events and 0 agent executions")
    assert.strictEqual(
      linkWords({ events: undefined, executions: undefined, hasQuery: false }),
      "the events and the agent executions of this time, with their inputs and outputs"
    )
  })
})

/** What the numbers of the service mean on the page of its health. */
import { assert, describe, it } from "vitest"
import {
  COMMITTED_EVENTS,
  doubted,
  factsOf,
  latenciesOf,
  ratesOf,
  readingBefore
} from "../../src/console/pages/health/HealthRules.ts"
import { parseMetrics } from "../../src/console/state/Prometheus.ts"

const NOW = Date.parse("2026-01-31T12:00:00Z")
const SECOND = 1_000

const reading = (secondsAgo: number, text: string) => ({
  at: NOW - secondsAgo * SECOND,
  metrics: parseMetrics(`process_start_time_seconds ${NOW / 1_000 - 600}\n${text}`)
})

const factNamed = (name: string, ...readings: ReadonlyArray<ReturnType<typeof reading>>) => {
  const { integrity, machine, work } = factsOf(readings, NOW)
  const found = [...integrity, ...machine, ...work].find((fact) => fact.name === name)
  assert.isDefined(found, name)
  return found
}

const valueAndTone = (...given: Parameters<typeof factNamed>) => {
  const { tone, value } = factNamed(...given)
  return [value, tone]
}

describe("factsOf", () => {
  it("says of what was not measured that it is unknown, never that it is fine", () => {
    const names = [
      "Waiting for the sequencer",
      "Waiting for the projection",
      "Chains with a break",
      "Oldest pass over a chain",
      "Newest signed checkpoint",
      "Disk",
      "Memory"
    ]
    for (const name of names) {
      assert.deepStrictEqual(valueAndTone(name, reading(0, "")), ["unknown", "plain"], name)
    }
  })

  it("is alarmed by a broken chain, a full disk and work that piles up", () => {
    const of = (name: string, text: string) => valueAndTone(name, reading(0, text))
    const broken = "alk_self_verification_broken_tenants"
    assert.deepStrictEqual(of("Chains with a break", `${broken} 0`), ["0", "good"])
    assert.deepStrictEqual(
      of("Chains with a break", `${broken}{worker="0"} 0\n${broken}{worker="1"} 1`),
      ["1", "bad"]
    )
    const lag = (value: number) =>
      of("Waiting for the sequencer", `alk_sequencer_lag_commands{partition="0"} ${value}`)[1]
    assert.deepStrictEqual([lag(0), lag(10_000), lag(100_000)], ["good", "warn", "bad"])
    const disk = (free: number) =>
      of("Disk", `alk_data_free_bytes ${free}\nalk_data_disk_bytes 1000000`)[1]
    assert.deepStrictEqual([disk(500_000), disk(100_000), disk(10_000)], ["good", "warn", "bad"])
    assert.deepStrictEqual(of("Rows set aside", ""), ["none", "good"])
    assert.deepStrictEqual(of("Rows set aside", 'alk_rows_set_aside_total{table="events"} 2'), [
      "2",
      "warn"
    ])
  })

  it("calls a checkpoint late only while chains grow", () => {
    const text = (events: number, signedAgo: number) =>
      `${COMMITTED_EVENTS} ${events}\n`
      + `alk_checkpoint_newest_timestamp_seconds ${NOW / SECOND - signedAgo}`
    const name = "Newest signed checkpoint"
    const quiet = [reading(90, text(5, 10)), reading(0, text(5, 100))] as const
    assert.deepStrictEqual(valueAndTone(name, ...quiet), ["1 min ago", "good"])
    const growing = [reading(90, text(5, 10)), reading(0, text(6, 100))] as const
    assert.deepStrictEqual(valueAndTone(name, ...growing), ["1 min ago", "warn"])
    const signed = [reading(90, text(5, 10)), reading(0, text(6, 8))] as const
    assert.deepStrictEqual(valueAndTone(name, ...signed), ["8 s ago", "good"])
  })

  it("does not call a pass that never was a good one", () => {
    const name = "Oldest pass over a chain"
    const metric = "alk_self_verification_oldest_pass_timestamp_seconds"
    const at = (seconds: number) => valueAndTone(name, reading(0, `${metric} ${seconds}`))
    assert.deepStrictEqual(at(0), ["not yet", "plain"])
    assert.deepStrictEqual(at(NOW / SECOND - 60), ["1 min ago", "good"])
    assert.strictEqual(at(NOW / SECOND - 8 * 86_400)[1], "warn")
  })

  it("takes nothing for fine that an old reading says", () => {
    const fact = { name: "Disk", value: "1 GB", tone: "good" as const }
    assert.strictEqual(doubted(fact).tone, "plain")
    assert.strictEqual(doubted({ ...fact, tone: "bad" }).tone, "bad")
  })
})

describe("ratesOf", () => {
  it("is the growth by the second, and nothing where a counter began anew", () => {
    const readings = [
      reading(20, ""),
      reading(15, `${COMMITTED_EVENTS} 10`),
      reading(5, `${COMMITTED_EVENTS} 30`),
      reading(0, `${COMMITTED_EVENTS} 3`)
    ]
    const rates = ratesOf(readings, COMMITTED_EVENTS).map(({ rate }) => rate)
    assert.deepStrictEqual(rates, [2, 2, undefined])
    assert.deepStrictEqual(ratesOf(readings.slice(0, 1), COMMITTED_EVENTS), [])
  })
})

describe("readingBefore", () => {
  it("is the newest one that is old enough, or the oldest there is", () => {
    const readings = [90, 61, 59, 0].map((seconds) => reading(seconds, ""))
    assert.strictEqual(readingBefore(readings, 60 * SECOND), readings[1])
    assert.strictEqual(readingBefore(readings.slice(2), 60 * SECOND), readings[2])
    assert.isUndefined(readingBefore(readings.slice(3), 60 * SECOND))
  })
})

describe("latenciesOf", () => {
  it("is about what came in between, and about no streams", () => {
    const text = (fast: number, slow: number) =>
      [
        `{route="/v1/events",le="0.1"} ${fast}`,
        `{route="/v1/events",le="10"} ${fast + slow}`,
        `{route="/v1/events",le="+Inf"} ${fast + slow}`,
        '{route="/v1/events/stream",le="+Inf"} 1000'
      ]
        .map((labels) => `alk_http_request_duration_seconds_bucket${labels}`)
        .join("\n")
    const [requests] = latenciesOf(reading(60, text(5, 5)), reading(0, text(105, 5)))
    assert.strictEqual(requests?.count, 100)
    assert.strictEqual(requests?.tone, "good")
    assert.closeTo(requests?.quantiles[1] ?? 0, 0.095, 1e-9)
    const [slow] = latenciesOf(reading(60, text(5, 5)), reading(0, text(5, 105)))
    assert.strictEqual(slow?.tone, "bad")
    const [none] = latenciesOf(reading(60, ""), reading(0, ""))
    assert.deepStrictEqual([none?.count, none?.tone], [0, "plain"])
  })
})

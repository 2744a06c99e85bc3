/**
 * What the numbers of the service mean: which of them are fine, which ask for a look, which are bad.
 * Pure. What was not measured is unknown, never fine.
 */
import { bytes, count, counted, duration, relativeTime } from "../../parts/Format.ts"
import type { Tone } from "../../parts/Tone.ts"
import {
  between,
  bucketsOf,
  leastOf,
  type Metrics,
  mostOf,
  quantileOf,
  type Reading,
  sumOf
} from "../../state/Prometheus.ts"

export interface Fact {
  readonly name: string
  readonly value: string
  readonly tone: Tone
  /** What it means, or what to look at. */
  readonly note?: string
}

/** Commands or records that a burst leaves for a moment: some seconds of work on two cores. */
const LAG_WARN = 10_000
/** Minutes of work: clients wait, and readers see old lists. */
const LAG_BAD = 100_000
/** Parts of the disk: a log that can't grow stops every write, and segments of it are 1 GB. */
const DISK_WARN = 0.15
const DISK_BAD = 0.05
/** Seconds: six times the 10 s in which a chain that grows is signed. */
const CHECKPOINT_LATE_S = 60
/** Seconds: a pass over all chains may take hours, not a week. */
const PASS_LATE_S = 7 * 86_400
/** Seconds of a request of which one in a hundred may be slower: people notice one. */
const SLOW_WARN_S = 1
/** The service gives up waiting for a commit after some seconds: close to that nothing works. */
const SLOW_BAD_S = 5

const UNKNOWN = "unknown"

const unknown = (name: string, note = "The service does not say."): Fact => ({
  name,
  value: UNKNOWN,
  tone: "plain",
  note
})

const tonedBy = (value: number, warn: number, bad: number): Tone =>
  value >= bad ? "bad" : value >= warn ? "warn" : "good"

const lagOf = (metrics: Metrics, name: string, metric: string, of: string): Fact => {
  const lag = sumOf(metrics, metric)
  return lag === undefined
    ? unknown(name)
    : { name, value: counted(lag, of), tone: tonedBy(lag, LAG_WARN, LAG_BAD) }
}

/** A counter that is to stay at 0. */
const neverOf = (
  metrics: Metrics,
  [name, metric, note]: readonly [name: string, metric: string, note: string]
): Fact => {
  const found = sumOf(metrics, metric) ?? 0
  return found === 0
    ? { name, value: "none", tone: "good" }
    : { name, value: count(found), tone: "warn", note }
}

const BROKEN_NOTE =
  "Of any tenant. The page Chain shows those of yours; the log of the service names all of them."

const selfVerification = (metrics: Metrics, now: number): ReadonlyArray<Fact> => {
  const broken = mostOf(metrics, "alk_self_verification_broken_tenants")
  const oldest = leastOf(metrics, "alk_self_verification_oldest_pass_timestamp_seconds")
  const name = "Chains with a break"
  const pass = "Oldest pass over a chain"
  return [
    broken === undefined
      ? unknown(name, "The background check has not looked at any chain yet, or is off.")
      : {
          name,
          value: count(broken),
          tone: broken > 0 ? "bad" : "good",
          ...(broken > 0 ? { note: BROKEN_NOTE } : {})
        },
    neverOf(metrics, [
      "Breaks found",
      "alk_self_verification_breaks_total",
      "Since the start, each time that one was found."
    ]),
    oldest === undefined
      ? unknown(pass, "The background check has not looked at any chain yet, or is off.")
      : oldest === 0
        ? { name: pass, value: "not yet", tone: "plain", note: "Since the start." }
        : {
            name: pass,
            value: relativeTime(now - oldest * 1_000),
            tone: now / 1_000 - oldest > PASS_LATE_S ? "warn" : "good"
          }
  ]
}

/** The reading from about so long before the newest one. */
export const readingBefore = (
  readings: ReadonlyArray<Reading>,
  milliseconds: number
): Reading | undefined => {
  const newest = readings.at(-1)
  if (newest === undefined || readings.length < 2) return undefined
  return readings.findLast(({ at }) => newest.at - at >= milliseconds) ?? readings[0]
}

export const COMMITTED_EVENTS = "alk_events_committed_total"

const checkpoint = (readings: ReadonlyArray<Reading>, now: number): Fact => {
  const name = "Newest signed checkpoint"
  const newest = readings.at(-1)
  const at = newest && mostOf(newest.metrics, "alk_checkpoint_newest_timestamp_seconds")
  if (newest === undefined || at === undefined) {
    return unknown(name, "None was signed since the start: one is, when a chain grows.")
  }
  const age = now / 1_000 - at
  const before = readingBefore(readings, CHECKPOINT_LATE_S * 1_000)
  const grown = before === undefined ? 0 : (increase(before, newest, COMMITTED_EVENTS) ?? 0)
  const isLate = age > CHECKPOINT_LATE_S && grown > 0
  return {
    name,
    value: relativeTime(age * 1_000),
    tone: isLate ? "warn" : "good",
    note: isLate
      ? "Chains grow and are not signed: look at the log of the sequencer."
      : "Chains that don't grow need no new one."
  }
}

const disk = (metrics: Metrics): ReadonlyArray<Fact> => {
  const [free, whole, folder] = ["free", "disk", "folder"].map((part) =>
    mostOf(metrics, `alk_data_${part}_bytes`)
  )
  const note = "Measured where the broker or the store is embedded."
  return [
    free === undefined || whole === undefined
      ? unknown("Disk", note)
      : {
          name: "Disk",
          value: `${bytes(free)} of ${bytes(whole)} free`,
          tone: free < whole * DISK_BAD ? "bad" : free < whole * DISK_WARN ? "warn" : "good"
        },
    folder === undefined
      ? unknown("Data folder", note)
      : { name: "Data folder", value: bytes(folder), tone: "plain" }
  ]
}

const processes = (metrics: Metrics, now: number): ReadonlyArray<Fact> => {
  const memory = sumOf(metrics, "process_resident_memory_bytes")
  const started = mostOf(metrics, "process_start_time_seconds")
  const several = (metrics.get("process_resident_memory_bytes") ?? []).length
  return [
    memory === undefined
      ? unknown("Memory")
      : {
          name: "Memory",
          value: bytes(memory),
          tone: "plain",
          ...(several > 1 ? { note: `Of ${several} processes, without the broker.` } : {})
        },
    started === undefined
      ? unknown("Running since")
      : {
          name: "Running since",
          value: relativeTime(now - started * 1_000),
          tone: "plain",
          ...(several > 1 ? { note: "The process that started last." } : {})
        }
  ]
}

const counters: ReadonlyArray<readonly [name: string, metric: string, note: string]> = [
  [
    "Commands in quarantine",
    "alk_commands_quarantined_total",
    "Commands that could not be applied: topic alk.quarantine has them."
  ],
  [
    "Foreign or damaged records",
    "alk_records_malformed_total",
    "Something else wrote to an internal topic: the log names topic and offset."
  ],
  [
    "Rows set aside",
    "alk_rows_set_aside_total",
    "The store had rows that the topics deny: the table set_aside has them."
  ],
  ["Worker restarts", "alk_worker_restarts_total", "A worker ended by itself: the log says why."],
  [
    "Slow stream readers cut",
    "alk_live_readers_closed_total",
    "Readers of streams did not keep up, and resume by themselves."
  ]
]

/** By what they are about, as of the newest reading. */
export const factsOf = (
  readings: ReadonlyArray<Reading>,
  now: number
): Readonly<Record<"work" | "integrity" | "machine", ReadonlyArray<Fact>>> => {
  const metrics: Metrics = readings.at(-1)?.metrics ?? new Map()
  const readers = sumOf(metrics, "alk_live_subscribers")
  return {
    work: [
      lagOf(metrics, "Waiting for the sequencer", "alk_sequencer_lag_commands", "command"),
      lagOf(metrics, "Waiting for the projection", "alk_projection_lag_records", "record"),
      readers === undefined
        ? unknown("Open live streams")
        : { name: "Open live streams", value: count(readers), tone: "plain" },
      ...counters.map((one) => neverOf(metrics, one))
    ],
    integrity: [...selfVerification(metrics, now), checkpoint(readings, now)],
    machine: [...disk(metrics), ...processes(metrics, now)]
  }
}

/**
 * How much a counter has grown between two readings; undefined if it began anew. It is first shown
 * when it first counts.
 */
export const increase = (
  before: Reading,
  after: Reading,
  name: string,
  isWanted?: (labels: Readonly<Record<string, string>>) => boolean
): number | undefined => {
  const then = sumOf(before.metrics, name, isWanted) ?? 0
  const now = sumOf(after.metrics, name, isWanted) ?? 0
  return now < then ? undefined : now - then
}

export interface RatePoint {
  readonly at: number
  /** A second; undefined where the counter began anew. */
  readonly rate: number | undefined
}

/** How fast a counter grew between each two readings. */
export const ratesOf = (
  readings: ReadonlyArray<Reading>,
  name: string,
  isWanted?: (labels: Readonly<Record<string, string>>) => boolean
): ReadonlyArray<RatePoint> =>
  readings.slice(1).map((after, at) => {
    const before = readings[at]!
    const grown = increase(before, after, name, isWanted)
    return {
      at: after.at,
      rate: grown === undefined ? undefined : (grown * 1_000) / (after.at - before.at)
    }
  })

export interface Latency {
  readonly name: string
  /** Values that were measured in the interval. */
  readonly count: number
  /** Seconds; undefined without values. */
  readonly quantiles: readonly [p50?: number, p95?: number, p99?: number]
  readonly tone: Tone
}

const QUANTILES = [0.5, 0.95, 0.99] as const

/** Streams last as long as their readers like. */
const isNoStream = ({ route = "" }: Readonly<Record<string, string>>): boolean =>
  !route.includes("stream")

const histograms: ReadonlyArray<readonly [name: string, metric: string]> = [
  ["Requests, without streams", "alk_http_request_duration_seconds"],
  ["Ingest, until written or visible", "alk_ingest_duration_seconds"],
  ["Transactions of the sequencer", "alk_commit_duration_seconds"],
  ["Inserts of the projection", "alk_projection_flush_duration_seconds"]
]

/** Of what was measured between two readings. */
export const latenciesOf = (before: Reading, after: Reading): ReadonlyArray<Latency> =>
  histograms.map(([name, metric]) => {
    const bucketsIn = ({ metrics }: Reading) => bucketsOf(metrics, metric, isNoStream)
    const buckets = between(bucketsIn(before), bucketsIn(after))
    const [p50, p95, p99] = QUANTILES.map((quantile) => quantileOf(buckets, quantile))
    return {
      name,
      count: buckets.at(-1)?.[1] ?? 0,
      quantiles: [p50, p95, p99] as Latency["quantiles"],
      tone: p99 === undefined ? "plain" : tonedBy(p99, SLOW_WARN_S, SLOW_BAD_S)
    }
  })

/** Seconds as people read them. */
export const secondsText = (seconds: number | undefined): string =>
  seconds === undefined ? "–" : duration(seconds * 1_000_000)

/** A fact that an old reading says is no longer known to be fine. */
export const doubted = (fact: Fact): Fact =>
  fact.tone === "good" ? { ...fact, tone: "plain" } : fact

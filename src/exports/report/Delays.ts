/**
 * How long after it happened each event was recorded: the delay between event time and recording,
 * in microseconds. Holds eight bytes an event while it counts, and a few lines in the end.
 */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import { type EventLine, eventLine } from "./EventLine.ts"
import { insertRanked, type Quantiles, quantilesOf } from "./Ranking.ts"

const SECOND = 1_000_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Events recorded later than this were sent afterwards, as imports are. */
export const BACKDATED_AFTER = DAY
/** Clocks differ by less. */
export const AHEAD_AFTER = 5 * MINUTE
/** Delays over this are listed one by one. */
export const LATE_AFTER = MINUTE
/** Late events that are listed. */
export const LATE_ROWS_MAX = 20

/** Upper ends of the rows of the table, inclusive. */
const BUCKETS: ReadonlyArray<readonly [number, string]> = [
  [SECOND, "up to 1 second"],
  [10 * SECOND, "up to 10 seconds"],
  [MINUTE, "up to 1 minute"],
  [10 * MINUTE, "up to 10 minutes"],
  [HOUR, "up to 1 hour"],
  [DAY, "up to 1 day"],
  [7 * DAY, "up to 7 days"],
  [30 * DAY, "up to 30 days"],
  [Infinity, "over 30 days"]
]

/** Events that something is said of, with the range of their sequence numbers. */
export interface Counted {
  readonly count: number
  readonly first: number
  readonly last: number
}

/** Delays in microseconds; an event time after the recording is a delay of 0. */
export interface Timeliness extends Quantiles {
  readonly buckets: ReadonlyArray<{ readonly label: string; readonly count: number }>
  /** Recorded more than BACKDATED_AFTER after the event time. */
  readonly backdated: Counted | undefined
  /** Event time more than AHEAD_AFTER after the recording. */
  readonly ahead: Counted | undefined
  /** Events with a delay over LATE_AFTER. */
  readonly lateTotal: number
  /** The latest of them, by descending delay. */
  readonly late: ReadonlyArray<{ readonly delay: number; readonly event: EventLine }>
}

const extended = (known: Counted | undefined, sequence: number): Counted =>
  known === undefined
    ? { count: 1, first: sequence, last: sequence }
    : { count: known.count + 1, first: known.first, last: sequence }

const FIRST_CAPACITY = 1_024

export class Delays {
  #delays = new Float64Array(FIRST_CAPACITY)
  #length = 0
  readonly #buckets = BUCKETS.map(() => 0)
  #backdated: Counted | undefined
  #ahead: Counted | undefined
  #lateTotal = 0
  readonly #late: Array<{ readonly delay: number; readonly event: AuditEvent }> = []

  take(event: AuditEvent): void {
    const { created_at, sequence_number, timestamp } = event
    const micros = microsOf(created_at) - microsOf(timestamp)
    const delay = Math.max(0, micros)
    this.#push(delay)
    this.#buckets[BUCKETS.findIndex(([end]) => delay <= end)]! += 1
    if (delay > BACKDATED_AFTER) this.#backdated = extended(this.#backdated, sequence_number)
    if (-micros > AHEAD_AFTER) this.#ahead = extended(this.#ahead, sequence_number)
    if (delay <= LATE_AFTER) return
    this.#lateTotal += 1
    insertRanked(
      this.#late,
      () => ({ delay, event }),
      (other) => other.delay < delay,
      LATE_ROWS_MAX
    )
  }

  result(): Timeliness {
    const sorted = this.#delays.subarray(0, this.#length).sort()
    return {
      ...quantilesOf(sorted),
      buckets: BUCKETS.map(([, label], index) => ({ label, count: this.#buckets[index]! })),
      backdated: this.#backdated,
      ahead: this.#ahead,
      lateTotal: this.#lateTotal,
      late: this.#late.map(({ delay, event }) => ({
        delay,
        event: eventLine(event, { metadata: false })
      }))
    }
  }

  #push(delay: number): void {
    if (this.#length === this.#delays.length) {
      const longer = new Float64Array(2 * this.#length)
      longer.set(this.#delays)
      this.#delays = longer
    }
    this.#delays[this.#length++] = delay
  }
}

/**
 * What is fetched and not stored yet. To insert a few rows costs as much as to insert thousands, so
 * while much comes in and no request waits for it, rows are stored once a second. Pure; times are
 * milliseconds of the caller's clock.
 */
import type { Fetched } from "../../ports/EventLog.ts"

/** What is gathered waits so long at most. */
const GATHERED_MS_MAX = 1_000
const GATHERED_ROWS_MAX = 16_000
const GATHERED_BYTES_MAX = 16 * 1_048_576
/** Rows stored within a second from which on others are gathered; after fewer, none are. */
const BUSY_ROWS = 1_000
const BUSY_MS = 1_000

/** Topics whose records become rows that requests wait for. */
const isShown = ({ topic }: Fetched): boolean =>
  topic === "events" || topic === "traces" || topic === "checkpoints"

export class Gathering {
  #fetched: Array<Fetched> = []
  #rows = 0
  #bytes = 0
  #since = 0
  /** How many rows were stored when, for the last second. */
  #stored: Array<{ readonly at: number; readonly rows: number }> = []

  get isEmpty(): boolean {
    return this.#rows === 0
  }

  add(fetched: ReadonlyArray<Fetched>, now: number): void {
    let rows = 0
    for (const one of fetched) {
      if (!isShown(one)) continue
      rows += one.records.length
      for (const { value } of one.records) this.#bytes += value?.length ?? 0
    }
    if (this.#rows === 0) this.#since = now
    this.#rows += rows
    this.#fetched.push(...fetched)
  }

  /** True if it is to be stored now; `isAwaited`: a request waits for some of it. */
  isDue(now: number, isAwaited: boolean): boolean {
    this.#stored = this.#stored.filter(({ at }) => now - at < BUSY_MS)
    return (
      isAwaited
      || this.#rows === 0
      || this.#rows >= GATHERED_ROWS_MAX
      || this.#bytes >= GATHERED_BYTES_MAX
      || now - this.#since >= GATHERED_MS_MAX
      || this.#stored.reduce((sum, { rows }) => sum + rows, 0) < BUSY_ROWS
    )
  }

  /** All of it, in order; then there is nothing. */
  take(now: number): ReadonlyArray<Fetched> {
    const taken = this.#fetched
    if (this.#rows > 0) this.#stored.push({ at: now, rows: this.#rows })
    this.#fetched = []
    this.#rows = this.#bytes = 0
    return taken
  }
}

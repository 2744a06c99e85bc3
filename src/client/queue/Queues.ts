/**
 * The queues of a client together: events and operations on traces, flushed and closed as one, and
 * emptied when the program ends.
 */
import { onExit } from "../Environment.ts"
import type { Clock } from "../Pause.ts"
import type { Counters, Delivery } from "./Delivery.ts"
import { NotAcknowledged } from "./Rejection.ts"

/** Milliseconds that `flush` and `close` wait by default. */
const FLUSH_MS = 30_000
/** Milliseconds that the end of a program is held up at most while the service can't be reached. */
const EXIT_MS = 10_000

export interface FlushOptions {
  /** Milliseconds to wait at most, 30,000 by default. */
  readonly timeoutMs?: number
  /** Stops waiting earlier. */
  readonly signal?: AbortSignal
}

export interface QueueCounters {
  readonly events: Counters
  readonly traces: Counters
}

const mergedFailure = (results: ReadonlyArray<PromiseSettledResult<void>>): unknown => {
  const failures = results.flatMap((result) =>
    result.status === "rejected" ? [result.reason] : []
  )
  const own = failures.filter((failure) => failure instanceof NotAcknowledged)
  return own.length > 1 ? NotAcknowledged.of(own) : failures[0]
}

export class Queues {
  readonly #events: Delivery
  readonly #traces: Delivery
  readonly #clock: Clock
  readonly #unwatch: () => void
  #isLeaving = false

  constructor(events: Delivery, traces: Delivery, clock: Clock) {
    this.#events = events
    this.#traces = traces
    this.#clock = clock
    this.#unwatch = onExit({
      idle: () => this.#leave(),
      end: () => this.#sayWhatIsLost(),
      hidden: () => this.#hurry()
    })
  }

  get counters(): QueueCounters {
    return { events: this.#events.counters, traces: this.#traces.counters }
  }

  /** Rejects with NotAcknowledged. */
  async flush({ signal, timeoutMs = FLUSH_MS }: FlushOptions = {}): Promise<void> {
    const limit = new AbortController()
    const stop = () => limit.abort()
    signal?.addEventListener("abort", stop, { once: true })
    if (signal?.aborted === true) stop()
    // Keeps the program alive, which the waits of a queue alone do not.
    void this.#clock.wait(timeoutMs, limit.signal).then(stop)
    const results = await Promise.allSettled([
      this.#events.flush(limit.signal),
      this.#traces.flush(limit.signal)
    ])
    signal?.removeEventListener("abort", stop)
    stop()
    const failure = mergedFailure(results)
    if (failure !== undefined) throw failure
  }

  /** Flush, and take nothing more; what is then not acknowledged is given up. */
  async close(options: FlushOptions = {}): Promise<void> {
    this.#events.close()
    this.#traces.close()
    try {
      await this.flush(options)
    } finally {
      this.#unwatch()
      this.#events.abandon()
      this.#traces.abandon()
    }
  }

  get #waiting(): number {
    return this.#events.counters.waiting + this.#traces.counters.waiting
  }

  #hurry(): void {
    this.#events.hurry()
    this.#traces.hurry()
  }

  /** Nothing else keeps the program: it stays until the queues are empty, or the time is up. */
  #leave(): void {
    if (this.#waiting === 0 || this.#isLeaving) return
    this.#isLeaving = true
    this.flush({ timeoutMs: EXIT_MS })
      .catch(() => {
        this.#events.abandon()
        this.#traces.abandon()
      })
      .finally(() => {
        this.#isLeaving = false
      })
  }

  #sayWhatIsLost(): void {
    if (this.#waiting === 0) return
    console.error(
      `alk: ${this.#waiting} were logged and not sent; call close() before process.exit()`
    )
  }
}

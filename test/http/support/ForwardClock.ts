/**
 * The clock of a server under test: the real one, which a test can put forward. Whoever sleeps or
 * waits with a timeout then wakes as if so much time had passed.
 */
import { type Clock, Duration, Effect } from "effect"

/** What `setTimeout` can wait at most. */
const TIMER_MS_MAX = 2 ** 31 - 1

const nanosOf = (milliseconds: number): bigint => BigInt(Math.round(milliseconds * 1_000_000))

export class ForwardClock implements Clock.Clock {
  #aheadMs = 0
  /** Each looks at the time again. */
  readonly #sleepers = new Set<() => void>()

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())

  /** So many milliseconds pass at once. */
  forward(milliseconds: number): void {
    this.#aheadMs += milliseconds
    for (const look of [...this.#sleepers]) look()
  }

  currentTimeMillisUnsafe(): number {
    return Date.now() + this.#aheadMs
  }

  currentTimeNanosUnsafe(): bigint {
    return nanosOf(this.currentTimeMillisUnsafe())
  }

  monotonicTimeNanosUnsafe(): bigint {
    return process.hrtime.bigint() + nanosOf(this.#aheadMs)
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    const milliseconds = Duration.toMillis(duration)
    if (milliseconds <= 0) return Effect.yieldNow
    if (!Number.isFinite(milliseconds)) return Effect.never
    return Effect.callback<void>((resume) => {
      const until = this.monotonicTimeNanosUnsafe() + nanosOf(milliseconds)
      let timer: NodeJS.Timeout | undefined
      const stop = () => {
        clearTimeout(timer)
        this.#sleepers.delete(look)
      }
      const look = () => {
        const leftMs = Number(until - this.monotonicTimeNanosUnsafe()) / 1_000_000
        stop()
        if (leftMs <= 0) return resume(Effect.void)
        this.#sleepers.add(look)
        timer = setTimeout(look, Math.min(Math.ceil(leftMs), TIMER_MS_MAX))
      }
      look()
      return Effect.sync(stop)
    })
  }
}

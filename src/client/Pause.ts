/** Waiting that can be given up, and that a test can do without a clock. */
import { letEnd } from "./Environment.ts"

/** Time as the client knows it. */
export interface Clock {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /**
   * Resolves after `ms`, or at once when the signal is aborted. `isIdle`: the program may end
   * meanwhile, if nothing else keeps it.
   */
  readonly wait: (ms: number, signal?: AbortSignal, isIdle?: boolean) => Promise<void>
  /** From 0 up to 1. */
  readonly random: () => number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  wait: (ms, signal, isIdle = false) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener("abort", done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      if (isIdle) letEnd(timer)
      signal?.addEventListener("abort", done, { once: true })
    }),
  random: () => Math.random()
}

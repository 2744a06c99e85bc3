/**
 * Who waits until what was logged is settled, and what was not stored since they last asked. Knows
 * serial numbers only.
 */
import type { Rejection, Some } from "./Rejection.ts"

/** Rejections that are kept for the next flush; of further ones the number. */
const KEPT_MAX = 1_000

interface Waiter {
  readonly serial: number
  readonly resolve: () => void
}

export class Settlements {
  #through = 0
  #waiters: Array<Waiter> = []
  #rejections: Array<Rejection> = []
  #rejectionsTotal = 0

  /** Everything up to this serial number is stored, or was refused. */
  settled(through: number): void {
    this.#through = Math.max(this.#through, through)
    this.#waiters = this.#waiters.filter(({ resolve, serial }) => {
      if (serial > this.#through) return true
      resolve()
      return false
    })
  }

  /** Resolves once everything up to a serial number is settled, or when the signal is aborted. */
  reached(serial: number, signal: AbortSignal): Promise<void> {
    if (serial <= this.#through || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const waiter = { serial, resolve }
      this.#waiters.push(waiter)
      signal.addEventListener(
        "abort",
        () => {
          this.#waiters = this.#waiters.filter((one) => one !== waiter)
          resolve()
        },
        { once: true }
      )
    })
  }

  rejected(rejection: Rejection): void {
    this.#rejectionsTotal += 1
    if (this.#rejections.length < KEPT_MAX) this.#rejections.push(rejection)
  }

  /** What was not stored since this was last asked. */
  takeRejected(): Some<Rejection> {
    const taken = { some: this.#rejections, total: this.#rejectionsTotal }
    this.#rejections = []
    this.#rejectionsTotal = 0
    return taken
  }
}

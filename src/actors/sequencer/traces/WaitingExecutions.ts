/**
 * Executions by the second from which on something may be due of them, so that only those are
 * looked at of which it is. Decides nothing.
 */
import type { ExecutionEntry } from "./TraceEntry.ts"

const SECOND_MICROS = 1_000_000

export class WaitingExecutions {
  /** In each in the order in which they were put there. */
  readonly #bySecond = new Map<number, Set<ExecutionEntry>>()
  readonly #seconds = new Map<ExecutionEntry, number>()

  /** All of them, in no order. */
  get all(): Iterable<ExecutionEntry> {
    return this.#seconds.keys()
  }

  put(entry: ExecutionEntry, dueMicros: number): void {
    this.delete(entry)
    const second = Math.ceil(dueMicros / SECOND_MICROS)
    const others = this.#bySecond.get(second)
    if (others === undefined) this.#bySecond.set(second, new Set([entry]))
    else others.add(entry)
    this.#seconds.set(entry, second)
  }

  delete(entry: ExecutionEntry): void {
    const second = this.#seconds.get(entry)
    if (second === undefined) return
    this.#seconds.delete(entry)
    const others = this.#bySecond.get(second)!
    others.delete(entry)
    if (others.size === 0) this.#bySecond.delete(second)
  }

  /** Those of the seconds that are over, the earliest first. */
  *dueAt(nowMicros: number): Generator<ExecutionEntry, void, void> {
    const now = Math.floor(nowMicros / SECOND_MICROS)
    const seconds = [...this.#bySecond.keys()].filter((second) => second <= now)
    for (const second of seconds.sort((left, right) => left - right)) {
      for (const entry of this.#bySecond.get(second) ?? []) yield entry
    }
  }
}

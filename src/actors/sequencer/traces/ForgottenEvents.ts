/**
 * Which events of spans may have left the duplicate window: those whose facts are below an offset
 * of `alk.traces`. They are looked for in the store, once that shows the topic up to there.
 */
import type { PackedWindow } from "../PackedWindow.ts"

/** Places that are remembered of a window. */
const MARKS = 64

interface Mark {
  /** Entries of the window below it are of facts below the offset. */
  readonly ordinal: number
  readonly offset: number
}

export class ForgottenEvents {
  readonly #marks: Array<Mark> = []
  #upTo: number

  constructor(upTo: number) {
    this.#upTo = upTo
  }

  /** Of a window that was read again: it does not say of which facts its entries are. */
  static restored(
    { first }: Pick<PackedWindow, "first">,
    evictedBelow: number,
    tracesNext: number
  ): ForgottenEvents {
    return new ForgottenEvents(first === 0 ? evictedBelow : tracesNext)
  }

  /** Offset of `alk.traces`, exclusive. */
  get upTo(): number {
    return this.#upTo
  }

  /** The window has grown, and all that its entries are of is below `tracesNext`. */
  advance(
    { capacity, first, next }: Pick<PackedWindow, "capacity" | "first" | "next">,
    tracesNext: number
  ): void {
    const last = this.#marks.at(-1)?.ordinal ?? first
    if (next - last >= Math.ceil(capacity / MARKS)) {
      this.#marks.push({ ordinal: next, offset: tracesNext })
    }
    if (first === 0) return
    const reached = this.#marks.findIndex(({ ordinal }) => ordinal >= first)
    this.#marks.splice(0, reached === -1 ? this.#marks.length : reached)
    this.#upTo = Math.max(this.#upTo, this.#marks[0]?.offset ?? tracesNext)
  }
}

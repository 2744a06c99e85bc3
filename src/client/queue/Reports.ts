/**
 * Says loudly what a person has to know: by the hooks of the caller, or else on the console, which
 * a failure that repeats itself does not flood.
 */
import type { Clock } from "../Pause.ts"
import type { Rejection, Warning } from "./Rejection.ts"

/** Milliseconds between two lines of one kind. */
const QUIET_MS = 1_000
/** Milliseconds between two lines about requests that go on failing. */
const DELAYED_EVERY_MS = 60_000
/** Fields that are remembered as told of. */
const FIELDS_MAX = 1_000

export interface Hooks {
  /** Called for each event or operation that is not stored. The default writes to `console.error`. */
  readonly onReject?: ((rejection: Rejection) => void) | undefined
  /** Called when deliveries are late, and for fields that are not stored. Default: `console.warn`. */
  readonly onWarning?: ((warning: Warning) => void) | undefined
}

/** A line at most every so often; those in between are counted. */
class Throttle {
  readonly #clock: Clock
  readonly #everyMs: number
  #next = 0
  #skipped = 0

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock
    this.#everyMs = everyMs
  }

  /** How many lines were left out before this one; undefined if it is left out too. */
  admit(): number | undefined {
    const now = this.#clock.now()
    if (now < this.#next) {
      this.#skipped += 1
      return undefined
    }
    const skipped = this.#skipped
    this.#skipped = 0
    this.#next = now + this.#everyMs
    return skipped
  }
}

/** What the hooks are called with; a hook that throws stops nothing. */
export class Reports {
  readonly #hooks: Hooks
  readonly #rejections: Map<string, Throttle> = new Map()
  readonly #delays: Throttle
  readonly #clock: Clock
  readonly #fields = new Set<string>()

  constructor(hooks: Hooks, clock: Clock) {
    this.#hooks = hooks
    this.#clock = clock
    this.#delays = new Throttle(clock, DELAYED_EVERY_MS)
  }

  rejected(rejection: Rejection): void {
    const { onReject } = this.#hooks
    if (onReject === undefined) this.#print(rejection)
    else this.#call(() => onReject(rejection))
  }

  delayed(warning: Warning & { readonly kind: "delayed" }): void {
    const { onWarning } = this.#hooks
    if (onWarning !== undefined) return this.#call(() => onWarning(warning))
    if (this.#delays.admit() === undefined) return
    const { failure, waiting } = warning
    console.warn(`alk: ${waiting} waiting, sent again until stored: ${failure.message}`)
  }

  unknownField(id: string, field: string): void {
    if (this.#fields.has(field) || this.#fields.size >= FIELDS_MAX) return
    this.#fields.add(field)
    const { onWarning } = this.#hooks
    if (onWarning !== undefined) {
      return this.#call(() => onWarning({ kind: "unknown_field", id, field }))
    }
    console.warn(`alk: ${field}: not stored, events have no such field; put it into metadata`)
  }

  #print({ code, id, message }: Rejection): void {
    let throttle = this.#rejections.get(code)
    if (throttle === undefined) {
      throttle = new Throttle(this.#clock, QUIET_MS)
      this.#rejections.set(code, throttle)
    }
    const skipped = throttle.admit()
    if (skipped === undefined) return
    const more = skipped === 0 ? "" : ` (and ${skipped} more since the last line)`
    console.error(`alk: ${id} is not stored: ${code}, ${message}${more}`)
  }

  #call(hook: () => void): void {
    try {
      hook()
    } catch (error) {
      console.error("alk: a hook has thrown", error)
    }
  }
}

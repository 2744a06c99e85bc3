/**
 * What a call of a port suffers on its way: it arrives late, not at all, or its answer is lost. A
 * call that is under way when its caller ends arrives all the same.
 */
import { Effect } from "effect"
import type { Chance } from "./Chance.ts"
import type { SimulatedTime } from "./SimulatedTime.ts"

/** How often what goes wrong, while faults are on. */
export interface FaultRates {
  /** A call fails without effect, or after it took effect. */
  readonly failure: number
  /** A call takes long. */
  readonly slow: number
}

/** Something that lives until it crashes. */
export interface Life {
  readonly name: string
  isDead: boolean
  /** Until then it does not run: its calls go on, their answers wait. */
  frozenUntil: number
  /** When its last ordered call arrives: the next one of those arrives after it. */
  ordered: number
}

/** What is lost on the way of one call. */
type Loss = "request" | "answer" | undefined

/** How long a call takes that is slow, in milliseconds. */
export interface Slowness {
  readonly request: number
  readonly answer: number
  /** Calls of one process arrive in their order, as on one connection. */
  readonly isOrdered?: boolean
}

const SLOW: Slowness = { request: 1_200, answer: 1_000 }
/** Milliseconds until a lost request is given up. */
const GIVEN_UP_MS = 1_500

export class Faults {
  readonly time: SimulatedTime
  readonly chance: Chance
  readonly rates: FaultRates
  isOn = true
  /** Called before each call: the place where processes crash. */
  onCall: (life: Life, what: string) => void = () => undefined
  readonly log: (line: string) => void

  constructor(
    time: SimulatedTime,
    chance: Chance,
    rates: FaultRates,
    log: (line: string) => void = () => undefined
  ) {
    this.time = time
    this.chance = chance
    this.rates = rates
    this.log = log
  }

  latency(slowMs: number): number {
    const isSlow = this.isOn && this.chance.isHit(this.rates.slow)
    return isSlow ? this.chance.between(20, slowMs) : this.chance.between(1, 4)
  }

  #loss(): Loss {
    if (!this.isOn || !this.chance.isHit(this.rates.failure)) return undefined
    return this.chance.isHit(0.5) ? "request" : "answer"
  }

  /**
   * One call: `apply` happens at the other side, where it may answer later.
   */
  call<A, E>(
    life: Life,
    what: string,
    apply: (answer: (result: Effect.Effect<A, E>) => void) => void,
    failed: (cause: string) => E,
    slow: Slowness = SLOW
  ): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      if (life.isDead) return
      this.onCall(life, what)
      const answer = (result: Effect.Effect<A, E>, wait: number) => {
        this.time.after(Math.max(wait, life.frozenUntil - this.time.now), () => {
          if (!life.isDead) resume(result)
        })
      }
      const loss = this.#loss()
      if (loss === "request") {
        this.log(`${life.name} ${what}: request lost`)
        return answer(Effect.fail(failed("request lost")), this.chance.between(1, GIVEN_UP_MS))
      }
      const arrives = this.time.now + this.latency(slow.request)
      const at = slow.isOrdered === true ? Math.max(arrives, life.ordered) : arrives
      if (slow.isOrdered === true) life.ordered = at
      this.time.after(at - this.time.now, () => {
        apply((result) => {
          if (loss === "answer") {
            this.log(`${life.name} ${what}: answer lost`)
            return answer(Effect.fail(failed("answer lost")), this.chance.between(1, GIVEN_UP_MS))
          }
          answer(result, this.latency(slow.answer))
        })
      })
      // What is given up by its caller arrives late or early, all the same.
      if (loss === "answer" && this.chance.isHit(0.5)) {
        answer(Effect.fail(failed("given up")), this.chance.between(1, 50))
      }
    })
  }
}

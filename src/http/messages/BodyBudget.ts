/**
 * How many bytes the request bodies of a process may take together, from all clients and however
 * slowly. A body is counted while it arrives, while it is inflated and for as long as its request
 * goes on; when the budget is used up, slow bodies give way, and what does not fit is refused.
 */
import { Context, Effect, Layer } from "effect"
import { ApiError, unavailable } from "./ApiError.ts"
import { ApiSettings } from "./ApiSettings.ts"

/** A body up to this size also fits in the part that large ones leave alone. */
export const SMALL_BODY_BYTES = 65_536
/** The part of the budget that only small bodies get: one eighth. */
const SMALL_SHARE = 8
/** Bytes per second below which a body gives way when others need its room. */
const SLOW_BYTES_PER_SECOND = 65_536
/** Milliseconds that every body is given before it can be called slow. */
const SLOW_AFTER_MS = 2_000
/** The default budget: `ALK_BODY_BUDGET_BYTES` has the same default. */
export const BODY_BUDGET_DEFAULT = 128 * 1_048_576

const used = (): ApiError =>
  unavailable(
    "the request bodies in flight have used up the memory that they may take together "
      + "(ALK_BODY_BUDGET_BYTES); nothing of this request was stored, so try again"
  )

const tooSlow = (): ApiError =>
  new ApiError({
    code: "unavailable",
    message:
      `the body arrived with less than ${SLOW_BYTES_PER_SECOND} bytes per second while others `
      + "needed its room; nothing of this request was stored, so try again",
    headers: { connection: "close" }
  })

/** What takes bytes of a budget. */
export interface Holder {
  readonly bytes: number
  /** Bytes per second so far. */
  rate(now: number): number
  /** The same; undefined if it can't be called slow. */
  slowness(now: number): number | undefined
  /** Make room for others. */
  yield(): void
}

/** What one request's body takes of the budget, from its first byte to the end of the request. */
export class BodyAccount implements Holder {
  readonly #budget: BodyBudget
  #bytes = 0
  /** Fails the reading of the body; undefined while none is read. */
  #give: ((refusal: ApiError) => void) | undefined
  #startedAt = 0
  readonly #over: Array<() => void> = []

  constructor(budget: BodyBudget) {
    this.#budget = budget
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The body arrives from now on; `give` is called if it has to make room for others. */
  arriving(give: (refusal: ApiError) => void): void {
    this.#startedAt = this.#budget.now()
    this.#give = give
  }

  /** It has arrived, or never will. */
  arrived(): void {
    this.#give = undefined
  }

  /** The refusal if there is no room for more. */
  reserve(bytes: number): ApiError | undefined {
    if (!this.#budget.take(bytes, this.#bytes + bytes, this)) return used()
    this.#bytes += bytes
    return undefined
  }

  giveBack(bytes: number): void {
    const given = Math.min(bytes, this.#bytes)
    this.#bytes -= given
    this.#budget.put(given, this)
  }

  /** To be done once the request is over. */
  whenOver(done: () => void): void {
    this.#over.push(done)
  }

  /** The request is over. */
  close(): void {
    this.arrived()
    this.giveBack(this.#bytes)
    for (const done of this.#over.splice(0)) done()
  }

  rate(now: number): number {
    return (this.#bytes / (now - this.#startedAt)) * 1_000
  }

  slowness(now: number): number | undefined {
    if (this.#give === undefined || now - this.#startedAt < SLOW_AFTER_MS) return undefined
    const rate = this.rate(now)
    return rate < SLOW_BYTES_PER_SECOND ? rate : undefined
  }

  yield(): void {
    const give = this.#give
    this.close()
    give?.(tooSlow())
  }
}

/** Bytes that all holders share. */
export class BodyBudget {
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number
  readonly #bytesMax: number
  readonly #holders = new Set<Holder>()
  #bytes = 0

  constructor(bytesMax: number, now: () => number = () => performance.now()) {
    this.#bytesMax = bytesMax
    this.now = now
  }

  /** Bytes that are taken now. */
  get bytes(): number {
    return this.#bytes
  }

  open(): BodyAccount {
    return new BodyAccount(this)
  }

  /** True if a body, `size` bytes with these, may take them. For holders only. */
  take(bytes: number, size: number, holder: Holder): boolean {
    const share = size > SMALL_BODY_BYTES ? Math.floor(this.#bytesMax / SMALL_SHARE) : 0
    const limit = this.#bytesMax - share
    while (this.#bytes + bytes > limit) {
      const slowest = this.#slowest((one, now) => (one === holder ? undefined : one.slowness(now)))
      if (slowest === undefined) return false
      slowest.yield()
    }
    this.#bytes += bytes
    this.#holders.add(holder)
    return true
  }

  /** For holders only. */
  put(bytes: number, holder: Holder): void {
    this.#bytes -= bytes
    if (holder.bytes === 0) this.#holders.delete(holder)
  }

  /** The slowest holder makes room for others, however fast it is. */
  giveWay(): void {
    this.#slowest((one, now) => one.rate(now))?.yield()
  }

  #slowest(rateOf: (holder: Holder, now: number) => number | undefined): Holder | undefined {
    const now = this.now()
    let slowest: Holder | undefined
    let least = Infinity
    for (const holder of this.#holders) {
      const rate = rateOf(holder, now)
      if (rate === undefined || rate >= least) continue
      least = rate
      slowest = holder
    }
    return slowest
  }
}

/** The budget of this process. */
export class Bodies extends Context.Service<Bodies, BodyBudget>()("alk/http/Bodies") {
  static readonly layer = Layer.effect(
    Bodies,
    Effect.map(ApiSettings, ({ limits }) => new BodyBudget(limits.bodyBudgetBytes))
  )
}

/** The account of the request that the current fiber serves. */
export const CurrentBody: Context.Reference<BodyAccount> = Context.Reference<BodyAccount>(
  "alk/http/CurrentBody",
  { defaultValue: () => new BodyBudget(BODY_BUDGET_DEFAULT).open() }
)

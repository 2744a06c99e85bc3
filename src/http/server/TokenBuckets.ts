/**
 * Buckets of tokens by name, each refilling steadily: how often something may happen per name. A
 * full bucket says nothing and is forgotten, so memory follows the names that are in use.
 */

/** What became of a wish to take tokens. */
export interface Taken {
  readonly admitted: boolean
  /** Tokens that are left; below zero while a larger wish is owed. */
  readonly left: number
}

interface Bucket {
  left: number
  at: number
}

/** Full buckets that one wish forgets at most, so that none takes long. */
const FORGOTTEN_AT_ONCE = 4

/** Wishes are admitted while a whole token is left; what they take beyond that is owed. */
export class TokenBuckets {
  /** In the order of their last use. */
  readonly #buckets = new Map<string, Bucket>()
  readonly #perSecond: number
  readonly #capacity: number
  readonly #namesMax: number

  /** Over `namesMax` names, the one whose last use is longest ago starts anew. */
  constructor(options: {
    readonly perSecond: number
    readonly capacity: number
    readonly namesMax: number
  }) {
    this.#perSecond = options.perSecond
    this.#capacity = options.capacity
    this.#namesMax = options.namesMax
  }

  /** Names that are remembered. */
  get size(): number {
    return this.#buckets.size
  }

  #leftOf({ at, left }: Bucket, nowMs: number): number {
    return Math.min(this.#capacity, left + ((nowMs - at) / 1_000) * this.#perSecond)
  }

  /** Take tokens of a name at a time in milliseconds, which never decreases. */
  take(name: string, tokens: number, nowMs: number): Taken {
    const bucket = this.#buckets.get(name)
    const before = bucket === undefined ? this.#capacity : this.#leftOf(bucket, nowMs)
    const admitted = before >= 1
    const left = admitted ? before - tokens : before
    this.#buckets.delete(name)
    this.#buckets.set(name, { left, at: nowMs })
    this.#forget(nowMs)
    return { admitted, left }
  }

  /** Seconds until a name has a whole token again. */
  secondsUntilOne(left: number): number {
    return Math.max(1, Math.ceil((1 - left) / this.#perSecond))
  }

  #forget(nowMs: number): void {
    let looked = 0
    for (const [name, bucket] of this.#buckets) {
      const isFull = this.#leftOf(bucket, nowMs) >= this.#capacity
      if (!isFull && this.#buckets.size <= this.#namesMax) return
      this.#buckets.delete(name)
      if (++looked >= FORGOTTEN_AT_ONCE) return
    }
  }
}

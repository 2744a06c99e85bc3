/**
 * Follows the records of a range of a chain as they are read: each links to the one before it, and
 * the last one is in the chain.
 */
import { Effect } from "effect"
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import type { SequenceRange } from "../ports/ChainRecompute.ts"
import { StoreUnavailable } from "../ports/EventStore.ts"
import type { Chained, HashedRecord } from "./ChainProofs.ts"

/** A record with its own hash recomputed. */
export interface LinkedRecord extends HashedRecord {
  readonly prevHash: string
}

export class CheckedLinks {
  readonly #noun: string
  readonly #last: number
  readonly #chained: Chained
  #sequence: number
  #hash: string | undefined

  /** `noun`: what the records are. */
  constructor(noun: string, { first, last }: SequenceRange, chained: Chained) {
    this.#noun = noun
    this.#last = last
    this.#chained = chained
    this.#sequence = first - 1
    this.#hash = first === 1 ? GENESIS_HASH : undefined
  }

  /** Sequence of the next record. */
  get next(): number {
    return this.#sequence + 1
  }

  /** True if this is the next record, which the one after it has to follow. */
  take({ hash, prevHash, sequenceNumber }: LinkedRecord): boolean {
    if (sequenceNumber !== this.next) return false
    if (this.#hash !== undefined && prevHash !== this.#hash) return false
    this.#sequence = sequenceNumber
    this.#hash = hash
    return true
  }

  /** Fails: the record of a sequence is another one. */
  refuse(sequence = this.next): Effect.Effect<never, StoreUnavailable> {
    const cause = new Error(`${this.#noun} ${sequence} is no longer what the chain says`)
    return Effect.fail(new StoreUnavailable({ operation: `read checked ${this.#noun}s`, cause }))
  }

  /** Once all records were taken: fails unless the last one of the range is in the chain. */
  readonly end = Effect.suspend(() => {
    const hash = this.#hash
    const last = this.#last
    if (this.#sequence !== last || hash === undefined) return this.refuse()
    return this.#chained([{ sequenceNumber: last, hash }]).pipe(
      Effect.flatMap((proven) => (proven.has(hash) ? Effect.void : this.refuse(last)))
    )
  })
}

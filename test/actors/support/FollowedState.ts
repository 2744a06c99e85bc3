/** One partition of `alk.state` as a follower knows it, which reads it as far as the test lets it. */
import { Effect } from "effect"
import type { Heads } from "../../../src/actors/follower/Heads.ts"
import { OwnRecords } from "../../../src/actors/log/OwnRecords.ts"
import {
  appliedRecord,
  emptyState,
  straysRecord,
  windowEnds
} from "../../../src/actors/sequencer/SequencerState.ts"
import type { Chain } from "../../../src/domain/chain/Chains.ts"
import type { StateRecord } from "../../../src/domain/records/StateRecords.ts"

export class FollowedState {
  readonly #chain: Chain
  readonly #read = new OwnRecords(0)
  readonly #written: Array<StateRecord> = []
  #end = 0
  /** Nothing more is read of it. */
  isLate = false

  constructor(chain: Chain) {
    this.#chain = chain
    this.cover(0, 0)
    this.#answer()
  }

  /** A transaction has written the records from one offset of the chain's topic up to another. */
  cover(first: number, next: number): void {
    const strays = { chain: this.#chain, first: this.#end, next: first }
    const ends = { eventsNext: next, tracesNext: next }
    const state = { ...emptyState(0, 1, { dedup: 1, idempotency: 1 }), ...ends }
    if (first > this.#end) this.#written.push(straysRecord(strays))
    this.#written.push(appliedRecord(state, windowEnds(state)))
    this.#end = next
  }

  readonly decided: Heads["Service"]["decided"] = (chain, _partition, records) =>
    Effect.gen({ self: this }, function* () {
      const undecided = this.#read.undecided()
      while (undecided.end(chain) <= records[0]!.offset) {
        yield* Effect.sleep(1)
        this.#answer()
      }
      return undecided.decide(chain, records)
    })

  #answer(): void {
    const next = this.isLate ? this.#read.next : this.#written.length
    for (const { key, value } of this.#written.slice(this.#read.next, next)) {
      this.#read.take({ key: Buffer.from(key), value: value === null ? null : Buffer.from(value) })
    }
    this.#read.answered({ nextOffset: next, writtenEnd: this.#written.length })
  }
}

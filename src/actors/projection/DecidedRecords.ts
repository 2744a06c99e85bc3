/**
 * The records of a partition's chains that were fetched, held until it is decided which of them a
 * sequencer has written.
 */
import { Effect } from "effect"
import { type Chain, chains } from "../../domain/chain/Chains.ts"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import { EventLog, type Fetched, type LogReader } from "../../ports/EventLog.ts"
import { takeEach } from "../log/Malformed.ts"
import { countBelow, OwnRecords, type Undecided } from "../log/OwnRecords.ts"
import { scan } from "../log/PartitionScan.ts"

/** Answers of a topic that are held at most; it is not fetched meanwhile. */
const HELD_MAX = 2

/** Records that are fetched and may not be a sequencer's. */
interface Held {
  fetched: Fetched
  readonly undecided: Undecided
}

export class DecidedRecords {
  readonly #state: OwnRecords
  readonly #held: Record<Chain, Array<Held>> = { events: [], traces: [] }

  constructor(next: number) {
    this.#state = new OwnRecords(next)
  }

  get own(): Own {
    return this.#state.own
  }

  /** Offset up to which a request has waited for what is shown; 0 if none has. */
  awaitedUpTo(chain: Chain): number {
    return this.#state.awaitedUpTo(chain)
  }

  /** Where `alk.state` is read on. */
  get next(): number {
    return this.#state.next
  }

  /** True while it is not decided of some records. */
  get isHolding(): boolean {
    return chains.some((chain) => this.#held[chain].length > 0)
  }

  /** True while no more records of this chain are to be fetched. */
  isFull(chain: Chain): boolean {
    return this.#held[chain].length >= HELD_MAX
  }

  /** Takes what a fetch has brought of the partition; what is decided comes back, in order. */
  take(all: ReadonlyArray<Fetched>): ReadonlyArray<Fetched> {
    const state = all.find(({ topic }) => topic === "state")
    if (state !== undefined) this.#takeState(state)
    const others = all.filter(({ topic }) => topic !== "state" && !isChain(topic))
    const decided = chains.flatMap((chain) => {
      const fetched = all.find(({ topic }) => topic === chain)
      const held = this.#held[chain]
      if (fetched !== undefined) held.push({ fetched, undecided: this.#state.undecided() })
      return this.#release(chain)
    })
    return [...decided, ...others]
  }

  #takeState(state: Fetched): void {
    // What can't be read is reported by the sequencer and the follower.
    takeEach(state, state.records, (record) => this.#state.take(record))
    this.#state.answered(state)
  }

  #release(chain: Chain): ReadonlyArray<Fetched> {
    const held = this.#held[chain]
    const decided: Array<Fetched> = []
    for (let [first] = held; first !== undefined; [first] = held) {
      const { fetched, undecided } = first
      const { records } = fetched
      const count = countBelow(records, undecided.end(chain))
      const next = records[count]
      if (next === undefined) {
        decided.push(fetched)
        held.shift()
        continue
      }
      const { offset: nextOffset } = next
      if (count > 0) decided.push({ ...fetched, records: records.slice(0, count), nextOffset })
      first.fetched = { ...fetched, offset: nextOffset, records: records.slice(count) }
      break
    }
    return decided
  }
}

const isChain = (topic: string): topic is Chain => chains.some((chain) => chain === topic)

/** As far as `alk.state` is decided now. */
export const readDecided = Effect.fnUntraced(function* (reader: LogReader, partition: number) {
  const log = yield* EventLog
  const { end, start } = yield* log.bounds("state", partition)
  const decided = new DecidedRecords(start)
  const place = { topic: "state" as const, partition, offset: start }
  yield* scan(reader, place, end, (records) => {
    const [offset, nextOffset] = [decided.next, (records.at(-1)?.offset ?? start) + 1]
    decided.take([
      { ...place, offset, records, nextOffset, writtenEnd: end, stableEnd: end, logStart: start }
    ])
  })
  return decided
})

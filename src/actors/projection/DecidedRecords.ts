/**
 * Which of the records of a partition's chains that were fetched a sequencer has written. It says so
 * on `alk.state`, in the same transaction; but the ends of a transaction reach its topics at
 * different times, so what the changelog does not cover yet is held until that is decided.
 */
import { Effect } from "effect"
import { type Chain, chains } from "../../domain/chain/Chains.ts"
import { type Own, OwnOffsets } from "../../domain/records/OwnOffsets.ts"
import type { Fetched, LogReader, LogRecord } from "../../ports/EventLog.ts"
import { EventLog } from "../../ports/EventLog.ts"
import { takeEach } from "../log/Malformed.ts"
import { scan } from "../log/PartitionScan.ts"

/** Answers of a topic that are held at most; it is not fetched meanwhile. */
const HELD_MAX = 2
/**
 * The first answer about `alk.state` after the held records may have been asked for before they
 * came, where another broker has it; the second one was not.
 */
const ANSWERS_WAITED = 2

/** Records that are fetched and may not be a sequencer's. */
interface Held {
  fetched: Fetched
  /** Answers about `alk.state` since then. */
  answers: number
  /** All of the sequencer's records are covered once `alk.state` is read up to here. */
  coveredAt: number | undefined
}

export class DecidedRecords {
  readonly #own = new OwnOffsets()
  readonly #held: Record<Chain, Array<Held>> = { events: [], traces: [] }
  #next: number

  constructor(next: number) {
    this.#next = next
  }

  get own(): Own {
    return this.#own
  }

  /** Where `alk.state` is read on. */
  get next(): number {
    return this.#next
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
      if (fetched !== undefined) held.push({ fetched, answers: 0, coveredAt: undefined })
      return this.#release(chain)
    })
    return [...decided, ...others]
  }

  #takeState(state: Fetched): void {
    // What can't be read is reported by the sequencer and the follower.
    takeEach(state, state.records, ({ key, value }: LogRecord) =>
      this.#own.take(key?.toString() ?? "", value)
    )
    this.#next = state.nextOffset
    for (const held of chains.flatMap((chain) => this.#held[chain])) {
      held.answers += 1
      if (held.answers === ANSWERS_WAITED) held.coveredAt = state.writtenEnd
    }
  }

  #release(chain: Chain): ReadonlyArray<Fetched> {
    const held = this.#held[chain]
    const decided: Array<Fetched> = []
    for (let [first] = held; first !== undefined; [first] = held) {
      const { coveredAt, fetched } = first
      const isCovered = coveredAt !== undefined && this.#next >= coveredAt
      const end = isCovered ? Infinity : (this.#own.next(chain) ?? Infinity)
      const { records } = fetched
      const count = countBelow(records, end)
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

/** How many of the records, in order, are before an offset. */
const countBelow = (records: ReadonlyArray<LogRecord>, end: number): number => {
  if ((records.at(-1)?.offset ?? -1) < end) return records.length
  return records.findIndex(({ offset }) => offset >= end)
}

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

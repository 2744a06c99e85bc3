/**
 * Which offsets of `alk.events` and `alk.traces` hold what the sequencer has written, as its
 * changelog says: both are written in one transaction, and the changelog has a MAC. A record that
 * links proves nothing, because hashes hold no secret.
 */
import { type Chain, chains } from "../chain/Chains.ts"
import { type CheckpointRecord, readCheckpoint } from "../chain/Checkpoint.ts"
import { RecordUnreadable } from "../json/RecordFields.ts"
import {
  type Adopted,
  APPLIED_KEY,
  GIVEN_UP_PREFIX,
  readApplied,
  readStrays,
  STRAYS_PREFIX
} from "./StateRecords.ts"

/** Offsets of a chain's topic that hold nothing of the sequencer, `next` exclusive. */
export interface StrayRange {
  readonly chain: Chain
  readonly first: number
  readonly next: number
}

const KEY = new RegExp(`^${STRAYS_PREFIX}(events|traces)/(0|[1-9][0-9]*)$`)

export const straysKey = ({ chain, first }: Pick<StrayRange, "chain" | "first">): string =>
  `${STRAYS_PREFIX}${chain}/${first}`

/** The ranges that are known, each chain's in order. */
export class Strays {
  readonly #ranges: Record<Chain, Array<StrayRange>> = { events: [], traces: [] }

  get all(): ReadonlyArray<StrayRange> {
    return chains.flatMap((chain) => this.#ranges[chain])
  }

  /** Of ranges in any order, which may overlap. */
  static of(ranges: ReadonlyArray<StrayRange>): Strays {
    const strays = new Strays()
    for (const chain of chains) {
      const own = ranges.filter((range) => range.chain === chain)
      let open: StrayRange | undefined
      for (const range of own.sort((left, right) => left.first - right.first)) {
        if (open !== undefined && range.first <= open.next) {
          open = { ...open, next: Math.max(open.next, range.next) }
        } else {
          if (open !== undefined) strays.add(open)
          open = range
        }
      }
      if (open !== undefined) strays.add(open)
    }
    return strays
  }

  get size(): number {
    return this.#ranges.events.length + this.#ranges.traces.length
  }

  add(range: StrayRange): void {
    const ranges = this.#ranges[range.chain]
    const at = this.#after(range.chain, range.first)
    const isKnown = ranges[at - 1]?.first === range.first
    ranges.splice(isKnown ? at - 1 : at, isKnown ? 1 : 0, range)
  }

  has(chain: Chain, offset: number): boolean {
    const before = this.#ranges[chain][this.#after(chain, offset) - 1]
    return before !== undefined && offset < before.next
  }

  /**
   * Takes a record of the changelog whose key begins with `strays/`.
   * @throws RecordUnreadable
   */
  replay(key: string, value: Buffer | null): void {
    const [, chain, first] = KEY.exec(key) ?? []
    if (first === undefined) throw new RecordUnreadable("its key names no offset")
    const place = { chain: chain as Chain, first: Number(first) }
    if (value === null) this.#remove(place)
    else this.add({ ...place, next: readStrays(value).next })
  }

  #remove({ chain, first }: Pick<StrayRange, "chain" | "first">): void {
    this.#ranges[chain] = this.#ranges[chain].filter((range) => range.first !== first)
  }

  /** How many ranges begin at the offset or before it. */
  #after(chain: Chain, offset: number): number {
    const ranges = this.#ranges[chain]
    if ((ranges.at(-1)?.first ?? -1) <= offset) return ranges.length
    let [low, high] = [0, ranges.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (ranges[middle]!.first <= offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** What of a partition's history is not proven, or is gone. */
export type Losses = Pick<OwnOffsets, "adopted" | "givenUp">

/** What readers of a partition's chains ask. */
export interface Own {
  /** Offset after the last own record; undefined if the changelog does not say. */
  next(chain: Chain): number | undefined
  /** False of a record that no sequencer has written; true where the changelog does not say. */
  isOwn(chain: Chain, offset: number): boolean
}

/** The same, learned from the records of one partition of `alk.state`. */
export class OwnOffsets implements Own {
  readonly #strays = new Strays()
  #straysTotal = 0
  /** True once a record of the changelog was seen: then there is one of how far it goes, too. */
  #isBegun = false
  #next: Partial<Record<Chain, number>> = {}
  #awaited: Partial<Record<Chain, number>> = {}
  /** When the topics were last taken for what a sequencer has written. */
  adopted: Adopted | undefined
  /** By tree the checkpoint that an operator has accepted as lost. */
  readonly givenUp = new Map<string, CheckpointRecord>()

  /**
   * A copy of an older record takes nothing back; without a value the changelog was cleared. Other
   * records of the changelog change nothing.
   * @throws RecordUnreadable
   */
  take(key: string, value: Buffer | null): void {
    this.#isBegun = true
    if (key.startsWith(STRAYS_PREFIX)) this.#strays.replay(key, value)
    if (key.startsWith(GIVEN_UP_PREFIX) && value !== null) {
      this.givenUp.set(key.slice(GIVEN_UP_PREFIX.length), readCheckpoint(value))
    }
    if (key !== APPLIED_KEY) return
    if (value === null) {
      this.#next = {}
      this.#straysTotal = 0
      this.adopted = undefined
      return
    }
    const { adopted, awaited, events_next, strays_total, traces_next } = readApplied(value)
    this.#straysTotal = strays_total
    this.adopted = adopted
    this.#reached("events", events_next)
    this.#reached("traces", traces_next)
    if (awaited === true) this.#awaited = { events: events_next, traces: traces_next }
  }

  /** False where another program's records have removed some of those that say what is own. */
  get isWhole(): boolean {
    const isKnown = !this.#isBegun || this.#next.events !== undefined
    return isKnown && this.#strays.size >= this.#straysTotal
  }

  #reached(chain: Chain, next: number): void {
    this.#next[chain] = Math.max(this.#next[chain] ?? 0, next)
  }

  next(chain: Chain): number | undefined {
    return this.#next[chain]
  }

  /** Offset up to which a request has waited for what is shown; 0 if none has. */
  awaitedUpTo(chain: Chain): number {
    return this.#awaited[chain] ?? 0
  }

  isOwn(chain: Chain, offset: number): boolean {
    return offset < (this.#next[chain] ?? Infinity) && !this.#strays.has(chain, offset)
  }
}

/** Where nothing is known, what links counts. */
export const everythingOwn: Own = { next: () => undefined, isOwn: () => true }

/** Where what is known is not whole, nothing counts. */
export const nothingOwn: Own = { next: () => undefined, isOwn: () => false }

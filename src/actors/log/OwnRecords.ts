/**
 * Which records of a partition's chains a sequencer has written, and from when on that is known. It
 * says so on `alk.state`, in the same transaction; but the ends of a transaction reach its topics at
 * different times, so what the changelog does not cover yet may be a sequencer's or not.
 */
import type { Chain } from "../../domain/chain/Chains.ts"
import { type Losses, type Own, OwnOffsets } from "../../domain/records/OwnOffsets.ts"
import type { Fetched, LogRecord } from "../../ports/EventLog.ts"

/**
 * The first answer about `alk.state` after a record was fetched may have been asked for before that,
 * where another broker has it; the second one was not.
 */
const ANSWERS_WAITED = 2

/** Records, in order, as far as it is decided which of them a sequencer has written. */
export interface Decided {
  readonly own: ReadonlyArray<LogRecord>
  /** Those of which it is not decided. */
  readonly rest: ReadonlyArray<LogRecord>
}

/** What was fetched before this was made, and may not be a sequencer's. */
export interface Undecided {
  /** Offset before which that is decided by now; Infinity if it is of everything. */
  end(chain: Chain): number
  decide(chain: Chain, records: ReadonlyArray<LogRecord>): Decided
}

/** What is read of one partition of `alk.state`. */
export class OwnRecords {
  readonly #own = new OwnOffsets()
  #next: number
  #writtenEnd = 0
  #answers = 0

  constructor(next: number) {
    this.#next = next
  }

  get own(): Own {
    return this.#own
  }

  get losses(): Losses {
    return this.#own
  }

  /** Offset up to which a request has waited for what is shown; 0 if none has. */
  awaitedUpTo(chain: Chain): number {
    return this.#own.awaitedUpTo(chain)
  }

  /** Where `alk.state` is read on. */
  get next(): number {
    return this.#next
  }

  /** @throws RecordUnreadable */
  take({ key, value }: Pick<LogRecord, "key" | "value">): void {
    this.#own.take(key?.toString() ?? "", value)
  }

  /** The records of an answer about `alk.state` are taken. */
  answered({ nextOffset, writtenEnd }: Pick<Fetched, "nextOffset" | "writtenEnd">): void {
    this.#next = nextOffset
    this.#writtenEnd = writtenEnd
    this.#answers += 1
  }

  undecided(): Undecided {
    const enough = this.#answers + ANSWERS_WAITED
    /** All of the sequencer's records are covered once `alk.state` is read up to here. */
    let coveredAt: number | undefined
    const end = (chain: Chain) => {
      // The sequencer says it again when it starts.
      if (!this.#own.isWhole) return 0
      if (this.#answers >= enough) coveredAt ??= this.#writtenEnd
      const isCovered = coveredAt !== undefined && this.#next >= coveredAt
      return isCovered ? Infinity : (this.#own.next(chain) ?? Infinity)
    }
    const decide = (chain: Chain, records: ReadonlyArray<LogRecord>) => {
      const count = countBelow(records, end(chain))
      return {
        own: records.slice(0, count).filter(({ offset }) => this.#own.isOwn(chain, offset)),
        rest: records.slice(count)
      }
    }
    return { end, decide }
  }
}

/** How many of the records, in order, are before an offset. */
export const countBelow = (records: ReadonlyArray<LogRecord>, end: number): number => {
  if ((records.at(-1)?.offset ?? -1) < end) return records.length
  return records.findIndex(({ offset }) => offset >= end)
}

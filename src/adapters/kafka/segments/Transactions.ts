/**
 * What the transactions of a partition came to, from the markers that end them, and the records
 * that count in the order in which they do.
 */
import type { TransactionOutcome } from "../../../domain/records/RecordFate.ts"
import type { LogRecord } from "../../../ports/EventLog.ts"
import type { SegmentBatch } from "./BatchRewrite.ts"

interface OpenTransaction {
  readonly firstOffset: number
  readonly records: Array<LogRecord>
}

interface AbortedTransaction {
  readonly firstOffset: number
  readonly lastOffset: number
}

export class Transactions {
  /** By producer. */
  readonly #open = new Map<bigint, OpenTransaction>()
  readonly #aborted = new Map<bigint, Array<AbortedTransaction>>()

  /** Take the next batch of the partition; the records that count from here on. */
  take(batch: SegmentBatch, records: ReadonlyArray<LogRecord>): ReadonlyArray<LogRecord> {
    const { baseOffset, ends, isTransactional, producerId } = batch
    if (ends !== undefined) return this.#end(batch)
    if (!isTransactional) return records
    const open = this.#open.get(producerId) ?? { firstOffset: baseOffset, records: [] }
    open.records.push(...records)
    this.#open.set(producerId, open)
    return []
  }

  /** After all batches were taken. */
  outcomeOf({ baseOffset, isTransactional, producerId }: SegmentBatch): TransactionOutcome {
    if (!isTransactional) return "none"
    const aborted = this.#aborted.get(producerId) ?? []
    const isAborted = aborted.some(
      ({ firstOffset, lastOffset }) => firstOffset <= baseOffset && baseOffset <= lastOffset
    )
    if (isAborted) return "aborted"
    const open = this.#open.get(producerId)
    return open !== undefined && open.firstOffset <= baseOffset ? "open" : "committed"
  }

  #end({ baseOffset, ends, producerId }: SegmentBatch): ReadonlyArray<LogRecord> {
    const open = this.#open.get(producerId)
    this.#open.delete(producerId)
    if (open === undefined) return []
    if (ends === "committed") return open.records
    const aborted = this.#aborted.get(producerId) ?? []
    aborted.push({ firstOffset: open.firstOffset, lastOffset: baseOffset })
    this.#aborted.set(producerId, aborted)
    return []
  }
}

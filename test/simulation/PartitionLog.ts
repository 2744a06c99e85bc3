/** One partition of a topic in memory, as Kafka keeps it: offsets, open transactions, compaction. */
import type { Headers, LogRecord, NewRecord } from "../../src/ports/EventLog.ts"

/** A transaction, and what has become of it in each of its partitions. */
export class Transaction {
  readonly parts = new Map<PartitionLog, "open" | "committed" | "aborted">()
  isEnded = false
}

/** A record, or the end of a transaction. */
interface Entry {
  readonly offset: number
  readonly record: LogRecord | undefined
  readonly transaction: Transaction | undefined
}

const bufferOf = (value: Buffer | string): Buffer => Buffer.from(value)

const headersOf = (headers: Headers = {}): Readonly<Record<string, Buffer>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, bufferOf(value)]))

export class PartitionLog {
  readonly name: string
  #entries: Array<Entry> = []
  end = 0
  /** Open transactions with their first offsets. */
  readonly #open = new Map<Transaction, number>()
  readonly #waiters = new Set<() => void>()

  constructor(name: string) {
    this.name = name
  }

  /** Everything before it is decided. */
  get stableEnd(): number {
    let stable = this.end
    for (const first of this.#open.values()) stable = Math.min(stable, first)
    return stable
  }

  /** Appends records; the offset of the first. */
  append(
    records: ReadonlyArray<Pick<NewRecord, "key" | "value" | "headers">>,
    timestamp: number,
    transaction?: Transaction
  ): number {
    const first = this.end
    if (transaction !== undefined && !transaction.parts.has(this)) {
      transaction.parts.set(this, "open")
      this.#open.set(transaction, first)
    }
    for (const { headers, key, value } of records) {
      const offset = this.end++
      const record: LogRecord = {
        offset,
        timestamp,
        key: bufferOf(key),
        value: value === null ? null : bufferOf(value),
        headers: headersOf(headers)
      }
      this.#entries.push({ offset, record, transaction })
    }
    this.#wake()
    return first
  }

  /** The marker of a transaction's end. */
  decide(transaction: Transaction, end: "committed" | "aborted"): void {
    transaction.parts.set(this, end)
    this.#open.delete(transaction)
    this.#entries.push({ offset: this.end++, record: undefined, transaction })
    this.#wake()
  }

  /** Committed records from an offset on, of so many entries at most, and where to read next. */
  read(from: number, entriesMax: number): { records: Array<LogRecord>; next: number } {
    const stable = this.stableEnd
    const records: Array<LogRecord> = []
    let left = entriesMax
    for (let at = this.#indexOf(from); at < this.#entries.length; at++) {
      const { offset, record, transaction } = this.#entries[at]!
      if (offset >= stable) break
      if (left-- === 0) return { records, next: offset }
      if (record !== undefined && this.#isCommitted(transaction)) records.push(record)
    }
    return { records, next: Math.max(from, stable) }
  }

  /** What other transactions have written from an offset on and not aborted. */
  othersFrom(
    from: number,
    own: Transaction
  ): ReadonlyArray<{ readonly record: LogRecord; readonly isOpen: boolean }> {
    return this.#entries.slice(this.#indexOf(from)).flatMap(({ record, transaction }) => {
      const part = transaction?.parts.get(this)
      if (record === undefined || transaction === own || part === "aborted") return []
      return [{ record, isOpen: part === "open" }]
    })
  }

  /** All committed records. */
  get committed(): ReadonlyArray<LogRecord> {
    return this.read(0, Number.POSITIVE_INFINITY).records
  }

  /** Removes what a later committed record of the same key has replaced, and what was aborted. */
  compact(): void {
    const stable = this.stableEnd
    const newest = new Map<string, number>()
    for (const { offset, record, transaction } of this.#entries) {
      if (offset >= stable || record === undefined || !this.#isCommitted(transaction)) continue
      newest.set(record.key?.toString("hex") ?? "", offset)
    }
    this.#entries = this.#entries.filter(({ offset, record, transaction }) => {
      if (offset >= stable) return true
      if (record === undefined || !this.#isCommitted(transaction)) return false
      return newest.get(record.key?.toString("hex") ?? "") === offset
    })
  }

  /** Called once when more may be read. */
  onMore(waiter: () => void): () => void {
    this.#waiters.add(waiter)
    return () => void this.#waiters.delete(waiter)
  }

  #isCommitted(transaction: Transaction | undefined): boolean {
    return transaction === undefined || transaction.parts.get(this) === "committed"
  }

  #wake(): void {
    const waiters = [...this.#waiters]
    this.#waiters.clear()
    for (const waiter of waiters) waiter()
  }

  #indexOf(offset: number): number {
    let low = 0
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#entries[middle]!.offset < offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

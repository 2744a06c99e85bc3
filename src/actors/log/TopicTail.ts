/**
 * What the end of a partition says of each key, read backwards from the end only as far as a
 * question needs. What was read once is kept while the topic grows, so that questions about many
 * keys share one reading.
 */
import { Effect, Semaphore } from "effect"
import type { EventLog, LogReader, LogRecord, LogUnavailable } from "../../ports/EventLog.ts"
import { type Partition, scan } from "./PartitionScan.ts"

/** Offsets of the first reading backwards; each further one is twice as long. */
const STEP_OFFSETS = 2_000
const STEP_OFFSETS_MAX = 64_000
/** New offsets from which on it is quicker to start at the end again. */
const JUMP_OFFSETS = 200_000

/** What the records of a range of offsets say. */
export interface TailContents {
  /** Take a record that follows those before. */
  take(record: LogRecord): void
  /** Take the contents of the range that ends where this one begins. */
  prepend(before: this): void
}

/** One partition's tail. Questions about it come one after the other. */
export class TopicTail<G extends TailContents> {
  readonly #log: EventLog["Service"]
  readonly #reader: LogReader
  readonly #place: Partition
  readonly #empty: () => G
  readonly #endMax: () => number
  readonly #oneAtATime = Semaphore.makeUnsafe(1)
  #range: { low: number; high: number; contents: G } | undefined

  /** `endMax`: nothing at this offset or beyond it is read. */
  constructor(
    log: EventLog["Service"],
    reader: LogReader,
    place: Partition,
    empty: () => G,
    endMax: () => number = () => Infinity
  ) {
    this.#log = log
    this.#reader = reader
    this.#place = place
    this.#empty = empty
    this.#endMax = endMax
  }

  /**
   * The first answer that is not undefined, of more and more of the partition from its end on; of
   * the whole partition `isWhole` is true.
   */
  ask<A>(
    answer: (contents: G, isWhole: boolean) => A | undefined
  ): Effect.Effect<A | undefined, LogUnavailable> {
    const asked = Effect.gen({ self: this }, function* () {
      const bounds = yield* this.#log.bounds(this.#place.topic, this.#place.partition)
      const { start } = bounds
      const end = Math.max(start, Math.min(bounds.end, this.#endMax()))
      const range = yield* this.#upTo(end, start)
      for (let step = STEP_OFFSETS; ; step = Math.min(2 * step, STEP_OFFSETS_MAX)) {
        const isWhole = range.low <= start
        const found = answer(range.contents, isWhole)
        if (found !== undefined || isWhole) return found
        const from = Math.max(start, range.low - step)
        const earlier = yield* this.#read(from, range.low)
        range.contents.prepend(earlier)
        range.low = from
      }
    })
    return this.#oneAtATime.withPermits(1)(asked)
  }

  /** The range that reaches to the end. */
  readonly #upTo = Effect.fnUntraced({ self: this }, function* (end: number, start: number) {
    const known = this.#range
    if (known === undefined || end - known.high > JUMP_OFFSETS || known.low < start) {
      this.#range = { low: end, high: end, contents: this.#empty() }
      return this.#range
    }
    if (end > known.high) {
      yield* this.#scan(known.high, end, known.contents)
      known.high = end
    }
    return known
  })

  readonly #read = Effect.fnUntraced({ self: this }, function* (from: number, to: number) {
    const contents = this.#empty()
    yield* this.#scan(from, to, contents)
    return contents
  })

  #scan(from: number, to: number, into: G) {
    return scan(this.#reader, { ...this.#place, offset: from }, to, (records) => {
      for (const record of records) into.take(record)
    }).pipe(
      // Retention has passed the place since its bounds were asked for.
      Effect.catchTag("OffsetOutOfRange", () => Effect.void)
    )
  }
}

/**
 * One reader of a live stream and what waits for it: a burst waits in memory until the reader has
 * taken it, a reader that does not read is closed and resumes by its last id. It does not look into
 * the messages.
 */
import { type Cause, Effect, Metric, Queue, type Scope, Stream } from "effect"
import { counterOf } from "../../domain/metrics/Metrics.ts"
import type { Sliced } from "../../domain/Slices.ts"

/** When a reader is closed. */
export interface ReaderLimits {
  /** Bytes that may wait for one reader, however fast it is. */
  readonly bytesMax: number
  /** Bytes that may wait for one reader without a look at how long they do. */
  readonly lateBytes: number
  /** Milliseconds that the oldest of more than `lateBytes` may wait. */
  readonly lateMs: number
  /**
   * Bytes that may wait for all readers together, those that several wait for counted once; above,
   * the reader for which the most waits is closed.
   */
  readonly totalBytesMax: number
}

const MIB = 1_048_576

/**
 * Several of the largest batches may wait for one reader, twice that for all of them. For a
 * reader that reads, 4 MiB rarely wait for 15 s; for one that doesn't they always do.
 */
export const READER_LIMITS: ReaderLimits = {
  bytesMax: 96 * MIB,
  lateBytes: 4 * MIB,
  lateMs: 15_000,
  totalBytesMax: 192 * MIB
}
/** Timestamps kept per `lateBytes` of backlog: the resolution of the age of the oldest byte. */
const MARKS_PER_LATE_BYTES = 16
/** Blocks written at once; until they are, they count as waiting. */
const CHUNK_BLOCKS = 32

/**
 * Why a reader was closed: over `bytesMax`, over `lateBytes` for too long, the one with the most bytes
 * waiting when `totalBytesMax` was reached, or a connection on which nothing moves.
 */
export type CloseReason = "behind" | "late" | "memory" | "stalled"

const closedReaders = counterOf("alk_live_readers_closed_total")

const readerClosed = (
  reason: CloseReason,
  details: Readonly<Record<string, unknown>>
): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(closedReaders, { reason }), 1),
    Effect.logWarning("a live stream was closed: its reader does not keep up").pipe(
      Effect.annotateLogs({ reason, ...details })
    )
  )

/** Something that a stream delivers, once, by its place in the tenant's chain. */
export interface LiveMessage {
  readonly sequenceNumber: number
  readonly message: Uint8Array
}

const encoder = new TextEncoder()
/** Without an empty line: to some clients that would be an event without data. */
export const KEEP_ALIVE_COMMENT = encoder.encode(": keep-alive\n")
/**
 * Events that a filter passes over before the resume point is moved without one: what is read again
 * after a lost connection is bounded, and clients that show such a mark as an empty event see few.
 */
export const MARK_EVENTS = 1_000

/** Moves the client's resume point without an event; that takes effect with the empty line. */
const toMark = (sequenceNumber: number): Uint8Array => encoder.encode(`id: ${sequenceNumber}\n\n`)

/** Bytes that wait for the readers that hold them, once in memory for all of them. */
class Waiting {
  readonly bytes: Uint8Array
  holders = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

const joined = (messages: ReadonlyArray<LiveMessage>): Waiting =>
  new Waiting(
    messages.length === 1
      ? messages[0]!.message
      : Buffer.concat(messages.map(({ message }) => message))
  )

/** What is delivered at once, in order: readers that want all of it share its bytes. */
export class LiveBlock<E extends LiveMessage> {
  readonly events: readonly [E, ...Array<E>]
  #whole: Waiting | undefined

  constructor(events: readonly [E, ...Array<E>]) {
    this.events = events
  }

  get whole(): Waiting {
    return (this.#whole ??= joined(this.events))
  }
}

/** A reader as far as all of them are counted. */
interface Reader {
  readonly bytes: number
  close(reason: CloseReason): void
}

/** What waits for the readers of a process. */
export class Readers {
  readonly limits: ReaderLimits
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number
  readonly #all = new Set<Reader>()
  #bytes = 0

  constructor(limits: ReaderLimits = READER_LIMITS, now: () => number = () => performance.now()) {
    this.limits = limits
    this.now = now
  }

  /** Bytes that wait, those that several readers wait for counted once. */
  get bytes(): number {
    return this.#bytes
  }

  join(subscriber: Reader): void {
    this.#all.add(subscriber)
  }

  leave(subscriber: Reader): void {
    this.#all.delete(subscriber)
  }

  hold(waiting: Waiting): void {
    if (waiting.holders++ > 0) return
    this.#bytes += waiting.bytes.length
    while (this.#bytes > this.limits.totalBytesMax) {
      let most: Reader | undefined
      for (const one of this.#all) if (one.bytes > (most?.bytes ?? 0)) most = one
      if (most === undefined) return
      most.close("memory")
    }
  }

  release(waiting: Waiting): void {
    if (--waiting.holders === 0) this.#bytes -= waiting.bytes.length
  }
}

/** A place in the stream of bytes, and when it was reached. */
interface Mark {
  readonly upTo: number
  readonly at: number
}

/** One open stream: a queue bounded in bytes and time, between the feed and the response. */
export class Subscriber<E extends LiveMessage> {
  readonly #queue: Queue.Queue<Waiting, Cause.Done>
  readonly #wanted: ((event: E) => boolean) | undefined
  readonly #readers: Readers
  /** What waits, from the queue and on its way out, in order. */
  readonly #held = new Set<Waiting>()
  #offered = 0
  #taken = 0
  /** When what still waits came, roughly. */
  #marks: Array<Mark> = []
  /** Deliver only what is after this sequence; undefined until the start point is fixed. */
  #start: number | undefined
  /** What has come before all that came before it was delivered; undefined from then on. */
  #early: Array<LiveBlock<E>> | undefined = []
  /** Newest event that the filter has passed over, and how many since the last id. */
  #skipped: number | undefined
  #skippedCount = 0
  /** May anything be delivered to it still? */
  #isOpen = true
  /** Is all that waited for it dropped? */
  #isClosed = false
  /** Why it was closed, if it was for not keeping up. */
  closedFor: CloseReason | undefined

  constructor(
    queue: Queue.Queue<Waiting, Cause.Done>,
    wanted: ((event: E) => boolean) | undefined,
    readers: Readers
  ) {
    this.#queue = queue
    this.#wanted = wanted
    this.#readers = readers
    readers.join(this)
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#offered - this.#taken
  }

  /** Does it look at events before it takes them? */
  get isFiltering(): boolean {
    return this.#wanted !== undefined
  }

  /** Offer what is wanted of a block. */
  *deliver(block: LiveBlock<E>): Sliced<void> {
    if (!this.#isOpen) return
    if (this.#early === undefined) return yield* this.#choose(block)
    this.#early.push(block)
    this.#hold(block.whole)
  }

  /** From now on deliver, beginning with what has arrived, and arrives until that is done. */
  *begin(start: number): Sliced<void> {
    this.#start = start
    for (let block = this.#early?.shift(); block !== undefined; block = this.#early?.shift()) {
      // It is counted again as far as it is delivered.
      this.#release(block.whole)
      yield* this.#choose(block)
    }
    this.#early = undefined
  }

  keepAlive(): void {
    if (!this.#isOpen || this.#start === undefined) return
    if (this.#skipped === undefined || this.#skippedCount < MARK_EVENTS) {
      return this.#offer(new Waiting(KEEP_ALIVE_COMMENT))
    }
    this.#offer(new Waiting(toMark(this.#skipped)))
    this.#skipped = undefined
    this.#skippedCount = 0
  }

  /** What is delivered from `begin` on, in order. */
  messages(): Stream.Stream<Uint8Array> {
    let written: ReadonlyArray<Waiting> = []
    const next = Effect.suspend(() => {
      for (const waiting of written) this.#release(waiting)
      return Queue.takeBetween(this.#queue, 1, CHUNK_BLOCKS)
    }).pipe(
      Effect.map((taken) => {
        written = taken
        return taken.map(({ bytes }) => bytes) as [Uint8Array, ...Array<Uint8Array>]
      })
    )
    return Stream.fromPull(Effect.succeed(next))
  }

  /** The last of the stream: what waits may still be read, and counts until it is. */
  end(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const block of this.#early ?? []) this.#release(block.whole)
    this.#early = []
    Queue.endUnsafe(this.#queue)
  }

  /**
   * Nothing waits any more; with a reason, because the reader does not keep up: it reads the rest
   * when it resumes.
   */
  close(reason?: CloseReason): void {
    this.end()
    if (this.#isClosed) return
    this.#isClosed = true
    this.closedFor = reason
    this.#readers.leave(this)
    for (const waiting of this.#held) this.#readers.release(waiting)
    this.#held.clear()
    this.#taken = this.#offered
    while (Queue.sizeUnsafe(this.#queue) > 0) Queue.takeUnsafe(this.#queue)
  }

  /** It looks at one event in a step. */
  *#choose(block: LiveBlock<E>): Sliced<void> {
    const { events } = block
    const start = this.#start ?? 0
    const isNew = events[0].sequenceNumber > start
    if (this.#wanted === undefined && isNew) return this.#offer(block.whole)
    const chosen: Array<E> = []
    let skipped: Array<E> = []
    for (const event of events) {
      if (event.sequenceNumber <= start) continue
      if (this.#wanted === undefined || this.#wanted(event)) {
        chosen.push(event)
        skipped = []
      } else skipped.push(event)
      yield
      if (!this.#isOpen) return
    }
    // A mark that goes out during the steps is of no event behind those that are still to go out.
    if (chosen.length > 0) {
      this.#skipped = undefined
      this.#skippedCount = 0
      this.#offer(chosen.length === events.length ? block.whole : joined(chosen))
    }
    this.#skipped = skipped.at(-1)?.sequenceNumber ?? this.#skipped
    this.#skippedCount += skipped.length
  }

  #release(waiting: Waiting): void {
    if (!this.#held.delete(waiting)) return
    this.#readers.release(waiting)
    this.#taken += waiting.bytes.length
    while ((this.#marks[0]?.upTo ?? Infinity) <= this.#taken) this.#marks.shift()
  }

  #offer(waiting: Waiting): void {
    // Counting may close it: what is over a limit is not delivered.
    this.#hold(waiting)
    if (this.#isOpen) Queue.offerUnsafe(this.#queue, waiting)
  }

  #hold(waiting: Waiting): void {
    const { bytesMax, lateBytes, lateMs } = this.#readers.limits
    const now = this.#readers.now()
    this.#held.add(waiting)
    this.#offered += waiting.bytes.length
    const newest = this.#marks.at(-1)
    if (newest === undefined || this.#offered - newest.upTo > lateBytes / MARKS_PER_LATE_BYTES) {
      this.#marks.push({ upTo: this.#offered, at: now })
    }
    this.#readers.hold(waiting)
    if (!this.#isOpen) return
    const [oldest] = this.#marks
    const isLate = oldest !== undefined && now - oldest.at > lateMs && this.#early === undefined
    if (this.bytes > bytesMax) this.close("behind")
    else if (this.bytes > lateBytes && isLate) this.close("late")
  }
}

export interface ReaderOptions<E extends LiveMessage> {
  /** Undefined: everything. */
  readonly wanted?: ((event: E) => boolean) | undefined
  /** Says where nothing moves on the connection any more. */
  readonly onStalled?: ((stalled: () => void) => void) | undefined
  /** What the log says of a reader that was closed. */
  readonly details: Readonly<Record<string, unknown>>
}

/** A reader for as long as the scope is open. One that is closed for not keeping up is logged. */
export const openReader = <E extends LiveMessage>(
  readers: Readers,
  { details, onStalled, wanted }: ReaderOptions<E>
): Effect.Effect<Subscriber<E>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Queue.unbounded<Waiting, Cause.Done>(), (queue) => {
      const subscriber = new Subscriber<E>(queue, wanted, readers)
      onStalled?.(() => subscriber.close("stalled"))
      return subscriber
    }),
    (subscriber) =>
      Effect.suspend(() => {
        subscriber.close()
        const { closedFor } = subscriber
        return closedFor === undefined ? Effect.void : readerClosed(closedFor, details)
      })
  )

/**
 * Sends what was logged, in order and one request at a time, until the service has it. A request
 * without an answer is sent again as it was, which is safe because every item has an id; the
 * service counts it once.
 */
import { parseJson } from "../../domain/json/Json.ts"
import { ApiFailure, UNEXPECTED } from "../ApiFailure.ts"
import { jsonText, utf8Length } from "../JsonText.ts"
import type { Clock } from "../Pause.ts"
import { waitMs } from "../RetryAfter.ts"
import { Backlog, type Item, type Queued } from "./Backlog.ts"
import { NotAcknowledged, QueueFull, type Rejection, type Some } from "./Rejection.ts"
import type { Reports } from "./Reports.ts"
import { Settlements } from "./Settlements.ts"

/** Ids that a failed flush names at most. */
const NAMED_MAX = 1_000
/** Milliseconds of failures before a delay is reported: a restart takes less. */
const DELAYED_AFTER_MS = 10_000

/**
 * What `log` does when the queue is full. It can't wait, as it is synchronous.
 *
 * - `drop-newest` keeps the program running: the event is not stored, which `onReject` is told.
 * - `throw` keeps the record complete: `log` throws QueueFull, and what should have been recorded can
 *   be refused.
 *
 * There is no way to drop the oldest: a record whose past disappears under load is of no use, and
 * what was logged first may be on its way.
 */
export type Overflow = "drop-newest" | "throw"

export interface DeliveryOptions {
  /** Items of one request at most. */
  readonly batchItems: number
  /** Bytes of the items of one request, unless one alone has more. */
  readonly batchBytes: number
  /** Milliseconds that an item waits for others at most. */
  readonly lingerMs: number
  readonly itemsMax: number
  readonly bytesMax: number
  readonly overflow: Overflow
}

/** What the service says of the items of one request; those that it does not name are stored. */
export interface Verdict {
  readonly refused: ReadonlyArray<{
    readonly index: number
    readonly code: string
    readonly message: string
  }>
  /** Items that were stored before. */
  readonly duplicates: number
}

/** One request. Rejects with ApiFailure. */
export type Send = (items: ReadonlyArray<Item>, signal: AbortSignal) => Promise<Verdict>

/** Numbers since the client was made, and what waits now. */
export interface Counters {
  readonly logged: number
  readonly acknowledged: number
  /** Acknowledged ones that were stored before, where the service has said so with its answer. */
  readonly duplicates: number
  /** Refused by the service, or by the client as unstorable. */
  readonly refused: number
  /** Not taken because the queue was full. */
  readonly dropped: number
  readonly requests: number
  /** Requests that failed and were sent again. */
  readonly retries: number
  readonly waiting: number
  readonly waitingBytes: number
}

/** What 413 means, by whomever it is said. */
const TOO_LARGE = "payload_too_large"

/**
 * True if the request is refused for what it holds. Other refusals (a wrong key, a wrong address,
 * words of a proxy) may pass, so that nothing is given up for them.
 */
const isOfItems = ({ code, status }: ApiFailure): boolean =>
  status === 413 || ([400, 409, 422].includes(status) && code !== UNEXPECTED)

/** What can be logged: an object with the id that names it. */
export interface Loggable extends Pick<Item, "id" | "isNamedByCaller"> {
  readonly value: Readonly<Record<string, unknown>>
}

const toItem = ({ id, isNamedByCaller, value }: Loggable): Item | Rejection => {
  try {
    const text = jsonText(value)
    return { id, text, bytes: utf8Length(text), isNamedByCaller }
  } catch (error) {
    // A getter or toJSON of the caller may throw anything.
    const message = error instanceof Error ? error.message : String(error)
    return { id, code: "unstorable_value", message, item: value }
  }
}

/** A queue in front of one route. */
export class Delivery {
  readonly #send: Send
  readonly #clock: Clock
  readonly #options: DeliveryOptions
  readonly #reports: Reports
  readonly #backlog: Backlog
  readonly #settlements = new Settlements()
  readonly #counts = {
    logged: 0,
    acknowledged: 0,
    duplicates: 0,
    refused: 0,
    dropped: 0,
    requests: 0,
    retries: 0
  }
  #isRunning = false
  #isLingering = false
  #isClosed = false
  /** Up to here nothing waits for others. */
  #urgentThrough = 0
  /** Ends the wait for others, or for a service that is away. */
  #pause: AbortController | undefined
  /** Ends everything. */
  readonly #end = new AbortController()
  #failingSince: number | undefined
  #lastFailure: ApiFailure | undefined

  constructor(send: Send, clock: Clock, options: DeliveryOptions, reports: Reports) {
    this.#send = send
    this.#clock = clock
    this.#options = options
    this.#reports = reports
    this.#backlog = new Backlog(options)
  }

  get counters(): Counters {
    const { bytes, length } = this.#backlog
    return { ...this.#counts, waiting: length, waitingBytes: bytes }
  }

  /** Queue a value. Throws QueueFull if the policy says so, and nothing else. */
  log(value: Loggable): void {
    this.#counts.logged += 1
    const item = toItem(value)
    if ("code" in item) {
      this.#counts.refused += 1
      this.#report(item)
    } else if (this.#isClosed) {
      this.#reject(item, "closed", "the client was closed before; log before you call close()")
    } else if (this.#backlog.hasRoomFor(item)) {
      this.#backlog.add(item, this.#clock.now())
      this.#wake()
    } else this.#overflow(item)
  }

  /** Sends what was logged before without waiting for more. Gives the last serial number of it. */
  hurry(): number {
    this.#urgentThrough = this.#backlog.lastSerial
    this.#pause?.abort()
    return this.#urgentThrough
  }

  /**
   * Resolves once everything that was logged before is acknowledged. Rejects with NotAcknowledged if
   * something was not stored since the last flush, or still waits when the signal is aborted.
   */
  async flush(signal: AbortSignal): Promise<void> {
    const through = this.hurry()
    await this.#settlements.reached(through, signal)
    const rejected = this.#settlements.takeRejected()
    const waiting = this.#idsThrough(through)
    if (rejected.total + waiting.total > 0) {
      const cause = waiting.total > 0 ? this.#lastFailure : undefined
      throw new NotAcknowledged(rejected, waiting, cause)
    }
  }

  /** Takes nothing more; what waits is still sent. */
  close(): void {
    this.#isClosed = true
  }

  /** Gives up what waits: it is reported as not delivered. */
  abandon(): void {
    this.#isClosed = true
    this.#end.abort()
    this.#pause?.abort()
    const waiting = this.#backlog.peek(Infinity, Infinity)
    const last =
      this.#lastFailure === undefined ? "" : ` (last failure: ${this.#lastFailure.message})`
    const message = `given up before the service acknowledged it${last}; it may be stored all the same`
    for (const item of waiting) this.#reject(item, "not_delivered", message)
    this.#settle(waiting.length)
  }

  #overflow(item: Item): void {
    const { bytesMax, itemsMax, overflow } = this.#options
    const message =
      `the queue is full (${itemsMax} items or ${bytesMax} bytes); the service is slower than what `
      + "is logged, or can't be reached; make the queue larger, or use record()"
    this.#counts.dropped += 1
    if (overflow === "throw") throw new QueueFull(message)
    this.#report({ id: item.id, code: "queue_full", message, item: parseJson(item.text) })
  }

  #wake(): void {
    if (this.#isLingering && this.#isFull()) this.#pause?.abort()
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#run()
  }

  async #run(): Promise<void> {
    for (let first = this.#backlog.first; first !== undefined; first = this.#backlog.first) {
      const waitMs = first.at + this.#options.lingerMs - this.#clock.now()
      if (waitMs > 0 && !this.#isFull() && first.serial > this.#urgentThrough) {
        this.#isLingering = true
        await this.#wait(waitMs)
        this.#isLingering = false
      } else {
        const { batchBytes, batchItems } = this.#options
        await this.#deliver(this.#backlog.peek(batchItems, batchBytes))
      }
    }
    this.#isRunning = false
  }

  #isFull(): boolean {
    const { batchBytes, batchItems } = this.#options
    return this.#backlog.length >= batchItems || this.#backlog.bytes >= batchBytes
  }

  /** Until each of the items, which are first in the backlog, is settled. */
  async #deliver(items: ReadonlyArray<Queued>): Promise<void> {
    for (let attempts = 1; !this.#end.signal.aborted; attempts++) {
      const failure = await this.#attempt(items)
      if (failure === undefined) return
      if (isOfItems(failure)) return this.#divide(items, failure)
      this.#counts.retries += 1
      this.#delayed(failure)
      // What the service asks for is waited in full; back-off ends with a flush.
      if (failure.retryAfterMs !== undefined) {
        await this.#clock.wait(failure.retryAfterMs, this.#end.signal, true)
      }
      await this.#wait(waitMs(attempts, this.#clock.random))
    }
  }

  /** Waits until the time is over, or until a flush. */
  async #wait(ms: number): Promise<void> {
    if (this.#end.signal.aborted) return
    this.#pause = new AbortController()
    await this.#clock.wait(ms, this.#pause.signal, true)
    this.#pause = undefined
  }

  /** Undefined if the items are settled, or nothing is to be done any more. */
  async #attempt(items: ReadonlyArray<Queued>): Promise<ApiFailure | undefined> {
    this.#counts.requests += 1
    try {
      const verdict = await this.#send(items, this.#end.signal)
      if (!this.#end.signal.aborted) this.#take(items, verdict)
      return undefined
    } catch (error) {
      if (this.#end.signal.aborted) return undefined
      return error instanceof ApiFailure
        ? error
        : new ApiFailure(0, UNEXPECTED, String(error), { cause: error })
    }
  }

  #take(items: ReadonlyArray<Queued>, { duplicates, refused }: Verdict): void {
    this.#failingSince = undefined
    for (const { code, index, message } of refused) {
      const item = items[index]
      if (item !== undefined) this.#refused(item, code, message)
    }
    this.#counts.acknowledged += items.length - refused.length
    this.#counts.duplicates += duplicates
    this.#settle(items.length)
  }

  /** A request that is refused as a whole is sent in halves, until one item alone is at fault. */
  async #divide(items: ReadonlyArray<Queued>, failure: ApiFailure): Promise<void> {
    const [first] = items
    if (items.length === 1 && first !== undefined) {
      const code = failure.code === UNEXPECTED ? TOO_LARGE : failure.code
      this.#refused(first, code, failure.message)
      this.#settle(1)
      return
    }
    const half = Math.ceil(items.length / 2)
    await this.#deliver(items.slice(0, half))
    await this.#deliver(items.slice(half))
  }

  #settle(count: number): void {
    const last = this.#backlog.peek(count, Infinity).at(-1)
    this.#backlog.settle(count)
    if (last !== undefined) this.#settlements.settled(last.serial)
  }

  #delayed(failure: ApiFailure): void {
    const now = this.#clock.now()
    this.#failingSince ??= now
    this.#lastFailure = failure
    const forMs = now - this.#failingSince
    if (!failure.isTransient || forMs >= DELAYED_AFTER_MS) {
      this.#reports.delayed({ kind: "delayed", failure, waiting: this.#backlog.length, forMs })
    }
  }

  #refused(item: Item, code: string, message: string): void {
    this.#counts.refused += 1
    this.#reject(item, code, message)
  }

  #reject({ id, text }: Item, code: string, message: string): void {
    this.#report({ id, code, message, item: parseJson(text) })
  }

  #report(rejection: Rejection): void {
    this.#settlements.rejected(rejection)
    this.#reports.rejected(rejection)
  }

  #idsThrough(serial: number): Some<string> {
    const waiting = this.#backlog.peek(Infinity, Infinity).filter((one) => one.serial <= serial)
    return { some: waiting.slice(0, NAMED_MAX).map(({ id }) => id), total: waiting.length }
  }
}

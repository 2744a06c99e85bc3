/** Readers of the event stream (SSE) that count what they get, and resume where they are closed. */
import type { IncomingMessage } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "./Api.ts"

/** Ends a message with an event: comments and marks end otherwise. */
const MARK = Buffer.from("}\n\n")

/** Milliseconds that a stream may take to have what was sent. */
const WAIT_MS_MAX = 300_000
/** What a client waits at least before it resumes. */
const RESUME_MS = 100

/** Counts events over the borders of chunks. */
export class MarkCounter {
  count = 0
  #rest = Buffer.alloc(0)

  take(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#rest, chunk])
    let at = bytes.indexOf(MARK)
    let end = 0
    for (; at >= 0; at = bytes.indexOf(MARK, end)) {
      this.count++
      end = at + MARK.length
    }
    this.#rest = bytes.subarray(Math.max(end, bytes.length - MARK.length + 1))
  }

  /** Forget the message that has begun: its connection is closed. */
  cut(): void {
    this.#rest = Buffer.alloc(0)
  }
}

/** One reader; a slow one is closed by the service and goes on after its last event. */
class Subscriber {
  readonly #api: Api
  readonly #changed: (error?: unknown) => void
  /** Events of the tenant before the first of its own. */
  readonly #before: number
  readonly #counter = new MarkCounter()
  #stream: IncomingMessage | undefined
  #isClosed = false
  resumed = 0

  constructor(api: Api, before: number, changed: (error?: unknown) => void) {
    this.#api = api
    this.#before = before
    this.#changed = changed
  }

  get count(): number {
    return this.#counter.count
  }

  async open(): Promise<void> {
    const stream = await this.#api.open("/v1/events/stream", {
      headers: {
        accept: "text/event-stream",
        "last-event-id": String(this.#before + this.count)
      }
    })
    if (stream.statusCode !== 200) throw new Error(`stream: ${stream.statusCode}`)
    this.#stream = stream
    stream.on("data", (chunk: Buffer) => {
      this.#counter.take(chunk)
      this.#changed()
    })
    stream.on("error", () => undefined)
    stream.once("close", () => void this.#resume())
  }

  async #resume(): Promise<void> {
    if (this.#isClosed) return
    this.resumed += 1
    this.#counter.cut()
    try {
      await sleep(RESUME_MS)
      if (!this.#isClosed) await this.open()
    } catch (error) {
      this.#changed(error)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#stream?.destroy()
  }
}

export class Subscribers {
  readonly #all: ReadonlyArray<Subscriber>
  #changed: (error?: unknown) => void = () => undefined

  private constructor(api: Api, before: number, count: number) {
    const changed = (error?: unknown): void => this.#changed(error)
    this.#all = Array.from({ length: count }, () => new Subscriber(api, before, changed))
  }

  /** Opens the streams one after the other; nothing is sent meanwhile. */
  static async open(api: Api, count: number): Promise<Subscribers> {
    const subscribers = new Subscribers(api, await api.total(), count)
    for (const one of subscribers.#all) await one.open()
    return subscribers
  }

  /** How often a stream was closed as too slow, and resumed. */
  get resumed(): number {
    return this.#all.reduce((sum, { resumed }) => sum + resumed, 0)
  }

  /** Resolves once each of them has so many events; rejects when one can't resume, or waits too long. */
  async haveEach(events: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => {
        const least = Math.min(...this.#all.map(({ count }) => count))
        reject(new Error(`a stream has ${least} of ${events} events`))
      }, WAIT_MS_MAX)
      this.#changed = (error) => {
        if (error !== undefined) reject(error)
        if (this.#all.every(({ count }) => count >= events)) resolve()
      }
      this.#changed()
    }).finally(() => clearTimeout(timer))
    const most = Math.max(...this.#all.map(({ count }) => count))
    if (most > events) throw new Error(`a stream had ${most} events instead of ${events}`)
  }

  close(): void {
    this.#changed = () => undefined
    for (const one of this.#all) one.close()
  }
}

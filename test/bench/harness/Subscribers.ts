/** Readers of the event stream (SSE) that count what they get. */
import type { IncomingMessage } from "node:http"
import type { Api } from "./Api.ts"

/** Begins the line with the event; JSON has no line feed of its own. */
const MARK = Buffer.from("\ndata: ")

/** Milliseconds that a stream may take to have what was sent. */
const WAIT_MS_MAX = 300_000

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
}

export class Subscribers {
  readonly #streams: ReadonlyArray<IncomingMessage>
  readonly #counters: ReadonlyArray<MarkCounter>
  #closed = 0
  #changed: () => void = () => undefined

  private constructor(streams: ReadonlyArray<IncomingMessage>) {
    this.#streams = streams
    this.#counters = streams.map((stream) => {
      const counter = new MarkCounter()
      stream.on("data", (chunk: Buffer) => {
        counter.take(chunk)
        this.#changed()
      })
      stream.on("close", () => {
        this.#closed++
        this.#changed()
      })
      stream.on("error", () => undefined)
      return counter
    })
  }

  static async open(api: Api, count: number): Promise<Subscribers> {
    const streams: Array<IncomingMessage> = []
    for (let n = 0; n < count; n++) {
      const stream = await api.open("/v1/events/stream", {
        headers: { accept: "text/event-stream" }
      })
      if (stream.statusCode !== 200) throw new Error(`stream: ${stream.statusCode}`)
      streams.push(stream)
    }
    return new Subscribers(streams)
  }

  /** Resolves once each of them has so many events; rejects when one is closed, or waits too long. */
  async haveEach(events: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => {
        const least = Math.min(...this.#counters.map(({ count }) => count))
        reject(new Error(`a stream has ${least} of ${events} events`))
      }, WAIT_MS_MAX)
      this.#changed = () => {
        if (this.#closed > 0) reject(new Error(`${this.#closed} streams were closed`))
        if (this.#counters.every(({ count }) => count >= events)) resolve()
      }
      this.#changed()
    }).finally(() => clearTimeout(timer))
    const most = Math.max(...this.#counters.map(({ count }) => count))
    if (most > events) throw new Error(`a stream had ${most} events instead of ${events}`)
  }

  close(): void {
    this.#changed = () => undefined
    for (const stream of this.#streams) stream.destroy()
  }
}

/**
 * An SSE client that never gives up: whenever its stream ends or breaks it connects again, at
 * whichever process answers, with the last id that it has seen. Keeps everything it was sent.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { eventuallyAsync } from "../support/Eventually.ts"
import { clientOf, type Target } from "./Parts.ts"

const RECONNECT_MS = 100
/** Milliseconds for everything that a stream has to bring after a fault. */
const PATIENCE_MS = 120_000

export class Subscriber {
  readonly tenant: string
  /** `data` of every message, in the order of arrival. */
  readonly received: Array<string> = []
  /** Refusals that no fault excuses. */
  readonly strange: Array<string> = []
  connections = 0
  readonly #target: Target
  readonly #running: Promise<void>
  #controller = new AbortController()
  #last = 0
  #stopped = false

  constructor(target: Target, tenant: string) {
    this.#target = target
    this.tenant = tenant
    this.#running = this.#run()
  }

  /** Wait until the first message has arrived. */
  async begun(): Promise<void> {
    await eventuallyAsync(`the stream of ${this.tenant} begins`, () => this.received.length > 0)
  }

  /** Wait until that many messages have arrived, then end. */
  async finish(count: number): Promise<void> {
    await eventuallyAsync(
      `${count} messages of ${this.tenant} have arrived`,
      () => this.received.length,
      (received) => received >= count,
      PATIENCE_MS
    )
    this.#stopped = true
    this.#controller.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#stopped; attempt++) {
      this.#controller = new AbortController()
      try {
        await this.#connect(attempt)
      } catch {
        // Broken off in the middle: resumed behind the last whole message.
      }
      if (!this.#stopped) await sleep(RECONNECT_MS)
    }
  }

  async #connect(attempt: number): Promise<void> {
    const { key, url } = clientOf(this.#target, this.tenant, attempt)
    const response = await fetch(`${url}/v1/events/stream?after_sequence=0`, {
      headers: {
        authorization: `Bearer ${key}`,
        ...(this.#last === 0 ? {} : { "last-event-id": String(this.#last) })
      },
      signal: this.#controller.signal
    })
    if (response.status !== 200) {
      const text = await response.text()
      if (response.status !== 503) this.strange.push(`${response.status} ${text}`)
      return
    }
    this.connections += 1
    const decoder = new TextDecoder()
    let rest = ""
    for await (const chunk of response.body!) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true })
      const blocks = rest.split("\n\n")
      rest = blocks.pop()!
      for (const block of blocks) this.#take(block)
    }
  }

  #take(block: string): void {
    let data: string | undefined
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) this.#last = Number(line.slice("id: ".length))
      if (line.startsWith("data: ")) data = line.slice("data: ".length)
    }
    if (data !== undefined) this.received.push(data)
  }
}

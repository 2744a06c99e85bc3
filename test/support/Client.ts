/**
 * A client of the HTTP API made of nothing but `fetch`: what a user's first script would be. Every
 * answer is compared with the published document.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { inspect } from "node:util"
import { assertConforms } from "./Conformance.ts"
import { eventuallyAsync } from "./Eventually.ts"

export type Json = Record<string, any>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: any
  readonly text: string
}

export interface Options {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly raw?: string | Uint8Array
}

export class Client {
  readonly url: string
  readonly key: string
  readonly #documented: boolean
  readonly #attempts: number

  /** `documented` is false for a process that is not the API, such as a sequencer. */
  constructor(url: string, key: string, documented = true, attempts = 1) {
    this.url = url
    this.key = key
    this.#documented = documented
    this.#attempts = attempts
  }

  /**
   * One request. With `attempts` a 503 that says Retry-After is asked again, and a 408, as clients do
   * (RFC 9110, section 15.5.9): for tests that run beside others, not for those that look for them.
   */
  async call(path: string, options: Options = {}): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#once(path, options)
      const seconds = Number(answer.headers.get("retry-after"))
      const isTransient = answer.status === 408 || (answer.status === 503 && seconds > 0)
      if (!isTransient || attempt >= this.#attempts) return answer
      await sleep(seconds * 1_000)
    }
  }

  async #once(path: string, options: Options): Promise<Answer> {
    const { body, headers = {}, raw } = options
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(`${this.url}${path}`, {
      method: options.method ?? (payload === undefined ? "GET" : "POST"),
      headers: {
        ...(this.key === "" ? {} : { authorization: `Bearer ${this.key}` }),
        ...(payload === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(payload === undefined ? {} : { body: payload as any })
    })
    const text = await response.text()
    // 408 is the server's before it knows the operation, so no operation's description has it.
    if (this.#documented && response.status !== 408)
      assertConforms({
        method: options.method ?? (payload === undefined ? "GET" : "POST"),
        target: path,
        status: response.status,
        contentType: response.headers.get("content-type") ?? undefined,
        text
      })
    let parsed: unknown
    try {
      parsed = JSON.parse(text)
    } catch {
      parsed = undefined
    }
    return { status: response.status, headers: response.headers, body: parsed, text }
  }

  batch(events: ReadonlyArray<Json>, options: Options = {}): Promise<Answer> {
    return this.call("/v1/events/batch", { ...options, body: { events } })
  }

  /** The receipt once it is final. */
  async settled(receiptId: string, patienceMs?: number): Promise<Json> {
    const { body } = await eventuallyAsync(
      `the receipt ${receiptId} is decided`,
      async () => {
        const { body, status, text } = await this.call(`/v1/receipts/${receiptId}`)
        if (status !== 200 && status !== 503) throw new Error(`receipt: ${status} ${text}`)
        return { status, body }
      },
      ({ body, status }) => status === 200 && body.status !== "pending",
      patienceMs
    )
    return body
  }

  /** Writes events and gives their receipt once the lists show them, however long that takes. */
  async written(events: ReadonlyArray<Json>): Promise<Json> {
    const headers = { "x-service-sync": "true" }
    const { body, status, text } = await this.batch(events, { headers })
    // The service itself waits for some seconds only.
    if (status === 202) return this.settled(body.receipt_id)
    if (status !== 200) throw new Error(`batch: ${status} ${text}`)
    return body
  }

  /** Every event of the tenant, ascending. */
  async all(query = ""): Promise<Array<Json>> {
    const { text } = await this.call(`/v1/events?order=asc${query}`, {
      headers: { accept: "application/x-ndjson" }
    })
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Json)
  }
}

/** Milliseconds; many times what a busy machine needs. */
const STREAM_PATIENCE_MS = 120_000
/** Messages that the failure repeats. */
const MESSAGES_SHOWN = 3

export interface SseMessage {
  readonly event: string | undefined
  readonly id: string | undefined
  readonly data: string
}

/** Read an event stream until `done` says so or it ends; fails where neither comes in time. */
export const readStream = async (
  url: string,
  key: string,
  options: {
    readonly lastEventId?: string
    readonly opened?: () => void | Promise<void>
    readonly done: (messages: ReadonlyArray<SseMessage>) => boolean
    readonly timeoutMs?: number
  }
): Promise<ReadonlyArray<SseMessage>> => {
  const controller = new AbortController()
  const { done, timeoutMs = STREAM_PATIENCE_MS } = options
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    controller.abort()
  }, timeoutMs)
  const messages: Array<SseMessage> = []
  let opened: Promise<void> | undefined
  try {
    const response = await fetch(url, {
      headers: {
        authorization: `Bearer ${key}`,
        ...(options.lastEventId === undefined ? {} : { "last-event-id": options.lastEventId })
      },
      signal: controller.signal
    })
    if (response.status !== 200) throw new Error(`stream: ${response.status}`)
    const decoder = new TextDecoder()
    let rest = ""
    let open = false
    for await (const chunk of response.body!) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true })
      const blocks = rest.split("\n\n")
      rest = blocks.pop()!
      for (const block of blocks) {
        const lines = block.split("\n")
        const field = (name: string) =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
        const data = field("data")
        if (data !== undefined) messages.push({ event: field("event"), id: field("id"), data })
      }
      if (!open) {
        open = true
        opened = Promise.resolve(options.opened?.())
        // It may fail before the stream has said everything; it is told below.
        opened.catch(() => undefined)
      }
      if (done(messages)) break
    }
  } catch (error) {
    if (!isLate) throw error
    const newest = inspect(messages.slice(-MESSAGES_SHOWN))
    throw new Error(
      `not within ${timeoutMs / 1_000} s: all that ${url} is read for; last seen: `
        + `${messages.length} messages, the newest ${newest}`
    )
  } finally {
    clearTimeout(timer)
    controller.abort()
  }
  // The answer to what it has sent may come after the stream has told of that.
  await opened
  return messages
}

/**
 * A client of the HTTP API that costs little: connections are kept, and answers are read but not
 * compared with the contract.
 */
import { Agent, type IncomingMessage, request } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"

export interface Asked {
  readonly method?: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly text: string
}

/** What an answer had that was read but not kept. */
export interface Drained {
  readonly bytes: number
  /** Line feeds. */
  readonly lines: number
}

const RECEIPT_POLL_MS = 20
const RECEIPT_WAIT_MS = 600_000

const LINE_FEED = 10

const linesIn = (chunk: Buffer): number => {
  let [count, at] = [0, chunk.indexOf(LINE_FEED)]
  for (; at >= 0; at = chunk.indexOf(LINE_FEED, at + 1)) count++
  return count
}

export const newAgent = (): Agent => new Agent({ keepAlive: true, maxSockets: 2_000 })

export class Api {
  readonly #agent: Agent
  readonly #url: string
  readonly #key: string

  constructor(url: string, key: string, agent: Agent) {
    this.#url = url
    this.#key = key
    this.#agent = agent
  }

  /** The answer as soon as its head is there; its body is the caller's to read. */
  open(path: string, { body, headers = {}, method }: Asked = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request(
        this.#url + path,
        {
          agent: this.#agent,
          method: method ?? (body === undefined ? "GET" : "POST"),
          headers: {
            authorization: `Bearer ${this.#key}`,
            ...(body === undefined
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
            ...headers
          }
        },
        resolve
      )
      sent.once("error", reject)
      sent.end(body)
    })
  }

  async call(path: string, asked: Asked = {}): Promise<Answer> {
    const response = await this.open(path, asked)
    const chunks: Array<Buffer> = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    return { status: response.statusCode!, text: Buffer.concat(chunks).toString() }
  }

  /** The body as text; throws on another status than 200. */
  async text(path: string, asked: Asked = {}): Promise<string> {
    const { status, text } = await this.call(path, asked)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    return text
  }

  /** The body as JSON; throws on another status than 2xx. */
  async json(path: string, asked: Asked = {}): Promise<any> {
    const { status, text } = await this.call(path, asked)
    if (status >= 300) throw new Error(`${asked.method ?? ""} ${path}: ${status} ${text}`)
    return JSON.parse(text)
  }

  /** Reads an answer to its end and keeps nothing of it. */
  async drain(path: string, asked: Asked = {}): Promise<Drained> {
    const response = await this.open(path, asked)
    let [bytes, lines] = [0, 0]
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length
      lines += linesIn(chunk as Buffer)
    }
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`)
    return { bytes, lines }
  }

  /** Waits until what a receipt stands for is in every list; throws if any of it was rejected. */
  async settled(receipt: string): Promise<void> {
    const until = performance.now() + RECEIPT_WAIT_MS
    for (;;) {
      // A process that is too busy to look says so with 503.
      const { status, text } = await this.call(`/v1/receipts/${receipt}`)
      const body = JSON.parse(text)
      if (status === 200 && body.status === "committed" && body.rejected === 0) return
      if (status !== 503 && body.status !== "pending") throw new Error(`receipt: ${status} ${text}`)
      if (performance.now() > until) throw new Error(`receipt ${receipt} is still pending`)
      await sleep(RECEIPT_POLL_MS)
    }
  }

  /** Events of the tenant. */
  async total(query = ""): Promise<number> {
    return (await this.json(`/v1/events?page_size=1${query}`)).total
  }
}

/**
 * The part of the service that clients write to, as a function in the place of fetch: it stores each
 * id once, refuses what says that it is bad, and fails as it is told to.
 */
import type { Clock } from "../../src/client/Pause.ts"

/** What becomes of one request. */
export type Fate =
  | "answer"
  | "too many requests"
  | "too many requests until a date"
  | "unavailable"
  | "unavailable, but stored"
  | "no connection"
  | "lost answer"
  | "late answer"
  | "never arrives"
  | "half an answer"
  | "page of a proxy"
  | "wrong key"

export const fates: ReadonlyArray<Fate> = [
  "answer",
  "too many requests",
  "too many requests until a date",
  "unavailable",
  "unavailable, but stored",
  "no connection",
  "lost answer",
  "late answer",
  "never arrives",
  "half an answer",
  "page of a proxy",
  "wrong key"
]

interface Sent {
  readonly id: string
  readonly metadata?: { readonly bad?: boolean }
}

/** Time that passes when somebody waits. */
export class JumpingClock implements Clock {
  #now = 1_800_000_000_000
  readonly waits: Array<number> = []
  readonly now = () => this.#now
  readonly random = () => 0.5
  wait = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted === true) return
    this.waits.push(ms)
    this.#now += ms
  }

  pass(ms: number): void {
    this.#now += ms
  }
}

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", ...headers }
  })

const refusal = (status: number, code: string, headers: Record<string, string> = {}): Response =>
  answer(status, { error: `${code} for now`, code, request_id: "r" }, headers)

const untilGivenUp = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")))
  })

export class FakeService {
  readonly stored: Array<string> = []
  /** Items of each request that arrived. */
  readonly requests: Array<number> = []
  /** What becomes of requests beyond the fates. */
  otherwise: Fate = "answer"
  #fates: ReadonlyArray<Fate>
  readonly #itemsMax: number

  constructor(fates: ReadonlyArray<Fate> = [], itemsMax = 1_000) {
    this.#fates = fates
    this.#itemsMax = itemsMax
  }

  readonly fetch: typeof fetch = async (_, init) => {
    const [fate = this.otherwise, ...rest] = this.#fates
    this.#fates = rest
    const signal = init!.signal!
    const { events } = JSON.parse(String(init!.body)) as { readonly events: ReadonlyArray<Sent> }
    if (events.length > this.#itemsMax) return refusal(413, "payload_too_large")
    this.requests.push(events.length)
    switch (fate) {
      case "answer":
        return this.#store(events)
      case "too many requests":
        return refusal(429, "rate_limited", { "retry-after": "3" })
      case "too many requests until a date":
        return refusal(429, "rate_limited", {
          "retry-after": new Date(Date.now() + 5_000).toUTCString()
        })
      case "unavailable":
        return refusal(503, "unavailable", { "retry-after": "1" })
      case "unavailable, but stored":
        this.#store(events)
        return refusal(503, "unavailable")
      case "no connection":
        throw new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") })
      case "lost answer":
        this.#store(events)
        throw new TypeError("fetch failed", { cause: new Error("ECONNRESET") })
      case "late answer":
        this.#store(events)
        return untilGivenUp(signal)
      case "never arrives":
        return untilGivenUp(signal)
      case "half an answer":
        this.#store(events)
        return new Response('{"receipt_id":"r","acc', { status: 202 })
      case "page of a proxy":
        return new Response("<h1>400</h1>", {
          status: 400,
          headers: { "content-type": "text/html" }
        })
      case "wrong key":
        return refusal(401, "unauthenticated")
    }
  }

  #store(events: ReadonlyArray<Sent>): Response {
    const errors: Array<unknown> = []
    const ids: Array<string> = []
    events.forEach(({ id, metadata }, index) => {
      if (metadata?.bad === true) {
        errors.push({ index, code: "invalid_value", message: "metadata.bad: must be false" })
      } else {
        ids.push(id)
        if (!this.stored.includes(id)) this.stored.push(id)
      }
    })
    const body = {
      receipt_id: "r",
      status: "pending",
      accepted: ids.length,
      rejected: errors.length
    }
    return answer(202, { ...body, ids, errors })
  }
}

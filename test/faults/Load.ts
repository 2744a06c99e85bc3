/**
 * Clients that keep writing while things break, and the book they keep: what was sent, what was
 * acknowledged and what nobody answered. Every request can be repeated safely, as a careful
 * client's would be: its events have ids of their own, or the request has an Idempotency-Key.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { event } from "../support/BlackBox.ts"
import type { Answer, Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { clientOf, type Target } from "./Parts.ts"

export interface Request {
  readonly tenant: string
  readonly sender: string
  readonly key: string | undefined
  readonly events: ReadonlyArray<Json>
  /** Acknowledged at the first attempt: whatever its sender sent later must come behind it. */
  inOrder: boolean
  receiptId: string | undefined
  ids: ReadonlyArray<string> | undefined
}

export interface LoadOptions {
  readonly tenants: ReadonlyArray<string>
  /** Clients per tenant. */
  readonly senders?: number
  /** Milliseconds between two requests of a client. */
  readonly pauseMs?: number
  readonly eventsPerRequest?: number
}

const UNANSWERED_PAUSE_MS = 50
/** Milliseconds that a client goes on with what has to succeed, on a busy machine too. */
const PATIENCE_MS = 120_000

/** Events of a large request, and characters of two bytes in each. */
const LARGE_EVENTS = 100
const LARGE_TEXT_LENGTH = 3_000

export class Load {
  readonly requests: Array<Request> = []
  /** Statuses of all answers, and what should never be answered. */
  readonly statuses = new Map<number, number>()
  readonly strange: Array<string> = []
  /** What the answers with 503 said, and how often. */
  readonly refusals = new Map<string, number>()
  unanswered = 0
  readonly #target: Target
  readonly #options: Required<LoadOptions>
  #running: Promise<unknown> | undefined
  #stopped = false
  #rounds = 0
  #singles = 0

  constructor(target: Target, options: LoadOptions) {
    this.#target = target
    this.#options = { senders: 2, pauseMs: 20, eventsPerRequest: 3, ...options }
  }

  get acknowledged(): number {
    return this.requests.filter(({ ids }) => ids !== undefined).length
  }

  begin(): void {
    this.#stopped = false
    const round = this.#rounds++
    const { senders, tenants } = this.#options
    this.#running = Promise.all(
      tenants.flatMap((tenant) =>
        Array.from({ length: senders }, (_, who) =>
          this.#send(tenant, `${tenant}${round}-${who}`, who)
        )
      )
    )
  }

  async end(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  /** Resolves when that many more requests have been acknowledged. */
  async more(count: number, patienceMs = PATIENCE_MS): Promise<void> {
    const wanted = this.acknowledged + count
    await eventuallyAsync(
      `${wanted} requests are acknowledged`,
      () => ({ acknowledged: this.acknowledged, summary: this.summary() }),
      ({ acknowledged }) => acknowledged >= wanted,
      patienceMs
    )
  }

  /** Whoever was not answered, or refused, tries again at another process until it is accepted. */
  async repeatUnanswered(): Promise<void> {
    const open = this.requests.filter(({ ids }) => ids === undefined)
    for (const [index, request] of open.entries()) {
      let attempt = index
      await eventuallyAsync(
        "a request is accepted again",
        async () => {
          await this.#attempt(request, attempt++)
          return { ids: request.ids, summary: this.summary() }
        },
        ({ ids }) => ids !== undefined,
        PATIENCE_MS
      )
    }
  }

  /** Every receipt becomes final, at whichever process it is asked for. */
  async settle(): Promise<void> {
    for (const [index, { receiptId, tenant }] of this.requests.entries()) {
      if (receiptId === undefined) continue
      const receipt = await clientOf(this.#target, tenant, index).settled(receiptId, PATIENCE_MS)
      assert.strictEqual(receipt["status"], "committed", JSON.stringify(receipt))
    }
  }

  /** A receipt that was final once is final now, at every process. */
  async assertFinal(newest: number): Promise<void> {
    const known = this.requests.filter(({ receiptId }) => receiptId !== undefined).slice(-newest)
    for (const { receiptId, tenant } of known) {
      for (const which of this.#target.urls().keys()) {
        const { body, text } = await clientOf(this.#target, tenant, which).call(
          `/v1/receipts/${receiptId}`
        )
        assert.strictEqual(body.status, "committed", text)
      }
    }
  }

  /** Whoever asks again, anywhere, is told what was told first, and nothing is written twice. */
  async assertSameAnswers(): Promise<void> {
    for (const [index, { events, ids, key, receiptId, tenant }] of this.requests.entries()) {
      const { body, status, text } = await clientOf(this.#target, tenant, index).batch(events, {
        headers: key === undefined ? {} : { "idempotency-key": key }
      })
      assert.strictEqual(status, 202, text)
      assert.deepStrictEqual(body.ids, ids)
      if (key !== undefined) assert.strictEqual(body.receipt_id, receiptId)
    }
  }

  summary(): string {
    const answers = [...this.statuses, ...this.refusals]
    const statuses = answers.map(([what, count]) => `${count} x ${what}`)
    return (
      `${this.requests.length} requests, ${this.acknowledged} acknowledged, `
      + `${this.unanswered} unanswered, ${statuses.join(", ")}`
    )
  }

  /** One request beside the load; `withKey` waits for the sequencer's word. */
  async one(tenant: string, withKey = false, which = 0): Promise<Request> {
    const request = this.#make(tenant, `${tenant}-one-${this.#singles++}`, 0, withKey)
    await this.#attempt(request, which)
    return request
  }

  /** One request of many large events. */
  async large(tenant: string, events = LARGE_EVENTS): Promise<void> {
    const request = this.#make(tenant, `${tenant}-large-${this.#singles++}`, 0, false, {
      events,
      text: "ü".repeat(LARGE_TEXT_LENGTH)
    })
    await this.#attempt(request, 1)
  }

  async #send(tenant: string, sender: string, who: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const request = this.#make(tenant, sender, n, n % 2 === 0)
      const answered = await this.#attempt(request, who + n)
      request.inOrder = request.ids !== undefined
      await sleep(answered ? this.#options.pauseMs : UNANSWERED_PAUSE_MS)
    }
  }

  #make(
    tenant: string,
    sender: string,
    n: number,
    withKey: boolean,
    size = { events: this.#options.eventsPerRequest, text: "ü“📄" }
  ): Request {
    const name = `${sender}-${n}`
    const request: Request = {
      tenant,
      sender,
      key: withKey ? name : undefined,
      events: Array.from({ length: size.events }, (_, item) => ({
        ...event(n),
        metadata: { ref: `${name}-${item}`, text: size.text },
        ...(withKey ? {} : { id: `${name}-${item}` })
      })),
      inOrder: false,
      receiptId: undefined,
      ids: undefined
    }
    this.requests.push(request)
    return request
  }

  async #attempt(request: Request, which: number): Promise<boolean> {
    const { events, key, tenant } = request
    let answer: Answer
    try {
      answer = await clientOf(this.#target, tenant, which).batch(events, {
        headers: key === undefined ? {} : { "idempotency-key": key }
      })
    } catch {
      // The process, or its connection, is gone in the middle: that is what these tests are about.
      this.unanswered += 1
      return false
    }
    const { body, headers, status, text } = answer
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    if (status === 202) {
      request.receiptId = body.receipt_id
      request.ids = body.ids
      if (body.ids?.length !== events.length) this.strange.push(`202 with ${text}`)
    } else if (status === 503 && Number(headers.get("retry-after")) > 0) {
      const reason = /"(?:message|error)":"([^"]*)"/.exec(text)?.[1] ?? text
      this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1)
    } else {
      this.strange.push(`${status} retry-after ${headers.get("retry-after")} ${text}`)
    }
    return true
  }
}

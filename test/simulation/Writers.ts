/**
 * Clients that send events and repeat what they do not know the outcome of, at any process, until
 * each request has a final receipt. What they send can be recognised: by ids, or by a key.
 */

import { Effect } from "effect"
import { Receipts } from "../../src/actors/follower/Receipts.ts"
import type { Receipt } from "../../src/domain/records/Receipt.ts"
import { finish } from "../../src/domain/Slices.ts"
import {
  fingerprintOf,
  type IdempotencyKey,
  Ingest,
  prepareItems
} from "../../src/services/ingest/Ingest.ts"
import { defaultPrepareLimits } from "../../src/services/ingest/Prepare.ts"
import type { Faults } from "./Faults.ts"
import { check } from "./Oracle.ts"
import { SIMULATION_SECRET, type SimulatedProcess } from "./SimulatedProcess.ts"

/** What has been acknowledged. */
export class Acknowledged {
  /** Ids by tenant. */
  readonly ids = new Map<string, Set<string>>()
  /** Of those that are said to be visible, the highest sequence by tenant. */
  readonly visible = new Map<string, number>()
  requests = 0

  take(tenantId: string, { ids, last_sequence_number: last = 0 }: Receipt): void {
    const known = this.ids.get(tenantId) ?? new Set()
    this.ids.set(tenantId, known)
    for (const id of ids) known.add(id)
    this.visible.set(tenantId, Math.max(last, this.visible.get(tenantId) ?? 0))
    this.requests += 1
  }
}

interface Request {
  readonly tenantId: string
  readonly items: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly key: IdempotencyKey | undefined
  readonly until: "written" | "visible"
}

/** A request with the ids of its answer. */
interface Answered {
  readonly request: Request
  readonly ids: ReadonlyArray<string>
}

const itemOf = (name: string, withId: boolean) => ({
  ...(withId ? { id: name } : {}),
  timestamp: "2026-01-01T00:00:00Z",
  actor: { id: name, type: "human" },
  action: "document.read",
  resource: { id: "doc", type: "document" },
  outcome: "success",
  metadata: { name }
})

export class Writer {
  readonly #faults: Faults
  readonly #processes: ReadonlyArray<SimulatedProcess>
  readonly #acknowledged: Acknowledged
  readonly #name: string
  #count = 0
  /** Requests that may be sent again. */
  readonly #answered: Array<Answered> = []

  constructor(
    name: string,
    faults: Faults,
    processes: ReadonlyArray<SimulatedProcess>,
    acknowledged: Acknowledged
  ) {
    this.#name = name
    this.#faults = faults
    this.#processes = processes
    this.#acknowledged = acknowledged
  }

  /** So many requests, one after the other, with pauses. */
  run(tenants: ReadonlyArray<string>, requests: number, pauseMs: number): Effect.Effect<void> {
    const { chance, time } = this.#faults
    return Effect.gen({ self: this }, function* () {
      for (let left = requests; left > 0; left--) {
        yield* time.sleep(chance.between(0, pauseMs))
        const earlier = this.#answered.length > 0 && chance.isHit(0.25)
        if (earlier) yield* this.#again(chance.pick(this.#answered))
        else yield* this.#first(this.#request(chance.pick(tenants)))
      }
    })
  }

  #request(tenantId: string): Request {
    const { chance } = this.#faults
    const number = this.#count++
    const withKey = chance.isHit(0.4)
    const name = `${this.#name}-${number}`
    const items = Array.from({ length: chance.between(1, 4) }, (_, index) =>
      itemOf(`${name}-${index}`, !withKey)
    )
    return {
      tenantId,
      items,
      key: withKey ? { method: "POST", path: "/v1/events", key: name } : undefined,
      until: chance.isHit(0.7) ? "visible" : "written"
    }
  }

  #first(request: Request): Effect.Effect<void> {
    return Effect.map(this.#send(request), (receipt) => {
      const { ids } = receipt
      const sent = request.items.map(({ id }) => id)
      if (request.key === undefined) check(String(ids) === String(sent), `other ids: ${ids}`)
      this.#answered.push({ request, ids })
    })
  }

  /** Sends a request again; the answer names the same events. */
  #again(earlier: Answered): Effect.Effect<void> {
    return Effect.map(this.#send(earlier.request), ({ duplicates = [], ids }) => {
      check(String(ids) === String(earlier.ids), `${earlier.ids} were answered as ${ids}`)
      const isRepeat = earlier.request.key !== undefined
      check(isRepeat || duplicates.length === ids.length, `${ids} are no duplicates`)
    })
  }

  /** Until there is a final receipt. */
  #send(request: Request): Effect.Effect<Receipt> {
    const { chance, log, time } = this.#faults
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const receipt = yield* this.#attempt(request).pipe(
          Effect.catch((error) => {
            log(`${this.#name}: ${error._tag}`)
            return Effect.succeed(undefined)
          })
        )
        if (receipt !== undefined) {
          check(receipt.status === "committed", `a request has failed: ${receipt.error?.message}`)
          check(receipt.accepted === request.items.length, `only ${receipt.accepted} were accepted`)
          log(`${this.#name}: acknowledged ${receipt.ids}`)
          this.#acknowledged.take(request.tenantId, receipt)
          return receipt
        }
        yield* time.sleep(chance.between(50, 1_000))
      }
    })
  }

  #attempt({ items, key, tenantId, until }: Request) {
    const { chance } = this.#faults
    const prepared = finish(
      prepareItems(
        items.map((value) => ({ value }) as never),
        {
          mode: "batch",
          tenantId,
          secret: SIMULATION_SECRET,
          limits: defaultPrepareLimits,
          idempotency: key
        }
      )
    )
    const body = Buffer.from(JSON.stringify(items))
    const fingerprint =
      key === undefined ? undefined : fingerprintOf(tenantId, key, body, { forgetConflict: false })
    const idempotency =
      key === undefined || fingerprint === undefined ? undefined : { key, fingerprint }
    const process = chance.pick(this.#processes)
    return process
      .use(Ingest.use(({ ingest }) => ingest({ tenantId, items: prepared, idempotency, until })))
      .pipe(
        Effect.flatMap((outcome) => {
          check(outcome.kind !== "mismatch", "a repeated request is said to be another one")
          if (outcome.kind === "visible" || outcome.kind === "failed") {
            return Effect.succeed(outcome.receipt)
          }
          return outcome.kind === "written"
            ? this.#final(tenantId, outcome.receiptId)
            : Effect.succeed(undefined)
        })
      )
  }

  /** Asks for the receipt of what is durable, at any process, until it is final. */
  #final(tenantId: string, receiptId: string): Effect.Effect<Receipt> {
    const { chance, time } = this.#faults
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* time.sleep(chance.between(50, 500))
        const state = yield* chance
          .pick(this.#processes)
          .use(Receipts.use((receipts) => receipts.state(tenantId, receiptId)))
          .pipe(Effect.catch(() => Effect.succeed({ status: "pending" as const })))
        if (state.status !== "pending") return state.receipt
      }
    })
  }
}

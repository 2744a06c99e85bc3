/** Clients that read while everything goes wrong: lists, and live streams that are resumed. */
import { Effect, Stream } from "effect"
import { LiveFeed } from "../../src/actors/feeds/LiveFeed.ts"
import { catchingUp } from "../../src/actors/follower/CaughtUp.ts"
import { ProjectionProgress } from "../../src/actors/log/ProjectionProgress.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import type { Faults } from "./Faults.ts"
import { check, checkChain, NO_HASH, type StoredEvent } from "./Oracle.ts"
import type { SimulatedProcess } from "./SimulatedProcess.ts"
import type { Acknowledged } from "./Writers.ts"

const parse = (body: string): StoredEvent => JSON.parse(body)

const START = { hash: NO_HASH, sequence_number: 0 }

/** What a list of a tenant's events shows, at any process, once the view has caught up. */
export const readLists = (
  faults: Faults,
  processes: ReadonlyArray<SimulatedProcess>,
  acknowledged: Acknowledged,
  tenants: ReadonlyArray<string>
): Effect.Effect<never> => {
  const { chance, time } = faults
  const list = (tenantId: string) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const progress = yield* ProjectionProgress
      const visible = acknowledged.visible.get(tenantId) ?? 0
      yield* Effect.timeout(yield* catchingUp(tenantId, "events"), "10 seconds")
      const { final, rebuilding } = progress.of(tenantId)
      if (rebuilding) return
      const query = { tenantId, filter: { metadata: [] }, order: "asc" as const }
      const chunks = yield* Stream.runCollect(store.scan(query, final))
      const events = chunks.flat().map(parse)
      checkChain(events, START, "a list")
      check(events.length >= visible, `a list of ${tenantId} lacks what is visible`)
    })
  return Effect.gen(function* () {
    for (;;) {
      yield* time.sleep(chance.between(100, 2_000))
      yield* Effect.ignore(chance.pick(processes).use(list(chance.pick(tenants))))
    }
  })
}

const SSE_EVENT = /^event: audit\.event\nid: \d+\ndata: (.*)$/

/** A client of one tenant's live stream that resumes after what it has. */
export class StreamClient {
  readonly #faults: Faults
  readonly #processes: ReadonlyArray<SimulatedProcess>
  readonly #tenantId: string
  last: Pick<StoredEvent, "hash" | "sequence_number"> = START

  constructor(faults: Faults, processes: ReadonlyArray<SimulatedProcess>, tenantId: string) {
    this.#faults = faults
    this.#processes = processes
    this.#tenantId = tenantId
  }

  get run(): Effect.Effect<never> {
    const { chance, time } = this.#faults
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* Effect.ignore(chance.pick(this.#processes).use(this.#stream))
        yield* time.sleep(chance.between(10, 1_000))
      }
    })
  }

  get #stream() {
    const { chance } = this.#faults
    const decoder = new TextDecoder()
    let text = ""
    const take = (bytes: Uint8Array) => {
      text += decoder.decode(bytes, { stream: true })
      const parts = text.split("\n\n")
      text = parts.pop() ?? ""
      for (const part of parts) this.#take(part)
    }
    return Effect.gen({ self: this }, function* () {
      const feed = yield* LiveFeed
      const stream = yield* feed.subscribe({
        tenantId: this.#tenantId,
        keyId: "key",
        after: this.last.sequence_number,
        filter: { metadata: [] }
      })
      const taken = Stream.runForEach(stream, (bytes) => Effect.sync(() => take(bytes)))
      yield* Effect.timeoutOption(taken, chance.between(500, 20_000))
    }).pipe(Effect.scoped)
  }

  #take(part: string): void {
    const lines = part.replace(/^(?:retry: \d+\n|: keep-alive\n)+/, "")
    const [, body] = SSE_EVENT.exec(lines) ?? []
    if (body === undefined) return
    const event = parse(body)
    checkChain([event], this.last, "a stream")
    this.last = event
  }
}

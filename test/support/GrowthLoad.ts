/**
 * Tenants that write all the time, each with its own key, and what was acknowledged of it: the load
 * under which partitions are added, and the count that an independent reader has to come to.
 */
import { assert } from "vitest"
import { event } from "./BlackBox.ts"
import { Client } from "./Client.ts"
import { eventuallyAsync } from "./Eventually.ts"

/** Events of one request. */
const BATCH = 5
/** Requests in flight for each tenant. */
const WRITERS = 2
/** Milliseconds: sequencers of other processes take partitions over meanwhile. */
const PATIENCE_MS = 120_000

export interface Written {
  /** Ids of events that were acknowledged. */
  readonly acknowledged: Set<string>
  /** Requests that had to be sent again. */
  repeated: number
}

export class GrowthLoad {
  readonly #urls: () => ReadonlyArray<string>
  readonly #written = new Map<string, Written>()
  readonly #writers: Array<Promise<void>> = []
  #isOver = false

  /** `urls`: API processes that may be asked; one that has ended is left out by it. */
  constructor(urls: () => ReadonlyArray<string>) {
    this.#urls = urls
  }

  get tenants(): ReadonlyMap<string, Written> {
    return this.#written
  }

  /** Write for a tenant until the load ends. */
  add(tenant: string, key: string): void {
    const written: Written = { acknowledged: new Set(), repeated: 0 }
    this.#written.set(tenant, written)
    for (let writer = 0; writer < WRITERS; writer++) {
      this.#writers.push(this.#write(`${tenant}-${writer}`, key, written))
    }
  }

  /** Succeeds once every tenant has written so many events more. */
  async more(events: number): Promise<void> {
    const wanted = [...this.#written].map(
      ([tenant, written]) => [tenant, written, written.acknowledged.size + events] as const
    )
    await eventuallyAsync(
      `${events} events more of every tenant are acknowledged`,
      () =>
        wanted.map(([tenant, { acknowledged }, size]) => ({
          tenant,
          acknowledged: acknowledged.size,
          wanted: size
        })),
      (tenants) => tenants.every(({ acknowledged, wanted }) => acknowledged >= wanted),
      PATIENCE_MS
    )
  }

  /** Ends when everything that was sent is acknowledged. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#writers)
  }

  async #write(name: string, key: string, written: Written): Promise<void> {
    for (let batch = 0; !this.#isOver; batch++) {
      const ids = Array.from({ length: BATCH }, (_, at) => `${name}-${batch * BATCH + at}`)
      const body = { events: ids.map((id, at) => ({ ...event(batch * BATCH + at), id })) }
      // Each other one waits until it is visible; the rest is read from the topic in the end.
      const path = `/v1/events/batch${batch % 2 === 0 ? "?sync=true" : ""}`
      await this.#acknowledged(path, key, body, written)
      for (const id of ids) written.acknowledged.add(id)
    }
  }

  /** The same events with the same ids, until a process takes them. */
  async #acknowledged(path: string, key: string, body: unknown, written: Written): Promise<void> {
    let attempt = 0
    await eventuallyAsync(
      `${path} is answered`,
      async () => {
        const urls = this.#urls()
        const client = new Client(urls[attempt % urls.length]!, key, false)
        if (attempt > 0) written.repeated += 1
        attempt += 1
        const answer = await client.call(path, { body }).catch(() => undefined)
        const { status = 503, text } = answer ?? {}
        // A key that was just made: another process may hear of it a moment later.
        const mayBeAskedAgain = status >= 500 || status === 408 || status === 401
        assert.isTrue(status < 300 || mayBeAskedAgain, `${path}: ${status} ${text}`)
        return { status, text }
      },
      ({ status }) => status < 300,
      PATIENCE_MS
    )
  }
}

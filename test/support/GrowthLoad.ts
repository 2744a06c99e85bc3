/**
 * Tenants that write all the time, each with its own key, and what was acknowledged of it: the load
 * under which partitions are added, and the count that an independent reader has to come to.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { event } from "./BlackBox.ts"
import { Client } from "./Client.ts"

/** Events of one request. */
const BATCH = 5
/** Requests in flight for each tenant. */
const WRITERS = 2

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
    const wanted = [...this.#written.values()].map(
      (written) => [written, written.acknowledged.size + events] as const
    )
    for (let left = 1_200; left > 0; left--) {
      if (wanted.every(([{ acknowledged }, size]) => acknowledged.size >= size)) return
      await sleep(100)
    }
    assert.fail("the load does not get on")
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
    for (let attempt = 0; attempt < 600; attempt++) {
      const urls = this.#urls()
      const client = new Client(urls[attempt % urls.length]!, key, false)
      const answer = await client.call(path, { body }).catch(() => undefined)
      if (answer !== undefined && answer.status < 300) return
      // A key that was just made: another process may hear of it a moment later.
      const isEarly = answer?.status === 401 && attempt < 50
      if (answer !== undefined && answer.status < 500 && answer.status !== 408 && !isEarly) {
        assert.fail(`${path}: ${answer.status} ${answer.text}`)
      }
      written.repeated += 1
      await sleep(200)
    }
    assert.fail(`${path} was never answered`)
  }
}

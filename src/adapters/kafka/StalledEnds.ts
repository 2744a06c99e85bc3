/**
 * Says where readers of committed records stand still although records follow: a program has a
 * transaction open there. A client that may write to a topic can do that to all of its readers, for
 * as long as the brokers allow (`transaction.max.timeout.ms`). Each reader tells what its fetches
 * say.
 */
import { Effect } from "effect"
import type { Fetched } from "../../ports/EventLog.ts"
import { keyOf } from "./protocol/ProducerRequests.ts"

/** Milliseconds: many times those of a transaction of alk under load. */
const STANDING_MS = 10_000

interface Standing {
  readonly stableEnd: number
  /** Milliseconds on the clock of this process. */
  readonly since: number
  isSaid: boolean
}

/** What is known of the partitions that one process reads. */
export class StalledEnds {
  readonly #say: (line: string) => void
  readonly #standing = new Map<string, Standing>()

  constructor(say: (line: string) => void) {
    this.#say = say
  }

  look(
    { partition, stableEnd, topic, writtenEnd }: Omit<Fetched, "records" | "nextOffset">,
    now = performance.now()
  ): void {
    const key = keyOf({ topic, partition })
    const known = this.#standing.get(key)
    if (stableEnd >= writtenEnd) {
      if (known !== undefined) this.#standing.delete(key)
      return
    }
    if (known?.stableEnd !== stableEnd) {
      this.#standing.set(key, { stableEnd, since: now, isSaid: false })
      return
    }
    if (known.isSaid || now - known.since < STANDING_MS) return
    known.isSaid = true
    const seconds = Math.round((now - known.since) / 1_000)
    this.#say(
      `the last stable offset of alk.${key} stands at ${stableEnd} although records follow up to `
        + `${writtenEnd}, for ${seconds} s: a program has a transaction open there, and nothing `
        + "behind it can be read until it ends (transaction.max.timeout.ms of the brokers bounds that)"
    )
  }
}

export const makeStalledEnds: Effect.Effect<StalledEnds> = Effect.map(
  Effect.context(),
  (context) =>
    new StalledEnds((line) => {
      Effect.runForkWith(context)(Effect.logError(line))
    })
)

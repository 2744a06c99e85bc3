/**
 * The store as the sequencer of one partition may ask it: once it shows everything that may have been
 * forgotten, and again where its view was rebuilt meanwhile. What is asked is not known here.
 */
import { Effect, Semaphore } from "effect"
import { noProgress, type Progress, progressAfter } from "../../../domain/records/Progress.ts"
import type { EventLog, LogReader } from "../../../ports/EventLog.ts"
import type { StoreResult } from "../../../ports/EventStore.ts"
import type { TraceStore } from "../../../ports/TraceStore.ts"
import { scanEach } from "../../log/Malformed.ts"

/** Milliseconds between two looks at a view that has not caught up. */
const CATCH_UP_INTERVAL_MS = 20

/** What the sequencer needs of the store. */
export type TraceLookup = Pick<TraceStore["Service"], "load" | "position" | "storedEvents">

/** Several may ask at once. */
export class VisibleStore {
  readonly #log: EventLog["Service"]
  readonly #reader: LogReader
  readonly #partition: number
  readonly #oneAtATime = Semaphore.makeUnsafe(1)
  #progress: Progress
  #next: number | undefined
  /** True once the store itself was seen to reach as far as `alk.progress` says. */
  #confirmed = false
  /** Grows with each record that says that the view is being rebuilt. */
  #rebuilds = 0

  /** `reader` is used here only. */
  constructor(log: EventLog["Service"], reader: LogReader, partition: number) {
    this.#log = log
    this.#reader = reader
    this.#partition = partition
    this.#progress = noProgress(partition)
  }

  /** As far as `alk.progress` was followed. */
  get progress(): Progress {
    return this.#progress
  }

  /** The store did not answer: it has to be seen anew how far it reaches. */
  doubt(): void {
    this.#confirmed = false
  }

  /**
   * What the store answers, asked while it held everything up to an offset of `alk.traces`: a view
   * that is dropped is said to be rebuilding before anything of it goes.
   */
  asked<A>(store: TraceLookup, forgotten: number, ask: (store: TraceLookup) => StoreResult<A>) {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* this.#caughtUp(store, forgotten)
        const before = this.#rebuilds
        const answer = yield* ask(store)
        yield* this.follow
        if (this.#rebuilds === before) return answer
      }
    })
  }

  /** Read `alk.progress` to its end. */
  readonly follow = Effect.suspend(() => {
    const partition = this.#partition
    const log = this.#log
    return Effect.flatMap(log.bounds("progress", partition), ({ end, start }) => {
      const offset = Math.max(start, this.#next ?? start)
      if (offset >= end) return Effect.void
      const position = { topic: "progress" as const, partition, offset }
      return scanEach(this.#reader, position, end, (record) => {
        this.#progress = progressAfter(this.#progress, record)
        if (this.#progress.rebuilding) this.#rebuilds += 1
      }).pipe(
        Effect.andThen(
          Effect.sync(() => {
            this.#next = end
          })
        )
      )
    })
  }).pipe((following) => this.#oneAtATime.withPermits(1)(following))

  /** Until the store shows everything up to an offset of `alk.traces`. */
  readonly #caughtUp = Effect.fnUntraced(
    { self: this },
    function* (store: TraceLookup, forgotten: number) {
      for (;;) {
        yield* this.follow
        const { rebuilding, traces_next } = this.#progress
        if (!rebuilding && traces_next >= forgotten) {
          if (this.#confirmed) return
          // `alk.progress` does not show that the store was emptied from outside.
          const last = yield* store.position(this.#partition)
          this.#confirmed = (last?.offset ?? -1) + 1 >= forgotten
          if (this.#confirmed) return
        }
        yield* Effect.sleep(CATCH_UP_INTERVAL_MS)
      }
    }
  )
}

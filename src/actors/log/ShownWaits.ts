/**
 * The requests of this process that wait until the store shows something: for them the projection
 * stores at once what it has.
 */
import { Context, Effect, Latch } from "effect"

export class Waits {
  #count = 0
  readonly #some = Latch.makeUnsafe(false)

  get count(): number {
    return this.#count
  }

  /** Succeeds as soon as a request waits. */
  get begun(): Effect.Effect<void> {
    return this.#some.await
  }

  /** Counted for as long as it takes. */
  counted<A, E, R>(waiting: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        this.#count += 1
        this.#some.openUnsafe()
      }),
      () => waiting,
      () =>
        Effect.sync(() => {
          this.#count -= 1
          if (this.#count === 0) this.#some.closeUnsafe()
        })
    )
  }
}

/** One for a process: what it serves and what it stores have it in common. */
export const ShownWaits: Context.Reference<Waits> = Context.Reference<Waits>("alk/ShownWaits", {
  defaultValue: () => new Waits()
})

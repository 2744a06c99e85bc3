/**
 * The end of a server's life: begun when it stops accepting, before replies in flight are waited
 * for. Long-lived connections end when it begins.
 */
import { Context, Effect, Latch, Layer } from "effect"

/** Whether this process's server is on its way down. */
export class Draining extends Context.Service<
  Draining,
  {
    readonly begin: Effect.Effect<void>
    isBegun(): boolean
    /** Succeeds when draining begins. */
    readonly begun: Effect.Effect<void>
  }
>()("alk/http/Draining") {
  static readonly layer = Layer.sync(Draining, () => {
    const latch = Latch.makeUnsafe(false)
    let begun = false
    return Draining.of({
      begin: Effect.sync(() => {
        begun = true
        latch.openUnsafe()
      }),
      isBegun: () => begun,
      begun: latch.await
    })
  })
}

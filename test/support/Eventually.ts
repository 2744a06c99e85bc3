/**
 * The one way in which tests wait for something that others do: look, pause, look again. The pauses
 * grow, so that who waits doesn't take the core from what is waited for. What does not come in time
 * fails with what was last seen. It waits in real time, on the test clock too.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { inspect } from "node:util"
import { Effect } from "effect"

/** Milliseconds between the first two looks; each pause is twice the one before it. */
const PAUSE_MS_MIN = 20
const PAUSE_MS_MAX = 250
/** Milliseconds after which it fails: many times what a busy machine needs. */
const PATIENCE_MS = 60_000
/** Characters of what was last seen that the failure repeats. */
const SEEN_LENGTH_MAX = 4_000

const nothing = Symbol("nothing")

/** In real time, whatever the clock of the test says. */
const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.promise((signal) => sleep(milliseconds, undefined, { signal }))

const lateError = (what: string, patienceMs: number, seen: unknown): Error => {
  const text =
    seen === nothing ? "nothing: the first look did not end" : inspect(seen, { depth: 6 })
  const shown = text.length > SEEN_LENGTH_MAX ? `${text.slice(0, SEEN_LENGTH_MAX)} …` : text
  return new Error(`not within ${patienceMs / 1_000} s: ${what}; last seen: ${shown}`)
}

/**
 * What `look` finds as soon as `holds` says yes, by default as soon as it is truthy. An error of
 * `look` fails at once.
 */
export const eventually = <A, E, R>(
  what: string,
  look: Effect.Effect<A, E, R>,
  holds: (found: A) => boolean = Boolean,
  patienceMs = PATIENCE_MS
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const deadline = performance.now() + patienceMs
    let seen: A | typeof nothing = nothing
    for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      const late = Effect.as(pause(deadline - performance.now()), nothing)
      const found = yield* Effect.raceFirst(look, late)
      if (found === nothing) return yield* Effect.die(lateError(what, patienceMs, seen))
      seen = found as A
      if (holds(seen)) return seen
      if (performance.now() + pauseMs >= deadline) {
        return yield* Effect.die(lateError(what, patienceMs, seen))
      }
      yield* pause(pauseMs)
    }
  })

/** The same for what is no effect; what `look` throws is thrown at once. */
export const eventuallyAsync = <A>(
  what: string,
  look: () => A | Promise<A>,
  holds?: (found: A) => boolean,
  patienceMs?: number
): Promise<A> =>
  Effect.runPromise(
    eventually(
      what,
      Effect.promise(async () => look()),
      holds,
      patienceMs
    )
  )

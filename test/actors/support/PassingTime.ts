/**
 * A test clock that moves on by itself, a millisecond whenever what it woke waits again. What sleeps
 * takes the turns that its times give it, on a busy machine too, and nothing waits in real time.
 */
import { Effect } from "effect"
import { TestClock } from "effect/testing"

/** Time of the test clock after which whoever still waits would wait for ever. */
const PATIENCE = "1 minute"

/** Runs something while time passes; for `it.effect`. */
export const whileTimePasses = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(Effect.timeout(work, PATIENCE), Effect.forever(TestClock.adjust(1)))

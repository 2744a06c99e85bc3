/**
 * Does long work in slices, so that none of it keeps the event loop from the rest: after each slice the
 * loop has a turn, and all who wait for more get one slice a turn together.
 */
import { Effect } from "effect"
import type { Sliced } from "./Slices.ts"

/** Milliseconds of a slice, which ends with the step that it is in. */
const SLICE_MS = 10

/** Whose next slice comes, in order. */
const waiting: Array<() => void> = []

let isScheduled = false

/** One slice a turn: what is scheduled twice would run twice in it. */
const schedule = (): void => {
  if (isScheduled || waiting.length === 0) return
  isScheduled = true
  setImmediate(serve)
}

const serve = (): void => {
  isScheduled = false
  // Most often the slice is done before this returns, and waits for the next one.
  waiting.shift()?.()
  schedule()
}

/** Waits until the others have had a turn. */
export const nextTurn = Effect.callback<void>((resume) => {
  const turn = () => resume(Effect.void)
  waiting.push(turn)
  schedule()
  return Effect.sync(() => {
    const place = waiting.indexOf(turn)
    if (place !== -1) waiting.splice(place, 1)
  })
})

/** All of the work; what it throws is a defect. */
export const inSlices = <A>(make: () => Sliced<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const work = make()
    const slice: Effect.Effect<A> = Effect.suspend(() => {
      const until = performance.now() + SLICE_MS
      for (;;) {
        const step = work.next()
        const isOver = performance.now() >= until
        if (step.done === true) {
          // What comes next may be long as well.
          return isOver ? Effect.as(nextTurn, step.value) : Effect.succeed(step.value)
        }
        if (isOver) return Effect.andThen(nextTurn, slice)
      }
    })
    return slice
  })

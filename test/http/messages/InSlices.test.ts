/** Work in slices: each has a turn of the loop to itself, whoever else waits for the next one. */
import { Effect } from "effect"
import { assert, it } from "vitest"
import { inSlices } from "../../../src/http/messages/InSlices.ts"

/** Longer than a slice may take. */
const STEP_MS = 12
const STEPS = 8

it.each([1, 2])("gives the loop a turn after each slice, of %i at once", async (many) => {
  let slices = 0
  let before = 0
  let most = 0
  let isOver = false
  const work = function* () {
    for (let step = 0; step < STEPS; step++) {
      slices += 1
      const until = performance.now() + STEP_MS
      while (performance.now() < until);
      yield
    }
  }
  const turn = () => {
    most = Math.max(most, slices - before)
    before = slices
    if (!isOver) setImmediate(turn)
  }
  // The first slice of each is done at once.
  const all = Array.from({ length: many }, () => Effect.runPromise(inSlices(work)))
  before = slices
  setImmediate(turn)
  await Promise.all(all)
  isOver = true
  turn()
  assert.strictEqual(slices, many * STEPS)
  assert.strictEqual(most, 1)
})

it("gives the loop a turn after a last step that was long", async () => {
  const long = function* () {
    yield
    const until = performance.now() + STEP_MS
    while (performance.now() < until);
  }
  let turns = 0
  const seen: Array<number> = []
  const note = Effect.sync(() => seen.push(turns))
  const turn = () => {
    turns += 1
    if (seen.length < 2) setImmediate(turn)
  }
  setImmediate(turn)
  await Effect.runPromise(
    Effect.andThen(Effect.andThen(inSlices(long), note), Effect.andThen(inSlices(long), note))
  )
  assert.deepStrictEqual(seen, [1, 2])
})

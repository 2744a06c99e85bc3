/**
 * Long work in steps, between which others may have their turn. What it does is the same however long
 * the pauses are; who does it at once asks `finish`.
 */

/** Gives way between two steps, none of which takes longer than one item may. */
export type Sliced<A> = Generator<void, A, void>

/** What becomes of each, one in a step. */
export function* eachInStep<A, B>(
  items: ReadonlyArray<A>,
  make: (item: A) => B
): Sliced<ReadonlyArray<B>> {
  const made: Array<B> = []
  for (const item of items) {
    made.push(make(item))
    yield
  }
  return made
}

/** All of it, without a pause. */
export const finish = <A>(work: Sliced<A>): A => {
  let step = work.next()
  while (step.done !== true) step = work.next()
  return step.value
}

/** Looking a place up in a list that is in order, in as many steps as its length has bits. */

/** The number of items at the start of a list of which something holds; of no later one it does. */
export const countWhile = <A>(list: ReadonlyArray<A>, holds: (one: A) => boolean): number => {
  let [from, to] = [0, list.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (holds(list[middle]!)) from = middle + 1
    else to = middle
  }
  return from
}

/** Of items by ascending numbers the first with one above a number. */
export const firstAbove = <A>(
  items: ReadonlyArray<A>,
  numberOf: (item: A) => number,
  number: number
): A | undefined => items[countWhile(items, (item) => numberOf(item) <= number)]

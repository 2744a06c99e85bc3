/** Looking a place up in a list that is in order. */

/** Of items by ascending numbers the first with one above a number, in as many steps as it has bits. */
export const firstAbove = <A>(
  items: ReadonlyArray<A>,
  numberOf: (item: A) => number,
  number: number
): A | undefined => {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (numberOf(items[middle]!) > number) high = middle
    else low = middle + 1
  }
  return items[low]
}

/** Lists by a key. */

/** Adds to the list of a key, which is made with its first value. */
export const addTo = <K, V>(lists: Map<K, Array<V>>, key: K, value: V): void => {
  const known = lists.get(key)
  if (known === undefined) lists.set(key, [value])
  else known.push(value)
}

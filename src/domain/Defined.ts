/** Options and members that may be missing: left out instead of set to `undefined`. */

/** The members whose value is not undefined. */
export type Defined<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> } & {
  readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K]
}

/** The object without the members that are undefined. */
export const defined = <T extends object>(members: T): Defined<T> => {
  const kept: Record<string, unknown> = {}
  for (const name of Object.keys(members)) {
    const value = (members as Record<string, unknown>)[name]
    if (value !== undefined) kept[name] = value
  }
  return kept as Defined<T>
}

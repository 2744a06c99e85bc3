/** The ids of headings, by GitHub's rule, so that a link works there and here. */

/** The id of a heading's text, without its markup. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

/** Gives each heading of one page its id: a text that comes again gets a number. */
export const makeAnchors = (): ((heading: string) => string) => {
  const taken = new Set<string>()
  return (heading) => {
    const anchor = anchorOf(heading)
    let unique = anchor
    for (let count = 1; taken.has(unique); count += 1) unique = `${anchor}-${count}`
    taken.add(unique)
    return unique
  }
}

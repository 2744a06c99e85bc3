/**
 * The `Link` header of a list (RFC 8288): where the first, previous, next and last page are, with
 * every other parameter of the request kept. Knows numbers, not events.
 */

interface PageOf {
  /** Absolute, or a path. */
  readonly base: string
  /** Target of the request, with its query. */
  readonly target: string
}

/** The request's target with some parameters replaced or, if undefined, left out. */
const linkTo = (
  { base, target }: PageOf,
  replaced: Readonly<Record<string, number | string | undefined>>
): string => {
  const start = target.indexOf("?")
  const path = start === -1 ? target : target.slice(0, start)
  const kept = (start === -1 ? "" : target.slice(start + 1))
    .split("&")
    .filter((pair) => pair !== "" && !Object.hasOwn(replaced, pair.split("=", 1)[0]!))
  for (const [name, value] of Object.entries(replaced)) {
    if (value !== undefined) kept.push(`${name}=${encodeURIComponent(value)}`)
  }
  // What would end the link's <…> early can only stand here percent-encoded.
  const query = kept.join("&").replaceAll("<", "%3C").replaceAll(">", "%3E")
  return query === "" ? `${base}${path}` : `${base}${path}?${query}`
}

const header = (links: ReadonlyArray<readonly [rel: string, target: string]>): string =>
  links.map(([rel, target]) => `<${target}>; rel="${rel}"`).join(", ")

/** Links of a page by number; `pageMax` is the last page that may be asked for. */
export const pageLinks = (
  of: PageOf,
  position: { readonly page: number; readonly pages: number; readonly pageMax: number }
): string => {
  const { page, pageMax, pages } = position
  const at = (number: number) => linkTo(of, { page: number })
  const last = Math.max(1, pages)
  const links: Array<readonly [string, string]> = [["first", at(1)]]
  if (page > 1) links.push(["prev", at(Math.min(page - 1, last))])
  if (page < last && page < pageMax) links.push(["next", at(page + 1)])
  if (last <= pageMax) links.push(["last", at(last)])
  return header(links)
}

/** Links of a page by sequence; each is a bound that its page begins behind. */
export const cursorLinks = (
  of: PageOf,
  cursor: {
    readonly name: "after_sequence" | "before_sequence"
    readonly previous: number | undefined
    /** Sequence of the last event shown, if there may be more behind it. */
    readonly next: number | undefined
    readonly last: number | undefined
  }
): string => {
  const { last, name, next, previous } = cursor
  const at = (bound: number | undefined) => linkTo(of, { [name]: bound, page: undefined })
  const links: Array<readonly [string, string]> = [["first", at(undefined)]]
  if (previous !== undefined) links.push(["prev", at(previous)])
  if (next !== undefined) links.push(["next", at(next)])
  if (last !== undefined) links.push(["last", at(last)])
  return header(links)
}

/** Links of a list with opaque cursors: `next` is the cursor of what follows, if anything does. */
export const opaqueLinks = (of: PageOf, next: string | undefined): string => {
  const links: Array<readonly [string, string]> = [["first", linkTo(of, { cursor: undefined })]]
  if (next !== undefined) links.push(["next", linkTo(of, { cursor: next })])
  return header(links)
}

/**
 * Pages of lists: their sizes, the parameters that ask for one, and the `Link` header (RFC 8288)
 * that says where the first, previous, next and last page are, with every other parameter of the
 * request kept, and moments for times from now. Knows numbers, not events.
 */
import type { HttpServerRequest } from "effect/http"
import { invalid } from "./ApiError.ts"
import { type ReadAt, targetWithMoments } from "./Moments.ts"
import { integerParameter } from "./QueryParameters.ts"

/** Entries of a page, unless asked otherwise and at most. */
export const PAGE_SIZE_DEFAULT = 50
export const PAGE_SIZE_MAX = 1_000

/** `page` times `page_size` at most: after it only sequence numbers lead on. */
export const PAGED_EVENTS_MAX = 10_000_000

/** One page of a list by number, from 1. */
export interface Page {
  readonly page: number
  readonly pageSize: number
}

/** Said of pages that are bounded by bytes, after `Entries per page`. */
export const FEWER_BY_BYTES =
  "; fewer if they are more than 8 MiB as they are shown. Then `page` and "
  + "`page_size` of the answer say which page it is instead, and `Link` where the rest is."

/** The parameters of a list by page. */
export const pageParameters = (entries: string, pageSize: number, bounded = ".") => ({
  page: integerParameter({
    minimum: 1,
    default: 1,
    description: "`page` times `page_size` is at most 10,000,000."
  }),
  page_size: integerParameter({
    minimum: 1,
    maximum: PAGE_SIZE_MAX,
    default: pageSize,
    description: `${entries} per page${bounded}`
  })
})

/** The page that values ask for; throws ApiError. `instead` is said of a page that is too far. */
export const readPage = (
  values: { readonly page?: number; readonly page_size?: number },
  pageSizeDefault: number,
  instead = ""
): Page => {
  const { page = 1, page_size: pageSize = pageSizeDefault } = values
  if (page * pageSize > PAGED_EVENTS_MAX) {
    throw invalid("page", `times page_size is over ${PAGED_EVENTS_MAX}${instead}`, "invalid_range")
  }
  return { page, pageSize }
}

/** What the `Link` header of a list by page says. */
export const pageLinkHeader = { 200: { Link: "first, prev, next and last page (RFC 8288)." } }

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
  // What would end the link's <…> early has to be percent-encoded here.
  const query = kept.join("&").replaceAll("<", "%3C").replaceAll(">", "%3E")
  return query === "" ? `${base}${path}` : `${base}${path}?${query}`
}

const header = (links: ReadonlyArray<readonly [rel: string, target: string]>): string =>
  links.map(([rel, target]) => `<${target}>; rel="${rel}"`).join(", ")

/** Where a list is, by its request; `readAt` where that may have times from now. */
export const listOf = (
  { url }: Pick<HttpServerRequest.HttpServerRequest, "url">,
  publicUrl = "",
  readAt?: ReadAt
): PageOf => ({
  base: publicUrl,
  target: readAt === undefined ? url : targetWithMoments(url, readAt)
})

/**
 * The first part of a page of which only so many entries fit: a page by itself, so that the pages of
 * its size after it have the rest.
 */
export const partOfPage = ({ page, pageSize }: Page, fitting: number): Page => {
  let size = Math.min(fitting, pageSize)
  while (pageSize % size !== 0) size -= 1
  return { page: ((page - 1) * pageSize) / size + 1, pageSize: size }
}

/** Links of a page by number, of a list with so many entries; `isPart` of another size than asked. */
export const pageLinks = (
  of: PageOf,
  { page, pageSize }: Page,
  total: number,
  isPart = false
): string => {
  const size = isPart ? { page_size: pageSize } : {}
  const at = (number: number) => linkTo(of, { ...size, page: number })
  const pageMax = Math.floor(PAGED_EVENTS_MAX / pageSize)
  const last = Math.max(1, Math.ceil(total / pageSize))
  const links: Array<readonly [string, string]> = [["first", at(1)]]
  if (page > 1) links.push(["prev", at(Math.min(page - 1, last))])
  if (page < last && page < pageMax) links.push(["next", at(page + 1)])
  if (last <= pageMax) links.push(["last", at(last)])
  return header(links)
}

/** Links of a page by sequence; each is a bound after which its page begins. */
export const cursorLinks = (
  of: PageOf,
  cursor: {
    readonly name: "after_sequence" | "before_sequence"
    readonly previous: number | undefined
    /** Sequence of the last event shown, if there may be more after it. */
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

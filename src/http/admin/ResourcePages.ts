/**
 * Pages of what the registry holds (tenants, keys, share links): all of it is in memory, so a page
 * is a slice. Without parameters a list is as long as a page may be.
 */
import type { HttpServerRequest } from "effect/http"
import { lateQueryOf, queryOf } from "../contract/Requests.ts"
import { json } from "../messages/Answer.ts"
import {
  listOf,
  PAGE_SIZE_MAX,
  type Page,
  pageLinks,
  pageParameters,
  readPage
} from "../messages/Pages.ts"
import type { ValuesOf } from "../messages/QueryParameters.ts"

const parameters = pageParameters("Entries", PAGE_SIZE_MAX)

const read = (values: ValuesOf<typeof parameters>) => readPage(values, PAGE_SIZE_MAX)

/** The page of a list as the query of its endpoint. */
export const resourcePageQuery = queryOf(parameters, { read })

/** The same where something else is refused first. */
export const lateResourcePageQuery = lateQueryOf(parameters, { read })

/** The answer: one page under `member`, and how many there are in all. */
export const resourcePage = <A>(
  request: HttpServerRequest.HttpServerRequest,
  publicUrl: string | undefined,
  { page, pageSize }: Page,
  member: string,
  all: ReadonlyArray<A>,
  show: (entry: A) => unknown,
  /** Further members of the answer. */
  more: Readonly<Record<string, unknown>> = {}
) =>
  json(
    {
      [member]: all.slice((page - 1) * pageSize, page * pageSize).map(show),
      total: all.length,
      page,
      page_size: pageSize,
      ...more
    },
    { headers: { link: pageLinks(listOf(request, publicUrl), { page, pageSize }, all.length) } }
  )

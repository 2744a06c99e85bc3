/**
 * Pages of what the registry holds (tenants, keys, share links): all of it is in memory, so a page
 * is a slice. Without parameters a list is as long as a page may be.
 */
import type { HttpServerRequest } from "effect/http"
import { lateQueryOf, queryOf } from "../contract/Requests.ts"
import { json } from "../messages/Answer.ts"
import { invalid } from "../messages/ApiError.ts"
import { pageLinks } from "../messages/PageLinks.ts"
import { PAGE_SIZE_MAX, PAGED_EVENTS_MAX } from "../messages/Paging.ts"
import { integerParameter, type ValuesOf } from "../messages/QueryParameters.ts"

const resourcePageParameters = {
  page: integerParameter({
    minimum: 1,
    default: 1,
    description: "`page` times `page_size` is at most 10,000,000."
  }),
  page_size: integerParameter({
    minimum: 1,
    maximum: PAGE_SIZE_MAX,
    default: PAGE_SIZE_MAX,
    description: "Entries per page."
  })
}

/** What the `Link` header of such a list says. */
export const resourcePageHeaders = {
  200: { Link: "first, prev, next and last page (RFC 8288)." }
}

export interface ResourcePage {
  readonly page: number
  readonly pageSize: number
}

/** The page that values ask for; throws ApiError. */
const pageOf = (values: ValuesOf<typeof resourcePageParameters>): ResourcePage => {
  const { page = 1, page_size: pageSize = PAGE_SIZE_MAX } = values
  if (page * pageSize > PAGED_EVENTS_MAX) {
    throw invalid("page", `times page_size is over ${PAGED_EVENTS_MAX}`, "invalid_range")
  }
  return { page, pageSize }
}

/** The page of a list as the query of its endpoint. */
export const resourcePageQuery = queryOf(resourcePageParameters, { read: pageOf })

/** The same where something else is refused first. */
export const lateResourcePageQuery = lateQueryOf(resourcePageParameters, { read: pageOf })

/** The answer: one page under `member`, and how many there are in all. */
export const resourcePage = <A>(
  request: HttpServerRequest.HttpServerRequest,
  publicUrl: string | undefined,
  { page, pageSize }: ResourcePage,
  member: string,
  all: ReadonlyArray<A>,
  show: (entry: A) => unknown
) =>
  json(
    {
      [member]: all.slice((page - 1) * pageSize, page * pageSize).map(show),
      total: all.length,
      page,
      page_size: pageSize
    },
    {
      headers: {
        link: pageLinks(
          { base: publicUrl ?? "", target: request.url },
          {
            page,
            pages: Math.ceil(all.length / pageSize),
            pageMax: Math.floor(PAGED_EVENTS_MAX / pageSize)
          }
        )
      }
    }
  )

/**
 * Pages of what the registry holds (tenants, keys, share links): all of it is in memory, so a page
 * is a slice. Without parameters a list is as long as a page may be.
 */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { inSlices } from "../../domain/InSlices.ts"
import { lateQueryOf, queryOf } from "../contract/Requests.ts"
import { jsonText } from "../messages/Answer.ts"
import {
  FEWER_BY_BYTES,
  listOf,
  PAGE_SIZE_MAX,
  type Page,
  pageLinks,
  pageParameters,
  partOfPage,
  readPage
} from "../messages/Pages.ts"
import { fittingOf } from "../messages/PageTexts.ts"
import type { ValuesOf } from "../messages/QueryParameters.ts"

const parameters = pageParameters("Entries", PAGE_SIZE_MAX, FEWER_BY_BYTES)

const read = (values: ValuesOf<typeof parameters>) => readPage(values, PAGE_SIZE_MAX)

/** The page of a list as the query of its endpoint. */
export const resourcePageQuery = queryOf(parameters, { read })

/** The same where something else is refused first. */
export const lateResourcePageQuery = lateQueryOf(parameters, { read })

/**
 * The answer: one page under `member`, and how many there are in all. Where not all of the page fits,
 * its first part is a page of a smaller size.
 */
export const resourcePage = Effect.fnUntraced(function* <A>(
  request: HttpServerRequest.HttpServerRequest,
  publicUrl: string | undefined,
  { page, pageSize }: Page,
  member: string,
  all: ReadonlyArray<A>,
  show: (entry: A) => unknown,
  /** Further members of the answer. */
  more: Readonly<Record<string, unknown>> = {}
) {
  const found = all.slice((page - 1) * pageSize, page * pageSize)
  const texts = yield* inSlices(() => fittingOf(found, (entry) => JSON.stringify(show(entry))))
  const isPart = texts.length < found.length
  const shown = isPart ? partOfPage({ page, pageSize }, texts.length) : { page, pageSize }
  const rest = { total: all.length, page: shown.page, page_size: shown.pageSize, ...more }
  const entries = texts.slice(0, shown.pageSize).join(",")
  return jsonText(`{"${member}":[${entries}],${JSON.stringify(rest).slice(1)}`, {
    headers: { link: pageLinks(listOf(request, publicUrl), shown, all.length, isPart) }
  })
})

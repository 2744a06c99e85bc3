/**
 * Answers the list of events: a page, every match as lines or as a table. Which events those are is the
 * store's answer, and what is shown of them is made of stored bytes.
 */
import { Effect, type Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import { defined } from "../../domain/Defined.ts"
import { tableFields } from "../../domain/events/EventFields.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { inReadTurn, inReadTurns } from "../../domain/TenantTurns.ts"
import {
  type EventPage,
  type EventPageQuery,
  EventStore,
  type KeysetPages,
  type StoreUnavailable
} from "../../ports/EventStore.ts"
import { SQL_AT_ONCE_MAX, SqlStore } from "../../ports/SqlStore.ts"
import { API_VERSION } from "../Api.ts"
import { jsonText, negotiated } from "../messages/Answer.ts"
import { invalid } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { CSV_TYPE, JSON_TYPE, NDJSON_TYPE, PARQUET_TYPE } from "../messages/MediaTypes.ts"
import { cursorLinks, listOf, type Page, pageLinks, partOfPage } from "../messages/Pages.ts"
import { fittingOf } from "../messages/PageTexts.ts"
import { readableView } from "../messages/StoreView.ts"
import { tenantSlots } from "../messages/TenantSlots.ts"
import { transfer } from "../messages/Transfer.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { CSV_CONTENT_TYPE, eventLines, eventTable, ocsfText } from "./EventText.ts"
import { type ListFormat, type ListRequest, listTable, listTypes } from "./QueryContract.ts"
import { selectedJson } from "./SelectedFields.ts"

/** The filter with the exclusive bounds of paging by sequence, for what has no pages. */
const boundedFilter = ({ afterSequence, beforeSequence, filter }: ListRequest): EventFilter => {
  const { fromSequence, toSequence } = filter
  return {
    ...filter,
    ...(afterSequence === undefined
      ? {}
      : { fromSequence: Math.max(afterSequence + 1, fromSequence ?? 0) }),
    ...(beforeSequence === undefined
      ? {}
      : { toSequence: Math.min(Math.max(0, beforeSequence - 1), toSequence ?? Infinity) })
  }
}

const sequenceOf = (body: string | undefined): number | undefined =>
  body === undefined ? undefined : linkOf(Buffer.from(body))?.sequenceNumber

/** What is shown of a page, which is less than what was found if that does not fit. */
interface ShownPage extends Page {
  readonly texts: ReadonlyArray<string>
  readonly isPart: boolean
}

const shownPage = Effect.fnUntraced(function* (
  { fields, page, pageSize }: ListRequest,
  { bodies }: EventPage,
  isKeyset: boolean
) {
  const shownAs = fields === undefined ? (body: string) => body : selectedJson(fields)
  const texts = yield* inSlices(() => fittingOf(bodies, shownAs))
  const isPart = texts.length < bodies.length
  const whole: ShownPage = { page, pageSize, texts, isPart }
  if (!isPart) return whole
  if (isKeyset) return { ...whole, pageSize: texts.length }
  const part = partOfPage(whole, texts.length)
  return { ...whole, ...part, texts: texts.slice(0, part.pageSize) }
})

const linksOf = (
  request: HttpServerRequest.HttpServerRequest,
  publicUrl: string | undefined,
  asked: ListRequest,
  { bodies, total }: EventPage,
  shown: ShownPage,
  keyset: KeysetPages | undefined
): string => {
  const { now, order } = asked
  const { isPart, pageSize, texts } = shown
  const of = listOf(request, publicUrl, { table: listTable, now })
  if (keyset !== undefined) {
    return cursorLinks(of, {
      ...keyset,
      name: order === "asc" ? "after_sequence" : "before_sequence",
      next: texts.length < pageSize ? undefined : sequenceOf(bodies[texts.length - 1])
    })
  }
  return pageLinks(of, shown, total, isPart)
}

const pageResponse = (
  { fields }: ListRequest,
  { page, pageSize, texts }: ShownPage,
  total: number,
  link: string
) => {
  const name = fields === undefined ? `"events":` : `"events":[],"rows":`
  return jsonText(
    `{${name}[${texts.join(",")}],"total":${total},"page":${page},"page_size":${pageSize}}`,
    { headers: { link } }
  )
}

const typeOf: Readonly<Record<ListFormat, (typeof listTypes)[number]>> = {
  json: JSON_TYPE,
  ndjson: NDJSON_TYPE,
  csv: CSV_TYPE,
  parquet: PARQUET_TYPE,
  ocsf: NDJSON_TYPE
}

/** Every match as a stream of text. */
const streamResponse = (
  request: HttpServerRequest.HttpServerRequest,
  tenantId: string,
  type: typeof NDJSON_TYPE | typeof CSV_TYPE,
  bytes: Stream.Stream<Uint8Array, StoreUnavailable>
) => {
  const contentType = type === CSV_TYPE ? CSV_CONTENT_TYPE : type
  const of = { operation: "listEvents", tenantId }
  return HttpServerResponse.stream(transfer(request, bytes, of), { contentType })
}

/** A request for a list, as its route hands it on. */
interface ListingRequest {
  readonly query: ListRequest
  readonly request: HttpServerRequest.HttpServerRequest
}

/** The handler of the list. */
export const makeListEvents = Effect.gen(function* () {
  const { publicUrl, serviceName } = yield* ApiSettings
  const store = yield* EventStore
  const sql = yield* SqlStore
  const projection = yield* ProjectionProgress
  const takeSlot = tenantSlots("tables of events", SQL_AT_ONCE_MAX)

  return Effect.fnUntraced(function* ({ query: asked, request }: ListingRequest) {
    const { tenantId } = yield* CurrentPrincipal
    const { afterSequence, beforeSequence, bom, fields, filter, format } = asked
    const { order, page, pageSize, sort } = asked
    const type =
      format === undefined ? yield* negotiated(request, listTypes, "events come") : typeOf[format]
    if (bom && type !== CSV_TYPE) return yield* invalid("bom", "is for CSV only: add format=csv")
    const { deduplicate } = yield* readableView(projection, tenantId)
    const list = { tenantId, order, ...defined({ sort }) }
    if (type === PARQUET_TYPE) {
      yield* takeSlot(tenantId)
      const table = { ...list, filter: boundedFilter(asked), fields: fields ?? tableFields }
      const bytes = yield* sql
        .events({ ...table, format: "parquet" }, deduplicate)
        .pipe(Effect.catchTag("SqlRefused", ({ message }) => invalid("format", message)))
      return HttpServerResponse.uint8Array(bytes, { contentType: PARQUET_TYPE })
    }
    if (type !== JSON_TYPE) {
      const scanned = store.scan({ ...list, filter: boundedFilter(asked) }, deduplicate)
      const found = inReadTurns(tenantId, scanned)
      const bytes =
        format === "ocsf"
          ? ocsfText({ serviceName, version: API_VERSION }, found)
          : type === CSV_TYPE
            ? eventTable({ bom, fields }, found)
            : eventLines(fields, found)
      return streamResponse(request, tenantId, type, bytes)
    }
    const query: EventPageQuery = {
      ...list,
      filter,
      offset: (page - 1) * pageSize,
      limit: pageSize,
      ...defined({ afterSequence, beforeSequence })
    }
    const isKeyset = afterSequence !== undefined || beforeSequence !== undefined
    const reads = Effect.gen(function* () {
      const [found, keyset] = yield* Effect.all(
        [
          store.page(query, deduplicate),
          isKeyset ? store.keysetPages(query, deduplicate) : Effect.succeed(undefined)
        ],
        { concurrency: 2 }
      )
      return { found, keyset, shown: yield* shownPage(asked, found, isKeyset) }
    })
    const { found, keyset, shown } = yield* inReadTurn(tenantId, reads)
    const link = linksOf(request, publicUrl, asked, found, shown, keyset)
    return pageResponse(asked, shown, found.total, link)
  })
})

/**
 * Serves the list, one event and the statistics. Pages, lines and tables are made of stored bytes;
 * which events those are is the store's answer.
 */
import { Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import { defined } from "../../domain/Defined.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import { isClientId } from "../../domain/Identifiers.ts"
import {
  type EventPage,
  type EventPageQuery,
  EventStore,
  type KeysetPages,
  type StatsGroup,
  type StoreUnavailable
} from "../../ports/EventStore.ts"
import { Api } from "../Api.ts"
import { json, jsonText, negotiated } from "../messages/Answer.ts"
import { notFound } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { CSV_TYPE, JSON_TYPE, NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { cursorLinks, listOf, pageLinks } from "../messages/Pages.ts"
import { readableView } from "../messages/StoreView.ts"
import { transfer } from "../messages/Transfer.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { CSV_HEADER, csvLine } from "./Csv.ts"
import { type ListRequest, listTypes } from "./QueryContract.ts"

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
      : { toSequence: Math.min(beforeSequence - 1, toSequence ?? Infinity) })
  }
}

const sequenceOf = (body: string | undefined): number | undefined =>
  body === undefined ? undefined : linkOf(Buffer.from(body))?.sequenceNumber

const linksOf = (
  request: HttpServerRequest.HttpServerRequest,
  publicUrl: string | undefined,
  asked: ListRequest,
  { bodies, total }: EventPage,
  keyset: KeysetPages | undefined
): string => {
  const of = listOf(request, publicUrl)
  const { order, pageSize } = asked
  if (keyset !== undefined) {
    return cursorLinks(of, {
      ...keyset,
      name: order === "asc" ? "after_sequence" : "before_sequence",
      next: bodies.length < pageSize ? undefined : sequenceOf(bodies.at(-1))
    })
  }
  return pageLinks(of, asked, total)
}

const pageResponse = (asked: ListRequest, { bodies, total }: EventPage, link: string) =>
  jsonText(
    `{"events":[${bodies.join(",")}],"total":${total},`
      + `"page":${asked.page},"page_size":${asked.pageSize}}`,
    { headers: { link } }
  )

const lines = (bodies: ReadonlyArray<string>): string =>
  bodies.length === 0 ? "" : `${bodies.join("\n")}\n`

/** Every match as a stream of text, each chunk of stored events one chunk of text. */
const streamResponse = (
  request: HttpServerRequest.HttpServerRequest,
  tenantId: string,
  type: typeof NDJSON_TYPE | typeof CSV_TYPE,
  chunks: Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
) => {
  const text =
    type === NDJSON_TYPE
      ? Stream.map(chunks, lines)
      : Stream.concat(
          Stream.succeed(CSV_HEADER),
          Stream.map(chunks, (bodies) => bodies.map(csvLine).join(""))
        )
  const contentType = type === CSV_TYPE ? `${CSV_TYPE}; charset=utf-8; header=present` : type
  const bytes = text.pipe(
    Stream.filter((piece) => piece !== ""),
    Stream.encodeText
  )
  const of = { operation: "listEvents", tenantId }
  return HttpServerResponse.stream(transfer(request, bytes, of), { contentType })
}

/** By two fields, a group has both keys beside the first. */
const shownGroup = ({ count, keys, numbers }: StatsGroup) => ({
  key: keys[0],
  ...(keys.length > 1 ? { keys } : {}),
  count,
  ...defined({ numbers })
})

/** The handlers of QueryApi. */
export const layerQueryHandlers = HttpApiBuilder.group(
  Api,
  "Query",
  Effect.fnUntraced(function* (handlers) {
    const { publicUrl } = yield* ApiSettings
    const store = yield* EventStore
    const projection = yield* ProjectionProgress

    return handlers
      .handleRaw(
        "listEvents",
        Effect.fnUntraced(function* ({ query: asked, request }) {
          const { tenantId } = yield* CurrentPrincipal
          const type = yield* negotiated(request, listTypes, "events come")
          const { deduplicate } = yield* readableView(projection, tenantId)
          const { afterSequence, beforeSequence, filter, order, page, pageSize } = asked
          if (type !== JSON_TYPE) {
            // No sequence number is below 1, and the store takes none below 0.
            const found =
              asked.beforeSequence === 0
                ? Stream.empty
                : store.scan({ tenantId, filter: boundedFilter(asked), order }, deduplicate)
            return streamResponse(request, tenantId, type, found)
          }
          const query: EventPageQuery = {
            tenantId,
            filter,
            order,
            offset: (page - 1) * pageSize,
            limit: pageSize,
            ...defined({ afterSequence, beforeSequence })
          }
          const isKeyset = afterSequence !== undefined || beforeSequence !== undefined
          const [found, keyset] = yield* Effect.all(
            [
              store.page(query, deduplicate),
              isKeyset ? store.keysetPages(query, deduplicate) : Effect.succeed(undefined)
            ],
            { concurrency: 2 }
          )
          return pageResponse(asked, found, linksOf(request, publicUrl, asked, found, keyset))
        })
      )
      .handle(
        "getEventStats",
        Effect.fnUntraced(function* ({ query }) {
          const { tenantId } = yield* CurrentPrincipal
          const { deduplicate } = yield* readableView(projection, tenantId)
          const stats = yield* store.stats({ tenantId, ...query }, deduplicate)
          const { buckets, groups, missing, numbers, other, total } = stats
          return json({
            groups: groups.map(shownGroup),
            other,
            buckets: buckets?.map(({ start, ...group }) => ({ start, ...shownGroup(group) })),
            missing,
            numbers,
            total
          })
        })
      )
      .handle(
        "getEventFacets",
        Effect.fnUntraced(function* ({ query }) {
          const { tenantId } = yield* CurrentPrincipal
          const { deduplicate } = yield* readableView(projection, tenantId)
          return yield* store.facets({ tenantId, ...query }, deduplicate)
        })
      )
      .handle(
        "getEvent",
        Effect.fnUntraced(function* ({ params: { id }, query }) {
          const { tenantId } = yield* CurrentPrincipal
          if (!isClientId(id)) return yield* notFound("event")
          const { deduplicate } = yield* readableView(projection, tenantId)
          const found = yield* store.byId(tenantId, id, query.sequence_number, deduplicate)
          const body = found?.body
          return body === undefined ? yield* notFound("event") : jsonText(body)
        })
      )
  })
)

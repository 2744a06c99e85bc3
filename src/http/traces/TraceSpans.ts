/**
 * Serves spans and what happened in them: one span, its end, its events. Writes are answered with
 * what the store shows once they are visible.
 */
import { Effect } from "effect"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { TraceWrites } from "../../services/ingest/TraceWrites.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { json, longJson } from "../messages/Answer.ts"
import { notFound } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { opaqueLinks } from "../messages/Pages.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { batchVisible } from "./TraceAnswer.ts"
import { type listTraceEvents, TRACE_PAGE_BYTES_MAX, TRACE_PAGE_SIZE } from "./TraceContract.ts"
import { readBack, writeOne } from "./TraceExecutions.ts"
import { eventCursor, inPieces, linesResponse, wantsLines } from "./TraceLists.ts"
import { type EventsFrom, toEvents, traceReads } from "./TraceReads.ts"
import {
  oneOrSeveralEvents,
  optionalOperation,
  type ReadWrite,
  type TraceInputOf,
  TraceRequests,
  targetAt
} from "./TraceRequest.ts"

/** The handlers of the routes below `/api/v1/spans`. */
export const makeSpanHandlers = Effect.gen(function* () {
  const { publicUrl = "" } = yield* ApiSettings
  const requests = yield* TraceRequests
  const store = yield* TraceStore
  const projection = yield* ProjectionProgress
  const writes = yield* TraceWrites
  const reads = traceReads(store, projection)
  const write = (operation: ReadWrite) =>
    Effect.provideService(writeOne(operation), TraceWrites, writes)

  /** What a page of events says beside what it belongs to; `target` is where the list is. */
  const pageOf = ({ events, next }: EventsFrom, target: string) => {
    const cursor = next && eventCursor.write(next)
    return {
      body: { events, next_cursor: cursor },
      headers: { link: opaqueLinks({ base: publicUrl, target }, cursor) }
    }
  }

  /** The execution that has the span, or the named one if that has it or events of it. */
  const holderOf = Effect.fnUntraced(function* (tenantId: string, id: string, named?: string) {
    if (named !== undefined) {
      const counts = yield* store.eventCounts(tenantId, named, id)
      if (counts.size > 0) return named
    }
    const found = yield* store.executionOfSpan(tenantId, id)
    return named === undefined || named === found ? found : undefined
  })

  const addEvent = Effect.fnUntraced(function* (operation: ReadWrite) {
    const { tenantId } = operation
    const { execution_id, outcome, sequence_number = 0 } = yield* write(operation)
    const event = yield* readBack(yield* reads.eventIn(tenantId, execution_id, sequence_number))
    return json(event, { status: outcome === "created" ? 201 : 200 })
  })

  return {
    getSpan: Effect.fnUntraced(function* ({ params: { id } }: TraceInputOf) {
      const { tenantId } = yield* CurrentPrincipal
      yield* readableView(projection, tenantId)
      const span = yield* reads.span(tenantId, id)
      if (span === undefined) return yield* notFound("span")
      const at = { executionId: span.execution_id, spanId: id }
      const bounds = { itemsMax: TRACE_PAGE_SIZE, bytesMax: TRACE_PAGE_BYTES_MAX }
      const found = yield* reads.events(tenantId, at, undefined, bounds)
      const counts = found.next && (yield* store.eventCounts(tenantId, at.executionId, id))
      const target = `/api/v1/spans/${encodeURIComponent(id)}/events`
      const { body, headers } = pageOf(found, target)
      const total = counts?.get(id) ?? found.events.length
      return yield* longJson({ span, ...body, events_total: total }, { headers })
    }),

    endSpan: Effect.fnUntraced(function* (input: TraceInputOf) {
      const { id } = input.params
      const operation = yield* requests.read(input, targetAt("span.end", id), optionalOperation)
      const { execution_id } = yield* write(operation)
      return json(yield* readBack(yield* reads.spanIn(operation.tenantId, execution_id, id)))
    }),

    addTraceEvents: Effect.fnUntraced(function* (input: TraceInputOf) {
      const target = targetAt("span.event", input.params.id)
      const operation = yield* requests.read(input, target, oneOrSeveralEvents)
      return operation.kind === "one"
        ? yield* addEvent(operation)
        : batchVisible(yield* writes.several(operation))
    }),

    listTraceEvents: Effect.fnUntraced(function* (input: RequestOf<typeof listTraceEvents>) {
      const { params, query, request } = input
      const { id } = params
      const { cursor, execution_id, page_size: itemsMax = TRACE_PAGE_SIZE } = query
      const { tenantId } = yield* CurrentPrincipal
      yield* readableView(projection, tenantId)
      const executionId = yield* holderOf(tenantId, id, execution_id)
      if (executionId === undefined) return yield* notFound("span")
      const at = { executionId, spanId: id }
      if (wantsLines(request)) {
        const items = inPieces(reads.eventTexts(tenantId, at, cursor), toEvents)
        return linesResponse(request, items, { operation: "listTraceEvents", tenantId })
      }
      const bounds = { itemsMax, bytesMax: TRACE_PAGE_BYTES_MAX }
      const found = yield* reads.events(tenantId, at, cursor, bounds)
      const { body, headers } = pageOf(found, request.url)
      return yield* longJson(body, { headers })
    })
  }
})

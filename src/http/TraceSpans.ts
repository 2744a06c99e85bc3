/**
 * Serves spans and what happened in them: one span, its end, its events. Writes are answered with
 * what the store shows once they are visible.
 */
import { Effect } from "effect"
import { Visibility } from "../actors/Visibility.ts"
import { TraceWrites } from "../pipeline/TraceWrites.ts"
import { TraceStore } from "../ports/TraceStore.ts"
import { json } from "./Answer.ts"
import { notFound } from "./ApiError.ts"
import { CurrentPrincipal } from "./Authorization.ts"
import { readableView } from "./StoreView.ts"
import { batchVisible, refusing } from "./TraceAnswer.ts"
import { readBack, writeOne } from "./TraceExecutions.ts"
import { traceReads } from "./TraceReads.ts"
import {
  idOf,
  oneOrSeveralEvents,
  optionalOperation,
  targetAt,
  TraceRequests,
  type ReadWrite,
  type TraceInputOf
} from "./TraceRequest.ts"

/** The handlers of the routes below `/api/v1/spans`. */
export const makeSpanHandlers = Effect.gen(function*() {
  const requests = yield* TraceRequests
  const visibility = yield* Visibility
  const writes = yield* TraceWrites
  const reads = traceReads(yield* TraceStore, visibility)
  const write = (operation: ReadWrite) =>
    Effect.provideService(writeOne(operation), TraceWrites, writes)

  const addEvent = Effect.fnUntraced(function*(operation: ReadWrite) {
    const { tenantId } = operation
    const { event_id, execution_id, outcome, sequence_number, span_id = "" } = yield* write(operation)
    const events = yield* reads.eventsIn(tenantId, execution_id, span_id)
    const event = yield* readBack(
      events.find(
        (one) => one.id === event_id && one.sequence_number === (sequence_number ?? one.sequence_number)
      )
    )
    return json(event, { status: outcome === "created" ? 201 : 200 })
  })

  return {
    getSpan: Effect.fnUntraced(function*(input: TraceInputOf) {
      const { tenantId } = yield* CurrentPrincipal
      const id = yield* idOf(input, "span")
      yield* readableView(visibility, tenantId)
      const span = yield* reads.span(tenantId, id)
      if (span === undefined) return yield* notFound("span")
      return json({ span, events: yield* reads.eventsIn(tenantId, span.execution_id, id) })
    }),

    endSpan: Effect.fnUntraced(function*(input: TraceInputOf) {
      const id = yield* idOf(input, "span")
      const operation = yield* requests.read(input, targetAt("span.end", id), optionalOperation)
      const { execution_id } = yield* write(operation)
      const view = yield* reads.view(operation.tenantId, execution_id)
      return json(yield* readBack(view?.span(id)))
    }),

    addTraceEvents: Effect.fnUntraced(function*(input: TraceInputOf) {
      const target = targetAt("span.event", yield* idOf(input, "span"))
      const operation = yield* requests.read(input, target, oneOrSeveralEvents)
      return operation.kind === "one"
        ? yield* addEvent(operation)
        : batchVisible(yield* refusing(writes.several(operation)))
    }),

    listTraceEvents: Effect.fnUntraced(function*(input: TraceInputOf) {
      const { tenantId } = yield* CurrentPrincipal
      const id = yield* idOf(input, "span")
      yield* readableView(visibility, tenantId)
      const events = yield* reads.events(tenantId, id)
      return events === undefined ? yield* notFound("span") : json({ events })
    })
  }
})

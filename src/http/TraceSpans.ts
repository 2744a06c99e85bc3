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
    const { execution_id, outcome, sequence_number = 0 } = yield* write(operation)
    const event = yield* readBack(yield* reads.eventIn(tenantId, execution_id, sequence_number))
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
      return json(yield* readBack(yield* reads.spanIn(operation.tenantId, execution_id, id)))
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

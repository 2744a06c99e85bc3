/**
 * The handlers of every trace route, gathered from their features. Adds nothing to them but the
 * translation of failures into answers.
 */
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { layerTraceWrites } from "../../services/ingest/TraceWrites.ts"
import { Api } from "../Api.ts"
import { answering } from "../messages/Answer.ts"
import { makeTraceBatchHandlers } from "./TraceBatch.ts"
import { makeExecutionHandlers } from "./TraceExecutions.ts"
import { TraceRequests } from "./TraceRequest.ts"
import { makeSpanHandlers } from "./TraceSpans.ts"
import { makeTraceStreamHandlers } from "./TraceStream.ts"

/** The handlers of TraceApi. */
export const layerTraceHandlers = HttpApiBuilder.group(
  Api,
  "Executions",
  Effect.fnUntraced(function* (handlers) {
    const executions = yield* makeExecutionHandlers
    const spans = yield* makeSpanHandlers
    const { streamExecution } = yield* makeTraceStreamHandlers
    const { createTraces } = yield* makeTraceBatchHandlers

    return handlers
      .handleRaw("startExecution", answering(executions.startExecution))
      .handleRaw("listExecutions", answering(executions.listExecutions))
      .handleRaw("getExecution", answering(executions.getExecution))
      .handleRaw("endExecution", answering(executions.endExecution))
      .handleRaw("eraseExecution", answering(executions.eraseExecution))
      .handleRaw("startSpan", answering(executions.startSpan))
      .handleRaw("listSpans", answering(executions.listSpans))
      .handleRaw("getDag", answering(executions.getDag))
      .handleRaw("streamExecution", answering(streamExecution))
      .handleRaw("verifyExecution", answering(executions.verifyExecution))
      .handleRaw("getSpan", answering(spans.getSpan))
      .handleRaw("endSpan", answering(spans.endSpan))
      .handleRaw("addTraceEvents", answering(spans.addTraceEvents))
      .handleRaw("listTraceEvents", answering(spans.listTraceEvents))
      .handleRaw("createTraces", answering(createTraces))
  })
).pipe(Layer.provide([layerTraceWrites, TraceRequests.layer]))

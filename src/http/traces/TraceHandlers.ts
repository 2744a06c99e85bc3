/**
 * The handlers of every trace route, gathered from their features. Routes with a body read it by
 * themselves: what is stored is read with the strict reader, and may be large.
 */
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { layerTraceWrites } from "../../services/ingest/TraceWrites.ts"
import { Api } from "../Api.ts"
import { makeTraceBatchHandlers } from "./TraceBatch.ts"
import { makeDiffHandlers } from "./TraceDiff.ts"
import { makeExecutionHandlers } from "./TraceExecutions.ts"
import { makePayloadHandlers } from "./TracePayload.ts"
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
    const { diffExecutions } = yield* makeDiffHandlers
    const { getPayload } = yield* makePayloadHandlers
    const { createTraces } = yield* makeTraceBatchHandlers

    return handlers
      .handleRaw("startExecution", executions.startExecution)
      .handle("listExecutions", executions.listExecutions)
      .handle("getExecution", executions.getExecution)
      .handleRaw("endExecution", executions.endExecution)
      .handleRaw("eraseExecution", executions.eraseExecution)
      .handleRaw("startSpan", executions.startSpan)
      .handle("listSpans", executions.listSpans)
      .handle("getDag", executions.getDag)
      .handle("getAggregatedDag", executions.getAggregatedDag)
      .handle("diffExecutions", diffExecutions)
      .handleRaw("streamExecution", streamExecution)
      .handle("getPayload", getPayload)
      .handle("verifyExecution", executions.verifyExecution)
      .handle("getSpan", spans.getSpan)
      .handleRaw("endSpan", spans.endSpan)
      .handleRaw("addTraceEvents", spans.addTraceEvents)
      .handle("listTraceEvents", spans.listTraceEvents)
      .handleRaw("createTraces", createTraces)
  })
).pipe(Layer.provide([layerTraceWrites, TraceRequests.layer]))

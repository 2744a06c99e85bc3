/**
 * The graph of an execution as an answer: what it needs of each span and nothing else, up to a
 * limit above which it is no use as a picture. What a graph is, the domain says.
 */
import { Effect, Semaphore, Stream } from "effect"
import { parseJson } from "../../domain/json/Json.ts"
import { type ExecutionGraph, graphOf } from "../../domain/traces/ExecutionGraph.ts"
import { type FactDetails, parseFact, type TraceFact } from "../../domain/traces/TraceFact.ts"
import { foldFacts, type TraceView } from "../../domain/traces/TraceView.ts"
import type { SpanOutline, TraceStore } from "../../ports/TraceStore.ts"
import { ApiError, notFound } from "../messages/ApiError.ts"
import { DAG_EDGES_MAX, DAG_SPANS_MAX, DAG_TEXT_MAX } from "./TraceContract.ts"

/** Graphs that are made at once in this process: each may need some 100 MB for a moment. */
const AT_ONCE = 1

const tooLarge = (what: string): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message:
      `the execution has ${what}, more than one graph may have; read its spans instead, page by `
      + "page or with Accept: application/x-ndjson from /api/v1/executions/{id}/spans"
  })

const detailsOf = ({ error, name }: SpanOutline): FactDetails => ({
  ...(name === "" ? {} : { name }),
  ...(error === "" ? {} : { error: parseJson(error) as NonNullable<FactDetails["error"]> })
})

/** A fact as far as a graph shows it: its hashes are not kept. */
const outlined = (outline: SpanOutline): TraceFact | undefined => {
  const fact = parseFact(outline.fact)
  return fact && { ...fact, prev_hash: "", content_hash: "", hash: "", details: detailsOf(outline) }
}

const edgesOf = (fact: TraceFact | undefined): number =>
  fact?.type === "span.started" ? 1 + fact.caused_by_span_ids.length : 0

/** Folds outlines into a view; fails when they say more than a graph may hold. */
const fold = (view: TraceView) => {
  let edges = 0
  let length = 0
  return (outlines: ReadonlyArray<SpanOutline>) => {
    for (const outline of outlines) {
      const fact = outlined(outline)
      edges += edgesOf(fact)
      length += outline.name.length + outline.error.length
      if (fact !== undefined) view.take(fact)
    }
    if (edges > DAG_EDGES_MAX) return Effect.fail(tooLarge(`more than ${DAG_EDGES_MAX} edges`))
    return length > DAG_TEXT_MAX
      ? Effect.fail(tooLarge(`names and errors of more than ${DAG_TEXT_MAX} characters`))
      : Effect.void
  }
}

/** Makes graphs, one after the other. */
export const traceGraphs = (store: TraceStore["Service"]) => {
  const turns = Semaphore.makeUnsafe(AT_ONCE)
  return (tenantId: string, executionId: string, execution: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const view = foldFacts(execution.flatMap((body) => parseFact(body) ?? []))
      if (view.execution === undefined) return yield* notFound("execution")
      const spans = yield* store.spanCount(tenantId, executionId)
      if (spans > DAG_SPANS_MAX) return yield* tooLarge(`${spans} spans`)
      yield* Stream.runForEach(store.outlines(tenantId, executionId), fold(view))
      const eventCounts = yield* store.eventCounts(tenantId, executionId)
      const rootSpanId = view.execution.root_span_id
      const graph: ExecutionGraph = graphOf({ rootSpanId, spans: view.spans, eventCounts })
      return JSON.stringify(graph)
    }).pipe(turns.withPermit)
}

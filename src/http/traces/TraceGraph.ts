/**
 * The graph of an execution as an answer: what it needs of each span and nothing else, up to a
 * limit above which it is no use as a picture. What a graph is, the domain says.
 */
import { Effect, Semaphore, Stream } from "effect"
import { parseJson } from "../../domain/json/Json.ts"
import type { JsonObject } from "../../domain/json/StrictJson.ts"
import type { EdgeKind, GraphRequest } from "../../domain/traces/ExecutionGraph.ts"
import { type FactDetails, parseFact, type TraceFact } from "../../domain/traces/TraceFact.ts"
import { foldFacts, type TraceView } from "../../domain/traces/TraceView.ts"
import type { SpanOutline, TraceStore } from "../../ports/TraceStore.ts"
import { ApiError, notFound } from "../messages/ApiError.ts"
import { DAG_EDGES_MAX, DAG_METADATA_MAX, DAG_SPANS_MAX, DAG_TEXT_MAX } from "./TraceContract.ts"

/** Graphs that are made at once in this process: each may need some 100 MB for a moment. */
const AT_ONCE = 1

const tooLarge = (what: string): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message:
      `the execution has ${what}, more than one graph may have; read its spans instead, page by `
      + "page or with Accept: application/x-ndjson from /api/v1/executions/{id}/spans"
  })

const detailsOf = ({ error, metadata, name }: SpanOutline): FactDetails => ({
  ...(name === "" ? {} : { name }),
  ...(error === "" ? {} : { error: parseJson(error) as NonNullable<FactDetails["error"]> }),
  ...(metadata === "" ? {} : { metadata: parseJson(metadata) as JsonObject })
})

/** A fact as far as a graph shows it: its hashes are not kept. */
const outlined = (outline: SpanOutline): TraceFact | undefined => {
  const fact = parseFact(outline.fact)
  return fact && { ...fact, prev_hash: "", content_hash: "", hash: "", details: detailsOf(outline) }
}

const edgesOf = (fact: TraceFact | undefined): number =>
  fact?.type === "span.started" ? 1 + fact.caused_by_span_ids.length : 0

/** Folds outlines into a view. */
class OutlineFold {
  readonly #view: TraceView
  #edges = 0
  #textLength = 0
  #metadataLength = 0

  constructor(view: TraceView) {
    this.#view = view
  }

  /** More metadata than a graph looks at: what was beyond was left out. */
  get isPartial(): boolean {
    return this.#metadataLength > DAG_METADATA_MAX
  }

  /** Fails when the spans say more than a graph may hold. */
  take(outlines: ReadonlyArray<SpanOutline>): Effect.Effect<void, ApiError> {
    for (const outline of outlines) {
      const { error, metadata, name } = outline
      this.#metadataLength += metadata.length
      const fact = outlined(this.isPartial ? { ...outline, metadata: "" } : outline)
      this.#edges += edgesOf(fact)
      this.#textLength += name.length + error.length
      if (fact !== undefined) this.#view.take(fact)
    }
    if (this.#edges > DAG_EDGES_MAX)
      return Effect.fail(tooLarge(`more than ${DAG_EDGES_MAX} edges`))
    return this.#textLength > DAG_TEXT_MAX
      ? Effect.fail(tooLarge(`names and errors of more than ${DAG_TEXT_MAX} characters`))
      : Effect.void
  }
}

/** Which graph is asked for. */
export interface GraphOf {
  readonly tenantId: string
  readonly executionId: string
  /** Stored facts of the execution itself. */
  readonly execution: ReadonlyArray<string>
  readonly edges?: EdgeKind
  /** Inferred edges and tokens come out of it. */
  readonly readsMetadata: boolean
}

/** Makes graphs, one after the other. */
export const traceGraphs = (store: TraceStore["Service"]) => {
  const turns = Semaphore.makeUnsafe(AT_ONCE)
  return (
    { edges = "inferred", execution, executionId, readsMetadata, tenantId }: GraphOf,
    make: (request: GraphRequest) => object
  ) =>
    Effect.gen(function* () {
      const view = foldFacts(execution.flatMap((body) => parseFact(body) ?? []))
      if (view.execution === undefined) return yield* notFound("execution")
      const count = yield* store.spanCount(tenantId, executionId)
      if (count > DAG_SPANS_MAX) return yield* tooLarge(`${count} spans`)
      const fold = new OutlineFold(view)
      const outlines = store.outlines(tenantId, executionId, () => readsMetadata && !fold.isPartial)
      yield* Stream.runForEach(outlines, (some) => fold.take(some))
      const eventCounts = yield* store.eventCounts(tenantId, executionId)
      const rootSpanId = view.execution.root_span_id
      const { isPartial } = fold
      return JSON.stringify(make({ rootSpanId, spans: view.spans, eventCounts, edges, isPartial }))
    }).pipe(turns.withPermit)
}

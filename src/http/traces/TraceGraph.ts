/**
 * The graph of an execution as an answer: what it needs of each span and nothing else, up to a
 * limit above which it is no use as a picture. What a graph is, the domain says.
 */
import { Effect, Stream } from "effect"
import { defined } from "../../domain/Defined.ts"
import { type JsonObject, parseJson } from "../../domain/json/Json.ts"
import { jsonInSteps } from "../../domain/json/JsonText.ts"
import { addTo } from "../../domain/Lists.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { oneInTurn } from "../../domain/TenantTurns.ts"
import type { EdgeKind, GraphRequest } from "../../domain/traces/ExecutionGraph.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import { hintMembers, withCalls } from "../../domain/traces/GraphHints.ts"
import { saidOf } from "../../domain/traces/ShownSpans.ts"
import { idLength } from "../../domain/traces/SpanGraph.ts"
import type { FactDetails, TraceFact } from "../../domain/traces/TraceFact.ts"
import type { Span } from "../../domain/traces/TraceResources.ts"
import { foldFacts, type TraceView } from "../../domain/traces/TraceView.ts"
import type {
  OutlineDetails,
  RecordedCalls,
  SpanOutline,
  TraceStore
} from "../../ports/TraceStore.ts"
import { ApiError, notFound } from "../messages/ApiError.ts"
import { inSlices } from "../messages/InSlices.ts"
import { DAG_EDGES_MAX, DAG_METADATA_MAX, DAG_SPANS_MAX, DAG_TEXT_MAX } from "./TraceContract.ts"

const tooLarge = (what: string): ApiError =>
  new ApiError({
    code: "payload_too_large",
    message:
      `the execution has ${what}, more than one graph may have; read its spans instead, page by `
      + "page or with Accept: application/x-ndjson from /api/v1/executions/{id}/spans"
  })

/** Of the details of a fact what a graph shows. */
interface Shown {
  readonly details: FactDetails
  /** Characters of name and error, and of the metadata that is looked at. */
  readonly textLength: number
  readonly metadataLength: number
}

/** Of what the store has taken out of a large fact. */
const shownOfTexts = ({ error, metadata, name }: OutlineDetails): Shown => ({
  details: {
    ...(name === "" ? {} : { name }),
    ...(error === "" ? {} : { error: parseJson(error) as NonNullable<FactDetails["error"]> }),
    ...(metadata === "" ? {} : { metadata: parseJson(metadata) as JsonObject })
  },
  textLength: lengthOf(name) + error.length,
  metadataLength: metadata.length
})

const lengthOf = (value: unknown): number =>
  value === undefined ? 0 : JSON.stringify(value).length

/** Of the details of a whole fact. */
const shownOfWhole = ({ error, metadata, name }: FactDetails, readsMetadata: boolean): Shown => {
  const hints = metadata !== undefined && readsMetadata ? hintMembers(metadata) : undefined
  return {
    details: defined({ name, error, metadata: hints }),
    textLength: lengthOf(name) + lengthOf(error),
    metadataLength: lengthOf(hints)
  }
}

const edgesOf = (fact: TraceFact): number =>
  fact.type === "span.started" ? 1 + fact.caused_by_span_ids.length : 0

/** Characters of the ids of a span and of the edges to it. */
const idsLength = (fact: TraceFact): number => {
  if (fact.type !== "span.started") return 0
  const own = idLength(fact.span_id)
  const others = [...fact.caused_by_span_ids, fact.parent_span_id ?? ""]
  return others.reduce((sum, other) => sum + own + idLength(other), own)
}

/** Folds outlines into a view. */
class OutlineFold {
  readonly #view: TraceView
  readonly #readsMetadata: boolean
  #edges = 0
  #textLength = 0
  #metadataLength = 0

  constructor(view: TraceView, readsMetadata: boolean) {
    this.#view = view
    this.#readsMetadata = readsMetadata
  }

  /** More metadata than a graph looks at: what was beyond was left out. */
  get isPartial(): boolean {
    return this.#metadataLength > DAG_METADATA_MAX
  }

  /** Metadata of the next facts is looked at. */
  get readsMetadata(): boolean {
    return this.#readsMetadata && !this.isPartial
  }

  /** One in a step. Throws ApiError when the spans say more than a graph may hold. */
  *take(outlines: ReadonlyArray<SpanOutline>): Sliced<void> {
    for (const outline of outlines) {
      yield
      this.#takeOne(outline)
    }
    if (this.#edges > DAG_EDGES_MAX) throw tooLarge(`more than ${DAG_EDGES_MAX} edges`)
    if (this.#textLength > DAG_TEXT_MAX) {
      throw tooLarge(`names, errors and ids of more than ${DAG_TEXT_MAX} characters`)
    }
  }

  /** The spans, with what log records tell of their calls, one record in a step. */
  *withRecords(
    spans: ReadonlyArray<Span>,
    records: ReadonlyArray<RecordedCalls>
  ): Sliced<ReadonlyArray<Span>> {
    const bySpan = new Map<string, Array<JsonObject>>()
    for (const { calls, spanId } of records) {
      yield
      this.#metadataLength += calls.length
      if (this.isPartial) break
      addTo(bySpan, spanId, parseJson(calls) as JsonObject)
    }
    return spans.map((span) => {
      const told = bySpan.get(span.id)
      return told === undefined ? span : withCalls(span, told)
    })
  }

  #takeOne({ details, fact: text }: SpanOutline): void {
    const fact = parseFact(text)
    if (fact === undefined) return
    const shown =
      details === undefined
        ? shownOfWhole(fact.details ?? {}, this.readsMetadata)
        : shownOfTexts(this.readsMetadata ? details : { ...details, metadata: "" })
    this.#edges += edgesOf(fact)
    this.#textLength += shown.textLength + idsLength(fact)
    this.#metadataLength += shown.metadataLength
    this.#view.take({ ...saidOf(fact), details: shown.details })
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

/** Only of such an execution log records have become events. */
const isOfOtlp = (fact: TraceFact): boolean =>
  fact.type === "execution.started" && fact.source === "otlp"

/** Makes graphs, one after the other: each may need some 100 MB for a moment. */
export const traceGraphs = (store: TraceStore["Service"]) => {
  const inTurn = oneInTurn()
  return (
    { edges = "inferred", execution, executionId, readsMetadata, tenantId }: GraphOf,
    make: (request: GraphRequest) => Sliced<object>
  ) =>
    Effect.gen(function* () {
      const facts = execution.flatMap((body) => parseFact(body) ?? [])
      const view = foldFacts(facts)
      if (view.execution === undefined) return yield* notFound("execution")
      const count = yield* store.spanCount(tenantId, executionId)
      if (count > DAG_SPANS_MAX) return yield* tooLarge(`${count} spans`)
      const fold = new OutlineFold(view, readsMetadata)
      const outlines = store.outlines(tenantId, executionId, () => fold.readsMetadata)
      // The store reads the next chunk while this one is folded.
      const folded = Stream.runForEach(Stream.buffer(outlines, { capacity: 1 }), (some) =>
        inSlices(() => fold.take(some))
      )
      const [eventCounts] = yield* Effect.all([store.eventCounts(tenantId, executionId), folded], {
        concurrency: "unbounded"
      })
      if (eventCounts.size > DAG_SPANS_MAX) {
        return yield* tooLarge(`events of ${eventCounts.size} spans`)
      }
      const records =
        fold.readsMetadata && eventCounts.size > 0 && facts.some(isOfOtlp)
          ? yield* store.recordedCalls(tenantId, executionId)
          : []
      const spans = yield* inSlices(() => fold.withRecords(view.spans, records))
      const rootSpanId = view.execution.root_span_id
      const { isPartial } = fold
      const request = { rootSpanId, spans, eventCounts, edges, isPartial }
      return yield* inSlices(function* () {
        return yield* jsonInSteps(yield* make(request))
      })
    }).pipe((graph) => inTurn(tenantId, graph))
}

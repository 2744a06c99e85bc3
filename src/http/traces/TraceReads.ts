/**
 * Executions, spans and trace events as answers show them: asks the store for the facts that an
 * answer needs and folds them. Decides nothing; what is not there is undefined.
 */

import { Effect, Option, Stream } from "effect"
import { CHUNK, factsOf, spanChunks, spansFrom, withTexts } from "../../actors/feeds/SpanPages.ts"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { eachInStep, type Sliced } from "../../domain/Slices.ts"
import { inReadTurn, inReadTurns } from "../../domain/TenantTurns.ts"
import type { ExecutionSummary, ShownExecution } from "../../domain/traces/ExecutionSummary.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import { type ShownSpan, shownSpan } from "../../domain/traces/SpanSummary.ts"
import type { Execution, TraceEvent } from "../../domain/traces/TraceResources.ts"
import { foldFacts, TraceView, toTraceEvent } from "../../domain/traces/TraceView.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import type {
  EventPlace,
  FactSelection,
  ListedExecution,
  PageBounds,
  SpanPlace,
  TraceStore
} from "../../ports/TraceStore.ts"

const withSummary = (
  execution: Execution,
  summary: ExecutionSummary | undefined
): ShownExecution => (summary === undefined ? execution : { ...execution, summary })

/** One fact in a step. */
export function* toExecutions(
  listed: ReadonlyArray<ListedExecution>
): Sliced<ReadonlyArray<ShownExecution>> {
  const executions: Array<ShownExecution> = []
  for (const { facts, summary } of listed) {
    const { execution } = yield* withTexts(new TraceView(), facts)
    if (execution !== undefined) executions.push(withSummary(execution, summary))
  }
  return executions
}

/** Events of one span, and what follows. */
export interface EventsFrom {
  readonly events: ReadonlyArray<TraceEvent>
  readonly next: EventPlace | undefined
}

/** Spans as answers show them, and what follows. */
export interface ShownSpansFrom {
  readonly spans: ReadonlyArray<ShownSpan>
  readonly next: SpanPlace | undefined
}

/** A span, by its execution. */
export interface SpanAt {
  readonly executionId: string
  readonly spanId: string
}

/** Only events, one in a step; what is not a fact is reported by verification. */
export function* toEvents(bodies: ReadonlyArray<string>): Sliced<ReadonlyArray<TraceEvent>> {
  const events: Array<TraceEvent> = []
  for (const body of bodies) {
    yield
    const fact = parseFact(body)
    if (fact?.type === "span.event") events.push(toTraceEvent(fact))
  }
  return events
}

/** What can be read of the traces of one store. */
export interface TraceReads {
  execution(
    tenantId: string,
    executionId: string
  ): Effect.Effect<ShownExecution | undefined, StoreUnavailable>
  span(tenantId: string, spanId: string): Effect.Effect<ShownSpan | undefined, StoreUnavailable>
  /** A span of an execution that is known. */
  spanIn(
    tenantId: string,
    executionId: string,
    spanId: string
  ): Effect.Effect<ShownSpan | undefined, StoreUnavailable>
  /** One event, by its place in the execution. */
  eventIn(
    tenantId: string,
    executionId: string,
    sequenceNumber: number
  ): Effect.Effect<TraceEvent | undefined, StoreUnavailable>
  /** By sequence number, what follows a place. */
  events(
    tenantId: string,
    span: SpanAt,
    after: EventPlace | undefined,
    bounds: PageBounds
  ): Effect.Effect<EventsFrom, StoreUnavailable>
  /** Stored texts of all events that follow a place, in chunks, each read when it is asked for. */
  eventTexts(
    tenantId: string,
    span: SpanAt,
    after: EventPlace | undefined
  ): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
  /** By start, then in the order of arrival; undefined if there is no such execution. */
  spans(
    tenantId: string,
    executionId: string,
    after: SpanPlace | undefined,
    bounds: PageBounds
  ): Effect.Effect<ShownSpansFrom | undefined, StoreUnavailable>
  /** All spans that follow a place, in chunks; all by the same state of their execution. */
  allSpans(
    tenantId: string,
    executionId: string,
    after: SpanPlace | undefined
  ): Effect.Effect<
    Stream.Stream<ReadonlyArray<ShownSpan>, StoreUnavailable> | undefined,
    StoreUnavailable
  >
}

/** The reads of a store, merging where the projection says that rows may be there twice. */
export const traceReads = (
  store: TraceStore["Service"],
  projection: ProjectionProgress["Service"]
): TraceReads => {
  // All contents that were sent of a span are among its facts: more than what is shown of it.
  const read = (tenantId: string, executionId: string, selection: FactSelection) =>
    inReadTurn(
      tenantId,
      Effect.suspend(() =>
        store.facts(tenantId, executionId, selection, projection.of(tenantId).final)
      ).pipe(Effect.map(factsOf))
    )

  const executionFacts = (tenantId: string, executionId: string) =>
    read(tenantId, executionId, { kind: "execution" })

  const spanIn: TraceReads["spanIn"] = (tenantId, executionId, spanId) =>
    Effect.map(read(tenantId, executionId, { kind: "span", spanId }), (facts) => {
      const span = foldFacts(facts).span(spanId)
      return span && shownSpan(span)
    })

  return {
    spanIn,
    eventIn: (tenantId, executionId, sequenceNumber) =>
      Effect.map(read(tenantId, executionId, { kind: "event", sequenceNumber }), ([fact]) =>
        fact?.type === "span.event" ? toTraceEvent(fact) : undefined
      ),
    execution: (tenantId, executionId) =>
      Effect.all(
        [executionFacts(tenantId, executionId), store.summaries(tenantId, [executionId])],
        { concurrency: "unbounded" }
      ).pipe(
        Effect.map(([facts, found]) => {
          const { execution } = foldFacts(facts)
          return execution && withSummary(execution, found.get(executionId))
        })
      ),
    span: Effect.fnUntraced(function* (tenantId, spanId) {
      const executionId = yield* store.executionOfSpan(tenantId, spanId)
      return executionId === undefined ? undefined : yield* spanIn(tenantId, executionId, spanId)
    }),
    events: (tenantId, span, after, bounds) =>
      inReadTurn(
        tenantId,
        Effect.flatMap(store.spanEvents(tenantId, span, after, bounds), ({ facts, next }) =>
          Effect.map(
            inSlices(() => toEvents(facts)),
            (events) => ({ events, next })
          )
        )
      ),
    eventTexts: (tenantId, span, after) =>
      Stream.paginate(after, (from) =>
        Effect.map(
          inReadTurn(tenantId, store.spanEvents(tenantId, span, from, CHUNK)),
          ({ facts, next }) => [[facts], Option.fromUndefinedOr(next)] as const
        )
      ),
    spans: Effect.fnUntraced(function* (tenantId, executionId, after, bounds) {
      const execution = yield* executionFacts(tenantId, executionId)
      if (execution.length === 0) return undefined
      const at = { tenantId, executionId, execution }
      const { next, spans } = yield* inReadTurn(tenantId, spansFrom(store, at, after, bounds))
      return { spans: yield* inSlices(() => eachInStep(spans, shownSpan)), next }
    }),
    allSpans: Effect.fnUntraced(function* (tenantId, executionId, after) {
      const execution = yield* executionFacts(tenantId, executionId)
      if (execution.length === 0) return undefined
      const chunks = spanChunks(store, { tenantId, executionId, execution }, after)
      return inReadTurns(tenantId, chunks).pipe(
        Stream.mapEffect((spans) => inSlices(() => eachInStep(spans, shownSpan)))
      )
    })
  }
}

/**
 * Executions, spans and trace events as answers show them: asks the store for the facts that an
 * answer needs and folds them. Decides nothing; what is not there is undefined.
 */
import { Effect } from "effect"
import type { Visibility } from "../actors/Visibility.ts"
import { parseFact, type TraceFact } from "../domain/TraceFact.ts"
import {
  foldFacts,
  toTraceEvent,
  type Execution,
  type Span,
  type TraceEvent,
  type TraceView
} from "../domain/TraceView.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import type { FactSelection, TraceStore } from "../ports/TraceStore.ts"

/** The facts that stored texts hold; what is no fact is verification's business. */
const factsOf = (bodies: ReadonlyArray<string>): ReadonlyArray<TraceFact> =>
  bodies.flatMap((body) => parseFact(body) ?? [])

/** The execution that its own facts add up to. */
export const toExecution = (bodies: ReadonlyArray<string>): Execution | undefined =>
  foldFacts(factsOf(bodies)).execution

/** What can be read of the traces of one store. */
export interface TraceReads {
  execution(
    tenantId: string,
    executionId: string
  ): Effect.Effect<Execution | undefined, StoreUnavailable>
  /** The execution with every span. */
  view(
    tenantId: string,
    executionId: string
  ): Effect.Effect<TraceView | undefined, StoreUnavailable>
  span(tenantId: string, spanId: string): Effect.Effect<Span | undefined, StoreUnavailable>
  /** A span of an execution that is known. */
  spanIn(
    tenantId: string,
    executionId: string,
    spanId: string
  ): Effect.Effect<Span | undefined, StoreUnavailable>
  /** By sequence number; undefined if there is no such span. */
  events(
    tenantId: string,
    spanId: string
  ): Effect.Effect<ReadonlyArray<TraceEvent> | undefined, StoreUnavailable>
  /** One event, by its place in the execution. */
  eventIn(
    tenantId: string,
    executionId: string,
    sequenceNumber: number
  ): Effect.Effect<TraceEvent | undefined, StoreUnavailable>
  /** Events of a span that is known to exist. */
  eventsIn(
    tenantId: string,
    executionId: string,
    spanId: string
  ): Effect.Effect<ReadonlyArray<TraceEvent>, StoreUnavailable>
}

/** The reads of a store, merging where the projection says that rows may stand there twice. */
export const traceReads = (
  store: TraceStore["Service"],
  visibility: Visibility["Service"]
): TraceReads => {
  const read = (tenantId: string, executionId: string, selection: FactSelection) =>
    Effect.suspend(() =>
      store.facts(tenantId, executionId, selection, visibility.of(tenantId).final)
    ).pipe(Effect.map(factsOf))

  const view: TraceReads["view"] = (tenantId, executionId) =>
    Effect.map(read(tenantId, executionId, { kind: "structure" }), (facts) =>
      facts.length === 0 ? undefined : foldFacts(facts)
    )

  const spanIn: TraceReads["spanIn"] = (tenantId, executionId, spanId) =>
    Effect.map(read(tenantId, executionId, { kind: "span", spanId }), (facts) =>
      foldFacts(facts).span(spanId)
    )

  const eventsOf = (tenantId: string, executionId: string, selection: FactSelection) =>
    Effect.map(read(tenantId, executionId, selection), (facts) =>
      facts.flatMap((fact) => (fact.type === "span.event" ? [toTraceEvent(fact)] : []))
    )

  const eventsIn: TraceReads["eventsIn"] = (tenantId, executionId, spanId) =>
    eventsOf(tenantId, executionId, { kind: "events", spanId })

  return {
    view,
    spanIn,
    eventsIn,
    eventIn: (tenantId, executionId, sequenceNumber) =>
      Effect.map(
        eventsOf(tenantId, executionId, { kind: "event", sequenceNumber }),
        ([event]) => event
      ),
    execution: (tenantId, executionId) =>
      Effect.map(
        read(tenantId, executionId, { kind: "execution" }),
        (facts) => foldFacts(facts).execution
      ),
    span: Effect.fnUntraced(function*(tenantId, spanId) {
      const executionId = yield* store.executionOfSpan(tenantId, spanId)
      return executionId === undefined ? undefined : yield* spanIn(tenantId, executionId, spanId)
    }),
    events: Effect.fnUntraced(function*(tenantId, spanId) {
      const executionId = yield* store.executionOfSpan(tenantId, spanId)
      return executionId === undefined
        ? undefined
        : yield* eventsIn(tenantId, executionId, spanId)
    })
  }
}

/**
 * The traces of an export as the store has them: the facts of each execution that overlaps the
 * bounds, folded into what the API shows of it. Holds one execution at a time.
 */
import { Effect, Layer, Stream } from "effect"
import { parseFact } from "../domain/TraceFact.ts"
import { TraceView, type Span } from "../domain/TraceView.ts"
import { TraceStore, type ExecutionFacts } from "../ports/TraceStore.ts"
import { TraceExport, type TraceScope } from "./TraceExport.ts"

interface Folding {
  readonly executionId: string
  readonly view: TraceView
}

/** Take a piece of an execution in; its view once it is whole. */
const fold = (
  before: Folding | undefined,
  { complete, executionId, facts }: ExecutionFacts
): readonly [Folding | undefined, ReadonlyArray<TraceView>] => {
  const folding =
    before?.executionId === executionId ? before : { executionId, view: new TraceView() }
  for (const text of facts) {
    const fact = parseFact(text)
    // What is no fact is verification's business.
    if (fact !== undefined) folding.view.take(fact)
  }
  return complete ? [undefined, [folding.view]] : [folding, []]
}

const viewsOf = (store: TraceStore["Service"], { from, tenantId, to }: TraceScope) =>
  store.overlapping(tenantId, from, to).pipe(
    Stream.flattenIterable,
    Stream.mapAccum((): Folding | undefined => undefined, fold)
  )

const overlaps = ({ ended_at, started_at }: Span, { from, to }: TraceScope): boolean =>
  started_at <= to && (ended_at === undefined || ended_at >= from)

const byStart = (left: Span, right: Span): number =>
  left.started_at < right.started_at ||
  (left.started_at === right.started_at && left.id < right.id)
    ? -1
    : 1

const text = (value: object): string => JSON.stringify(value)

/** Executions and spans of the trace store. */
export const layerTraceExport: Layer.Layer<TraceExport, never, TraceStore> = Layer.effect(
  TraceExport,
  Effect.map(TraceStore, (store) =>
    TraceExport.of({
      executions: (scope) =>
        viewsOf(store, scope).pipe(
          Stream.map(({ execution }) => (execution === undefined ? [] : [text(execution)]))
        ),
      spans: (scope) =>
        viewsOf(store, scope).pipe(
          Stream.map(({ spans }) =>
            spans
              .filter((span) => overlaps(span, scope))
              .sort(byStart)
              .map(text)
          )
        )
    })
  )
)

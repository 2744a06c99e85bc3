/**
 * The execution traces of an export out of the store: facts folded into executions and spans, one
 * execution in memory at a time.
 */
import { Effect, Layer, Stream } from "effect"
import { parseFact } from "../domain/TraceFact.ts"
import { TraceView, type Span } from "../domain/TraceView.ts"
import { TraceStore, type ExecutionFacts } from "../ports/TraceStore.ts"
import { TraceExport, type TraceScope } from "./TraceExport.ts"

/** By start, then id. */
const inOrder = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> =>
  [...spans].sort((left, right) =>
    left.started_at === right.started_at
      ? Number(left.id > right.id) - Number(left.id < right.id)
      : left.started_at < right.started_at
        ? -1
        : 1
  )

/** Folds pieces of executions, in order, and gives each one out when it is complete. */
const viewsOf = () => {
  let view = new TraceView()
  return ({ complete, facts }: ExecutionFacts): ReadonlyArray<TraceView> => {
    for (const body of facts) {
      const fact = parseFact(body)
      // Events stand in neither list; what is no fact is for verification to report.
      if (fact !== undefined && fact.type !== "span.event") view.take(fact)
    }
    if (!complete) return []
    const whole = view
    view = new TraceView()
    return [whole]
  }
}

const lines = (
  store: TraceStore["Service"],
  { from, tenantId, to }: TraceScope,
  linesOf: (view: TraceView) => ReadonlyArray<string>
) =>
  Stream.suspend(() => {
    const take = viewsOf()
    return store.overlapping(tenantId, from, to).pipe(
      Stream.map((pieces) => pieces.flatMap((piece) => take(piece).flatMap(linesOf)))
    )
  })

export const layerStoredTraceExport: Layer.Layer<TraceExport, never, TraceStore> = Layer.effect(
  TraceExport,
  Effect.map(TraceStore, (store) =>
    TraceExport.of({
      executions: (scope) =>
        lines(store, scope, ({ execution }) =>
          execution === undefined ? [] : [JSON.stringify(execution)]
        ),
      spans: (scope) =>
        lines(store, scope, (view) => inOrder(view.spans).map((span) => JSON.stringify(span)))
    })
  )
)

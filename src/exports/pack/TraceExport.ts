/**
 * The execution traces of an export as lines of JSON, and the facts that they are made of: facts out
 * of the store, folded into executions and spans. Memory holds one chunk, whatever an execution has.
 */
import { Context, Effect, Layer, Stream } from "effect"
import { CHUNK, factsOf, spanChunks, withTexts } from "../../actors/feeds/SpanPages.ts"
import { defined } from "../../domain/Defined.ts"
import { inSlices } from "../../domain/InSlices.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../domain/Timestamp.ts"
import type { Span } from "../../domain/traces/TraceResources.ts"
import { TraceView } from "../../domain/traces/TraceView.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import type { FactRange } from "../../ports/TraceStore.ts"
import { type ExecutionFacts, TraceStore } from "../../ports/TraceStore.ts"

/** Whose traces, and the time that they have to overlap. Canonical microsecond form, inclusive. */
export interface TraceScope {
  readonly tenantId: string
  readonly from: string
  readonly to: string
  /** Chain sequence of the tenant's last fact that counts: both lists are of one moment. */
  readonly last?: number
}

export class TraceExport extends Context.Service<
  TraceExport,
  {
    /** One execution per text, without line feeds, by start and then id. Chunks, bounded memory. */
    executions(scope: TraceScope): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /** One span per text: by execution in that order, then by start and arrival. */
    spans(scope: TraceScope): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /**
     * Every fact of these executions, and of those that are named, exactly as it is stored, ascending by
     * chain_sequence.
     */
    facts(
      scope: TraceScope,
      executions?: ReadonlyArray<string>
    ): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
    /**
     * The last bytes of each fact of the tenant's chain in a range, ascending: enough for its link.
     */
    chain(range: FactRange): Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
  }
>()("alk/exports/TraceExport") {}

/** By start; equal starts in the order of arrival. */
const inOrder = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> =>
  spans.toSorted(
    (left, right) =>
      Number(left.started_at > right.started_at) - Number(left.started_at < right.started_at)
  )

function* toLines(values: ReadonlyArray<unknown>): Sliced<ReadonlyArray<string>> {
  const lines: Array<string> = []
  for (const value of values) {
    yield
    lines.push(JSON.stringify(value))
  }
  return lines
}

/** Of executions as wholes the lines of what is asked of each, a fact or a line in a step. */
const linesOf = (
  found: ReadonlyArray<ExecutionFacts>,
  ask: (view: TraceView) => ReadonlyArray<unknown>
) =>
  inSlices(function* () {
    const lines: Array<string> = []
    for (const { facts } of found) {
      const view = yield* withTexts(new TraceView(), facts)
      for (const line of yield* toLines(ask(view))) lines.push(line)
    }
    return lines
  })

const executionLines = (store: TraceStore["Service"], scope: TraceScope) =>
  store
    .overlapping({ ...scope, selection: "execution" })
    .pipe(
      Stream.mapEffect((found) =>
        linesOf(found, ({ execution }) => (execution === undefined ? [] : [execution]))
      )
    )

const spanLines = (store: TraceStore["Service"], scope: TraceScope) => {
  const { last, tenantId } = scope
  const bounds = defined({ ...CHUNK, last })
  const ofLarge = ({ executionId, facts }: ExecutionFacts) => {
    const at = { tenantId, executionId, execution: factsOf(facts) }
    return Stream.mapEffect(spanChunks(store, at, undefined, bounds), (spans) =>
      inSlices(() => toLines(spans))
    )
  }
  return store.overlapping({ ...scope, selection: "structure" }).pipe(
    Stream.flatMap((found) =>
      // A large execution comes alone.
      found[0]?.isLarge === true
        ? ofLarge(found[0])
        : Stream.fromEffect(linesOf(found, ({ spans }) => inOrder(spans)))
    )
  )
}

export const layerStoredTraceExport: Layer.Layer<TraceExport, never, TraceStore> = Layer.effect(
  TraceExport,
  Effect.map(TraceStore, (store) =>
    TraceExport.of({
      executions: (scope) => executionLines(store, scope),
      spans: (scope) => spanLines(store, scope),
      facts: ({ from, last = Number.MAX_SAFE_INTEGER, tenantId, to }, executions = []) =>
        store.chain({
          tenantId,
          first: 1,
          last,
          // Without bounds there is nothing to choose.
          ...(from === HISTORY_FROM && to === HISTORY_TO
            ? {}
            : { overlapping: { from, to }, executions })
        }),
      chain: (range) => store.chain({ ...range, isSuffix: true })
    })
  )
)

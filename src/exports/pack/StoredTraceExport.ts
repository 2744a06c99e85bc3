/**
 * The execution traces of an export out of the store: facts folded into executions and spans. Reads
 * what the lists show and nothing of the events; memory holds one chunk, whatever an execution has.
 */
import { Effect, Layer, Stream } from "effect"
import { CHUNK, factsOf, spanChunks } from "../../actors/feeds/SpanPages.ts"
import type { Span } from "../../domain/traces/TraceResources.ts"
import { foldFacts } from "../../domain/traces/TraceView.ts"
import { type ExecutionFacts, TraceStore } from "../../ports/TraceStore.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../verify/VerifyReport.ts"
import { TraceExport, type TraceScope } from "./TraceExport.ts"

/** By start; equal starts in the order of arrival. */
const inOrder = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> =>
  spans.toSorted(
    (left, right) =>
      Number(left.started_at > right.started_at) - Number(left.started_at < right.started_at)
  )

const toLines = (values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.map((value) => JSON.stringify(value))

const executionLines = (store: TraceStore["Service"], scope: TraceScope) =>
  store
    .overlapping({ ...scope, selection: "execution" })
    .pipe(
      Stream.map((found) =>
        toLines(found.flatMap(({ facts }) => foldFacts(factsOf(facts)).execution ?? []))
      )
    )

const spanLines = (store: TraceStore["Service"], scope: TraceScope) => {
  const { last, tenantId } = scope
  const bounds = { ...CHUNK, ...(last === undefined ? {} : { last }) }
  const ofLarge = ({ executionId, facts }: ExecutionFacts) => {
    const at = { tenantId, executionId, execution: factsOf(facts) }
    return Stream.map(spanChunks(store, at, undefined, bounds), toLines)
  }
  return store.overlapping({ ...scope, selection: "structure" }).pipe(
    Stream.flatMap((found) =>
      // A large execution comes alone.
      found[0]?.isLarge === true
        ? ofLarge(found[0])
        : Stream.succeed(
            found.flatMap(({ facts }) => toLines(inOrder(foldFacts(factsOf(facts)).spans)))
          )
    )
  )
}

export const layerStoredTraceExport: Layer.Layer<TraceExport, never, TraceStore> = Layer.effect(
  TraceExport,
  Effect.map(TraceStore, (store) =>
    TraceExport.of({
      executions: (scope) => executionLines(store, scope),
      spans: (scope) => spanLines(store, scope),
      facts: ({ from, last = Number.MAX_SAFE_INTEGER, tenantId, to }) =>
        store.chain({
          tenantId,
          first: 1,
          last,
          // Without bounds there is nothing to choose.
          ...(from === HISTORY_FROM && to === HISTORY_TO ? {} : { overlapping: { from, to } })
        }),
      chain: (range) => store.chain({ ...range, isSuffix: true })
    })
  )
)

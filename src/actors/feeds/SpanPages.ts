/**
 * The spans of an execution in pieces of bounded size, however many there are: by start, then in
 * the order of arrival. Folds what the store says of them; decides nothing.
 */
import { Effect, Option, Stream } from "effect"
import { inSlices } from "../../domain/InSlices.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import type { Span } from "../../domain/traces/TraceResources.ts"
import { foldFacts, type TraceView } from "../../domain/traces/TraceView.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import type { PageBounds, SpanPage, SpanPlace, TraceStore } from "../../ports/TraceStore.ts"

/** The facts that stored texts hold; what is not a fact is reported by verification. */
export const factsOf = (bodies: ReadonlyArray<string>): ReadonlyArray<TraceFact> =>
  bodies.flatMap((body) => parseFact(body) ?? [])

/** A view that takes stored texts too, one in a step. */
export function* withTexts(view: TraceView, bodies: ReadonlyArray<string>): Sliced<TraceView> {
  for (const body of bodies) {
    yield
    const fact = parseFact(body)
    if (fact !== undefined) view.take(fact)
  }
  return view
}

/** An execution, with its own facts. */
export interface ExecutionAt {
  readonly tenantId: string
  readonly executionId: string
  readonly execution: ReadonlyArray<TraceFact>
}

/** What a list of spans holds at most, and what follows. */
export interface SpansFrom {
  readonly spans: ReadonlyArray<Span>
  /** Place of the last of them, if more follow. */
  readonly next: SpanPlace | undefined
}

/** What one piece of a stream is made of at most. */
export const CHUNK: PageBounds = { itemsMax: 5_000, bytesMax: 4 * 1_048_576 }

const isBehind = (left: SpanPlace, right: SpanPlace): boolean =>
  left.startedAt === right.startedAt
    ? left.factNumber > right.factNumber
    : left.startedAt > right.startedAt

interface PlacedSpan {
  readonly span: Span
  readonly place: SpanPlace
}

/** A root that has not arrived has no fact of its own: it comes before what starts with it. */
const rootOf = (view: TraceView): PlacedSpan | undefined => {
  const [span] = view.spans
  return span && { span, place: { startedAt: microsOf(span.started_at), factNumber: 0 } }
}

/** The spans of a page in their places, a root that has not arrived among them; one in a step. */
function* placed(
  execution: ReadonlyArray<TraceFact>,
  { next, spans }: SpanPage,
  after: SpanPlace | undefined,
  itemsMax: number
): Sliced<SpansFrom> {
  const view = foldFacts(execution)
  for (const { facts } of spans) yield* withTexts(view, facts)
  const stored = spans.flatMap(({ id, place }): ReadonlyArray<PlacedSpan> => {
    const span = view.span(id)
    return span === undefined ? [] : [{ span, place }]
  })
  const root = rootOf(foldFacts(execution))
  const isPast = root === undefined || (after !== undefined && !isBehind(root.place, after))
  const before = isPast ? [] : stored.filter(({ place }) => isBehind(root.place, place))
  if (isPast || (next !== undefined && before.length === stored.length)) {
    return { spans: stored.map(({ span }) => span), next }
  }
  const all = [...before, root, ...stored.slice(before.length)]
  const kept = all.slice(0, itemsMax)
  return {
    spans: kept.map(({ span }) => span),
    next: kept.length < all.length ? kept.at(-1)?.place : next
  }
}

/** What follows a place among the spans of an execution. */
export const spansFrom = (
  store: TraceStore["Service"],
  { execution, executionId, tenantId }: ExecutionAt,
  after: SpanPlace | undefined,
  bounds: PageBounds
): Effect.Effect<SpansFrom, StoreUnavailable> =>
  Effect.flatMap(store.spans(tenantId, executionId, after, bounds), (page) =>
    inSlices(() => placed(execution, page, after, bounds.itemsMax))
  )

/** All of it, in chunks, each read when it is asked for. */
export const spanChunks = (
  store: TraceStore["Service"],
  at: ExecutionAt,
  after: SpanPlace | undefined,
  bounds: PageBounds = CHUNK
): Stream.Stream<ReadonlyArray<Span>, StoreUnavailable> =>
  Stream.paginate(after, (from) =>
    Effect.map(
      spansFrom(store, at, from, bounds),
      ({ next, spans }) => [[spans], Option.fromUndefinedOr(next)] as const
    )
  )

/** What a store holds of an execution, put together from its bounded reads. */
import { Effect, Stream } from "effect"
import { parseFact } from "../../src/domain/traces/FactText.ts"
import type { StoreUnavailable } from "../../src/ports/EventStore.ts"
import type {
  EventPlace,
  LoadedFact,
  PageBounds,
  SpanEventPage,
  TraceStore
} from "../../src/ports/TraceStore.ts"

type Store = TraceStore["Service"]

/** Everything in one page. */
const WHOLE: PageBounds = { itemsMax: 1_000_000, bytesMax: Number.MAX_SAFE_INTEGER }

/** Stored texts of the events of a span, page by page. */
export const eventsOfSpan = (
  store: Store,
  tenantId: string,
  of: { readonly executionId: string; readonly spanId: string },
  bounds: PageBounds = WHOLE
): Effect.Effect<ReadonlyArray<ReadonlyArray<string>>, StoreUnavailable> =>
  Effect.gen(function* () {
    const pages: Array<ReadonlyArray<string>> = []
    for (let after: EventPlace | undefined | "start" = "start"; after !== undefined; ) {
      const from: EventPlace | undefined = after === "start" ? undefined : after
      const page: SpanEventPage = yield* store.spanEvents(tenantId, of, from, bounds)
      pages.push(page.facts)
      after = page.next
    }
    return pages
  })

const numberOf = (body: string): number => parseFact(body)?.fact_number ?? 0

/** Stored texts of every fact of an execution, by fact number. */
export const allFacts = (
  store: Store,
  tenantId: string,
  executionId: string
): Effect.Effect<ReadonlyArray<string>, StoreUnavailable> =>
  Effect.gen(function* () {
    const scan = store.scan(tenantId, executionId, Number.MAX_SAFE_INTEGER)
    const structure = (yield* Stream.runCollect(scan)).flat()
    const spans = [...(yield* store.eventCounts(tenantId, executionId)).keys()]
    const events = yield* Effect.forEach(spans, (spanId) =>
      eventsOfSpan(store, tenantId, { executionId, spanId })
    )
    return [...structure, ...events.flat(2)].sort((left, right) => numberOf(left) - numberOf(right))
  })

/** The stored text of a fact without its details. */
export const withoutDetails = (body: string): string => {
  const { details: _, ...rest } = JSON.parse(body) as Record<string, unknown>
  return JSON.stringify(rest)
}

/** The stored text of a fact as the sequencer loads it. */
export const loadedFact = (stored: string): LoadedFact => {
  const body = withoutDetails(stored)
  const details = Buffer.byteLength(stored) - Buffer.byteLength(body) - ',"details":'.length
  return { body, detailsBytes: Math.max(0, details) }
}

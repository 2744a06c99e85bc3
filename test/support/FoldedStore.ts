/** The bounded reads of a trace store over facts in memory, for doubles of the port. */
import { type Effect, Stream } from "effect"
import { microsOf } from "../../src/domain/Timestamp.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import type { StoreUnavailable } from "../../src/ports/EventStore.ts"
import type { PageBounds, SpanPlace, TraceStore } from "../../src/ports/TraceStore.ts"

type Store = TraceStore["Service"]

/** Facts of one execution, by number. */
type FactsOf = (tenantId: string, executionId: string) => ReadonlyArray<TraceFact>

const bodies = (facts: ReadonlyArray<TraceFact>): ReadonlyArray<string> =>
  facts.map((fact) => JSON.stringify(fact))

/** As many items as fit, and whether any is left. */
const fitting = <A>(
  items: ReadonlyArray<A>,
  sizeOf: (item: A) => number,
  { bytesMax, itemsMax }: PageBounds
): readonly [ReadonlyArray<A>, boolean] => {
  let bytes = 0
  let count = 0
  for (const item of items) {
    bytes += sizeOf(item)
    if (count === itemsMax || (count > 0 && bytes > bytesMax)) break
    count += 1
  }
  return [items.slice(0, count), count < items.length]
}

const isOfSpan = (fact: TraceFact, spanId: string): boolean =>
  "span_id" in fact && fact.span_id === spanId

const isStructure = ({ type }: TraceFact): boolean =>
  type !== "span.event" && type !== "span.payload"

const isAfter = (place: SpanPlace, after: SpanPlace | undefined): boolean =>
  after === undefined
  || place.startedAt > after.startedAt
  || (place.startedAt === after.startedAt && place.factNumber > after.factNumber)

const sizeOf = (texts: ReadonlyArray<string>): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

/** The answers; `answer` may fail instead of giving them. */
export const foldedReads = (
  factsOf: FactsOf,
  given: <A>(make: () => A) => Effect.Effect<A, StoreUnavailable>
) => {
  const reads: Pick<
    Store,
    | "reach"
    | "scan"
    | "spanEvents"
    | "spans"
    | "spanCount"
    | "outlines"
    | "eventCounts"
    | "recordedCalls"
  > = {
    reach: (tenantId, executionId) =>
      given(() => factsOf(tenantId, executionId).at(-1)?.fact_number),
    scan: (tenantId, executionId, upTo) =>
      Stream.fromEffect(
        given(() => {
          const facts = factsOf(tenantId, executionId).filter(isStructure)
          return bodies(facts.filter(({ fact_number }) => fact_number <= upTo))
        })
      ),
    spanEvents: (tenantId, { executionId, spanId }, after, bounds) =>
      given(() => {
        const events = factsOf(tenantId, executionId).filter(
          (fact) =>
            fact.type === "span.event"
            && isOfSpan(fact, spanId)
            && fact.sequence_number > (after?.sequenceNumber ?? 0)
        )
        const [facts, isCut] = fitting(events, (fact) => sizeOf(bodies([fact])), bounds)
        const last = facts.at(-1)
        const next =
          isCut && last?.type === "span.event"
            ? { sequenceNumber: last.sequence_number, hash: last.hash }
            : undefined
        return { facts: bodies(facts), next }
      }),
    spans: (tenantId, executionId, after, bounds) =>
      given(() => {
        const facts = factsOf(tenantId, executionId).filter(isStructure)
        const spans = facts
          .flatMap((fact) => {
            if (fact.type !== "span.started") return []
            const id = fact.span_id
            const place = { startedAt: microsOf(fact.started_at), factNumber: fact.fact_number }
            return [{ id, place, facts: bodies(facts.filter((other) => isOfSpan(other, id))) }]
          })
          .filter(({ place }) => isAfter(place, after))
          .sort((left, right) => (isAfter(left.place, right.place) ? 1 : -1))
        const [kept, isCut] = fitting(spans, (span) => sizeOf(span.facts), bounds)
        return { spans: kept, next: isCut ? kept.at(-1)?.place : undefined }
      }),
    spanCount: (tenantId, executionId) =>
      given(
        () => factsOf(tenantId, executionId).filter(({ type }) => type === "span.started").length
      ),
    outlines: (tenantId, executionId, withMetadata) =>
      Stream.fromEffect(
        given(() =>
          factsOf(tenantId, executionId)
            .filter(({ type }) => type === "span.started" || type === "span.ended")
            .map((fact) => {
              const { details, ...rest } = fact
              // Either form, whatever the size.
              if (fact.fact_number % 2 === 0) {
                return { factNumber: fact.fact_number, fact: JSON.stringify(fact) }
              }
              const hasMetadata = withMetadata() && details?.metadata !== undefined
              return {
                factNumber: fact.fact_number,
                fact: JSON.stringify(rest),
                details: {
                  name: details?.name ?? "",
                  error: details?.error === undefined ? "" : JSON.stringify(details.error),
                  metadata: hasMetadata ? JSON.stringify(details.metadata) : ""
                }
              }
            })
        )
      ),
    recordedCalls: (tenantId, executionId) =>
      given(() =>
        factsOf(tenantId, executionId).flatMap((fact) => {
          if (fact.type !== "span.event" || !fact.event_type.startsWith("gen_ai.")) return []
          const { tool_calls, tool_results } = fact.details?.payload ?? {}
          return tool_calls === undefined && tool_results === undefined
            ? []
            : [{ spanId: fact.span_id, calls: JSON.stringify({ tool_calls, tool_results }) }]
        })
      ),
    eventCounts: (tenantId, executionId, spanId) =>
      given(() => {
        const counts = new Map<string, number>()
        for (const fact of factsOf(tenantId, executionId)) {
          if (fact.type !== "span.event" || (spanId ?? fact.span_id) !== fact.span_id) continue
          counts.set(fact.span_id, (counts.get(fact.span_id) ?? 0) + 1)
        }
        return counts
      })
  }
  return reads
}

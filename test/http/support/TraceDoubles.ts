/**
 * Traces of a test server: the facts that the real step of the sequencer makes, folded out of arrays
 * as a store would, and switches for what may go wrong.
 */
import { Effect, Layer, Stream } from "effect"
import { TooManyStreams } from "../../../src/actors/feeds/LiveFeed.ts"
import { ResumePointInvalid } from "../../../src/actors/feeds/LiveStream.ts"
import {
  ExecutionUnknown,
  TraceFeed,
  type TraceSubscription
} from "../../../src/actors/feeds/TraceFeed.ts"
import { microsOf } from "../../../src/domain/Timestamp.ts"
import { eraseFact, parseFact } from "../../../src/domain/traces/FactText.ts"
import { chunkOf } from "../../../src/domain/traces/Payload.ts"
import type { TraceFact } from "../../../src/domain/traces/TraceFact.ts"
import { foldFacts } from "../../../src/domain/traces/TraceView.ts"
import { StoreUnavailable } from "../../../src/ports/EventStore.ts"
import { type ExecutionPageQuery, TraceStore } from "../../../src/ports/TraceStore.ts"
import { TraceVerifier } from "../../../src/verify/TraceVerifier.ts"
import { foldedReads } from "../../support/FoldedStore.ts"
import { hasAsked, summaryOfFacts } from "../../support/Summaries.ts"

/** What the store of the test holds, by chain sequence and tenant. */
export class TraceWorld {
  readonly facts: Array<TraceFact> = []
  readonly subscriptions: Array<TraceSubscription> = []
  storeDown = false
  /** What is committed is not found. */
  forgetful = false
  streamsMax = 100
  /** Pages of executions are more than one chunk. */
  pageIsLarge = false
  /** Spans that an execution is said to have. */
  spansClaimed: number | undefined
  /** The store fails behind the first page of events. */
  eventsBreak = false
  sse: Stream.Stream<Uint8Array> = Stream.never
  /** Reads of facts and values that are under way at once: now, and the most so far. */
  reads: { now: number; most: number } | undefined

  /** What the projection does with a record of the topic. */
  project(body: string): void {
    const fact = parseFact(body)
    if (fact === undefined) throw new Error(`no fact: ${body}`)
    this.facts.push(fact)
    if (fact.type !== "execution.erased") return
    for (const [at, earlier] of this.facts.entries()) {
      const { details, execution_id, tenant_id } = earlier
      const isIts = execution_id === fact.execution_id && tenant_id === fact.tenant_id
      if (isIts && details !== undefined) {
        this.facts[at] = parseFact(eraseFact(earlier, fact.created_at))!
      }
    }
  }

  of(tenantId: string, executionId?: string): ReadonlyArray<TraceFact> {
    if (this.forgetful) return []
    return this.facts.filter(
      (fact) =>
        fact.tenant_id === tenantId
        && (executionId === undefined || fact.execution_id === executionId)
    )
  }
}

const bodies = (facts: ReadonlyArray<TraceFact>): ReadonlyArray<string> =>
  facts.map((fact) => JSON.stringify(fact))

const page = (world: TraceWorld, query: ExecutionPageQuery) => {
  const { from = "", hasError, limit, offset, status, tenantId, to = "9" } = query
  const { minDurationMicros = -1, order = "desc", sort = "started_at" } = query
  const ids = [...new Set(world.of(tenantId).map(({ execution_id }) => execution_id))]
  const found = ids
    .map((id) => world.of(tenantId, id).filter(({ type }) => type.startsWith("execution.")))
    .map((facts) => {
      const execution = foldFacts(facts).execution!
      const { ended_at, id, started_at } = execution
      const duration = ended_at === undefined ? -1 : microsOf(ended_at) - microsOf(started_at)
      const errors = world
        .of(tenantId, id)
        .filter((fact) => fact.type === "span.ended" && fact.status === "FAILED").length
      const all = world.of(tenantId, id)
      return { facts, execution, duration, errors, all, summary: summaryOfFacts(all) }
    })
    .filter(({ all, duration, errors, execution }) => {
      const { started_at, status: now } = execution
      return (
        (status === undefined || status.includes(now))
        && hasAsked(query, execution, all)
        && started_at >= from
        && started_at <= to
        && (hasError === undefined || hasError === (now === "FAILED" || errors > 0))
        && duration >= minDurationMicros
      )
    })
    .sort((left, right) => {
      const key = ({ duration, errors, execution, summary }: typeof left) =>
        ({
          duration,
          errors,
          started_at: microsOf(execution.started_at),
          tokens: (summary.input_tokens ?? 0) + (summary.output_tokens ?? 0),
          cost: summary.cost ?? 0
        })[sort]
      const hasNone = ({ duration, summary }: typeof left) =>
        (sort === "duration" && duration < 0) || (sort === "cost" && summary.cost === undefined)
      return (
        Number(hasNone(left)) - Number(hasNone(right))
        || (order === "asc" ? 1 : -1) * (key(left) - key(right))
        || (left.execution.id < right.execution.id ? -1 : 1)
      )
    })
  return {
    executions: Stream.fromIterable(
      found
        .slice(offset, offset + limit)
        .map(({ facts, summary }) => [{ facts: bodies(facts), summary }])
    ).pipe(Stream.rechunk(1)),
    isLarge: world.pageIsLarge,
    total: found.length
  }
}

/** A store that answers from the world's facts. */
export const traceStoreOf = (world: TraceWorld) => {
  const guarded = <A>(answer: () => A) =>
    Effect.suspend(() =>
      world.storeDown
        ? Effect.fail(new StoreUnavailable({ operation: "test", cause: new Error("down") }))
        : Effect.sync(answer)
    )
  /** Takes its time where reads are counted. */
  const counted = Effect.fnUntraced(function* <A, E>(read: Effect.Effect<A, E>) {
    const { reads } = world
    if (reads === undefined) return yield* read
    reads.now += 1
    reads.most = Math.max(reads.most, reads.now)
    yield* Effect.sleep(2)
    reads.now -= 1
    return yield* read
  })
  const folded = foldedReads((tenantId, executionId) => world.of(tenantId, executionId), guarded)
  return Layer.mock(TraceStore, {
    facts: (tenantId, executionId, selection) =>
      counted(
        guarded(() => {
          const facts = world.of(tenantId, executionId)
          switch (selection.kind) {
            case "execution":
              return bodies(facts.filter(({ type }) => type.startsWith("execution.")))
            case "erasures":
              return bodies(
                facts.filter(
                  ({ created_at, type }) =>
                    type === "execution.erased" && selection.times.includes(created_at)
                )
              )
            case "span":
              return bodies(
                facts.filter(
                  (fact) =>
                    fact.type.startsWith("execution.")
                    || (fact.type !== "span.event"
                      && fact.type !== "span.payload"
                      && "span_id" in fact
                      && fact.span_id === selection.spanId)
                )
              )
            case "event":
              return bodies(
                facts.filter(
                  (fact) =>
                    fact.type === "span.event" && fact.sequence_number === selection.sequenceNumber
                )
              )
          }
        })
      ),
    payload: (tenantId, hash) =>
      Stream.fromEffect(
        counted(
          guarded(() =>
            bodies(
              world.facts.filter(
                (fact) => fact.tenant_id === tenantId && chunkOf(fact)?.sha256 === hash
              )
            )
          )
        )
      ),
    executionOfSpan: (tenantId, spanId) =>
      guarded(
        () =>
          world
            .of(tenantId)
            .find(
              (fact) =>
                (fact.type === "span.started" && fact.span_id === spanId)
                || (fact.type === "execution.started" && fact.root_span_id === spanId)
            )?.execution_id
      ),
    ...folded,
    spanCount: (tenantId, executionId) =>
      Effect.map(folded.spanCount(tenantId, executionId), (count) => world.spansClaimed ?? count),
    spanEvents: (tenantId, of, after, bounds) =>
      world.eventsBreak && after !== undefined
        ? Effect.fail(new StoreUnavailable({ operation: "test", cause: new Error("down") }))
        : folded.spanEvents(tenantId, of, after, bounds),
    summaries: (tenantId, ids) =>
      guarded(
        () =>
          new Map(
            ids.flatMap((id) => {
              const facts = world.of(tenantId, id)
              return facts.length === 0 ? [] : [[id, summaryOfFacts(facts)] as const]
            })
          )
      ),
    page: (query) => guarded(() => page(world, query))
  })
}

const feedOf = (world: TraceWorld) =>
  TraceFeed.of({
    subscribe: (subscription) =>
      Effect.suspend(
        (): Effect.Effect<
          Stream.Stream<Uint8Array>,
          ExecutionUnknown | ResumePointInvalid | TooManyStreams
        > => {
          const { after = 0, executionId, tenantId } = subscription
          if (world.subscriptions.length >= world.streamsMax) {
            return Effect.fail(new TooManyStreams({ limit: world.streamsMax }))
          }
          if (world.of(tenantId, executionId).length === 0) {
            return Effect.fail(new ExecutionUnknown())
          }
          if (after > world.of(tenantId).length) {
            return Effect.fail(new ResumePointInvalid({ message: "beyond the head" }))
          }
          world.subscriptions.push(subscription)
          return Effect.succeed(world.sse)
        }
      )
  })

const verifierOf = (world: TraceWorld) =>
  TraceVerifier.of({
    verify: (tenantId, executionId) =>
      Effect.sync(() => {
        const facts = world.of(tenantId, executionId)
        if (facts.length === 0) return undefined
        return {
          valid: true,
          status: "valid",
          tenant_id: tenantId,
          scheme: "alk-trace-v1",
          execution_id: executionId,
          bounds: {
            from: "1970-01-01T00:00:00.000000Z",
            to: "2261-12-31T23:59:59.999999Z",
            from_sequence: null,
            to_sequence: null
          },
          facts_checked: facts.length,
          events_checked: facts.length,
          events_in_bounds: facts.length,
          first_sequence_number: facts[0]!.chain_sequence,
          last_sequence_number: facts.at(-1)!.chain_sequence,
          head: null,
          erased_events: 0,
          assurance: "self_attested",
          breaks: [],
          breaks_total: 0,
          verified_at: "2026-01-01T00:00:00.000000Z",
          duration_ms: 1
        }
      })
  })

/** The services of traces, made of the world. */
export const layerTraces = (world: TraceWorld) =>
  Layer.mergeAll(
    traceStoreOf(world),
    Layer.succeed(TraceFeed, feedOf(world)),
    Layer.succeed(TraceVerifier, verifierOf(world))
  )

/**
 * Collects from the store what a report says: exact counts, and of the events themselves only as
 * many as the pages show. Everything is read up to the sequence that verification ended at, so that
 * events that arrive meanwhile are in none of the numbers.
 */
import { Effect, Stream } from "effect"
import { GENESIS_HASH } from "../../domain/chain/Chains.ts"
import type { Outcome } from "../../domain/events/AuditEvent.ts"
import { ERASURE_ACTION } from "../../domain/events/Erasure.ts"
import type { EventDimension } from "../../domain/events/EventFields.ts"
import type { EventFilter } from "../../domain/events/EventFilter.ts"
import {
  type EventPageQuery,
  EventStore,
  type Stats,
  StoreUnavailable
} from "../../ports/EventStore.ts"
import { HISTORY_FROM, HISTORY_TO, type VerifyReport } from "../../verify/Verifier.ts"
import { TraceExport, type TraceScope } from "../pack/TraceExport.ts"
import { selectedEvents } from "../SelectedEvents.ts"
import type { ActionMatcher } from "./ActionPattern.ts"
import { type EventLine, eventLines } from "./EventLine.ts"
import { EventSurvey, SURVEY_EVENTS_MAX, type Surveyed } from "./EventSurvey.ts"
import { type Draw, drawSample, seedOf } from "./Sampling.ts"
import type { DayCount } from "./Timeline.ts"
import { type SurveyedTraces, TRACE_ITEMS_MAX, TraceSurvey } from "./TraceSurvey.ts"

/** Rows of the listing; ten times as many take a browser 18 s and 3.6 GiB. */
export const EVENT_ROWS_MAX = 1_000
/** Failed events that are listed, and as many errors. */
export const EXCEPTION_ROWS_MAX = 50
/** Erasures that are listed. */
export const ERASURE_ROWS_MAX = 50
/** Rows of each table of statistics; what is beyond is one row more. */
export const GROUPS_MAX = 10
/** Queries at once: the store serves others too. */
const QUERIES_AT_ONCE = 2

export interface EvidenceRequest {
  readonly tenantId: string
  readonly filter: EventFilter
  readonly verification: VerifyReport
  /** Of the reads, see EventStore. */
  readonly deduplicate: boolean
  readonly isPrivileged: ActionMatcher
  /** Undefined if the tenant has no executions. */
  readonly traces: TraceScope | undefined
}

export interface Group {
  readonly key: string
  readonly count: number
}

/** The largest groups, and how many events are in the rest. */
export interface Groups {
  readonly groups: ReadonlyArray<Group>
  readonly other: number
}

export interface Exceptions {
  readonly outcome: Outcome
  readonly total: number
  /** The newest first. */
  readonly shown: ReadonlyArray<EventLine>
}

export interface Sample {
  readonly seed: string
  /** A draw whose event is missing has none: the chain has changed or is broken there. */
  readonly drawn: ReadonlyArray<Draw & { readonly event: EventLine | undefined }>
}

export interface Evidence {
  /** What was read: the filter within the bounds of the verification. */
  readonly bounded: EventFilter
  /** Events that match. */
  readonly population: number
  /** What one pass over the events has found. */
  readonly survey: Surveyed
  readonly actions: Groups
  readonly outcomes: Groups
  readonly actorTypes: Groups
  readonly actors: Groups
  readonly resourceTypes: Groups
  /** Undefined if there are more days than the store counts in one answer. */
  readonly days: ReadonlyArray<DayCount> | undefined
  readonly exceptions: ReadonlyArray<Exceptions>
  readonly erasures: { readonly total: number; readonly shown: ReadonlyArray<EventLine> }
  readonly sample: Sample
  readonly traces: SurveyedTraces
  /** The newest EVENT_ROWS_MAX, in ascending order. */
  readonly events: ReadonlyArray<EventLine>
}

const largest = (...bounds: ReadonlyArray<number | null | undefined>): number | undefined => {
  const given = bounds.filter((bound) => typeof bound === "number")
  return given.length === 0 ? undefined : Math.max(...given)
}

/**
 * The filter within the bounds of the verification, and never beyond its last event. Bounds that
 * are the whole history are left out.
 */
export const boundedFilter = (filter: EventFilter, verification: VerifyReport): EventFilter => {
  const { bounds, last_sequence_number } = verification
  const { from, fromSequence, to, toSequence, ...others } = filter
  const lower = largest(fromSequence, bounds.from_sequence)
  const upper = Math.min(
    toSequence ?? Infinity,
    bounds.to_sequence ?? Infinity,
    last_sequence_number ?? 0
  )
  const start = from !== undefined && from > bounds.from ? from : bounds.from
  const end = to !== undefined && to < bounds.to ? to : bounds.to
  return {
    ...others,
    ...(start === HISTORY_FROM ? {} : { from: start }),
    ...(end === HISTORY_TO ? {} : { to: end }),
    ...(lower === undefined ? {} : { fromSequence: lower }),
    toSequence: upper
  }
}

/** The reads of one report. */
const readerOf = (
  store: EventStore["Service"],
  tenantId: string,
  filter: EventFilter,
  deduplicate: boolean
) => {
  const stats = (groupBy: EventDimension, limit: number, narrowed = filter) =>
    store
      .stats({ tenantId, filter: narrowed, groupBy: [groupBy], limit }, deduplicate)
      .pipe(Effect.catchTag("StatsTooLarge", Effect.die))
  const page = (
    query: Pick<EventPageQuery, "order" | "offset" | "limit">,
    options = { metadata: false },
    narrowed = filter
  ) =>
    store.page({ tenantId, filter: narrowed, ...query }, deduplicate).pipe(
      Effect.map(({ bodies, total }) => ({
        total,
        shown: eventLines(bodies, options)
      }))
    )
  const days = store
    .stats({ tenantId, filter, groupBy: ["outcome"], interval: "day", limit: 3 }, deduplicate)
    .pipe(
      Effect.map(({ buckets = [] }) =>
        buckets.map(({ count, keys, start }): DayCount => ({ start, outcome: keys[0]!, count }))
      ),
      Effect.catchTag("StatsTooLarge", () => Effect.succeed(undefined))
    )
  return { stats, page, days }
}

type Reader = ReturnType<typeof readerOf>

const exceptionsOf = (reader: Reader, filter: EventFilter, outcome: Outcome) => {
  if (filter.outcome !== undefined && filter.outcome !== outcome) {
    const none: Exceptions = { outcome, total: 0, shown: [] }
    return Effect.succeed(none)
  }
  const page = { order: "desc", offset: 0, limit: EXCEPTION_ROWS_MAX } as const
  return reader
    .page(page, { metadata: false }, { ...filter, outcome })
    .pipe(Effect.map(({ shown, total }): Exceptions => ({ outcome, total, shown })))
}

/** Erasures within the filter; one that asks for another action has none. */
const erasuresOf = (reader: Reader, filter: EventFilter) => {
  const { action, actionPrefix, ...others } = filter
  const fits =
    (action === undefined || action === ERASURE_ACTION)
    && (actionPrefix === undefined || ERASURE_ACTION.startsWith(actionPrefix))
  if (!fits) return Effect.succeed({ total: 0, shown: [] })
  const page = { order: "desc", offset: 0, limit: ERASURE_ROWS_MAX } as const
  return reader.page(page, { metadata: true }, { ...others, action: ERASURE_ACTION })
}

const sampleOf = (reader: Reader, seed: string, population: number) =>
  Effect.forEach(
    drawSample(seed, population),
    ({ draw, position }) =>
      reader
        .page({ order: "asc", offset: position - 1, limit: 1 }, { metadata: true })
        .pipe(Effect.map(({ shown }) => ({ draw, position, event: shown[0] }))),
    { concurrency: QUERIES_AT_ONCE }
  ).pipe(Effect.map((drawn): Sample => ({ seed, drawn })))

const eventsOf = (
  store: EventStore["Service"],
  { deduplicate, tenantId }: EvidenceRequest,
  filter: EventFilter
): Effect.Effect<ReadonlyArray<EventLine>, StoreUnavailable> =>
  store.scan({ tenantId, filter, order: "desc" }, deduplicate).pipe(
    Stream.flattenIterable,
    Stream.take(EVENT_ROWS_MAX),
    Stream.map((body) => eventLines([body], { metadata: false })),
    Stream.runCollect,
    Effect.map((lines) => lines.flat().reverse())
  )

/** The lines of a stream, at most so many; answers whether these are all. */
const takeLines = <E, R>(
  lines: Stream.Stream<ReadonlyArray<string>, E, R>,
  linesMax: number,
  take: (line: string) => void
): Effect.Effect<boolean, E, R> =>
  Effect.suspend(() => {
    let room = linesMax
    let isWhole = true
    return lines.pipe(
      Stream.takeWhile((chunk) => {
        isWhole &&= chunk.length <= room
        return room > 0
      }),
      Stream.runForEach((chunk) =>
        Effect.sync(() => {
          for (const line of chunk.slice(0, room)) take(line)
          room -= Math.min(room, chunk.length)
        })
      ),
      Effect.map(() => isWhole)
    )
  })

/** Every event once, in ascending order, up to the limit of a survey. */
const surveyOf = Effect.fnUntraced(function* (
  { deduplicate, isPrivileged, tenantId, verification }: EvidenceRequest,
  filter: EventFilter
) {
  const survey = new EventSurvey(isPrivileged)
  const events = selectedEvents({ tenantId, filter, verification, deduplicate })
  return survey.result(yield* takeLines(events, SURVEY_EVENTS_MAX, (body) => survey.take(body)))
})

/** Executions first: which errors are wanted of the spans follows from them. */
const tracesOf = Effect.fnUntraced(function* ({ traces }: EvidenceRequest) {
  const survey = new TraceSurvey()
  if (traces === undefined) return survey.result(true)
  const stored = yield* TraceExport
  const areAll = yield* takeLines(stored.executions(traces), TRACE_ITEMS_MAX, (line) =>
    survey.takeExecution(line)
  )
  const areAllSpans = yield* takeLines(stored.spans(traces), TRACE_ITEMS_MAX, (line) =>
    survey.takeSpan(line)
  )
  return survey.result(areAll && areAllSpans)
})

const groupsOf = ({ groups, other }: Stats): Groups => ({
  groups: groups.map(({ count, keys }) => ({ key: keys[0]!, count })),
  other
})

/** What one report says, and no more of it than its pages show. */
export const collectEvidence = Effect.fn("Evidence.collect")(function* (request: EvidenceRequest) {
  const { deduplicate, tenantId, verification } = request
  const store = yield* EventStore
  const filter = boundedFilter(request.filter, verification)
  const reader = readerOf(store, tenantId, filter, deduplicate)
  const outcomes = yield* reader.stats("outcome", 3)
  const population = outcomes.total
  const seed = seedOf(tenantId, verification.head?.hash ?? GENESIS_HASH)
  const [actions, actorTypes, actors, resourceTypes, days] = yield* Effect.all(
    [
      reader.stats("action", GROUPS_MAX),
      reader.stats("actor_type", 3),
      reader.stats("actor_id", GROUPS_MAX),
      reader.stats("resource_type", GROUPS_MAX),
      reader.days
    ],
    { concurrency: QUERIES_AT_ONCE }
  )
  const survey = yield* surveyOf(request, filter)
  if (survey.isWhole && survey.events !== population && verification.status === "valid") {
    const cause = new Error(`the store counts ${population} events that are ${survey.events}`)
    return yield* new StoreUnavailable({ operation: "survey", cause })
  }
  const traces = yield* tracesOf(request)
  const [failures, errors, erasures, sample, events] = yield* Effect.all(
    [
      exceptionsOf(reader, filter, "failure"),
      exceptionsOf(reader, filter, "error"),
      erasuresOf(reader, filter),
      sampleOf(reader, seed, population),
      eventsOf(store, request, filter)
    ],
    { concurrency: QUERIES_AT_ONCE }
  )
  const evidence: Evidence = {
    bounded: filter,
    population,
    survey,
    actions: groupsOf(actions),
    outcomes: groupsOf(outcomes),
    actorTypes: groupsOf(actorTypes),
    actors: groupsOf(actors),
    resourceTypes: groupsOf(resourceTypes),
    days,
    exceptions: [failures, errors],
    erasures,
    sample,
    traces,
    events
  }
  return evidence
})

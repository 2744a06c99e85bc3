/**
 * Collects what a report says: exact counts, and of the events themselves only as many as the pages
 * show. Where the chain was found to hold, each event is recomputed as it is counted. Everything is
 * read up to the sequence that verification ended at, so that events that arrive meanwhile are in
 * none of the numbers.
 */
import { Effect, Stream } from "effect"
import { GENESIS_HASH } from "../../domain/chain/Chains.ts"
import { type EventFilter, emptyFilter } from "../../domain/events/EventFilter.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { HISTORY_FROM, HISTORY_TO, type VerifyReport } from "../../verify/Verifier.ts"
import { TraceExport, type TraceScope } from "../pack/TraceExport.ts"
import { selectedEvents } from "../SelectedEvents.ts"
import type { ActionMatcher } from "./ActionPattern.ts"
import { type EventLine, eventLines } from "./EventLine.ts"
import { EventSurvey, type Surveyed, type Tables } from "./EventSurvey.ts"
import { type Draw, drawSample, seedOf } from "./Sampling.ts"
import { type SurveyedTraces, TRACE_ITEMS_MAX, TraceSurvey } from "./TraceSurvey.ts"

/** Events of the sample that are read at once: the store serves others too. */
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
  readonly tables: Tables
  readonly sample: Sample
  readonly traces: SurveyedTraces
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
        inSlices(function* () {
          for (const line of chunk.slice(0, room)) {
            take(line)
            yield
          }
          room -= Math.min(room, chunk.length)
        })
      ),
      Effect.map(() => isWhole)
    )
  })

/** Every event once, in ascending order. */
const surveyOf = Effect.fnUntraced(function* (
  { deduplicate, isPrivileged, tenantId, verification }: EvidenceRequest,
  filter: EventFilter
) {
  const survey = new EventSurvey(isPrivileged)
  const selection = { tenantId, filter, verification, deduplicate, isRetold: true }
  yield* Stream.runForEach(selectedEvents(selection), (bodies) =>
    inSlices(function* () {
      for (const body of bodies) {
        survey.take(body)
        yield
      }
    })
  )
  return survey
})

/** The event of a sequence; undefined if it is missing or is no readable event. */
const eventAt = ({ deduplicate, tenantId, verification }: EvidenceRequest, sequence: number) => {
  const filter = { ...emptyFilter, fromSequence: sequence, toSequence: sequence }
  const one = { first_sequence_number: sequence, last_sequence_number: sequence }
  return Effect.map(
    Stream.runCollect(
      selectedEvents({
        tenantId,
        filter,
        verification: { ...verification, ...one },
        deduplicate,
        isRetold: true
      })
    ),
    (chunks) => eventLines(chunks.flat(), { metadata: true })[0]
  )
}

const sampleOf = (
  request: EvidenceRequest,
  survey: EventSurvey,
  seed: string,
  population: number
) =>
  Effect.forEach(
    drawSample(seed, population),
    ({ draw, position }) =>
      Effect.map(eventAt(request, survey.sequenceAt(position) ?? 0), (event) => ({
        draw,
        position,
        event
      })),
    { concurrency: QUERIES_AT_ONCE }
  ).pipe(Effect.map((drawn): Sample => ({ seed, drawn })))

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

/** What one report says, and no more of it than its pages show. */
export const collectEvidence = Effect.fn("Evidence.collect")(function* (request: EvidenceRequest) {
  const { tenantId, verification } = request
  const filter = boundedFilter(request.filter, verification)
  const pass = yield* surveyOf(request, filter)
  const survey = pass.result()
  const population = survey.events
  const traces = yield* tracesOf(request)
  const seed = seedOf(tenantId, verification.head?.hash ?? GENESIS_HASH)
  const sample = yield* sampleOf(request, pass, seed, population)
  const evidence: Evidence = {
    bounded: filter,
    population,
    survey,
    tables: pass.tables(),
    sample,
    traces
  }
  return evidence
})

/**
 * Goes over every chain in the background, new events soon after they are stored and all others
 * again and again, at a bounded rate, so that a break is found before it is asked for. How a range
 * is checked is Verifier's part; it only plans, paces, counts and reports breaks.
 */
import { Clock, Effect, Metric, Ref, Schedule } from "effect"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import { counterOf, gaugeOf } from "../../domain/metrics/Metrics.ts"
import { BLOCK_EVENTS } from "../../ports/ChainRecompute.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { Heads, headOf } from "../follower/Heads.ts"

export interface SelfVerificationSettings {
  /** Events that are recomputed per second at most, in the long run; 0 turns it off. */
  readonly eventsPerSecond: number
  /** Whether a request waits that a slice would delay. */
  readonly isAwaited: () => boolean
}

/** Part of a chain. */
export interface Slice {
  /** Name of the chain's tree, see domain/Chains. */
  readonly tree: string
  readonly fromSequence: number
  /** Undefined: to the end, which has to be the log's head. */
  readonly toSequence: number | undefined
  /** About how many events that is. */
  readonly events: number
  readonly lane: "new" | "old"
}

/** What a check of a slice found; a part of the report. */
export interface SliceReport {
  readonly status: "valid" | "broken" | "incomplete" | "empty"
  readonly events_checked: number
  readonly last_sequence_number: number | null
  readonly breaks: ReadonlyArray<{
    readonly sequence_number: number
    readonly reason: string
  }>
  readonly breaks_total: number
  /** The beginning of the chain was removed up to here. */
  readonly pruned?: { readonly up_to_sequence: number }
}

export type CheckSlice = (
  slice: Slice
) => Effect.Effect<SliceReport, LogUnavailable | StoreUnavailable>

/**
 * Events of one slice at most: the store is not kept busy for longer than a moment, and what its
 * statements cost however few the events are is little for each.
 */
const SLICE_EVENTS_MAX = 16 * BLOCK_EVENTS
/** Seconds that a slice may take at the rate: new events wait for it. */
const SLICE_SECONDS_MAX = 20
/** Milliseconds between two slices at least. */
const PAUSE_MS_MIN = 100
/**
 * Times of what it took that a small slice is rested from: it costs the same however few its events
 * are, and while single events come in each slice is small. The next has those of meanwhile.
 */
const SMALL_SLICE_RESTS = 30
/** Milliseconds of such a rest at most. */
const SMALL_SLICE_REST_MS_MAX = 10_000
/** A slice waits for requests so long at most: it comes to its turn under any load. */
const YIELD_MAX = "500 millis"
/** A slice of at most so many events delays a request too little to wait for it. */
const SMALL_SLICE_EVENTS = 256
const YIELD_POLL = "10 millis"
/** Milliseconds after a complete pass before a chain is gone through again. */
const PASS_PAUSE_MS = 10 * 60_000
/** Time until all tenants are looked at again when there was nothing to do. */
const IDLE_PAUSE = "1 second"

/** The progress of verification on one chain. Times are milliseconds of the clock. */
export interface VerificationCursor {
  readonly tree: string
  /** Events after this one are new. */
  readonly seen: number
  /** The next of the old events. */
  readonly next: number
  /** Where the running pass ends; undefined between two passes. */
  readonly passEnd: number | undefined
  readonly lastPassAt: number | undefined
  /** The running pass has found a break. */
  readonly passBroken: boolean
  /** A break was found, and no pass since then was clean. */
  readonly broken: boolean
}

/** The rounds on a chain that was not known before: what it has is old. */
export const newCursor = (tree: string, head: number): VerificationCursor => ({
  tree,
  seen: head,
  next: 1,
  passEnd: undefined,
  lastPassAt: undefined,
  passBroken: false,
  broken: false
})

/** The end of a slice, at the end of a block where that costs little. */
const sliceEnd = (first: number, last: number, eventsMax: number): number => {
  const end = first + eventsMax - 1
  if (end >= last) return last
  const aligned = Math.floor(end / BLOCK_EVENTS) * BLOCK_EVENTS
  return aligned >= first ? aligned : end
}

/** What to check next of a chain with this head: new events first; undefined if nothing is due. */
export const planSlice = (
  cursor: VerificationCursor,
  head: number,
  now: number,
  eventsMax: number
): Slice | undefined => {
  const { lastPassAt, next, passEnd, seen, tree } = cursor
  if (head > seen) {
    const end = sliceEnd(seen + 1, head, eventsMax)
    return {
      tree,
      fromSequence: seen + 1,
      toSequence: end === head ? undefined : end,
      events: end - seen,
      lane: "new"
    }
  }
  const isPaused =
    passEnd === undefined && lastPassAt !== undefined && now - lastPassAt < PASS_PAUSE_MS
  const last = passEnd ?? head
  if (isPaused || last < 1) return undefined
  const end = sliceEnd(next, last, eventsMax)
  return {
    tree,
    fromSequence: next,
    toSequence: end >= head ? undefined : end,
    events: end - next + 1,
    lane: "old"
  }
}

/** The rounds after a slice was checked, as far as the report says it was. */
export const afterSlice = (
  cursor: VerificationCursor,
  slice: Slice,
  head: number,
  report: SliceReport,
  now: number
): VerificationCursor => {
  const isBroken = report.breaks_total > 0
  const broken = cursor.broken || isBroken
  const planned = slice.fromSequence + slice.events - 1
  const pruned = report.pruned?.up_to_sequence ?? 0
  const reached =
    report.status === "incomplete"
      ? (report.last_sequence_number ?? slice.fromSequence - 1)
      : Math.max(planned, report.last_sequence_number ?? 0, pruned)
  if (slice.lane === "new") return { ...cursor, seen: Math.max(cursor.seen, reached), broken }
  const passEnd = cursor.passEnd ?? head
  const passBroken = cursor.passBroken || isBroken
  if (reached < passEnd) return { ...cursor, next: reached + 1, passEnd, passBroken, broken }
  return {
    ...cursor,
    next: 1,
    passEnd: undefined,
    lastPassAt: now,
    passBroken: false,
    broken: passBroken
  }
}

const verifiedEvents = counterOf("alk_self_verification_events_total")
const breaksFound = counterOf("alk_self_verification_breaks_total")
const brokenTenants = gaugeOf("alk_self_verification_broken_tenants")
const oldestPass = gaugeOf("alk_self_verification_oldest_pass_timestamp_seconds")

const showCursors = (cursors: ReadonlyMap<string, VerificationCursor>) => {
  const all = [...cursors.values()]
  const oldest = Math.min(...all.map(({ lastPassAt }) => lastPassAt ?? 0))
  return Effect.andThen(
    Metric.update(brokenTenants, all.filter(({ broken }) => broken).length),
    Metric.update(oldestPass, all.length === 0 ? 0 : oldest / 1_000)
  )
}

/** The first break of a chain. */
const reportBreak = (before: VerificationCursor, report: SliceReport) => {
  const [first] = report.breaks
  return before.broken || first === undefined
    ? Effect.void
    : Effect.logError("SELF-VERIFICATION FOUND A BROKEN CHAIN", {
        ...chainOfTree(before.tree),
        sequenceNumber: first.sequence_number,
        reason: first.reason,
        breaks: report.breaks_total
      })
}

/** Milliseconds to rest after a slice of so many events that took so many milliseconds. */
export const restMs = (
  events: number,
  tookMs: number,
  { eventsMax, eventsPerSecond }: { readonly eventsMax: number; readonly eventsPerSecond: number }
): number => {
  const dueMs = (events / eventsPerSecond) * 1_000 - tookMs
  const isSmall = 2 * events < eventsMax
  const ownMs = isSmall ? Math.min(SMALL_SLICE_RESTS * tookMs, SMALL_SLICE_REST_MS_MAX) : 0
  return Math.max(PAUSE_MS_MIN, dueMs, ownMs)
}

/** Nothing is lost by waiting: the cursors stay where they are. */
const backOff = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("30 seconds")])

const unavailableLogged = (failure: LogUnavailable | StoreUnavailable) =>
  Effect.logWarning("self-verification waits", failure.operation, failure.cause)

/** Go the rounds for as long as the scope is open. */
export const runSelfVerification = Effect.fnUntraced(function* (
  { eventsPerSecond, isAwaited }: SelfVerificationSettings,
  check: CheckSlice
) {
  const cursors = yield* Ref.make<ReadonlyMap<string, VerificationCursor>>(new Map())
  if (eventsPerSecond <= 0) return { cursors: Ref.get(cursors) }
  const heads = yield* Heads
  const eventsMax = Math.max(1, Math.min(SLICE_EVENTS_MAX, SLICE_SECONDS_MAX * eventsPerSecond))

  const unawaited = Effect.sync(isAwaited).pipe(
    Effect.repeat({ while: (awaited) => awaited, schedule: Schedule.spaced(YIELD_POLL) }),
    Effect.timeoutOption(YIELD_MAX)
  )

  /** Check one slice, take down what it says, and rest until it has had its time. */
  const verifyNext = Effect.fnUntraced(function* (
    cursor: VerificationCursor,
    slice: Slice,
    head: number
  ) {
    const started = yield* Clock.currentTimeMillis
    if (slice.events > SMALL_SLICE_EVENTS) yield* unawaited
    const report = yield* check(slice)
    const now = yield* Clock.currentTimeMillis
    yield* Metric.update(verifiedEvents, report.events_checked)
    if (report.breaks_total > 0) yield* Metric.update(breaksFound, report.breaks_total)
    yield* reportBreak(cursor, report)
    const after = afterSlice(cursor, slice, head, report, now)
    const all = yield* Ref.updateAndGet(cursors, (known) => new Map(known).set(cursor.tree, after))
    yield* showCursors(all)
    yield* Effect.sleep(
      restMs(Math.max(slice.events, report.events_checked), now - started, {
        eventsMax,
        eventsPerSecond
      })
    )
  })

  /** One slice of a chain; false if nothing was due. */
  const visit = Effect.fnUntraced(function* (tree: string) {
    const head = (yield* headOf(heads, chainOfTree(tree)))?.sequence_number ?? 0
    const now = yield* Clock.currentTimeMillis
    const known = yield* Ref.get(cursors)
    const cursor = known.get(tree) ?? newCursor(tree, head)
    const slice = planSlice(cursor, head, now, eventsMax)
    if (slice === undefined) return false
    yield* verifyNext(cursor, slice, head)
    return true
  })

  const round = Effect.gen(function* () {
    let worked = false
    for (const tree of yield* heads.trees) {
      const done = yield* visit(tree).pipe(
        Effect.tapError(unavailableLogged),
        Effect.retry(backOff)
      )
      worked ||= done
    }
    if (!worked) yield* Effect.sleep(IDLE_PAUSE)
  })

  yield* round.pipe(
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("self-verification starts over", defect),
        Effect.sleep(IDLE_PAUSE)
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  return { cursors: Ref.get(cursors) }
})

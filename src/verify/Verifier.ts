/**
 * The accuser: recomputes what is stored and says where it does not hold. Shares only the domain
 * with the writer and believes nothing but bytes and the head that the log tells.
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { Heads } from "../actors/Heads.ts"
import { Visibility } from "../actors/Visibility.ts"
import { formatMicros, nowMicros } from "../domain/Timestamp.ts"
import { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import { EventStore, type StoreUnavailable } from "../ports/EventStore.ts"
import { ChainCheck } from "./ChainCheck.ts"

export interface VerifyRequest {
  readonly tenantId: string
  /** Bounds by event time, canonical microsecond form, inclusive. */
  readonly from?: string
  readonly to?: string
  readonly fromSequence?: number
  readonly toSequence?: number
  /** Compare the end with the log's head when no upper bound is given. */
  readonly requireHead: boolean
}

export type BreakReason =
  | "content_mismatch"
  | "hash_mismatch"
  | "prev_hash_mismatch"
  | "sequence_gap"
  | "duplicate_sequence"
  | "tail_missing"
  | "checkpoint_mismatch"

export interface Break {
  readonly sequence_number: number
  readonly event_id: string | null
  readonly reason: BreakReason
  readonly expected: string
  readonly actual: string
}

/** The answer of every verification. */
export interface VerifyReport {
  readonly valid: boolean
  readonly status: "valid" | "broken" | "incomplete" | "empty"
  readonly tenant_id: string
  readonly scheme: "alk-chain-v1"
  readonly bounds: {
    readonly from: string
    readonly to: string
    readonly from_sequence: number | null
    readonly to_sequence: number | null
  }
  readonly events_checked: number
  readonly events_in_bounds: number
  readonly first_sequence_number: number | null
  readonly last_sequence_number: number | null
  readonly head: {
    readonly sequence_number: number
    readonly hash: string
    readonly created_at: string
  } | null
  readonly erased_events: number
  readonly assurance: "self_attested" | "signed" | "timestamped"
  readonly breaks: ReadonlyArray<Break>
  readonly breaks_total: number
  readonly verified_at: string
  readonly duration_ms: number
}

export class Verifier extends Context.Service<
  Verifier,
  {
    verify(
      request: VerifyRequest
    ): Effect.Effect<VerifyReport, StoreUnavailable | LogUnavailable>
  }
>()("alk/Verifier") {}

/** The whole supported history: what bounds mean when they are left out. */
export const HISTORY_FROM = "1970-01-01T00:00:00.000000Z"
export const HISTORY_TO = "2261-12-31T23:59:59.999999Z"

/** Time that a check waits for the store to hold what the log holds. */
const CATCH_UP_TIMEOUT = "10 seconds"
/** Larger than any sequence number: rows behind the head are looked at too. */
const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER
const CONFLICTS_MAX = 100

/** The sequences that a request means. */
interface Span {
  readonly first: number
  readonly last: number
  /** No upper bound was given: the chain must end where the log says. */
  readonly open: boolean
}

const emptySpan: Span = { first: 1, last: 0, open: false }

const spanOf = Effect.fnUntraced(function*(request: VerifyRequest) {
  const { from, fromSequence = 1, tenantId, to, toSequence } = request
  const open = to === undefined && toSequence === undefined
  if (from === undefined && to === undefined) {
    const span: Span = {
      first: fromSequence,
      last: toSequence ?? SEQUENCE_MAX,
      open
    }
    return span
  }
  const store = yield* EventStore
  const found = yield* store.sequenceSpan(tenantId, from, to)
  if (found === undefined) return emptySpan
  const span: Span = {
    first: Math.max(found.first, fromSequence),
    last: open ? SEQUENCE_MAX : Math.min(found.last, toSequence ?? SEQUENCE_MAX),
    open
  }
  return span
})

const caughtUp = Effect.fnUntraced(function*(tenantId: string) {
  const log = yield* EventLog
  const visibility = yield* Visibility
  const partition = log.partitionOf(tenantId)
  const [end = 0] = yield* log.ends([{ topic: "events", partition }])
  const reached = yield* visibility
    .reached(partition, end, 0)
    .pipe(Effect.timeoutOption(CATCH_UP_TIMEOUT))
  if (Option.isNone(reached)) {
    const cause = new Error("the store has not caught up with the log")
    return yield* new LogUnavailable({ operation: "verify", cause })
  }
})

const verify = Effect.fn("Verifier.verify")(function*(request: VerifyRequest) {
  const { from = HISTORY_FROM, requireHead, tenantId, to = HISTORY_TO } = request
  const started = yield* Clock.currentTimeMillis
  const store = yield* EventStore
  const heads = yield* Heads
  const head = yield* heads.head(tenantId)
  yield* caughtUp(tenantId)
  const span = yield* spanOf(request)
  const check = new ChainCheck(tenantId, span.first, { from, to })
  if (span.first <= span.last) {
    // One row more in front: the first link must point at it.
    const before = Math.max(1, span.first - 1)
    yield* store
      .rows(tenantId, before, span.last)
      .pipe(Stream.runForEach((rows) => Effect.sync(() => rows.forEach((row) => check.row(row)))))
  }
  for (const conflict of yield* store.conflicts(tenantId, CONFLICTS_MAX)) {
    const { sequenceNumber } = conflict
    if (sequenceNumber >= span.first && sequenceNumber <= span.last) check.conflict(conflict)
  }
  if (span.open && requireHead) check.head(head)
  else if (!span.open && span.last >= span.first) {
    check.end(Math.min(span.last, head?.sequence_number ?? 0))
  }
  const verdict = check.verdict()
  const report: VerifyReport = {
    valid: verdict.breaksTotal === 0,
    status:
      verdict.breaksTotal > 0 ? "broken" : verdict.eventsChecked === 0 ? "empty" : "valid",
    tenant_id: tenantId,
    scheme: "alk-chain-v1",
    bounds: {
      from,
      to,
      from_sequence: request.fromSequence ?? null,
      to_sequence: request.toSequence ?? null
    },
    events_checked: verdict.eventsChecked,
    events_in_bounds: verdict.eventsInBounds,
    first_sequence_number: verdict.first ?? null,
    last_sequence_number: verdict.last ?? null,
    head: head ?? null,
    erased_events: verdict.erased,
    assurance: "self_attested",
    breaks: verdict.breaks,
    breaks_total: verdict.breaksTotal,
    verified_at: formatMicros(nowMicros()),
    duration_ms: (yield* Clock.currentTimeMillis) - started
  }
  return report
})

export const layerVerifier: Layer.Layer<
  Verifier,
  never,
  EventLog | EventStore | Heads | Visibility
> = Layer.effect(
  Verifier,
  Effect.gen(function*() {
    const context = yield* Effect.context<EventLog | EventStore | Heads | Visibility>()
    return Verifier.of({
      verify: (request) => verify(request).pipe(Effect.provideContext(context))
    })
  })
)

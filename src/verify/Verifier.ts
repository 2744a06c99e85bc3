/**
 * The accuser: recomputes what is stored and says where it does not hold. Shares only the domain
 * with the writer and believes nothing but bytes, the head that the log tells, and what was signed.
 *
 * Where the store can hash, it recomputes whole blocks at once, and this program recomputes the
 * ends and a random sample of them. A block that is not perfect, by either's word, is gone through
 * row by row here, so every break is named by the same code.
 */
import { Clock, Context, Effect, Layer, Stream } from "effect"
import { Heads } from "../actors/Heads.ts"
import type { Head } from "../actors/SequencerState.ts"
import type { Visibility } from "../actors/Visibility.ts"
import { recompute } from "../domain/HashChain.ts"
import { formatMicros, nowMicros } from "../domain/Timestamp.ts"
import {
  BLOCK_EVENTS,
  blockOf,
  type ChainRecompute,
  type RecomputedBlock
} from "../ports/ChainRecompute.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import { EventStore, type StoredRow, type StoreUnavailable } from "../ports/EventStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import { ChainCheck, faultsOf } from "./ChainCheck.ts"
import { erasuresOfRows, learnErasures, type Erasures } from "./Erasures.ts"
import { checkedProof } from "./EventInclusion.ts"
import { chainRecompute } from "./RecomputeInProgram.ts"
import {
  isForged,
  signedCheckpoints,
  type SignedCheckpoint,
  type SignedCheckpoints
} from "./SignedCheckpoints.ts"
import { HISTORY_FROM, HISTORY_TO, verdictOf, type VerifyReport } from "./VerifyReport.ts"

export { HISTORY_FROM, HISTORY_TO } from "./VerifyReport.ts"
export type { Break, BreakReason, VerifyReport } from "./VerifyReport.ts"

export interface VerifyRequest {
  readonly tenantId: string
  /** Bounds by event time, canonical microsecond form, inclusive. */
  readonly from?: string
  readonly to?: string
  readonly fromSequence?: number
  readonly toSequence?: number
  /** Compare the end with the log's head when no upper bound is given. */
  readonly requireHead: boolean
  /** Checkpoints that the caller kept, with valid signatures: the chain has to lead to each. */
  readonly checkpoints?: ReadonlyArray<SignedCheckpoint>
  /** `program`: recompute every row here, whatever the store could do. */
  readonly recompute?: "store" | "program"
  /** Blocks that the store recomputes in one question: fewer leave more room for others. */
  readonly chunkBlocks?: number
  /** Milliseconds after which the check ends as `incomplete`; resume behind its last sequence. */
  readonly timeLimitMs?: number
  /** Told after each part of the chain. */
  readonly onProgress?: (progress: VerifyProgress) => Effect.Effect<void>
}

/** How far a check has come. */
export interface VerifyProgress {
  readonly eventsChecked: number
  readonly upToSequence: number
  /** `hash` of that sequence, recomputed: an anchor for whoever resumes behind it. */
  readonly hash: string | undefined
  /** The last sequence of the span. */
  readonly of: number
  readonly breaksTotal: number
}

export class Verifier extends Context.Service<
  Verifier,
  {
    /**
     * Fails only if nothing could be checked. What fails after a part of the chain was checked ends
     * the report as `incomplete`.
     */
    verify(
      request: VerifyRequest
    ): Effect.Effect<VerifyReport, StoreUnavailable | LogUnavailable>
  }
>()("alk/Verifier") {}

/** Unless asked otherwise: some tenths of a second, some megabytes. */
const CHUNK_BLOCKS = 256
/** Spans up to this many events are recomputed here: asking the store costs more. */
const SMALL_SPAN_EVENTS = BLOCK_EVENTS
/** Rows that the program recomputes of each chunk beside its ends. */
const SAMPLE_EVENTS = 14
const CONFLICTS_MAX = 100
/** Forged checkpoints that are named before an older one is no longer looked for. */
const FORGED_MAX = 10
const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER

/** The sequences that a request means. */
interface Span {
  readonly first: number
  readonly last: number
  /** No upper bound was given: the chain must end where the log says. */
  readonly open: boolean
}

const emptySpan: Span = { first: 1, last: 0, open: false }

type Recompute = ChainRecompute["Service"]

/** Everything that one check works with. */
interface Run {
  readonly request: VerifyRequest
  readonly span: Span
  readonly check: ChainCheck
  readonly recompute: Recompute
  readonly checkpoints: SignedCheckpoints["Service"]
  /** The tree is built for the roots at these sizes, ascending. */
  readonly treeSizes: ReadonlyArray<number>
  readonly endsAt: number
}

const spanOf = Effect.fnUntraced(function*(
  { from, fromSequence, tenantId, to, toSequence = SEQUENCE_MAX }: VerifyRequest,
  recompute: Recompute
) {
  const first = Math.max(1, fromSequence ?? 1)
  if (from === undefined && to === undefined) {
    const span: Span = { first, last: toSequence, open: toSequence === SEQUENCE_MAX }
    return span
  }
  const found = yield* recompute.span(tenantId, from ?? HISTORY_FROM, to ?? HISTORY_TO)
  if (found === undefined) return emptySpan
  const open = to === undefined && toSequence === SEQUENCE_MAX
  const span: Span = {
    first: Math.max(found.first, first),
    last: open ? SEQUENCE_MAX : Math.min(found.last, toSequence),
    open
  }
  return span
})

/** Go through the rows of a range here. */
const checkRows = Effect.fnUntraced(function*(run: Run, first: number, last: number) {
  const store = yield* EventStore
  const rows = store.rows(run.request.tenantId, first, last)
  yield* Stream.runForEach(rows, (chunk) =>
    Effect.gen(function*() {
      const erasures = yield* erasuresOfRows(run.recompute, run.request.tenantId, chunk)
      for (const row of chunk) run.check.row(row, erasures)
    })
  )
})

const randomBetween = (first: number, last: number): number =>
  first + Math.floor(Math.random() * (last - first + 1))

/** The sequences of a chunk that the program recomputes too: both ends, and some at random. */
const sampleOf = (blocks: ReadonlyArray<RecomputedBlock>): ReadonlyArray<number> => {
  const first = blocks[0]?.first
  const last = blocks.at(-1)?.last
  if (first === undefined || last === undefined) return []
  const chosen = Array.from({ length: SAMPLE_EVENTS }, () => {
    const block = blocks[randomBetween(0, blocks.length - 1)]!
    return randomBetween(block.first, block.last)
  })
  return [...new Set([first, last, ...chosen])].sort((left, right) => left - right)
}

/** True if the program finds of these rows what the store has found of their blocks. */
const agrees = (
  tenantId: string,
  wanted: ReadonlyArray<number>,
  rows: ReadonlyArray<StoredRow>,
  lastHash: string | undefined,
  erasures: Erasures
): boolean => {
  if (rows.length !== wanted.length) return false
  const hashes = rows.map((row, index) => {
    const found = recompute(row.body)
    const isFine =
      row.sequenceNumber === wanted[index] &&
      found !== undefined &&
      faultsOf(tenantId, row, found, erasures).length === 0
    return isFine ? found.hash : undefined
  })
  return !hashes.includes(undefined) && hashes.at(-1) === lastHash
}

/** The blocks of a chunk that may be taken as they are, by number. */
const trustedBlocks = Effect.fnUntraced(function*(run: Run, first: number, last: number) {
  const { recompute, request, treeSizes } = run
  const { from = HISTORY_FROM, tenantId, to = HISTORY_TO } = request
  const tree = (treeSizes.at(-1) ?? 0) >= first
  const range = { tenantId, fromSequence: first, toSequence: last, from, to, tree }
  const perfect = (yield* recompute.blocks(range)).filter((block) => block.perfect)
  const gone = perfect.flatMap(({ erased }) => erased.map((row) => row.sequenceNumber))
  const erasures = yield* learnErasures(recompute, tenantId, gone)
  const trusted = perfect.filter(({ erased }) => erased.every((row) => erasures.covers(row)))
  const wanted = sampleOf(trusted)
  const rows = yield* recompute.sample(tenantId, wanted)
  // Of them some may have been erased since.
  const sampled = yield* erasuresOfRows(recompute, tenantId, rows)
  if (!agrees(tenantId, wanted, rows, trusted.at(-1)?.lastHash, sampled)) {
    yield* Effect.logError("the store and the program recompute events differently", {
      firstSequence: first,
      lastSequence: last
    })
    return new Map<number, RecomputedBlock>()
  }
  return new Map(trusted.map((block) => [block.block, block]))
})

/**
 * Check a chunk: take the blocks that the store has recomputed, go through the rows of the others.
 */
const checkChunk = Effect.fnUntraced(function*(run: Run, first: number, last: number) {
  const { endsAt, request, span } = run
  const inProgram = request.recompute === "program" || endsAt - span.first < SMALL_SPAN_EVENTS
  const trusted = inProgram
    ? new Map<number, RecomputedBlock>()
    : yield* trustedBlocks(run, first, last)
  let unchecked = first
  for (let at = first; at <= last;) {
    const block = blockOf(at)
    const end = Math.min(last, (block + 1) * BLOCK_EVENTS)
    const found = trusted.get(block)
    if (found?.first === at && found.last === end) {
      if (unchecked < at) yield* checkRows(run, unchecked, at - 1)
      if (run.check.continuesWith(found)) run.check.block(found)
      else yield* checkRows(run, at, end)
      unchecked = end + 1
    }
    at = end + 1
  }
  if (unchecked <= last) yield* checkRows(run, unchecked, last)
})

/** Where a chunk that starts here ends: with whole blocks, but for the sizes of checkpoints. */
const chunkEnd = ({ endsAt, request, treeSizes }: Run, first: number): number => {
  const { chunkBlocks = CHUNK_BLOCKS } = request
  const aligned = (blockOf(first) + chunkBlocks) * BLOCK_EVENTS
  const cut = treeSizes.find((size) => size >= first) ?? SEQUENCE_MAX
  return Math.min(endsAt, aligned, cut)
}

/** Check the whole span; false if that was not possible in the time given. */
const checkSpan = Effect.fnUntraced(function*(run: Run, started: number) {
  const { check, endsAt, request, span } = run
  const { onProgress, timeLimitMs = Infinity } = request
  // One row more in front: the first link must point at it.
  if (span.first > 1 && span.first <= endsAt) yield* checkRows(run, span.first - 1, span.first - 1)
  for (let first = span.first; first <= endsAt;) {
    if ((yield* Clock.currentTimeMillis) - started >= timeLimitMs) return false
    const last = chunkEnd(run, first)
    yield* checkChunk(run, first, last)
    const { breaksTotal, eventsChecked, lastHash: hash } = check.verdict()
    if (onProgress !== undefined) {
      yield* onProgress({ eventsChecked, upToSequence: last, hash, of: endsAt, breaksTotal })
    }
    first = last + 1
  }
  return true
})

/** Events that the log does not know of, behind its head as it is now. */
const checkBeyond = Effect.fnUntraced(function*({ check, recompute, request }: Run, head: number) {
  const { tenantId } = request
  const last = yield* recompute.lastSequence(tenantId)
  if (last <= head) return
  // The chain may have grown since; what is stored was in the log before.
  const heads = yield* Heads
  const now = (yield* heads.head(tenantId))?.sequence_number ?? 0
  if (last > now) check.beyond(now, last)
})

/** The checkpoints to compare with: the newest that the span reaches, and those of the caller. */
const checkpointsOf = Effect.fnUntraced(function*(
  checkpoints: SignedCheckpoints["Service"],
  { checkpoints: given = [], tenantId }: VerifyRequest,
  last: number
) {
  const signed: Array<SignedCheckpoint> = [...given]
  const forged = []
  for (let size = last; size > 0 && forged.length < FORGED_MAX;) {
    const found = yield* checkpoints.newestAtOrBelow(tenantId, size)
    if (found === undefined) break
    if (!isForged(found)) {
      signed.push(found)
      break
    }
    forged.push(found)
    size = Math.min(size, found.treeSize) - 1
  }
  return { signed, forged }
})

/** Compare the roots; true if one that covers the whole span is the signed one. */
const checkRoots = (
  { check, endsAt, span }: Run,
  signed: ReadonlyArray<SignedCheckpoint>,
  headAt: number
): boolean => {
  if (span.first !== 1) return false
  let covered = false
  for (const { rootHash, treeSize } of signed) {
    const root = check.root(treeSize)
    if (root === rootHash) covered ||= treeSize >= endsAt
    else if (root !== undefined) {
      const expected = `root ${rootHash} over ${treeSize} events, as signed`
      check.checkpoint(treeSize, expected, `root ${root}`)
    } else if (treeSize > headAt) {
      check.checkpoint(treeSize, `at least ${treeSize} events, as signed`, `${headAt} events`)
    }
  }
  return covered
}

/**
 * That the first and the last event of the span, which the links in between tie together, stand in
 * a signed tree that reaches that far; undefined if there is none.
 */
const checkInclusion = Effect.fnUntraced(function*(
  { check, checkpoints, endsAt, request, span }: Run,
  hashes: { readonly first: string; readonly last: string }
) {
  const { tenantId } = request
  const newest = yield* checkpoints.newestAtOrBelow(tenantId, SEQUENCE_MAX)
  if (newest === undefined || isForged(newest) || newest.treeSize < endsAt) return false
  const { rootHash, treeSize } = newest
  const ends = new Map([[span.first, hashes.first], [endsAt, hashes.last]])
  for (const [sequence, hash] of ends) {
    const checked = yield* checkedProof(checkpoints, tenantId, newest, sequence, hash)
    if (checked === undefined) return false
    if (checked.valid) continue
    check.checkpoint(
      treeSize,
      `a proof that event ${sequence} stands in the signed tree of ${treeSize}`,
      `a proof that does not lead from hash ${hash} to root ${rootHash}`
    )
    return false
  }
  return true
})

/** Recomputed hashes of the first and the last event of a span that was checked to its end. */
const endHashes = Effect.fnUntraced(function*(run: Run) {
  const { check, endsAt, recompute: port, request, span } = run
  const { breaksTotal, last, lastHash } = check.verdict()
  if (breaksTotal > 0 || last !== endsAt || lastHash === undefined) return undefined
  const rows = yield* port.sample(request.tenantId, [span.first])
  const first = rows.length === 1 ? recompute(rows[0]!.body)?.hash : undefined
  return first === undefined ? undefined : { first, last: lastHash }
})

const checkConflicts = Effect.fnUntraced(function*({ check, request, span }: Run) {
  const store = yield* EventStore
  for (const conflict of yield* store.conflicts(request.tenantId, CONFLICTS_MAX)) {
    const { sequenceNumber } = conflict
    if (sequenceNumber >= span.first && sequenceNumber <= span.last) check.conflict(conflict)
  }
})

/** Everything that can be said once the whole span was gone through. */
const conclude = Effect.fnUntraced(function*(
  run: Run,
  head: Head | undefined,
  signed: ReadonlyArray<SignedCheckpoint>
) {
  const { check, endsAt, request, span } = run
  yield* checkConflicts(run)
  const isEmpty = span.last < span.first
  const headAt = head?.sequence_number ?? 0
  if (!span.open) check.end(Math.min(span.last, headAt))
  else if (request.requireHead) check.head(head)
  if (span.last > headAt && (!span.open || request.requireHead)) yield* checkBeyond(run, headAt)
  const isCovered = checkRoots(run, signed, headAt)
  if (isCovered || isEmpty || endsAt < span.first) return isCovered
  const hashes = yield* endHashes(run)
  return hashes === undefined ? false : yield* checkInclusion(run, hashes)
})

const start = Effect.fnUntraced(function*(
  request: VerifyRequest,
  port: Recompute,
  checkpoints: SignedCheckpoints["Service"]
) {
  const { from = HISTORY_FROM, tenantId, to = HISTORY_TO } = request
  const heads = yield* Heads
  const head = yield* heads.head(tenantId)
  yield* caughtUp(tenantId, "events")
  const span = yield* spanOf(request, port)
  const endsAt = Math.min(span.last, head?.sequence_number ?? 0)
  const found =
    span.first === 1
      ? yield* checkpointsOf(checkpoints, request, endsAt)
      : { signed: request.checkpoints ?? [], forged: [] }
  const treeSizes = found.signed
    .map(({ treeSize }) => treeSize)
    .filter((size) => size <= endsAt)
    .sort((left, right) => left - right)
  const check = new ChainCheck({
    tenantId,
    firstWanted: span.first,
    bounds: { from, to },
    ...(span.first === 1 && treeSizes.length > 0 ? { treeSizes } : {})
  })
  for (const { problem, treeSize } of found.forged) {
    check.checkpoint(treeSize, "a checkpoint signed by a published key", problem)
  }
  const run: Run = { request, span, check, recompute: port, checkpoints, treeSizes, endsAt }
  return { run, head, signed: found.signed }
})

const verify = Effect.fn("Verifier.verify")(function*(
  request: VerifyRequest,
  port: Recompute,
  checkpoints: SignedCheckpoints["Service"]
) {
  const { from = HISTORY_FROM, tenantId, to = HISTORY_TO } = request
  const started = yield* Clock.currentTimeMillis
  const { head, run, signed } = yield* start(request, port, checkpoints)
  const { check } = run
  const finished = yield* Effect.gen(function*() {
    if (!(yield* checkSpan(run, started))) return { isComplete: false, isSigned: false }
    return { isComplete: true, isSigned: yield* conclude(run, head, signed) }
  }).pipe(
    Effect.catch((failure) =>
      check.eventsChecked === 0
        ? Effect.fail(failure)
        : Effect.as(
            Effect.logWarning("a verification was not finished", failure.operation, failure.cause),
            { isComplete: false, isSigned: false }
          )
    )
  )
  const verdict = check.verdict()
  const outcome = verdictOf(verdict.breaksTotal, verdict.eventsChecked, finished.isComplete)
  const report: VerifyReport = {
    ...outcome,
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
    assurance: finished.isSigned && outcome.valid ? "signed" : "self_attested",
    breaks: verdict.breaks,
    breaks_total: verdict.breaksTotal,
    verified_at: formatMicros(nowMicros()),
    duration_ms: (yield* Clock.currentTimeMillis) - started
  }
  return report
})

/** Uses `ChainRecompute` and `SignedCheckpoints` where they are provided. */
export const layerVerifier: Layer.Layer<
  Verifier,
  never,
  EventLog | EventStore | Heads | Visibility
> = Layer.effect(
  Verifier,
  Effect.gen(function*() {
    const context = yield* Effect.context<EventLog | EventStore | Heads | Visibility>()
    const port = yield* chainRecompute
    const checkpoints = yield* signedCheckpoints
    return Verifier.of({
      verify: (request) => verify(request, port, checkpoints).pipe(Effect.provideContext(context))
    })
  })
)

/**
 * Verification of a tenant's chains, by one rule for both: recomputes what is stored and says where
 * it does not hold. What is shown is the row that was checked. The expected head is the last record
 * of the chain's topic, the expected checkpoint the newest genuine one on `alk.checkpoints`. Any
 * row or record of the tenant outside of 1 to the head is a break, and so are copies of a row.
 *
 * Where the store can hash, it recomputes whole blocks at once, see EventSource. A block that is
 * not perfect is gone through row by row here, so every break is named by the same code.
 */
import { Clock, Context, Effect, Layer, Stream } from "effect"
import { ChainEnds, type TopicStart } from "../actors/chainEnds/ChainEnds.ts"
import { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import type { Head } from "../domain/chain/Chains.ts"
import { type Chain, treeNameOf } from "../domain/chain/Chains.ts"
import { HISTORY_FROM, HISTORY_TO } from "./../domain/Timestamp.ts"
import {
  BLOCK_EVENTS,
  blockOf,
  type ChainRecompute,
  type RecomputedBlock,
  type SequenceRange
} from "../ports/ChainRecompute.ts"
import { EventLog, type LogUnavailable } from "../ports/EventLog.ts"
import type { EventStore, StoreUnavailable } from "../ports/EventStore.ts"
import type { TraceStore } from "../ports/TraceStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import { ChainCheck, type RemovedBefore } from "./ChainCheck.ts"
import type { ChainSource } from "./ChainSource.ts"
import { checkedProof } from "./EventInclusion.ts"
import { eventSource } from "./EventSource.ts"
import { factSource } from "./FactSource.ts"
import {
  beginningOf,
  isForgedPoint,
  type PointFound,
  type ProvenPoint,
  type PrunedPoints,
  prunedPoints
} from "./PrunedPoints.ts"
import { chainRecompute } from "./RecomputeInProgram.ts"
import {
  checkpointsOf,
  type SignedCheckpoint,
  type SignedCheckpoints,
  signedCheckpoints
} from "./SignedCheckpoints.ts"
import {
  bothOf,
  type Pruned,
  reportOf,
  type TenantReport,
  type VerifyReport
} from "./VerifyReport.ts"

export { HISTORY_FROM, HISTORY_TO } from "./../domain/Timestamp.ts"
export type { Break, BreakReason, TenantReport, VerifyReport } from "./VerifyReport.ts"

export interface VerifyRequest {
  readonly tenantId: string
  /** Of the events if missing. */
  readonly chain?: Chain
  /**
   * Bounds by event time, of trace facts by when they were recorded; canonical microsecond form,
   * inclusive. The whole range of sequences is recomputed to find what they hold.
   */
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly fromSequence?: number | undefined
  readonly toSequence?: number | undefined
  /** Compare the end with the log's head when no upper bound is given. */
  readonly requireHead: boolean
  /** Leave out what is wrong with the tenant's rows and records outside of the bounds. */
  readonly onlyRange?: boolean
  /** Checkpoints that the caller kept, with valid signatures: the chain has to lead to each. */
  readonly checkpoints?: ReadonlyArray<SignedCheckpoint>
  /** `program`: recompute every row here, whatever the store could do. */
  readonly recompute?: "store" | "program"
  /** Blocks that the store recomputes in one question: fewer leave more room for others. */
  readonly chunkBlocks?: number
  /** Milliseconds after which the check ends as `incomplete`; resume after its last sequence. */
  readonly timeLimitMs?: number
  /** Told after each part of the chain. */
  readonly onProgress?: (progress: VerifyProgress) => Effect.Effect<void>
}

/** How far a check has come. */
export interface VerifyProgress {
  readonly eventsChecked: number
  readonly upToSequence: number
  /** `hash` of that sequence, recomputed: an anchor for a caller that resumes after it. */
  readonly hash: string | undefined
  /** The last sequence of the range. */
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
    verify(request: VerifyRequest): Effect.Effect<VerifyReport, StoreUnavailable | LogUnavailable>
    /**
     * Both chains of a tenant, or the one that is asked for. Bounds by sequence are those of one
     * chain: of the events, unless another one is asked for.
     */
    verifyTenant(
      request: VerifyRequest
    ): Effect.Effect<TenantReport, StoreUnavailable | LogUnavailable>
  }
>()("alk/Verifier") {}

/** Unless asked otherwise: some tenths of a second, some megabytes. */
const CHUNK_BLOCKS = 256
/** Ranges up to this many events are recomputed here: asking the store costs more. */
const SMALL_RANGE_EVENTS = BLOCK_EVENTS
/** Checkpoints that a chain is compared with whose topic may have been written by others. */
const EARLIER_MAX = 32
const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER
/** Time in which the projection says that an insert was repeated. */
const COPIES_SETTLE = "1 second"

/** The sequences that a request means. */
interface CheckedRange extends SequenceRange {
  /** No upper bound was given: the chain must end where the log says. */
  readonly open: boolean
}

type Recompute = ChainRecompute["Service"]

/** Everything that one check works with. */
interface VerificationRun {
  readonly request: VerifyRequest
  readonly range: CheckedRange
  readonly check: ChainCheck
  readonly source: ChainSource
  /** Name of the chain's tree. */
  readonly tree: string
  readonly checkpoints: SignedCheckpoints["Service"]
  /** The tree is built for the roots at these sizes, ascending. */
  readonly treeSizes: ReadonlyArray<number>
  readonly endsAt: number
  /** What the store has not found to be one row for each sequence. */
  readonly doubted: { first: number; last: number }
  /** The beginning that was removed, if it was. */
  readonly pruned: ProvenPoint | undefined
  readonly topicStart: TopicStart
}

const startsChain = ({ pruned, range }: Pick<VerificationRun, "pruned" | "range">): boolean =>
  range.first === beginningOf(pruned)

const rangeOf = ({ fromSequence = 1, toSequence = SEQUENCE_MAX }: VerifyRequest): CheckedRange => ({
  first: Math.max(1, fromSequence),
  last: toSequence,
  open: toSequence === SEQUENCE_MAX
})

/** Go through the rows of a range here. */
const checkRows = ({ check, doubted, source }: VerificationRun, first: number, last: number) =>
  Effect.suspend(() => {
    doubted.first = Math.min(doubted.first, first)
    doubted.last = Math.max(doubted.last, last)
    return Stream.runForEach(source.rows(first, last), (rows) =>
      Effect.sync(() => {
        for (const row of rows) check.row(row)
      })
    )
  })

/**
 * Check a chunk: take the blocks that the store has recomputed, go through the rows of the others.
 */
const checkChunk = Effect.fnUntraced(function* (run: VerificationRun, first: number, last: number) {
  const { endsAt, request, source, range, treeSizes } = run
  const { from = HISTORY_FROM, to = HISTORY_TO } = request
  const inProgram = request.recompute === "program" || endsAt - range.first < SMALL_RANGE_EVENTS
  const withTree = (treeSizes.at(-1) ?? 0) >= first
  const trusted: ReadonlyMap<number, RecomputedBlock> = inProgram
    ? new Map()
    : yield* source.trusted(first, last, { from, to }, withTree)
  let unchecked = first
  for (let at = first; at <= last; ) {
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
const chunkEnd = ({ endsAt, request, treeSizes }: VerificationRun, first: number): number => {
  const { chunkBlocks = CHUNK_BLOCKS } = request
  const aligned = (blockOf(first) + chunkBlocks) * BLOCK_EVENTS
  const cut = treeSizes.find((size) => size >= first) ?? SEQUENCE_MAX
  return Math.min(endsAt, aligned, cut)
}

/** Check the whole range; false if that was not possible in the time given. */
const checkRange = Effect.fnUntraced(function* (run: VerificationRun, started: number) {
  const { check, endsAt, request, range } = run
  const { onProgress, timeLimitMs = Infinity } = request
  // One row more in front: the first link must point at it.
  if (!startsChain(run) && range.first <= endsAt)
    yield* checkRows(run, range.first - 1, range.first - 1)
  for (let first = range.first; first <= endsAt; ) {
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

/** Rows outside of 1 to the head as it is now: there are none that the log knows of. */
const checkOutside = Effect.fnUntraced(function* (run: VerificationRun, head: number) {
  const { check, pruned, request, source } = run
  const { lowest, highest, rows } = yield* source.extent
  if (rows === 0) return
  if (lowest < 1) check.below(lowest)
  else if (pruned?.point.removed_at !== undefined && lowest <= pruned.end.size) {
    check.returned(lowest, pruned.end.size)
  }
  if (highest <= head) return
  // The chain may have grown since; what is stored was in the log before.
  const ends = yield* ChainEnds
  const key = { tenantId: request.tenantId, chain: source.chain }
  const now = (yield* ends.head(key))?.sequence_number ?? 0
  if (highest > now) check.beyond(now, highest)
})

/** True while the projection says that its inserts may have stored rows of this chain twice. */
const mayRepeat = Effect.fnUntraced(function* ({ request }: VerificationRun) {
  const log = yield* EventLog
  const projection = yield* ProjectionProgress
  return projection.partition(log.partitionOf(request.tenantId)).final
})

/** Copies of a row that no insert of the projection has made; blocks that are perfect have none. */
const checkCopies = Effect.fnUntraced(function* (run: VerificationRun) {
  const { check, doubted, endsAt, source, range } = run
  const first = Math.max(range.first, doubted.first)
  const last = Math.min(endsAt, doubted.last)
  if (first > last || (yield* mayRepeat(run))) return
  const found = yield* source.copies(first, last)
  if (found.length === 0) return
  // Asked once more, so that an insert that was repeated just now is not taken for one.
  yield* Effect.sleep(COPIES_SETTLE)
  if (yield* mayRepeat(run)) return
  for (const sequence of yield* source.copies(first, last)) check.copied(sequence)
})

/** Compare the roots; true if one that covers the whole range is the signed one. */
const checkRoots = (
  run: VerificationRun,
  signed: ReadonlyArray<SignedCheckpoint>,
  headAt: number
): boolean => {
  const { check, endsAt } = run
  if (!startsChain(run)) return false
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
 * That the first and the last event of the range, which the links in between tie together, are in
 * a signed tree that reaches that far; undefined if there is none.
 */
const checkInclusion = Effect.fnUntraced(function* (
  { check, checkpoints, endsAt, source, range, tree }: VerificationRun,
  hashes: { readonly first: string; readonly last: string }
) {
  const newest = yield* checkpoints.published(tree)
  if (newest === undefined || newest.treeSize < endsAt) return false
  const { rootHash, treeSize } = newest
  const ends = new Map([
    [range.first, hashes.first],
    [endsAt, hashes.last]
  ])
  for (const [sequence, hash] of ends) {
    const checked = yield* checkedProof(checkpoints, tree, newest, sequence, hash)
    if (checked === undefined) return false
    if (checked.valid) continue
    check.checkpoint(
      treeSize,
      `a proof that ${source.noun} ${sequence} is part of the signed tree of ${treeSize}`,
      `a proof that does not lead from hash ${hash} to root ${rootHash}`
    )
    return false
  }
  return true
})

/** Recomputed hashes of the first and the last event of a range that was checked to its end. */
const endHashes = Effect.fnUntraced(function* (run: VerificationRun) {
  const { check, endsAt, source, range } = run
  const { breaksTotal, last, lastHash } = check.verdict()
  if (breaksTotal > 0 || last !== endsAt || lastHash === undefined) return undefined
  const rows = (yield* Stream.runCollect(source.rows(range.first, range.first))).flat()
  const first = rows.length === 1 ? rows[0]!.found?.recomputed : undefined
  return first === undefined ? undefined : { first, last: lastHash }
})

/** Everything that can be said once the whole range was gone through. */
const conclude = Effect.fnUntraced(function* (
  run: VerificationRun,
  head: Head | undefined,
  signed: ReadonlyArray<SignedCheckpoint>
) {
  const { check, endsAt, request, source, range } = run
  const { onlyRange = false } = request
  for (const conflict of yield* source.conflicts) {
    const { sequenceNumber } = conflict
    const isWithin = sequenceNumber >= range.first && sequenceNumber <= range.last
    if (isWithin || !onlyRange) check.conflict(conflict)
  }
  const isEmpty = range.last < range.first
  const headAt = head?.sequence_number ?? 0
  if (!range.open) check.end(Math.min(range.last, headAt))
  else if (request.requireHead) check.head(head)
  if (!onlyRange || range.first < 1 || range.last > headAt) yield* checkOutside(run, headAt)
  if (!isEmpty) {
    yield* checkCopies(run)
    for (const found of yield* source.conclude(range.first, endsAt, onlyRange)) check.broken(found)
  }
  const isCovered = checkRoots(run, signed, headAt)
  if (isCovered || isEmpty || endsAt < range.first) return isCovered
  const hashes = yield* endHashes(run)
  return hashes === undefined ? false : yield* checkInclusion(run, hashes)
})

const sourceOf = (chain: Chain, tenantId: string, port: Recompute, checked: SequenceRange) =>
  Effect.gen(function* () {
    return chain === "events"
      ? yield* eventSource(tenantId, port, checked)
      : yield* factSource(tenantId)
  })

/** What a reader should know that is not a break of the chain. */
const noticesOf = (
  { pruned, request, source, topicStart, tree }: VerificationRun,
  uncompared: ReadonlyArray<SignedCheckpoint>
): ReadonlyArray<string> => {
  const { chain } = source
  const { adopted, givenUp, isCut, offset } = topicStart
  const notices: Array<string> = []
  if (pruned !== undefined && (request.fromSequence ?? 1) <= pruned.end.size) {
    notices.push(
      `${source.noun}s 1 to ${pruned.end.size} were removed by retention on ${pruned.point.pruned_at}: `
        + "what they said of the period is not known any more"
    )
  }
  if (isCut) {
    notices.push(
      `alk.${chain} is kept for ever, but its partition of this tenant begins at offset `
        + `${offset}: records were deleted from its start`
    )
  }
  if (adopted !== undefined) {
    const next = chain === "events" ? adopted.events_next : adopted.traces_next
    notices.push(
      `alk.state was lost and made again from the topics at ${adopted.at}: of the records of `
        + `alk.${chain} before offset ${next} only the links and the checkpoints of before say that `
        + "this service wrote them"
    )
  }
  if (givenUp !== undefined) {
    const { created_at, root_hash, tree_size } = givenUp
    notices.push(
      `a checkpoint of ${tree_size} ${source.noun}s of ${tree} with the root ${root_hash} was signed at `
        + `${created_at}, and the log does not lead to it: it was put back or written anew, an `
        + `operator has accepted that, and ${source.noun}s of before may be gone`
    )
  }
  for (const { treeSize } of uncompared) {
    notices.push(
      `the checkpoint of ${treeSize} ${source.noun}s of ${tree} can't be compared with the chain: it `
        + `is pruned up to ${pruned?.end.size ?? 0}`
    )
  }
  return notices
}

/** What a chain that begins at a pruned point has to go on from. */
const removedBefore = ({ end }: ProvenPoint): RemovedBefore => ({
  size: end.size,
  peaks: end.frontier.peaks,
  hash: end.headHash
})

/** Everything that a check is made with. */
interface Parts {
  readonly port: Recompute
  readonly checkpoints: SignedCheckpoints["Service"]
  readonly points: PrunedPoints["Service"]
}

const start = Effect.fnUntraced(function* (
  request: VerifyRequest,
  { checkpoints, port }: Parts,
  point: PointFound | undefined
) {
  const { chain = "events", from = HISTORY_FROM, tenantId, to = HISTORY_TO } = request
  const ends = yield* ChainEnds
  const head = yield* ends.head({ tenantId, chain })
  yield* caughtUp(tenantId, chain)
  const tree = treeNameOf(tenantId, chain)
  const pruned = point === undefined || isForgedPoint(point) ? undefined : point
  const asked = rangeOf(request)
  const range = { ...asked, first: Math.max(asked.first, beginningOf(pruned)) }
  const endsAt = Math.min(range.last, head?.sequence_number ?? 0)
  const checked = { first: range.first, last: endsAt }
  const source = yield* sourceOf(chain, tenantId, port, checked)
  const isWhole = startsChain({ pruned, range })
  const given = request.checkpoints ?? []
  const topicStart = yield* ends.start({ tenantId, chain })
  const found = isWhole
    ? yield* checkpointsOf(
        checkpoints,
        given,
        tree,
        endsAt,
        topicStart.adopted === undefined ? 1 : EARLIER_MAX
      )
    : { signed: given, forged: [] }
  const treeSizes = found.signed
    .map(({ treeSize }) => treeSize)
    .filter((size) => size <= endsAt && size >= beginningOf(pruned) - 1)
    .sort((left, right) => left - right)
  const check = new ChainCheck({
    noun: source.noun,
    topic: `alk.${chain}`,
    firstWanted: range.first,
    bounds: { from, to },
    ...(isWhole && treeSizes.length > 0 ? { treeSizes } : {}),
    ...(isWhole && pruned !== undefined ? { after: removedBefore(pruned) } : {})
  })
  if (point !== undefined && isForgedPoint(point)) {
    check.checkpoint(
      point.point.size,
      "a pruned point that a signed checkpoint proves",
      point.problem
    )
  }
  for (const { problem, treeSize } of found.forged) {
    check.checkpoint(treeSize, "a checkpoint signed by a published key", problem)
  }
  const doubted = { first: SEQUENCE_MAX, last: 0 }
  const parts = { check, source, checkpoints, doubted }
  const run: VerificationRun = {
    ...parts,
    request,
    range,
    tree,
    treeSizes,
    endsAt,
    pruned,
    topicStart
  }
  return { run, head, signed: found.signed }
})

/** What reports say of a beginning that was removed. */
const remarkOf = ({ point }: ProvenPoint): Pruned => ({
  up_to_sequence: point.size,
  root_hash: point.root_hash,
  checkpoint: point.note,
  pruned_at: point.pruned_at
})

const verifyFrom = Effect.fnUntraced(function* (
  request: VerifyRequest,
  parts: Parts,
  point: PointFound | undefined
) {
  const { checkpoints: given = [], tenantId } = request
  const started = yield* Clock.currentTimeMillis
  const { head, run, signed } = yield* start(request, parts, point)
  const { check, pruned } = run
  const finished = yield* Effect.gen(function* () {
    if (!(yield* checkRange(run, started))) return { isComplete: false, isSigned: false }
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
  const isValid = verdict.breaksTotal === 0 && finished.isComplete
  const uncompared = given.filter(({ treeSize }) => treeSize < beginningOf(pruned) - 1)
  const isOrigin = given.length > 0 && uncompared.length === 0 && isValid
  const notices = noticesOf(run, uncompared)
  const report: VerifyReport = yield* reportOf({
    ...verdict,
    tenantId,
    scheme: run.source.scheme,
    bounds: request,
    head,
    isComplete: finished.isComplete,
    isSigned: finished.isSigned && isValid,
    remarks: {
      ...(isOrigin ? { origin: "checked" as const } : {}),
      ...(pruned === undefined ? {} : { pruned: remarkOf(pruned) }),
      ...(notices.length === 0 ? {} : { notices })
    },
    started
  })
  return { report, span: verdict.span }
})

/** What is said of a period that nothing in the chain is of. */
const nothingOf = (report: VerifyReport): VerifyReport => ({
  ...report,
  status: "empty",
  events_checked: 0,
  first_sequence_number: null,
  last_sequence_number: null
})

/**
 * Which records are of a period is known once all of them were recomputed: clients choose the times
 * of events, and a column that says another time would take one out of it. Where the chain holds, the
 * report is on the part from the first to the last of the period.
 */
const verifyPeriod = Effect.fnUntraced(function* (
  request: VerifyRequest,
  parts: Parts,
  point: PointFound | undefined
) {
  const started = yield* Clock.currentTimeMillis
  const { report, span } = yield* verifyFrom(request, parts, point)
  const isOfAll = request.from === undefined && request.to === undefined
  if (isOfAll || report.status !== "valid") return report
  if (span === undefined) return nothingOf(report)
  const { first_sequence_number: first, last_sequence_number: last } = report
  const isAllOfIt = span.first === first && (request.to === undefined || span.last === last)
  if (isAllOfIt) return report
  const { timeLimitMs = Infinity, to, toSequence } = request
  const part = yield* verifyFrom(
    {
      ...request,
      fromSequence: span.first,
      toSequence: to === undefined ? toSequence : span.last,
      onlyRange: true,
      timeLimitMs: Math.max(0, timeLimitMs - ((yield* Clock.currentTimeMillis) - started))
    },
    parts,
    point
  )
  return {
    ...part.report,
    bounds: report.bounds,
    ...(report.notices === undefined ? {} : { notices: report.notices }),
    duration_ms: report.duration_ms + part.report.duration_ms
  }
})

/** Checks that a pruning which goes on meanwhile takes away what they read are done again. */
const PRUNED_MEANWHILE_MAX = 3

const verify = Effect.fn("Verifier.verify")(function* (request: VerifyRequest, parts: Parts) {
  const tree = treeNameOf(request.tenantId, request.chain ?? "events")
  let point = yield* parts.points.of(tree)
  for (let again = 0; ; again++) {
    const report = yield* verifyPeriod(request, parts, point)
    if (report.breaks_total === 0 || again >= PRUNED_MEANWHILE_MAX) return report
    const now = yield* parts.points.of(tree)
    if (now?.point.size === point?.point.size) return report
    point = now
  }
})

const verifyTenant = Effect.fn("Verifier.verifyTenant")(function* (
  request: VerifyRequest,
  ofChain: Verifier["Service"]["verify"]
): Effect.fn.Return<TenantReport, StoreUnavailable | LogUnavailable> {
  const { chain, fromSequence, timeLimitMs, toSequence } = request
  const isOfOne = chain !== undefined || fromSequence !== undefined || toSequence !== undefined
  if (isOfOne) return yield* ofChain(request)
  const started = yield* Clock.currentTimeMillis
  const events = yield* ofChain({ ...request, chain: "events" })
  const left = (timeLimitMs ?? Infinity) - ((yield* Clock.currentTimeMillis) - started)
  const { checkpoints: _ofEvents, onProgress: _ofTheFirst, ...rest } = request
  const traces = yield* ofChain({ ...rest, chain: "traces", timeLimitMs: Math.max(0, left) })
  const duration = (yield* Clock.currentTimeMillis) - started
  return { ...bothOf(events, traces), duration_ms: duration }
})

/** Uses `ChainRecompute`, `SignedCheckpoints` and `PrunedPoints` where they are provided. */
export const layerVerifier: Layer.Layer<
  Verifier,
  never,
  ChainEnds | EventLog | EventStore | TraceStore | ProjectionProgress
> = Layer.effect(
  Verifier,
  Effect.gen(function* () {
    const context = yield* Effect.context<
      ChainEnds | EventLog | EventStore | TraceStore | ProjectionProgress
    >()
    const port = yield* chainRecompute
    const checkpoints = yield* signedCheckpoints
    const points = yield* prunedPoints
    const ofChain = (request: VerifyRequest) =>
      verify(request, { port, checkpoints, points }).pipe(Effect.provideContext(context))
    return Verifier.of({
      verify: ofChain,
      verifyTenant: (request) => verifyTenant(request, ofChain)
    })
  })
)

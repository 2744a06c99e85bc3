/**
 * Follows what the sequencers and the projection write (receipts, progress, heads, registry) and
 * keeps the little of it that an API process answers from. One loop, one reader; the services below
 * read the result. Owns nothing that another process couldn't rebuild from the same topics.
 */
import { Context, Deferred, Effect, Layer, Metric, Schedule } from "effect"
import { type Chain, chainOfTree, type Head, treeNameOf } from "../../domain/chain/Chains.ts"
import { readCheckpoint } from "../../domain/chain/Checkpoint.ts"
import { defined } from "../../domain/Defined.ts"
import { detachedCopy } from "../../domain/DetachedCopy.ts"
import { reasonOf } from "../../domain/json/RecordFields.ts"
import { gaugeOf } from "../../domain/metrics/Metrics.ts"
import { everythingOwn } from "../../domain/records/OwnOffsets.ts"
import { noProgress, type Progress, progressAfter } from "../../domain/records/Progress.ts"
import { type Receipt, readReceipt, readVerdict } from "../../domain/records/Receipt.ts"
import { ATTEMPT_HEADER, KIND_HEADER, RECEIPT_HEADER } from "../../domain/records/RecordHeaders.ts"
import {
  HAND_OVER_PREFIX,
  HEAD_PREFIX,
  readTreeSigner,
  SIGNER_KEY,
  TRACE_HEAD_PREFIX
} from "../../domain/records/StateRecords.ts"
import type { TopicKind } from "../../domain/records/Topics.ts"
import type { Placement } from "../../domain/registry/Placement.ts"
import type { Registry } from "../../domain/registry/Registry.ts"
import { RegistryContent } from "../../domain/registry/RegistryContent.ts"
import { readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import {
  EventLog,
  type Fetched,
  type LogReader,
  type LogRecord,
  LogUnavailable,
  type NewRecord,
  OffsetOutOfRange,
  type Position
} from "../../ports/EventLog.ts"
import { EventStore, StoreUnavailable } from "../../ports/EventStore.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"
import { type Malformed, reportMalformed, takeEach } from "../log/Malformed.ts"
import { OwnRecords, type Undecided } from "../log/OwnRecords.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"
import { RegistryIncomplete } from "../log/RegistryChanges.ts"
import { ShownWaits, type Waits } from "../log/ShownWaits.ts"
import { handOverName, readHead } from "../sequencer/SequencerState.ts"
import { Heads } from "./Heads.ts"
import { type Decision, type ReceiptState, Receipts } from "./Receipts.ts"
import { TreeSigners } from "./TreeSigners.ts"

/** Bytes of receipts kept in memory: what was decided lately, or is not in the store yet. */
const RECEIPTS_BYTES_MAX = 64 * 1_048_576
const FETCH_LIMITS = { waitMs: 500, maxBytes: 4 * 1_048_576 }
/** Time that a reader waits for this process to catch up with the log before it gives up. */
const BARRIER_TIMEOUT = "5 seconds"

interface Wait {
  readonly done: () => boolean
  readonly resume: () => void
}

interface KeptReceipt {
  readonly value: Buffer
  readonly partition: number
  readonly offset: number
  /** Parsed when it is first asked for: clients that poll ask often. */
  receipt?: Receipt
}

/** What the loop has gathered. Mutated by the loop only; read by the services. */
class LogState {
  readonly positions = new Map<string, Position>()
  readonly progress: Array<Progress>
  readonly heads = new Map<string, Head>()
  readonly traceHeads = new Map<string, Head>()
  /** Per partition: which records of the chains' topics a sequencer has written. */
  readonly own: Array<OwnRecords>
  /** Notes with which keys have handed trees over, by `handOverName`. */
  readonly handOvers = new Map<string, string>()
  /** vkey of the key that signs the trees, by partition. */
  readonly signers = new Map<number, string>()
  readonly receipts = new Map<string, KeptReceipt>()
  readonly decisions = new Map<string, Deferred.Deferred<Decision>>()
  /** Per partition: receipts below this offset may have been evicted from memory. */
  readonly evictedBelow: Array<number>
  /** Per partition: progress below this offset is known, from the topic or from its writer. */
  readonly #progressNext: Array<number>
  readonly #waits = new Set<Wait>()
  readonly registry = new RegistryTable()
  /** What its topic adds up to; at a start only. */
  registryContent: RegistryContent | undefined = new RegistryContent()
  readonly #placement: Placement
  /** Why this process does not follow the log right now. */
  interrupted: string | undefined
  #receiptBytes = 0

  constructor(placement: Placement) {
    this.#placement = placement
    const all = Array.from({ length: placement.partitions }, (_, partition) => partition)
    this.progress = all.map(noProgress)
    this.own = all.map(() => new OwnRecords(0))
    this.evictedBelow = all.map(() => 0)
    this.#progressNext = all.map(() => 0)
  }

  /** Partitions that were added are followed from their first record on. */
  grow(partitions: number): void {
    for (let partition = this.progress.length; partition < partitions; partition++) {
      this.progress.push(noProgress(partition))
      this.own.push(new OwnRecords(0))
      this.evictedBelow.push(0)
      this.#progressNext.push(0)
      for (const topic of ["progress", "state", "receipts"] as const) {
        this.positions.set(`${topic}/${partition}`, { topic, partition, offset: 0 })
      }
    }
  }

  /** Progress that this process has published, before it comes back from the topic. */
  takePublished(record: Pick<NewRecord, "partition" | "key" | "value">, offset: number): void {
    // Its projection may know of a new partition before this process does.
    if (record.partition >= this.progress.length) return
    try {
      this.#takeProgress(record.partition, record, offset)
    } catch {
      // Another process has taken the partition over, and has published more.
      return
    }
    this.#resumeWaits()
  }

  /** An older one, which comes back from the topic, changes nothing. */
  #takeProgress(
    partition: number,
    record: Parameters<typeof progressAfter>[1],
    offset: number
  ): void {
    if (offset < this.#progressNext[partition]!) return
    this.progress[partition] = progressAfter(this.progress[partition]!, record)
    this.#progressNext[partition] = offset + 1
  }

  /** What could not be read of it comes back. */
  take(fetched: ReadonlyArray<Fetched>): ReadonlyArray<Malformed> {
    const malformed: Array<Malformed> = []
    for (const one of fetched) {
      const { nextOffset, partition, topic } = one
      const take = (record: LogRecord) => this.#takeRecord(topic, partition, record)
      malformed.push(...takeEach(one, one.records, take))
      if (topic === "state") this.own[partition]!.answered(one)
      this.positions.set(`${topic}/${partition}`, { topic, partition, offset: nextOffset })
    }
    this.#resumeWaits()
    return malformed
  }

  #resumeWaits(): void {
    for (const wait of this.#waits) {
      if (!wait.done()) continue
      this.#waits.delete(wait)
      wait.resume()
    }
  }

  /** Read when it is asked for; what can't be read is kept no longer. */
  receiptOf(receiptId: string): Receipt | Malformed | undefined {
    const kept = this.receipts.get(receiptId)
    if (kept === undefined) return undefined
    try {
      return (kept.receipt ??= readReceipt(kept.value))
    } catch (error) {
      this.#drop(receiptId, kept)
      const { offset, partition } = kept
      return { topic: "receipts", partition, offset, reason: reasonOf(error) }
    }
  }

  /** Succeeds as soon as the condition holds; it is looked at after each fetch. */
  until(done: () => boolean): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (done()) return resume(Effect.void)
      const wait: Wait = { done, resume: () => resume(Effect.void) }
      this.#waits.add(wait)
      return Effect.sync(() => {
        this.#waits.delete(wait)
      })
    })
  }

  #takeRecord(topic: TopicKind, partition: number, record: LogRecord): void {
    switch (topic) {
      case "receipts":
        return this.#takeReceipt(partition, record)
      case "progress":
        return this.#takeProgress(partition, record, record.offset)
      case "state":
        return this.#takeState(partition, record)
      case "registry": {
        this.registryContent?.take({ key: String(record.key), value: record.value })
        const change = readRegistryRecord(record.key, record.value)
        if (change === undefined) return
        this.registry.take([change])
        this.#placement.take(change)
      }
    }
  }

  #takeState(partition: number, record: LogRecord): void {
    const key = record.key?.toString() ?? ""
    const takeHead = (heads: Map<string, Head>, tenantId: string) => {
      if (record.value === null) return void heads.delete(tenantId)
      const { tree: _tree, ...head } = readHead(record.value)
      heads.set(tenantId, head)
    }
    if (key.startsWith(HEAD_PREFIX)) {
      takeHead(this.heads, key.slice(HEAD_PREFIX.length))
    } else if (key.startsWith(TRACE_HEAD_PREFIX)) {
      takeHead(this.traceHeads, key.slice(TRACE_HEAD_PREFIX.length))
    } else if (key.startsWith(HAND_OVER_PREFIX)) {
      const name = key.slice(HAND_OVER_PREFIX.length)
      if (record.value === null) this.handOvers.delete(name)
      else this.handOvers.set(name, readCheckpoint(record.value).note)
    } else if (key === SIGNER_KEY && record.value !== null) {
      this.signers.set(partition, readTreeSigner(record.value).vkey)
    } else this.own[partition]!.take(record)
  }

  #takeReceipt(partition: number, record: LogRecord): void {
    const { headers, offset, value } = record
    const kind = headers[KIND_HEADER]?.toString()
    const attempt = headers[ATTEMPT_HEADER]?.toString() ?? ""
    if (value === null) return
    const waiting = this.decisions.get(attempt)
    if (waiting !== undefined) {
      const decision = toDecision(kind, value, offset)
      this.decisions.delete(attempt)
      Deferred.doneUnsafe(waiting, Effect.succeed(decision))
    }
    if (kind !== "outcome") return
    const receipt = { value: detachedCopy(value), partition, offset }
    this.#keep(headers[RECEIPT_HEADER]?.toString() ?? "", receipt)
  }

  #keep(receiptId: string, kept: KeptReceipt): void {
    const before = this.receipts.get(receiptId)
    if (before !== undefined) this.#drop(receiptId, before)
    this.receipts.set(receiptId, kept)
    this.#receiptBytes += kept.value.length
    while (this.#receiptBytes > RECEIPTS_BYTES_MAX) {
      const [oldest, evicted] = this.receipts.entries().next().value!
      this.#drop(oldest, evicted)
      this.evictedBelow[evicted.partition] = evicted.offset + 1
    }
  }

  #drop(receiptId: string, kept: KeptReceipt): void {
    this.receipts.delete(receiptId)
    this.#receiptBytes -= kept.value.length
  }
}

const toDecision = (kind: string | undefined, value: Buffer, offset: number): Decision => {
  if (kind !== "verdict") {
    return { kind: "outcome", receipt: readReceipt(value), receiptOffset: offset }
  }
  const { receipt_id, verdict, waited } = readVerdict(value)
  return verdict === "repeat"
    ? { kind: "repeat", receiptId: receipt_id, waited }
    : { kind: "mismatch" }
}

/**
 * From where each topic is followed: everything of the compacted ones; of the receipts what the
 * store may not hold yet.
 */
const startPositions = Effect.fnUntraced(function* (logState: LogState, reader: LogReader) {
  const log = yield* EventLog
  const partitions = Array.from({ length: log.partitions }, (_, partition) => partition)
  const compacted = [
    ...partitions.flatMap((partition) => [
      { topic: "progress" as const, partition },
      { topic: "state" as const, partition }
    ]),
    { topic: "registry" as const, partition: 0 }
  ]
  const ends = yield* log.ends(compacted)
  for (const [index, { partition, topic }] of compacted.entries()) {
    const { start } = yield* log.bounds(topic, partition)
    logState.positions.set(`${topic}/${partition}`, { topic, partition, offset: start })
    yield* catchUp(logState, reader, ends[index]!, `${topic}/${partition}`)
  }
  // The sum is compared where a transaction ends: what was read on into the next one changes nothing.
  const { start } = yield* log.bounds("registry", 0)
  if (logState.registryContent?.isIncomplete(start) === true) {
    return yield* new RegistryIncomplete({ message: RegistryIncomplete.text })
  }
  logState.registryContent = undefined
  for (const partition of partitions) {
    const { end, start } = yield* log.bounds("receipts", partition)
    const known = logState.progress[partition]!.receipts_next
    const offset = Math.min(end, Math.max(start, known))
    logState.evictedBelow[partition] = offset
    const topic = "receipts" as const
    logState.positions.set(`${topic}/${partition}`, { topic, partition, offset })
    yield* catchUp(logState, reader, end, `${topic}/${partition}`)
  }
})

const catchUp = Effect.fnUntraced(function* (
  logState: LogState,
  reader: LogReader,
  end: number,
  key: string
) {
  for (;;) {
    const position = logState.positions.get(key)!
    if (position.offset >= end) return
    yield* reportMalformed(logState.take(yield* reader.fetch([position], FETCH_LIMITS)))
  }
})

/** A position that has left the log (expired receipts): go on where the log begins. */
const moveToStart = Effect.fnUntraced(function* (logState: LogState) {
  const log = yield* EventLog
  for (const [key, { offset, partition, topic }] of logState.positions) {
    const { start } = yield* log.bounds(topic, partition)
    if (offset < start) logState.positions.set(key, { topic, partition, offset: start })
  }
})

const following = gaugeOf("alk_follower_following")

/** Follows again after each failure; meanwhile `interrupted` says why it does not. */
const followForEver = (logState: LogState, reader: LogReader) =>
  Effect.gen(function* () {
    const fetched = yield* reader.fetch([...logState.positions.values()], FETCH_LIMITS)
    logState.interrupted = undefined
    yield* Metric.update(following, 1)
    yield* reportMalformed(logState.take(fetched))
  }).pipe(
    Effect.forever,
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.tapError((error) => {
      logState.interrupted = String(error)
      return Effect.andThen(
        Metric.update(following, 0),
        Effect.logWarning("following the log is interrupted", { error: String(error) })
      )
    }),
    Effect.catchIf(isOutOfRange, () => moveToStart(logState)),
    Effect.retry(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")])),
    Effect.forever
  )

const isOutOfRange = (error: unknown): boolean => error instanceof OffsetOutOfRange

/** Whether this process follows the log. */
export class Following extends Context.Service<
  Following,
  {
    /** Why it does not right now; undefined while it does. */
    readonly interrupted: () => string | undefined
    /** Whether a request of this process waits for a decision, or for its events to be visible. */
    readonly isAwaited: () => boolean
  }
>()("alk/Following") {}

/** The registry as this process knows it, and a way to wait until it knows more. */
export class RegistryView extends Context.Service<
  RegistryView,
  {
    readonly registry: () => Registry
    /** Succeeds as soon as the condition holds for the registry. */
    until(done: (registry: Registry) => boolean): Effect.Effect<void>
    /** Succeeds when everything that was committed before the call is known here. */
    readonly caughtUp: Effect.Effect<void, LogUnavailable>
  }
>()("alk/RegistryView") {}

const makeReceipts = (
  logState: LogState,
  waits: Waits,
  log: EventLog["Service"],
  store: EventStore["Service"],
  barrier: Barrier
): Receipts["Service"] => {
  const isVisible = (receipt: Receipt, partition: number) => {
    const { events_next, traces_next } = logState.progress[partition]!
    return events_next >= receipt.events_next && traces_next >= (receipt.traces_next ?? 0)
  }
  const finalOf = (receipt: Receipt): ReceiptState => ({ status: receipt.status, receipt })
  const find = (tenantId: string, receiptId: string) =>
    Effect.gen(function* () {
      const kept = logState.receiptOf(receiptId)
      if (kept !== undefined && "receipt_id" in kept) {
        return kept.tenant_id === tenantId ? kept : undefined
      }
      if (kept !== undefined) yield* reportMalformed([kept])
      const stored = yield* store.receipt(tenantId, receiptId)
      if (stored === undefined) return undefined
      try {
        return readReceipt(stored)
      } catch (error) {
        // Not written by a sequencer: the table or the topic was changed from outside.
        yield* Effect.logError("a stored receipt can't be read", { reason: reasonOf(error) })
        return undefined
      }
    })
  const unavailable = (message: string) =>
    new StoreUnavailable({ operation: "receipt", cause: new Error(message) })
  const state: Receipts["Service"]["state"] = (tenantId, receiptId) =>
    Effect.gen(function* () {
      const partition = log.partitionOf(tenantId)
      const isFinal = (receipt: Receipt) =>
        receipt.status === "failed" || isVisible(receipt, partition)
      const first = yield* find(tenantId, receiptId)
      if (first !== undefined && isFinal(first)) return finalOf(first)
      // Before saying "pending": be as new as any process that may have said "committed".
      yield* barrier(["receipts", "progress"], partition)
      const found = first ?? (yield* find(tenantId, receiptId))
      if (found !== undefined && isFinal(found)) return finalOf(found)
      const progress = logState.progress[partition]!
      if (progress.rebuilding) {
        return yield* unavailable("the view of this partition is being rebuilt")
      }
      if (found === undefined && logState.evictedBelow[partition]! > progress.receipts_next) {
        return yield* unavailable("the projection is too far behind to tell")
      }
      return { status: "pending" as const }
    })
  return Receipts.of({
    expect: (attempt) =>
      Effect.sync(() => {
        const decision = Deferred.makeUnsafe<Decision>()
        logState.decisions.set(attempt, decision)
        return Deferred.await(decision).pipe(
          Effect.ensuring(Effect.sync(() => logState.decisions.delete(attempt)))
        )
      }),
    state,
    visible: (receipt) => {
      const partition = log.partitionOf(receipt.tenant_id)
      return waits.counted(logState.until(() => isVisible(receipt, partition)))
    }
  })
}

type Barrier = (
  topics: ReadonlyArray<TopicKind>,
  partition: number
) => Effect.Effect<void, LogUnavailable>

/** Waits until this process knows what the topics hold of a partition now. */
const makeBarrier =
  (logState: LogState, log: EventLog["Service"]): Barrier =>
  (topics, partition) =>
    Effect.gen(function* () {
      const ends = yield* log.ends(topics.map((topic) => ({ topic, partition })))
      yield* logState.until(() =>
        topics.every(
          (topic, index) => logState.positions.get(`${topic}/${partition}`)!.offset >= ends[index]!
        )
      )
    }).pipe(
      Effect.timeoutOrElse({
        duration: BARRIER_TIMEOUT,
        orElse: () =>
          Effect.fail(
            new LogUnavailable({ operation: "catch up", cause: new Error("not caught up in time") })
          )
      })
    )

const makeHeads = (
  logState: LogState,
  log: EventLog["Service"],
  barrier: Barrier
): Heads["Service"] => {
  const { heads, traceHeads } = logState
  const writtenOf = (chain: Chain, partition: number) =>
    logState.own[partition]?.own.next(chain) ?? 0
  const headIn = (all: ReadonlyMap<string, Head>) => (tenantId: string) =>
    Effect.map(barrier(["state"], log.partitionOf(tenantId)), () => all.get(tenantId))
  return Heads.of({
    head: headIn(heads),
    traceHead: headIn(traceHeads),
    written: (chain, partition) => Effect.sync(() => writtenOf(chain, partition)),
    own: (partition) => Effect.sync(() => logState.own[partition]?.own ?? everythingOwn),
    decided: (chain, partition, records) =>
      Effect.suspend(() => {
        const first = records[0]?.offset ?? -1
        let found: Undecided | undefined
        const undecided = () => (found ??= logState.own[partition]?.undecided())
        return Effect.map(
          logState.until(() => (undecided()?.end(chain) ?? -Infinity) > first),
          () => undecided()!.decide(chain, records)
        )
      }),
    losses: (partition) => Effect.sync(() => logState.own[partition]?.losses),
    reached: ({ chain, tenantId }, offset, sequenceNumber) => {
      const all = chain === "events" ? heads : traceHeads
      const partition = log.partitionOf(tenantId)
      const isReached = () =>
        writtenOf(chain, partition) >= offset
        && (all.get(tenantId)?.sequence_number ?? 0) >= sequenceNumber
      return Effect.map(logState.until(isReached), () => all.get(tenantId))
    },
    trees: Effect.sync(() => [
      ...heads.keys(),
      ...[...traceHeads.keys()].map((tenantId) => treeNameOf(tenantId, "traces"))
    ])
  })
}

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* EventStore
  const reader = yield* log.reader
  const placement = yield* log.placement
  const logState = new LogState(placement)
  const waits = yield* ShownWaits
  yield* Effect.acquireRelease(
    Effect.sync(() => placement.onGrown((partitions) => logState.grow(partitions))),
    (stop) => Effect.sync(stop)
  )
  yield* log.onAppended("progress", (record, offset) => logState.takePublished(record, offset))
  yield* startPositions(logState, reader)
  yield* Effect.forkScoped(followForEver(logState, reader))
  const partitionOfTree = (tree: string) => log.partitionOf(chainOfTree(tree).tenantId)
  const barrier = makeBarrier(logState, log)
  return Context.empty().pipe(
    Context.add(
      ProjectionProgress,
      ProjectionProgress.of({
        of: (tenantId) => logState.progress[log.partitionOf(tenantId)]!,
        partition: (partition) => logState.progress[partition]!,
        awaitOffset: (partition, ends) => {
          const offsets = Object.entries(ends) as ReadonlyArray<[StoredTopic, number]>
          const isShown = () =>
            offsets.every(([topic, end]) => logState.progress[partition]![`${topic}_next`] >= end)
          return Effect.suspend(() =>
            isShown() ? Effect.void : waits.counted(logState.until(isShown))
          )
        }
      })
    ),
    Context.add(
      TreeSigners,
      TreeSigners.of({
        of: (tree, keyIds) =>
          Effect.sync(() => {
            const notes = keyIds.map((keyId) => logState.handOvers.get(handOverName(keyId, tree)))
            return {
              handOvers: notes.filter((note) => note !== undefined),
              ...defined({ signer: logState.signers.get(partitionOfTree(tree)) })
            }
          }),
        caughtUp: (tree) => barrier(["state"], partitionOfTree(tree))
      })
    ),
    Context.add(
      Following,
      Following.of({
        interrupted: () => logState.interrupted,
        isAwaited: () => logState.decisions.size + waits.count > 0
      })
    ),
    Context.add(Receipts, makeReceipts(logState, waits, log, store, barrier)),
    Context.add(Heads, makeHeads(logState, log, barrier)),
    Context.add(
      RegistryView,
      RegistryView.of({
        registry: () => logState.registry,
        until: (done) => logState.until(() => done(logState.registry)),
        caughtUp: barrier(["registry"], 0)
      })
    )
  )
})

/** Ready once this process knows everything that was committed before it started. */
export const layerLogFollower: Layer.Layer<
  ProjectionProgress | Receipts | Heads | RegistryView | TreeSigners | Following,
  Effect.Error<typeof make>,
  EventLog | EventStore
> = Layer.effectContext(make)

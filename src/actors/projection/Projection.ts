/**
 * Makes the topics queryable: copies events, trace facts, checkpoints and receipts into the store,
 * and says on `alk.progress` how far it has come. Decides nothing; rows that the topic does not
 * confirm are set aside and built again. Invariants, by the numbers that tests cite:
 *
 * - P1: an offset is published only once every row before it is in the store, byte for byte.
 * - P2: while a row may be in the store twice, after an insert of unknown outcome, reads merge rows.
 * - P3: a record that is not part of its chain is set aside, and the chain goes on after it.
 * - P4: rows are gathered only while no request waits for them.
 */
import { Clock, Effect, Fiber, Metric, Ref, Schedule, Schema, Semaphore, Stream } from "effect"
import { chains } from "../../domain/chain/Chains.ts"
import { counterOf, gaugeOf } from "../../domain/metrics/Metrics.ts"
import { everythingOwn } from "../../domain/records/OwnOffsets.ts"
import { noProgress, type Progress, progressAfter } from "../../domain/records/Progress.ts"
import {
  type Assignment,
  EventLog,
  type Fetched,
  type LogAppender,
  type LogReader,
  type Position
} from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { StoredTopics } from "../../ports/TopicRows.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { type Malformed, reportMalformed, takeAll, takeEach } from "../log/Malformed.ts"
import type { Partition } from "../log/PartitionScan.ts"
import { ShownWaits } from "../log/ShownWaits.ts"
import { repairCheckpoints } from "./CheckpointRepair.ts"
import { type Confirmed, confirm } from "./Confirmation.ts"
import { type DecidedRecords, readDecided } from "./DecidedRecords.ts"
import { Gathering } from "./Gathering.ts"
import { type MendedView, mendOnRequest } from "./Mending.ts"
import { checkpointRowIfAny, projectedCheckpoints } from "./ProjectedCheckpoints.ts"
import { projectedEvents } from "./ProjectedEvents.ts"
import { projectedFacts } from "./ProjectedFacts.ts"
import { projectedReceipts } from "./ProjectedReceipts.ts"
import type { ProjectedBatch, ProjectedTopic } from "./ProjectedTopic.ts"
import { type ChainLinks, learnLinks, makeLinks } from "./ProjectionLinks.ts"
import { watchRequests } from "./RebuildRequests.ts"
import { makeRemovedChains } from "./RemovedChains.ts"
import { storeMaintenance } from "./StoreMaintenance.ts"

export const PROJECTION_GROUP = "projection"

/** Bytes of one fetch, as they are compressed in the log. */
const FETCH_BYTES = 6 * 1_048_576
const FETCH_WAIT_MS = 1_000
/** While something is fetched that waits to be stored. */
const FETCH_WAIT_MS_MIN = 100
const REPAIR_INTERVAL = "1 hour"
/** The process that projects it also runs the upkeep of the store, which is one for all partitions. */
const FIRST_PARTITION = 0
/**
 * Receipts are stored when they have waited so long, or when so many wait: a small insert each time
 * costs as much as the events' own, and a request that waits for its event would wait for it too.
 */
const RECEIPTS_WAIT_MS = 250
const RECEIPTS_WAITING_MAX = 5_000

export interface ProjectionSettings {
  /**
   * Milliseconds after which an insert whose outcome is unknown has ended in the store. 0 where the
   * store lives in this process: what it had not stored then died with its caller.
   */
  readonly settleMs: number
}

export const projectionLag = gaugeOf("alk_projection_lag_records")

/** Another projection may have taken the partitions over while this process was away. */
class AssignmentStale extends Schema.TaggedError<AssignmentStale>()("AssignmentStale", {
  generation: Schema.Int
}) {}

/**
 * Neither the store nor `alk.progress` refuses a process that was frozen and has lost its
 * partitions meanwhile: it would store rows again and take back what its successor has published.
 */
const stillOwned = (assignment: Assignment): Effect.Effect<void, AssignmentStale> =>
  Effect.suspend(() =>
    assignment.isCurrent()
      ? Effect.void
      : Effect.fail(new AssignmentStale({ generation: assignment.generation }))
  )

type Next = Pick<Progress, `${ProjectedTopic["topic"]}_next`>

/** What the projection knows of one partition: its next offsets and what it publishes. */
interface View {
  readonly partition: number
  progress: Progress
  /** What is fetched next: ahead of the progress by what is not stored yet. */
  fetchNext: Next
  /** What of the chains' records is decided. */
  readonly decided: DecidedRecords
  /** While rebuilding: the view may be shown once these offsets are reached. */
  readonly caughtUpAt: { readonly events: number; readonly traces: number }
  /** What this process has shown of its partitions: the next offset of `events` by partition. */
  readonly reached: Reached
}

type Reached = Map<number, number>

type Views = Map<number, View>

/** Publishes progress, each with a number above those of before and of processes before this one. */
class Publisher {
  readonly appender: LogAppender
  readonly #numbers = new Map<number, number>()

  constructor(appender: LogAppender) {
    this.appender = appender
  }

  /** Takes a partition over from who has published this last; `now` in microseconds. */
  continueAfter({ number, partition }: Progress, now: number): void {
    this.#numbers.set(partition, Math.max(number, now))
  }

  publish(views: ReadonlyArray<Pick<View, "progress">>) {
    if (views.length === 0) return Effect.void
    return this.appender.append(
      views.map(({ progress }) => {
        const { partition } = progress
        const number = (this.#numbers.get(partition) ?? 0) + 1
        this.#numbers.set(partition, number)
        const value = JSON.stringify({ ...progress, number })
        return { topic: "progress", partition, key: String(partition), value }
      })
    )
  }
}

const lastProgress = (log: EventLog["Service"], reader: LogReader, partition: number) =>
  Effect.gen(function* () {
    let last = noProgress(partition)
    yield* takeAll(log, reader, { topic: "progress", partition }, (record) => {
      last = progressAfter(last, record)
    })
    return last
  })

/** From where on rows may be there twice, as far as one of them says so. */
const doubtedFrom = (
  progress: ReadonlyArray<Progress>,
  from: "duplicates_from" | "trace_duplicates_from"
): number => {
  const doubtful = progress.filter(({ final }) => final)
  return doubtful.length === 0 ? 0 : Math.min(...doubtful.map((one) => one[from]))
}

/**
 * The progress of before: what is published, which another process may have done meanwhile, and what
 * this one could not publish.
 */
const progressBefore = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  reader: LogReader,
  publisher: Publisher,
  partition: number,
  own: Progress | undefined
) {
  const last = yield* lastProgress(log, reader, partition)
  publisher.continueAfter(last, (yield* Clock.currentTimeMillis) * 1_000)
  if (own === undefined) return last
  const both = [last, own]
  return {
    ...last,
    rebuilding: both.some(({ rebuilding }) => rebuilding),
    final: both.some(({ final }) => final),
    duplicates_from: doubtedFrom(both, "duplicates_from"),
    trace_duplicates_from: doubtedFrom(both, "trace_duplicates_from")
  }
})

/** Whether a topic has records of these offsets: its last ones may be marks of transactions. */
const hasRecords = Effect.fnUntraced(function* (
  reader: LogReader,
  place: Partition,
  from: number,
  below: number
) {
  for (let offset = from; offset < below; ) {
    const [fetched] = yield* reader.fetch([{ ...place, offset }], { waitMs: 0, maxBytes: 1 })
    if (fetched?.records.some((record) => record.offset < below) === true) return true
    offset = fetched?.nextOffset ?? offset
  }
  return false
})

/**
 * How far the store is confirmed by the topics; what a topic denies is set aside. What is
 * published says so before rows are removed; `published` is the progress of before.
 */
const recover = Effect.fnUntraced(function* (
  assignment: Assignment,
  reader: LogReader,
  publisher: Publisher,
  partition: number,
  published: Map<number, Progress>,
  reached: Reached
) {
  const log = yield* EventLog
  const stored = yield* StoredTopics
  const before = yield* progressBefore(log, reader, publisher, partition, published.get(partition))
  const announce = Effect.suspend(() => {
    const progress = { ...before, partition, rebuilding: true }
    published.set(partition, progress)
    return Effect.andThen(stillOwned(assignment), publisher.publish([{ progress }]))
  })
  const confirmed = ({ isRecord, topic }: ProjectedTopic) =>
    confirm(reader, { topic, partition }, stored.of(topic), announce, isRecord)
  const ends = {
    events: (yield* log.bounds("events", partition)).end,
    traces: (yield* log.bounds("traces", partition)).end
  }
  const events = yield* confirmed(projectedEvents)
  const traces = yield* confirmed(projectedFacts)
  /** The store may have lost its newest rows, or be a copy of before. */
  const wholeAt = Effect.fnUntraced(function* (
    topic: "events" | "traces",
    { next, wholeAt }: Confirmed,
    shown: number
  ) {
    const isLost = yield* hasRecords(reader, { topic, partition }, next, shown)
    return Math.min(ends[topic], isLost ? Math.max(wholeAt, shown) : wholeAt)
  })
  const caughtUpAt = before.rebuilding
    ? ends
    : {
        events: yield* wholeAt("events", events, Math.min(ends.events, before.events_next)),
        traces: yield* wholeAt("traces", traces, Math.min(ends.traces, before.traces_next))
      }
  const progress: Progress = {
    partition,
    number: 0,
    events_next: events.next,
    receipts_next: (yield* confirmed(projectedReceipts)).next,
    traces_next: traces.next,
    checkpoints_next: (yield* confirmed(projectedCheckpoints)).next,
    final: true,
    duplicates_from: before.final ? Math.min(before.duplicates_from, events.next) : events.next,
    trace_duplicates_from: before.final
      ? Math.min(before.trace_duplicates_from, traces.next)
      : traces.next,
    rebuilding: events.next < caughtUpAt.events || traces.next < caughtUpAt.traces
  }
  reached.set(partition, events.next)
  const decided = yield* readDecided(reader, partition)
  return { partition, progress, fetchNext: progress, decided, caughtUpAt, reached } satisfies View
})

/** What requests wait for is shown first. Receipts are known from their topic until they follow. */
const primaryTopics = [projectedEvents, projectedFacts, projectedCheckpoints]
const projectedTopics: ReadonlyArray<ProjectedTopic> = [...primaryTopics, projectedReceipts]

/** Receipts that are fetched and not stored yet. */
interface PendingReceipts {
  readonly batch: ProjectedBatch
  readonly fetched: Array<Fetched>
  records: number
  /** When the first of them came, in milliseconds of the clock. */
  since: number
}

const noReceipts = (links: ChainLinks): PendingReceipts => ({
  batch: projectedReceipts.begin(links),
  fetched: [],
  records: 0,
  since: 0
})

const isDue = ({ fetched, records, since }: PendingReceipts, now: number): boolean =>
  fetched.length > 0 && (records >= RECEIPTS_WAITING_MAX || now - since >= RECEIPTS_WAIT_MS)

/** Take what was fetched of some topics into the views, and publish how far they are shown. */
const publishProgress = Effect.fnUntraced(function* (
  publisher: Publisher,
  views: Views,
  fetched: ReadonlyArray<Fetched>,
  shown: ReadonlyArray<ProjectedTopic>
) {
  const moved = new Set<View>()
  for (const { nextOffset, offset, partition, stableEnd, topic } of fetched) {
    const view = views.get(partition)
    const projected = shown.find((one) => one.topic === topic)
    if (view === undefined || projected === undefined) continue
    if (nextOffset !== offset) moved.add(view)
    const progress = { ...view.progress, [`${projected.topic}_next`]: nextOffset }
    const { events, traces } = view.caughtUpAt
    const rebuilding =
      progress.rebuilding && (progress.events_next < events || progress.traces_next < traces)
    view.progress = { ...progress, rebuilding }
    if (topic !== "events") continue
    view.reached.set(partition, nextOffset)
    const lag = Metric.withAttributes(projectionLag, { partition: String(partition) })
    yield* Metric.update(lag, Math.max(0, stableEnd - nextOffset))
  }
  yield* publisher.publish([...moved])
})

/** The batches that a fetch makes, by topic; what is malformed is reported. */
const batchesOf = Effect.fnUntraced(function* (
  views: Views,
  links: ChainLinks,
  late: PendingReceipts,
  fetched: ReadonlyArray<Fetched>
) {
  const batches = new Map<string, ProjectedBatch>(
    primaryTopics.map(({ begin, topic }) => [topic, begin(links)])
  )
  batches.set(projectedReceipts.topic, late.batch)
  const malformed: Array<Malformed> = []
  for (const one of fetched) {
    const { nextOffset, offset, partition, records, topic } = one
    const batch = batches.get(topic)
    if (batch === undefined || !views.has(partition) || nextOffset === offset) continue
    malformed.push(...takeEach(one, records, (record) => batch.take(partition, record)))
    if (topic !== projectedReceipts.topic) continue
    if (late.fetched.length === 0) late.since = yield* Clock.currentTimeMillis
    late.fetched.push({ ...one, records: [] })
    late.records += records.length
  }
  yield* reportMalformed(malformed)
  return batches
})

/** What the projection of an assignment works with. */
interface Work {
  readonly assignment: Assignment
  readonly publisher: Publisher
  readonly views: Views
  readonly links: ChainLinks
  /** For what has to be looked up beside the records that are projected. */
  readonly side: LogReader
  late: PendingReceipts
}

/** Store batches for as long as the partitions are this process's, and publish that they are there. */
const show = Effect.fnUntraced(function* (
  { assignment, publisher, views }: Work,
  fetched: ReadonlyArray<Fetched>,
  topics: ReadonlyArray<ProjectedTopic>,
  batches: ReadonlyMap<string, ProjectedBatch>
) {
  yield* stillOwned(assignment)
  for (const { topic } of topics) yield* batches.get(topic)!.store
  yield* stillOwned(assignment)
  yield* publishProgress(publisher, views, fetched, topics)
})

/** Bring one fetch into the store but for its receipts, and publish that it is there. */
const project = Effect.fnUntraced(function* (work: Work, fetched: ReadonlyArray<Fetched>) {
  const { late, links, side, views } = work
  yield* learnLinks(links, side, fetched)
  const batches = yield* batchesOf(views, links, late, fetched)
  yield* show(work, fetched, primaryTopics, batches)
})

/** Store the receipts that wait, if it is time for that. */
const projectReceipts = Effect.fnUntraced(function* (work: Work) {
  const { late, links } = work
  if (!isDue(late, yield* Clock.currentTimeMillis)) return
  work.late = noReceipts(links)
  const batches = new Map([[projectedReceipts.topic, late.batch]])
  yield* show(work, late.fetched, [projectedReceipts], batches)
})

const publishOwn = (assignment: Assignment, publisher: Publisher, view: View) =>
  Effect.andThen(stillOwned(assignment), publisher.publish([view]))

/**
 * Once every insert of unknown outcome must have ended: stop merging on reads, if nothing is there
 * twice.
 */
const publishFinal = Effect.fnUntraced(
  function* (
    assignment: Assignment,
    publisher: Publisher,
    view: View,
    settings: ProjectionSettings
  ) {
    const store = yield* EventStore
    const traceStore = yield* TraceStore
    yield* Effect.sleep(settings.settleMs)
    const { duplicates_from, final, trace_duplicates_from } = view.progress
    const { partition } = view
    // What could not be published is published again.
    if (!final) return yield* publishOwn(assignment, publisher, view)
    yield* store.eraseAgain(partition, duplicates_from)
    const events = yield* store.hasDuplicates(partition, duplicates_from)
    const facts = yield* traceStore.hasDuplicates(partition, trace_duplicates_from)
    if (events || facts) {
      yield* Effect.logWarning("rows are in the store twice: reads merge them until it has", {
        partition
      })
      if (events) yield* store.mergeDuplicates
      if (facts) yield* traceStore.mergeDuplicates
      return yield* Effect.fail("not settled" as const)
    }
    yield* stillOwned(assignment)
    view.progress = { ...view.progress, final: false }
    yield* publishOwn(assignment, publisher, view)
  },
  Effect.retry(Schedule.spaced("30 seconds"))
)

/** What mending needs of a view. */
const mendedView = (assignment: Assignment, publisher: Publisher, view: View): MendedView => ({
  partition: view.partition,
  topics: projectedTopics,
  own: view.decided.own,
  shown: (topic) => view.progress[`${topic}_next`],
  doubt: Effect.suspend(() => {
    view.progress = { ...view.progress, final: true, duplicates_from: 0, trace_duplicates_from: 0 }
    return publishOwn(assignment, publisher, view)
  }),
  stillOwned: stillOwned(assignment),
  say: (key, value) =>
    publisher.appender.append([{ topic: "progress", partition: view.partition, key, value }])
})

/** At the start and every hour: checkpoints that the store has lost come back. */
const repairing = Effect.fnUntraced(function* (view: View) {
  const { partition } = view
  const log = yield* EventLog
  const reader = yield* log.reader
  const repair = Effect.suspend(() =>
    repairCheckpoints(reader, partition, view.progress.checkpoints_next, (record) =>
      checkpointRowIfAny(partition, record)
    )
  ).pipe(
    Effect.tapError((error) =>
      Effect.logWarning("the checkpoints in the store could not be compared", {
        partition,
        error: String(error)
      })
    ),
    Effect.ignore
  )
  yield* Effect.repeat(repair, Schedule.spaced(REPAIR_INTERVAL))
})

const positionsOf = (views: Views): ReadonlyArray<Position> =>
  [...views.values()].flatMap(({ decided, fetchNext, partition }) => [
    { topic: "state", partition, offset: decided.next } as const,
    ...projectedTopics
      .filter(({ topic }) => !((topic === "events" || topic === "traces") && decided.isFull(topic)))
      .map(({ topic }) => ({ topic, partition, offset: fetchNext[`${topic}_next`] }))
  ])

/** What of a fetch is decided, with what was held before. */
const decidedOf = (views: Views, fetched: ReadonlyArray<Fetched>): ReadonlyArray<Fetched> =>
  [...Map.groupBy(fetched, ({ partition }) => partition)].flatMap(
    ([partition, own]) => views.get(partition)?.decided.take(own) ?? []
  )

/** Go on after what was fetched. */
const advance = (views: Views, fetched: ReadonlyArray<Fetched>): void => {
  for (const { nextOffset, partition, topic } of fetched) {
    const view = views.get(partition)
    if (view !== undefined) view.fetchNext = { ...view.fetchNext, [`${topic}_next`]: nextOffset }
  }
}

/** True if a request waits for what is not shown yet, whichever process serves it. */
const isAwaited = (views: Views): boolean =>
  [...views.values()].some(({ decided, progress }) =>
    chains.some((chain) => decided.awaitedUpTo(chain) > progress[`${chain}_next`])
  )

/** Project the given partitions until something fails. */
const follow = Effect.fnUntraced(function* (
  assignment: Assignment,
  previous: Map<number, Progress>,
  settings: ProjectionSettings,
  running: Ref.Ref<ReadonlySet<number>>,
  reached: Reached
) {
  const { partitions } = assignment
  const log = yield* EventLog
  const reader = yield* log.reader
  const publisher = new Publisher(yield* log.appender)
  const views: Views = new Map()
  const side = yield* log.reader
  const watched = yield* watchRequests(partitions)
  const oneAtATime = Semaphore.makeUnsafe(1)
  for (const partition of partitions) {
    const view = yield* recover(assignment, reader, publisher, partition, previous, reached)
    views.set(partition, view)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        previous.set(partition, view.progress)
      })
    )
    const settled = publishFinal(assignment, publisher, view, settings)
    const mending = mendOnRequest(
      mendedView(assignment, publisher, view),
      watched.get(partition)!,
      oneAtATime
    )
    yield* Effect.forkScoped(
      Effect.andThen(settled, Effect.forever(Effect.andThen(mending, settled)))
    )
    yield* Effect.forkScoped(repairing(view))
  }
  // Rows that were gone when the position was found are named in the registry by now.
  const removed = yield* makeRemovedChains(side)
  const own = (partition: number) => views.get(partition)?.decided.own ?? everythingOwn
  const links: ChainLinks = { events: makeLinks(), traces: makeLinks(), removed, own }
  const work: Work = { assignment, publisher, views, links, side, late: noReceipts(links) }
  if (partitions.includes(FIRST_PARTITION)) yield* Effect.forkScoped(storeMaintenance)
  yield* stillOwned(assignment)
  yield* publisher.publish([...views.values()])
  yield* Ref.set(running, new Set(partitions))
  yield* Effect.logInfo("projecting", { partitions })
  if (views.size === 0) return yield* Effect.never
  const gathering = new Gathering()
  const fetch = Effect.suspend(() => {
    const isHolding =
      !gathering.isEmpty
      || work.late.fetched.length > 0
      || [...views.values()].some(({ decided }) => decided.isHolding)
    const waitMs = isHolding ? FETCH_WAIT_MS_MIN : FETCH_WAIT_MS
    return reader.fetch(positionsOf(views), { waitMs, maxBytes: FETCH_BYTES })
  })
  const waits = yield* ShownWaits
  let pending = yield* Effect.forkScoped(fetch)
  for (;;) {
    const next = Fiber.join(pending)
    // A request that begins to wait meanwhile ends this, too.
    const fetched = yield* gathering.isEmpty ? next : Effect.raceFirst(next, waits.begun)
    if (fetched !== undefined) {
      advance(views, fetched)
      gathering.add(decidedOf(views, fetched), yield* Clock.currentTimeMillis)
      // The next fetch is under way while this one is stored.
      pending = yield* Effect.forkScoped(fetch)
    }
    const now = yield* Clock.currentTimeMillis
    if (gathering.isDue(now, waits.count > 0 || isAwaited(views))) {
      yield* project(work, gathering.take(now))
    }
    yield* projectReceipts(work)
  }
}, Effect.scoped)

export interface ProjectionStatus {
  readonly running: Effect.Effect<ReadonlySet<number>>
  /** The next event that is not shown yet, by assigned partition. */
  readonly reached: () => ReadonlyMap<number, number>
}

const restarts = counterOf("alk_projection_restarts_total")
const backOff = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")])

/** Follow the group's assignments and project them for as long as the scope is open. */
export const runProjection = Effect.fnUntraced(function* (settings: ProjectionSettings) {
  const log = yield* EventLog
  const running = yield* Ref.make<ReadonlySet<number>>(new Set())
  const previous = new Map<number, Progress>()
  const reached: Reached = new Map()
  const once = (assignment: Assignment) =>
    Effect.suspend(() => {
      const isAssigned = (partition: number) => assignment.partitions.includes(partition)
      for (const known of [reached, previous]) {
        for (const partition of known.keys()) if (!isAssigned(partition)) known.delete(partition)
      }
      return follow(assignment, previous, settings, running, reached)
    }).pipe(
      Effect.ensuring(Ref.set(running, new Set())),
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.tapError((error) =>
        Effect.andThen(
          Metric.update(restarts, 1),
          Effect.logWarning("the projection starts over", { error: String(error) })
        )
      ),
      Effect.retry(backOff)
    )
  yield* log.membership(PROJECTION_GROUP).pipe(
    Stream.switchMap((assignment) => Stream.fromEffect(once(assignment))),
    Stream.runDrain,
    Effect.retry(Schedule.spaced("1 second")),
    Effect.forkScoped
  )
  return { running: Ref.get(running), reached: () => reached } satisfies ProjectionStatus
})

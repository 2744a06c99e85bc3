/**
 * Makes the topics queryable: copies events, trace facts, checkpoints and receipts, byte for byte and
 * in offset order, into the store, and says on `alk.progress` how far it has come. Decides nothing;
 * whatever it finds in the store that the topic denies is set aside and built anew.
 */
import { Clock, Effect, Metric, Ref, Schedule, Schema, Stream } from "effect"
import { type Link, linkOf } from "../../domain/chain/Link.ts"
import { RecordFields, RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { RECEIPT_HEADER, TENANT_HEADER } from "../../domain/records/Command.ts"
import { KIND_HEADER } from "../../domain/records/Receipt.ts"
import { parseTimestamp } from "../../domain/Timestamp.ts"
import { parseFact, type TraceFact } from "../../domain/traces/TraceFact.ts"
import { type CheckpointRow, CheckpointStore } from "../../ports/CheckpointStore.ts"
import {
  type Assignment,
  EventLog,
  type Fetched,
  type LogAppender,
  type LogReader,
  type LogRecord,
  type Position
} from "../../ports/EventLog.ts"
import {
  type ConflictRow,
  type EventRow,
  EventStore,
  INSERT_BYTES_MAX,
  INSERT_ROWS_MAX,
  type ReceiptRow
} from "../../ports/EventStore.ts"
import { type StoredTopic, StoredTopics } from "../../ports/TopicRows.ts"
import { type FactRow, TraceStore } from "../../ports/TraceStore.ts"
import { type Malformed, reportMalformed, scanEach, takeEach } from "../log/Malformed.ts"
import { noProgress, type Progress, readProgress } from "../log/Visibility.ts"
import { repairCheckpoints } from "./CheckpointRepair.ts"
import { confirm, type IsRecord } from "./Confirmation.ts"
import {
  type ErasedEvents,
  type ErasedExecution,
  erasedTargetsOf,
  erasedTogether,
  isEventOf,
  isFactOf
} from "./ProjectionErasure.ts"
import { type ChainLinks, Links, learnLinks } from "./ProjectionLinks.ts"

export const PROJECTION_GROUP = "projection"

/** Bytes of one fetch, as they stand compressed in the log. */
const FETCH_BYTES = 6 * 1_048_576
const FETCH_WAIT_MS = 250
const REPAIR_INTERVAL = "1 hour"

export interface ProjectionSettings {
  /**
   * Milliseconds after which an insert whose outcome is unknown has ended in the store. 0 where the
   * store lives in this process: what it had not stored then died with its caller.
   */
  readonly settleMs: number
}

export const flushRows = Metric.histogram("alk_projection_flush_rows", {
  description: "Rows in one insert of the projection",
  boundaries: [1, 10, 100, 1_000, 5_000, 10_000, 25_000, 50_000]
})
export const flushSeconds = Metric.histogram("alk_projection_flush_duration_seconds", {
  description: "Time of one insert of the projection",
  boundaries: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
})
export const projectionLag = Metric.gauge("alk_projection_lag_records", {
  description: "Records of alk.events that are committed but not queryable yet, per partition"
})

/** Another projection may have taken the partitions over while this process was away. */
class AssignmentStale extends Schema.TaggedError<AssignmentStale>()("AssignmentStale", {
  generation: Schema.Int
}) {}

/**
 * Neither the store nor `alk.progress` refuses a process that was frozen and has lost its partitions
 * meanwhile: it would store rows again and take back what its successor has said.
 */
const stillOwned = (assignment: Assignment): Effect.Effect<void, AssignmentStale> =>
  Effect.suspend(() =>
    assignment.isCurrent()
      ? Effect.void
      : Effect.fail(new AssignmentStale({ generation: assignment.generation }))
  )

/** What the projection knows of one partition: its next offsets and what it tells the readers. */
interface View {
  readonly partition: number
  progress: Progress
  /** While rebuilding: the view may be shown once these offsets are reached. */
  readonly caughtUpAt: { readonly events: number; readonly traces: number }
}

type Views = Map<number, View>

const publish = (appender: LogAppender, views: ReadonlyArray<Pick<View, "progress">>) =>
  views.length === 0
    ? Effect.void
    : appender.append(
        views.map(({ progress }) => ({
          topic: "progress",
          partition: progress.partition,
          key: String(progress.partition),
          value: JSON.stringify(progress)
        }))
      )

const lastProgress = (log: EventLog["Service"], reader: LogReader, partition: number) =>
  Effect.gen(function* () {
    const { end, start } = yield* log.bounds("progress", partition)
    let last = noProgress(partition)
    const position = { topic: "progress" as const, partition, offset: start }
    yield* scanEach(reader, position, end, ({ value }) => {
      if (value !== null) last = readProgress(partition, value)
    })
    return last
  })

/**
 * How far the store is confirmed by the topics; what a topic denies is set aside. Readers of the
 * store are told before rows are removed; `told` is the progress that they know.
 */
const recover = Effect.fnUntraced(function* (
  assignment: Assignment,
  reader: LogReader,
  appender: LogAppender,
  partition: number,
  told: Map<number, Progress>
) {
  const log = yield* EventLog
  const stored = yield* StoredTopics
  const before = told.get(partition) ?? (yield* lastProgress(log, reader, partition))
  const announce = Effect.suspend(() => {
    const progress = { ...before, partition, rebuilding: true }
    told.set(partition, progress)
    return Effect.andThen(stillOwned(assignment), publish(appender, [{ progress }]))
  })
  const confirmed = (topic: StoredTopic, isOf?: IsRecord) =>
    confirm(reader, { topic, partition }, stored.of(topic), announce, isOf)
  const ends = {
    events: (yield* log.bounds("events", partition)).end,
    traces: (yield* log.bounds("traces", partition)).end
  }
  const events = yield* confirmed("events", isEventOf)
  const traces = yield* confirmed("traces", isFactOf)
  const caughtUpAt = before.rebuilding
    ? ends
    : {
        events: Math.min(ends.events, events.wholeAt),
        traces: Math.min(ends.traces, traces.wholeAt)
      }
  const progress: Progress = {
    partition,
    events_next: events.next,
    receipts_next: (yield* confirmed("receipts")).next,
    traces_next: traces.next,
    checkpoints_next: (yield* confirmed("checkpoints")).next,
    final: true,
    duplicates_from: before.final ? Math.min(before.duplicates_from, events.next) : events.next,
    trace_duplicates_from: before.final
      ? Math.min(before.trace_duplicates_from, traces.next)
      : traces.next,
    rebuilding: events.next < caughtUpAt.events || traces.next < caughtUpAt.traces
  }
  return { partition, progress, caughtUpAt } satisfies View
})

interface Sorted {
  /** In order, cut before each event that erases another one. */
  readonly events: Array<Segment<EventRow, ErasedEvents>>
  readonly conflicts: Array<ConflictRow>
  readonly factConflicts: Array<ConflictRow>
  /** In order, cut before each fact that erases an execution. */
  readonly facts: Array<Segment<FactRow, ErasedExecution>>
  readonly checkpoints: Array<CheckpointRow>
  readonly receipts: Array<ReceiptRow>
}

/**
 * Rows that are stored once something before them was erased. In this order nothing is lost when the
 * projection ends in between: the erasure is done again with the row that asks for it.
 */
interface Segment<Row, Erased> {
  erase: Erased | undefined
  readonly rows: Array<Row>
}

const addTo = <Row, Erased>(
  segments: Array<Segment<Row, Erased>>,
  row: Row,
  erase: Erased | undefined,
  together: (first: Erased, second: Erased) => Erased | undefined = () => undefined
): void => {
  const last = segments.at(-1)
  if (last === undefined) return void segments.push({ erase, rows: [row] })
  if (erase === undefined) return void last.rows.push(row)
  const both = last.erase && together(last.erase, erase)
  if (both === undefined) return void segments.push({ erase, rows: [row] })
  last.erase = both
  last.rows.push(row)
}

/** Why a link does not follow the one before it, if it does not. */
const refusalOf = (link: Link, tenantId: string, before: Link | undefined) =>
  link.tenantId !== tenantId
    ? "tenant_mismatch"
    : link.sequenceNumber < 1
      ? "sequence_mismatch"
      : before !== undefined && link.sequenceNumber !== before.sequenceNumber + 1
        ? "sequence_mismatch"
        : before !== undefined && link.prevHash !== before.hash
          ? "prev_hash_mismatch"
          : undefined

/** Bytes that end a field or a row on their way into the store; they can't stand in compact JSON. */
const LINE_FEED = 10
const SEPARATOR = 1
/** Characters that no id holds. */
const CONTROL = /[\u0000-\u001f]/

/** @throws RecordUnreadable for bytes that are no compact JSON */
const bodyOf = ({ value }: LogRecord): Buffer => {
  const body = value ?? Buffer.alloc(0)
  if (body.includes(LINE_FEED) || body.includes(SEPARATOR)) {
    throw new RecordUnreadable("it holds raw control characters")
  }
  return body
}

/** Its place in the chain of a tenant. */
const placeOf = (number: number): number =>
  Number.isSafeInteger(number) && number >= 0 ? number : 0

/** Why a record of `alk.events` is not shown, if it isn't. */
const sortLinked = (
  into: Sorted,
  links: Links,
  partition: number,
  record: LogRecord,
  link: Link | undefined
): string | undefined => {
  const tenantId = record.key?.toString() ?? ""
  if (link === undefined) return "unreadable"
  const reason = refusalOf(link, tenantId, links.known(tenantId))
  if (reason !== undefined) return reason
  try {
    const body = bodyOf(record)
    const erased = erasedTargetsOf(body)
    addTo(into.events, { partition, offset: record.offset, body }, erased, erasedTogether)
  } catch {
    // Bytes that only end like an event.
    return "unreadable"
  }
  links.learn(tenantId, link)
  return undefined
}

const sortEvent = (into: Sorted, links: Links, partition: number, record: LogRecord): void => {
  const { offset } = record
  const body = record.value ?? Buffer.alloc(0)
  const link = linkOf(body)
  const reason = sortLinked(into, links, partition, record, link)
  if (reason === undefined) return
  const tenantId = record.key?.toString() ?? ""
  const sequenceNumber = placeOf(link?.sequenceNumber ?? 0)
  into.conflicts.push({ partition, offset, tenantId, sequenceNumber, reason, body })
}

/** What the store and its statements take as numbers and times has to be such. */
const checkFact = ({ chain_sequence, created_at, fact_number }: TraceFact): void => {
  const numbers = [chain_sequence, fact_number]
  if (numbers.some((number) => !Number.isSafeInteger(number) || number < 1)) {
    throw new RecordUnreadable("its numbers are none")
  }
  if (parseTimestamp(created_at) !== created_at) throw new RecordUnreadable("its time is none")
}

/** A fact in its place, or why it is not shown. */
const readFact = (links: Links, record: LogRecord) => {
  const tenantId = record.key?.toString() ?? ""
  try {
    const body = bodyOf(record)
    const fact = parseFact(body.toString())
    if (fact === undefined) throw new RecordUnreadable("it is no fact")
    checkFact(fact)
    const link: Link = {
      tenantId: fact.tenant_id,
      sequenceNumber: fact.chain_sequence,
      createdAt: fact.created_at,
      contentHash: fact.content_hash,
      prevHash: fact.prev_hash,
      hash: fact.hash
    }
    const reason = refusalOf(link, tenantId, links.known(tenantId))
    return reason === undefined
      ? { body, fact, link }
      : { reason, sequenceNumber: placeOf(link.sequenceNumber) }
  } catch {
    return { reason: "unreadable", sequenceNumber: 0 }
  }
}

/** A fact that does not link is kept apart, and verification reports it. */
const sortFact = (into: Sorted, links: Links, partition: number, record: LogRecord): void => {
  const { offset } = record
  const tenantId = record.key?.toString() ?? ""
  const read = readFact(links, record)
  if (read.fact === undefined) {
    const { reason, sequenceNumber } = read
    const body = record.value ?? Buffer.alloc(0)
    into.factConflicts.push({ partition, offset, tenantId, sequenceNumber, reason, body })
    return
  }
  const { body, fact, link } = read
  links.learn(tenantId, link)
  const erase: ErasedExecution | undefined =
    fact.type === "execution.erased"
      ? {
          tenantId,
          executionId: fact.execution_id,
          beforeFactNumber: fact.fact_number,
          erasedAt: fact.created_at
        }
      : undefined
  addTo(into.facts, { partition, offset, body }, erase)
}

/**
 * Checks the form only: whether a checkpoint is genuine is for its signature to say.
 * @throws RecordUnreadable
 */
const checkpointRow = (partition: number, record: LogRecord): CheckpointRow => {
  const body = bodyOf(record)
  const fields = RecordFields.of(body, "checkpoint")
  const tenantId = fields.text("tenant_id")
  if (CONTROL.test(tenantId)) throw fields.wrong("tenant_id", "an id")
  const treeSize = fields.integer("tree_size", 1)
  return { partition, offset: record.offset, tenantId, treeSize, body }
}

/** The row of a record that is a checkpoint. */
const checkpointRowIfAny = (partition: number, record: LogRecord): CheckpointRow | undefined => {
  try {
    return checkpointRow(partition, record)
  } catch {
    // Reported when it was projected.
    return undefined
  }
}

const sortReceipt = (into: Sorted, partition: number, record: LogRecord): void => {
  const header = (name: string) => record.headers[name]?.toString() ?? ""
  if (header(KIND_HEADER) !== "outcome") return
  const [tenantId, receiptId] = [header(TENANT_HEADER), header(RECEIPT_HEADER)]
  if (CONTROL.test(tenantId) || CONTROL.test(receiptId)) {
    throw new RecordUnreadable("its headers hold control characters")
  }
  const body = bodyOf(record)
  if (body.length === 0) throw new RecordUnreadable("it has no value")
  into.receipts.push({ partition, offset: record.offset, tenantId, receiptId, body })
}

/** Cut rows into inserts of bounded size, in order. */
export const toInserts = <Row extends { readonly body: Buffer }>(
  rows: ReadonlyArray<Row>
): ReadonlyArray<ReadonlyArray<Row>> => {
  const inserts: Array<Array<Row>> = []
  let current: Array<Row> = []
  let bytes = 0
  for (const row of rows) {
    const full = current.length >= INSERT_ROWS_MAX || bytes + row.body.length > INSERT_BYTES_MAX
    if (current.length > 0 && full) {
      inserts.push(current)
      current = []
      bytes = 0
    }
    current.push(row)
    bytes += row.body.length
  }
  if (current.length > 0) inserts.push(current)
  return inserts
}

/** Time and size of what was stored, and a loud word on what was not. */
const measured = Effect.fnUntraced(function* <E, R>(
  rows: number,
  insert: Effect.Effect<void, E, R>
) {
  const started = yield* Clock.currentTimeMillis
  yield* insert
  if (rows === 0) return
  yield* Metric.update(flushRows, rows)
  yield* Metric.update(flushSeconds, ((yield* Clock.currentTimeMillis) - started) / 1_000)
})

const insertEvents = Effect.fnUntraced(function* ({ conflicts, events }: Sorted) {
  const store = yield* EventStore
  for (const { erase, rows } of events) {
    if (erase !== undefined) yield* store.eraseDetails(erase.tenantId, erase.erasures)
    const inserts = Effect.forEach(toInserts(rows), (part) => store.insertEvents(part), {
      discard: true
    })
    yield* measured(rows.length, inserts)
  }
  for (const rows of toInserts(conflicts)) yield* store.insertConflicts(rows)
  yield* reportConflicts("alk.events", conflicts)
})

const reportConflicts = (topic: string, conflicts: ReadonlyArray<ConflictRow>) =>
  Effect.forEach(
    conflicts,
    ({ offset, partition, reason, sequenceNumber }) =>
      Effect.logError(`a record of ${topic} does not link and is not shown`, {
        partition,
        offset,
        sequenceNumber,
        reason
      }),
    { discard: true }
  )

const insertFacts = Effect.fnUntraced(function* ({ factConflicts, facts }: Sorted) {
  const store = yield* TraceStore
  for (const { erase, rows } of facts) {
    if (erase !== undefined) {
      const { beforeFactNumber, erasedAt, executionId, tenantId } = erase
      yield* store.eraseDetails(tenantId, executionId, beforeFactNumber, erasedAt)
    }
    const inserts = Effect.forEach(toInserts(rows), (part) => store.insertFacts(part), {
      discard: true
    })
    yield* measured(rows.length, inserts)
  }
  for (const rows of toInserts(factConflicts)) yield* store.insertConflicts(rows)
  yield* reportConflicts("alk.traces", factConflicts)
})

const insertCheckpoints = Effect.fnUntraced(function* ({ checkpoints }: Sorted) {
  const store = yield* CheckpointStore
  for (const rows of toInserts(checkpoints)) yield* store.insert(rows)
})

const insertReceipts = Effect.fnUntraced(function* ({ receipts }: Sorted) {
  const store = yield* EventStore
  const inserts = Effect.forEach(toInserts(receipts), (rows) => store.insertReceipts(rows), {
    discard: true
  })
  yield* measured(receipts.length, inserts)
})

/** The member of a Progress that says how far a topic is visible. */
const progressMembers = {
  events: "events_next",
  traces: "traces_next",
  checkpoints: "checkpoints_next",
  receipts: "receipts_next"
} as const
type ProjectedTopic = keyof typeof progressMembers

const isProjected = (topic: string): topic is ProjectedTopic => topic in progressMembers

/** Take what was fetched of some topics into the views, and tell the readers where it has moved. */
const tell = Effect.fnUntraced(function* (
  appender: LogAppender,
  views: Views,
  fetched: ReadonlyArray<Fetched>,
  wanted: ReadonlyArray<ProjectedTopic>
) {
  const moved = new Set<View>()
  for (const { nextOffset, offset, partition, stableEnd, topic } of fetched) {
    const view = views.get(partition)
    if (view === undefined || !isProjected(topic) || !wanted.includes(topic)) continue
    if (nextOffset !== offset) moved.add(view)
    const progress = { ...view.progress, [progressMembers[topic]]: nextOffset }
    const { events, traces } = view.caughtUpAt
    const rebuilding =
      progress.rebuilding && (progress.events_next < events || progress.traces_next < traces)
    view.progress = { ...progress, rebuilding }
    if (topic !== "events") continue
    const lag = Metric.withAttributes(projectionLag, { partition: String(partition) })
    yield* Metric.update(lag, Math.max(0, stableEnd - nextOffset))
  }
  yield* publish(appender, [...moved])
})

/** What a fetch holds, by where it goes. */
const sort = Effect.fnUntraced(function* (
  views: Views,
  links: ChainLinks,
  fetched: ReadonlyArray<Fetched>
) {
  const sorted: Sorted = {
    events: [],
    conflicts: [],
    facts: [],
    factConflicts: [],
    checkpoints: [],
    receipts: []
  }
  const malformed: Array<Malformed> = []
  for (const one of fetched) {
    const { nextOffset, offset, partition, records, topic } = one
    if (!views.has(partition) || nextOffset === offset) continue
    const take = (record: LogRecord) => {
      if (topic === "events") sortEvent(sorted, links.events, partition, record)
      else if (topic === "receipts") sortReceipt(sorted, partition, record)
      else if (topic === "checkpoints") sorted.checkpoints.push(checkpointRow(partition, record))
      else sortFact(sorted, links.traces, partition, record)
    }
    malformed.push(...takeEach(one, records, take))
  }
  yield* reportMalformed(malformed)
  return sorted
})

/** Bring one fetch into the store and tell the readers. */
const project = Effect.fnUntraced(function* (
  assignment: Assignment,
  appender: LogAppender,
  views: Views,
  links: ChainLinks,
  side: LogReader,
  fetched: ReadonlyArray<Fetched>
) {
  yield* learnLinks(links, side, fetched)
  const sorted = yield* sort(views, links, fetched)
  yield* stillOwned(assignment)
  yield* insertEvents(sorted)
  yield* insertFacts(sorted)
  yield* insertCheckpoints(sorted)
  yield* stillOwned(assignment)
  // Whoever waits for a commit waits for this; receipts are known from their topic until they follow.
  yield* tell(appender, views, fetched, ["events", "traces", "checkpoints"])
  yield* insertReceipts(sorted)
  yield* stillOwned(assignment)
  yield* tell(appender, views, fetched, ["receipts"])
})

/** Once every insert of unknown outcome must have ended: stop merging on reads, if nothing is there twice. */
const settle = Effect.fnUntraced(
  function* (
    assignment: Assignment,
    appender: LogAppender,
    view: View,
    settings: ProjectionSettings
  ) {
    const store = yield* EventStore
    const traceStore = yield* TraceStore
    yield* Effect.sleep(settings.settleMs)
    const { duplicates_from, final, trace_duplicates_from } = view.progress
    const { partition } = view
    if (!final) return
    yield* store.eraseAgain(partition, duplicates_from)
    const events = yield* store.hasDuplicates(partition, duplicates_from)
    const facts = yield* traceStore.hasDuplicates(partition, trace_duplicates_from)
    if (events || facts) {
      yield* Effect.logWarning("rows stand in the store twice: reads merge them until it has", {
        partition
      })
      if (events) yield* store.mergeDuplicates
      if (facts) yield* traceStore.mergeDuplicates
      return yield* Effect.fail("not settled" as const)
    }
    yield* stillOwned(assignment)
    view.progress = { ...view.progress, final: false }
    yield* publish(appender, [view])
  },
  Effect.retry(Schedule.spaced("30 seconds"))
)

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
  [...views.values()].flatMap(({ partition, progress }) => [
    { topic: "events" as const, partition, offset: progress.events_next },
    { topic: "traces" as const, partition, offset: progress.traces_next },
    { topic: "checkpoints" as const, partition, offset: progress.checkpoints_next },
    { topic: "receipts" as const, partition, offset: progress.receipts_next }
  ])

/** Project the given partitions until something fails. */
const follow = Effect.fnUntraced(function* (
  assignment: Assignment,
  previous: Map<number, Progress>,
  settings: ProjectionSettings,
  running: Ref.Ref<ReadonlySet<number>>
) {
  const { partitions } = assignment
  const log = yield* EventLog
  const reader = yield* log.reader
  const appender = yield* log.appender
  const views: Views = new Map()
  const links: ChainLinks = { events: new Links(), traces: new Links() }
  /** For what has to be looked up beside the records that are projected. */
  const side = yield* log.reader
  for (const partition of partitions) {
    const view = yield* recover(assignment, reader, appender, partition, previous)
    views.set(partition, view)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        previous.set(partition, view.progress)
      })
    )
    yield* Effect.forkScoped(settle(assignment, appender, view, settings))
    yield* Effect.forkScoped(repairing(view))
  }
  yield* stillOwned(assignment)
  yield* publish(appender, [...views.values()])
  yield* Ref.set(running, new Set(partitions))
  yield* Effect.logInfo("projecting", { partitions })
  if (views.size === 0) return yield* Effect.never
  const fetch = () =>
    reader.fetch(positionsOf(views), { waitMs: FETCH_WAIT_MS, maxBytes: FETCH_BYTES })
  for (;;) {
    yield* project(assignment, appender, views, links, side, yield* fetch())
  }
}, Effect.scoped)

export interface ProjectionStatus {
  readonly running: Effect.Effect<ReadonlySet<number>>
}

const backOff = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")])

/** Follow the group's assignments and project them for as long as the scope is open. */
export const runProjection = Effect.fnUntraced(function* (settings: ProjectionSettings) {
  const log = yield* EventLog
  const running = yield* Ref.make<ReadonlySet<number>>(new Set())
  const previous = new Map<number, Progress>()
  const once = (assignment: Assignment) =>
    follow(assignment, previous, settings, running).pipe(
      Effect.ensuring(Ref.set(running, new Set())),
      Effect.tapError((error) =>
        Effect.logWarning("the projection starts over", { error: String(error) })
      ),
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.retry(backOff)
    )
  yield* log.membership(PROJECTION_GROUP).pipe(
    Stream.switchMap((assignment) => Stream.fromEffect(once(assignment))),
    Stream.runDrain,
    Effect.retry(Schedule.spaced("1 second")),
    Effect.forkScoped
  )
  return { running: Ref.get(running) } satisfies ProjectionStatus
})

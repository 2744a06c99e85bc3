/**
 * Makes the topics queryable: copies events and receipts, byte for byte and in offset order, into the
 * store, and says on `alk.progress` how far it has come. Decides nothing; whatever it finds in the
 * store that the topic does not confirm is dropped and built anew.
 */
import { Clock, Effect, Metric, Ref, Schedule, Schema, Stream } from "effect"
import { RECEIPT_HEADER, TENANT_HEADER } from "../domain/Command.ts"
import { linkOf, type Link } from "../domain/Link.ts"
import { KIND_HEADER } from "../domain/Receipt.ts"
import {
  EventLog,
  type Assignment,
  type Fetched,
  type LogAppender,
  type LogReader,
  type LogRecord,
  type Position
} from "../ports/EventLog.ts"
import {
  EventStore,
  INSERT_BYTES_MAX,
  INSERT_ROWS_MAX,
  type ConflictRow,
  type EventRow,
  type ReceiptRow
} from "../ports/EventStore.ts"
import { scan } from "./PartitionScan.ts"
import { noProgress, type Progress } from "./Visibility.ts"

export const PROJECTION_GROUP = "projection"

/** Bytes of one fetch, as they stand compressed in the log. */
const FETCH_BYTES = 6 * 1_048_576
const FETCH_WAIT_MS = 250
/** Tenants whose last link is remembered, so that the next one can be checked. */
const LINKS_MAX = 100_000

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
  /** While rebuilding: the view may be shown once `events_next` has reached this offset. */
  caughtUpAt: number
}

type Views = Map<number, View>

const publish = (appender: LogAppender, views: ReadonlyArray<View>) =>
  views.length === 0
    ? Effect.void
    : appender.append(
        views.map(({ partition, progress }) => ({
          topic: "progress",
          partition,
          key: String(partition),
          value: JSON.stringify(progress)
        }))
      )

const lastProgress = (log: EventLog["Service"], reader: LogReader, partition: number) =>
  Effect.gen(function*() {
    const { end, start } = yield* log.bounds("progress", partition)
    let last = noProgress(partition)
    yield* scan(reader, { topic: "progress", partition, offset: start }, end, (records) => {
      const value = records.at(-1)?.value
      if (value != null) last = JSON.parse(value.toString()) as Progress
    })
    return last
  })

const recordAt = (reader: LogReader, position: Position) =>
  Effect.gen(function*() {
    let found: LogRecord | undefined
    yield* scan(reader, position, position.offset + 1, (records) => {
      found = records.find((record) => record.offset === position.offset)
    })
    return found
  })

/** Where the store stands, confirmed by the topic; a view that the topic denies is dropped. */
const recover = Effect.fnUntraced(function*(
  reader: LogReader,
  partition: number,
  previous: Progress | undefined
) {
  const log = yield* EventLog
  const store = yield* EventStore
  const before = previous ?? (yield* lastProgress(log, reader, partition))
  const stored = yield* store.position(partition)
  const events = yield* log.bounds("events", partition)
  const receipts = yield* log.bounds("receipts", partition)
  const at = stored.event?.offset ?? -1
  let confirmed = stored.event !== undefined
  if (stored.event !== undefined && at >= events.start) {
    const record =
      at < events.end
        ? yield* recordAt(reader, { topic: "events", partition, offset: at })
        : undefined
    confirmed = record?.value?.toString() === stored.event.body
    if (!confirmed) {
      yield* Effect.logError(
        "the store holds what the topic does not: dropping and rebuilding the partition's view",
        { partition, offset: at }
      )
      yield* store.dropPartition(partition)
    }
  }
  const next = confirmed ? Math.max(at + 1, events.start) : events.start
  const rebuilding = (!confirmed || before.rebuilding) && next < events.end
  const receiptsNext = confirmed || stored.event === undefined ? stored.receiptOffset : undefined
  const progress: Progress = {
    partition,
    events_next: next,
    receipts_next: Math.max((receiptsNext ?? -1) + 1, receipts.start),
    final: true,
    duplicates_from: before.final ? Math.min(before.duplicates_from, next) : next,
    rebuilding
  }
  return { partition, progress, caughtUpAt: events.end } satisfies View
})

/** The last known link of each tenant; an event that does not follow it goes to `conflicts`. */
class Links {
  readonly #last = new Map<string, Link>()

  known(tenantId: string): Link | undefined {
    return this.#last.get(tenantId)
  }

  learn(tenantId: string, link: Link): void {
    this.#last.delete(tenantId)
    if (this.#last.size >= LINKS_MAX) this.#last.delete(this.#last.keys().next().value!)
    this.#last.set(tenantId, link)
  }

  forget(): void {
    this.#last.clear()
  }
}

interface Sorted {
  readonly events: Array<EventRow>
  readonly conflicts: Array<ConflictRow>
  readonly receipts: Array<ReceiptRow>
}

const sortEvent = (into: Sorted, links: Links, partition: number, record: LogRecord): void => {
  const body = record.value ?? Buffer.alloc(0)
  const tenantId = record.key?.toString() ?? ""
  const link = linkOf(body)
  const before = links.known(tenantId)
  const reason =
    link === undefined
      ? "unreadable"
      : link.tenantId !== tenantId
        ? "tenant_mismatch"
        : before !== undefined && link.sequenceNumber !== before.sequenceNumber + 1
          ? "sequence_mismatch"
          : before !== undefined && link.prevHash !== before.hash
            ? "prev_hash_mismatch"
            : undefined
  if (reason !== undefined || link === undefined) {
    const { offset } = record
    const sequenceNumber = link?.sequenceNumber ?? 0
    into.conflicts.push({
      partition,
      offset,
      tenantId,
      sequenceNumber,
      reason: reason ?? "unreadable",
      body
    })
    return
  }
  links.learn(tenantId, link)
  into.events.push({ partition, offset: record.offset, body })
}

const sortReceipt = (into: Sorted, partition: number, record: LogRecord): void => {
  if (record.headers[KIND_HEADER]?.toString() !== "outcome") return
  into.receipts.push({
    partition,
    offset: record.offset,
    tenantId: record.headers[TENANT_HEADER]?.toString() ?? "",
    receiptId: record.headers[RECEIPT_HEADER]?.toString() ?? "",
    body: record.value ?? Buffer.alloc(0)
  })
}

/** Ask the store for the last link of tenants that were not seen since the start. */
const learnLinks = Effect.fnUntraced(function*(links: Links, fetched: ReadonlyArray<Fetched>) {
  const store = yield* EventStore
  const seen = new Set<string>()
  for (const { records, topic } of fetched) {
    if (topic !== "events") continue
    for (const record of records) {
      const tenantId = record.key?.toString() ?? ""
      if (seen.has(tenantId) || links.known(tenantId) !== undefined) continue
      seen.add(tenantId)
      const [body] = (yield* store.page(
        { tenantId, filter: { metadata: [] }, order: "desc", offset: 0, limit: 1 },
        false
      )).bodies
      const link = body === undefined ? undefined : linkOf(Buffer.from(body))
      if (link !== undefined) links.learn(tenantId, link)
    }
  }
})

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
const measured = Effect.fnUntraced(function*<E, R>(rows: number, insert: Effect.Effect<void, E, R>) {
  const started = yield* Clock.currentTimeMillis
  yield* insert
  if (rows === 0) return
  yield* Metric.update(flushRows, rows)
  yield* Metric.update(flushSeconds, ((yield* Clock.currentTimeMillis) - started) / 1_000)
})

const insertEvents = Effect.fnUntraced(function*({ conflicts, events }: Sorted) {
  const store = yield* EventStore
  const inserts = Effect.forEach(toInserts(events), (rows) => store.insertEvents(rows), {
    discard: true
  })
  yield* measured(events.length, inserts)
  for (const rows of toInserts(conflicts)) yield* store.insertConflicts(rows)
  for (const { offset, partition, reason, sequenceNumber } of conflicts) {
    yield* Effect.logError("a record of alk.events does not link and is not shown", {
      partition,
      offset,
      sequenceNumber,
      reason
    })
  }
})

const insertReceipts = Effect.fnUntraced(function*({ receipts }: Sorted) {
  const store = yield* EventStore
  const inserts = Effect.forEach(toInserts(receipts), (rows) => store.insertReceipts(rows), {
    discard: true
  })
  yield* measured(receipts.length, inserts)
})

/** Take what was fetched from one topic into the views, and tell the readers where it has moved. */
const tell = Effect.fnUntraced(function*(
  appender: LogAppender,
  views: Views,
  fetched: ReadonlyArray<Fetched>,
  wanted: "events" | "receipts"
) {
  const moved: Array<View> = []
  for (const { nextOffset, offset, partition, stableEnd, topic } of fetched) {
    const view = views.get(partition)
    if (view === undefined || topic !== wanted) continue
    if (nextOffset !== offset) moved.push(view)
    if (topic === "receipts") {
      view.progress = { ...view.progress, receipts_next: nextOffset }
      continue
    }
    const rebuilding = view.progress.rebuilding && nextOffset < view.caughtUpAt
    view.progress = { ...view.progress, events_next: nextOffset, rebuilding }
    const lag = Metric.withAttributes(projectionLag, { partition: String(partition) })
    yield* Metric.update(lag, Math.max(0, stableEnd - nextOffset))
  }
  yield* publish(appender, moved)
})

/** Bring one fetch into the store and tell the readers. */
const project = Effect.fnUntraced(function*(
  assignment: Assignment,
  appender: LogAppender,
  views: Views,
  links: Links,
  fetched: ReadonlyArray<Fetched>
) {
  yield* learnLinks(links, fetched)
  const sorted: Sorted = { events: [], conflicts: [], receipts: [] }
  for (const { nextOffset, offset, partition, records, topic } of fetched) {
    if (!views.has(partition) || nextOffset === offset) continue
    for (const record of records) {
      if (topic === "events") sortEvent(sorted, links, partition, record)
      else sortReceipt(sorted, partition, record)
    }
  }
  yield* stillOwned(assignment)
  yield* insertEvents(sorted)
  yield* stillOwned(assignment)
  // Whoever waits for a commit waits for this; receipts are known from their topic until they follow.
  yield* tell(appender, views, fetched, "events")
  yield* insertReceipts(sorted)
  yield* stillOwned(assignment)
  yield* tell(appender, views, fetched, "receipts")
})

/** Once every insert of unknown outcome must have ended: stop merging on reads, if nothing is there twice. */
const settle = Effect.fnUntraced(function*(
  assignment: Assignment,
  appender: LogAppender,
  view: View,
  settings: ProjectionSettings
) {
  const store = yield* EventStore
  yield* Effect.sleep(settings.settleMs)
  const { duplicates_from, final } = view.progress
  if (!final) return
  const twice = yield* store.hasDuplicates(view.partition, duplicates_from)
  if (twice) {
    yield* Effect.logWarning("rows stand in the store twice: reads merge them until it has", {
      partition: view.partition
    })
    yield* store.mergeDuplicates
    return yield* Effect.fail("not settled" as const)
  }
  yield* stillOwned(assignment)
  view.progress = { ...view.progress, final: false }
  yield* publish(appender, [view])
}, Effect.retry(Schedule.spaced("30 seconds")))

const positionsOf = (views: Views): ReadonlyArray<Position> =>
  [...views.values()].flatMap(({ partition, progress }) => [
    { topic: "events" as const, partition, offset: progress.events_next },
    { topic: "receipts" as const, partition, offset: progress.receipts_next }
  ])

/** Project the given partitions until something fails. */
const follow = Effect.fnUntraced(function*(
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
  const links = new Links()
  for (const partition of partitions) {
    const view = yield* recover(reader, partition, previous.get(partition))
    views.set(partition, view)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        previous.set(partition, view.progress)
      })
    )
    yield* Effect.forkScoped(settle(assignment, appender, view, settings))
  }
  yield* stillOwned(assignment)
  yield* publish(appender, [...views.values()])
  yield* Ref.set(running, new Set(partitions))
  yield* Effect.logInfo("projecting", { partitions })
  if (views.size === 0) return yield* Effect.never
  const fetch = () =>
    reader.fetch(positionsOf(views), { waitMs: FETCH_WAIT_MS, maxBytes: FETCH_BYTES })
  for (;;) {
    yield* project(assignment, appender, views, links, yield* fetch())
  }
}, Effect.scoped)

export interface ProjectionStatus {
  readonly running: Effect.Effect<ReadonlySet<number>>
}

const backOff = Schedule.min([
  Schedule.exponential("100 millis"),
  Schedule.spaced("2 seconds")
])

/** Follow the group's assignments and project them for as long as the scope is open. */
export const runProjection = Effect.fnUntraced(function*(settings: ProjectionSettings) {
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

/**
 * Mends the view of a partition when an operator asks for it, while it is served: everything that is
 * shown is compared with the topics, and how far that is, is said on `alk.progress`.
 */
import { Clock, Effect, Queue, Schedule, type Semaphore } from "effect"
import type { Own } from "../../domain/records/OwnOffsets.ts"
import {
  REBUILT_KEY,
  type ViewRebuild,
  type ViewRebuilt
} from "../../domain/records/ViewRebuild.ts"
import { formatMicros } from "../../domain/Timestamp.ts"
import { EventLog } from "../../ports/EventLog.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"
import type { ProjectedTopic } from "./ProjectedTopic.ts"
import { NOTHING_COMPARED, type RebuildCounts, rebuildTopic } from "./ViewRebuild.ts"

/** How often it is said how far it is. */
const SAY_INTERVAL_MS = 1_000
const RETRY_INTERVAL = "5 seconds"

/** The view of a partition as the projection keeps it. */
export interface MendedView<E = unknown> {
  readonly partition: number
  readonly topics: ReadonlyArray<ProjectedTopic>
  /** Which records of the chains' topics count. */
  readonly own: Own
  /** Offset below which everything of a topic is shown. */
  readonly shown: (topic: StoredTopic) => number
  /** Let readers merge: from now on rows may be there twice. */
  readonly doubt: Effect.Effect<void, E>
  /** Fails once another process may have the partition. */
  readonly stillOwned: Effect.Effect<void, E>
  /** Write a record about it to `alk.progress`. */
  readonly say: (key: string, value: string) => Effect.Effect<void, E>
}

const mend = Effect.fnUntraced(function* (
  { doubt, own, partition, say, shown, stillOwned, topics }: MendedView,
  { id, tenant_id }: ViewRebuild
) {
  const log = yield* EventLog
  const reader = yield* log.reader
  yield* doubt
  const places = topics.map((projected) => ({
    projected,
    partition,
    own,
    upTo: shown(projected.topic),
    tenantId: tenant_id
  }))
  let records = 0
  for (const { projected, upTo } of places) {
    const { start } = yield* log.bounds(projected.topic, partition)
    records += Math.max(0, upTo - start)
  }
  let saidAt = 0
  const report = Effect.fnUntraced(function* (counts: RebuildCounts, done: boolean) {
    yield* stillOwned
    const now = yield* Clock.currentTimeMillis
    if (!done && now - saidAt < SAY_INTERVAL_MS) return
    saidAt = now
    const at = formatMicros(now * 1_000)
    const rebuilt: ViewRebuilt = { id, at, done, records, ...counts }
    yield* say(REBUILT_KEY, JSON.stringify(rebuilt))
  })
  let counts = NOTHING_COMPARED
  for (const place of places) {
    counts = yield* rebuildTopic(reader, place, counts, (some) => report(some, false))
  }
  yield* report(counts, true)
  yield* Effect.logInfo("the view was compared with the log", { partition, ...counts })
}, Effect.scoped)

/** Waits for a request and does it, again until it is done; one partition of a process at a time. */
export const mendOnRequest = (
  view: MendedView,
  requests: Queue.Queue<ViewRebuild>,
  oneAtATime: Semaphore.Semaphore
) =>
  Effect.flatMap(Queue.take(requests), (request) =>
    mend(view, request).pipe(
      Effect.tapError((error) =>
        Effect.logWarning("the view could not be compared with the log", {
          partition: view.partition,
          error: String(error)
        })
      ),
      Effect.retry(Schedule.spaced(RETRY_INTERVAL)),
      oneAtATime.withPermits(1)
    )
  )

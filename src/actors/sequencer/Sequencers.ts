/**
 * The directory of sequencers: starts one for each partition that the group assigns to this process
 * and stops it when the group takes the partition away. Restarts what fails, but what was fenced
 * only under a newer assignment or after a while: two owners that each start over at once would
 * fence each other for ever.
 */
import { Cause, Effect, FiberMap, Metric, Ref, Schedule, Stream, SubscriptionRef } from "effect"
import { counterOf } from "../../domain/metrics/Metrics.ts"
import { type Assignment, EventLog } from "../../ports/EventLog.ts"
import { runSequencer, type SequencerSettings } from "./Sequencer.ts"

/** Time between two looks at a partition that was refused: a person has to act first. */
const REFUSED_RETRY = "30 seconds"
const backOff = Schedule.min([
  Schedule.exponential("50 millis"),
  Schedule.spaced("2 seconds")
]).pipe(Schedule.jittered)

/**
 * Time after which a sequencer that was fenced starts over although no newer assignment has come. A
 * member that has lost the group learns it at its next heartbeat, so if the partition is still
 * assigned here by then, the one that fenced it has stopped.
 */
const FENCED_RETRY = "5 seconds"

export const SEQUENCER_GROUP = "sequencer"

const restarts = counterOf("alk_sequencer_restarts_total")

/** What is known of the sequencers of this process. */
interface Sequencing {
  readonly running: Ref.Ref<ReadonlySet<number>>
  /** The next command that is not applied yet, by partition. */
  readonly reached: Map<number, number>
}

/** One partition, through failures, until it is fenced. */
const runUntilFenced = (
  partition: number,
  settings: SequencerSettings,
  { reached, running }: Sequencing
) => {
  const without = Ref.update(
    running,
    (partitions) => new Set([...partitions].filter((entry) => entry !== partition))
  )
  return runSequencer(
    partition,
    settings,
    (ready) =>
      Ref.update(running, (partitions) => new Set([...partitions, ready])).pipe(
        Effect.andThen(Effect.logInfo("sequencing", { partition }))
      ),
    (next) => reached.set(partition, next)
  ).pipe(
    Effect.ensuring(without),
    Effect.catchTag("PartitionRefused", (error) =>
      Effect.logError(`partition ${partition} is not sequenced: ${error.message}`).pipe(
        Effect.andThen(Effect.sleep(REFUSED_RETRY)),
        Effect.andThen(Effect.fail(error))
      )
    ),
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.void
        : Effect.andThen(
            Metric.update(restarts, 1),
            Effect.logWarning("a sequencer starts over", { partition, cause: Cause.pretty(cause) })
          )
    ),
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.retry({
      schedule: backOff,
      while: (error: unknown) => !isFencedOff(error)
    }),
    Effect.catch(() =>
      Effect.logInfo("another sequencer has taken the partition over", { partition })
    )
  )
}

/**
 * One partition for as long as it is assigned. This sequencer may have been fenced
 * before the newest assignment, unnoticed by a member that was away: then no newer one will ever
 * come.
 */
const keepRunning = (
  partition: number,
  settings: SequencerSettings,
  sequencing: Sequencing,
  current: SubscriptionRef.SubscriptionRef<number>
) =>
  Effect.gen(function* () {
    yield* runUntilFenced(partition, settings, sequencing)
    const fenced = yield* SubscriptionRef.get(current)
    yield* SubscriptionRef.changes(current).pipe(
      Stream.filter((generation) => generation > fenced),
      Stream.runHead,
      Effect.timeoutOption(FENCED_RETRY)
    )
  }).pipe(Effect.forever)

const isFencedOff = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "WriterFenced"

/** Partitions that this process sequences right now. */
export interface SequencersStatus {
  readonly running: Effect.Effect<ReadonlySet<number>>
  /** The next command that is not applied yet, by assigned partition. */
  readonly reached: () => ReadonlyMap<number, number>
}

/** Follow the assignments of the group for as long as the scope is open. */
export const runSequencers = Effect.fnUntraced(function* (settings: SequencerSettings) {
  const log = yield* EventLog
  const fibers = yield* FiberMap.make<number>()
  const running = yield* Ref.make<ReadonlySet<number>>(new Set())
  const reached = new Map<number, number>()
  const current = yield* SubscriptionRef.make(0)
  let previous: ReadonlyArray<number> = []
  const follow = Effect.fnUntraced(function* ({ generation, partitions }: Assignment) {
    yield* Effect.logDebug("sequencer assignment", { generation, partitions })
    for (const partition of previous) {
      if (partitions.includes(partition)) continue
      yield* FiberMap.remove(fibers, partition)
      reached.delete(partition)
    }
    previous = partitions
    yield* SubscriptionRef.set(current, generation)
    for (const partition of partitions) {
      const sequencer = keepRunning(partition, settings, { running, reached }, current)
      yield* FiberMap.run(fibers, partition, sequencer, { onlyIfMissing: true })
    }
  })
  yield* log
    .membership(SEQUENCER_GROUP)
    .pipe(Stream.runForEach(follow), Effect.retry(Schedule.spaced("1 second")), Effect.forkScoped)
  return { running: Ref.get(running), reached: () => reached } satisfies SequencersStatus
})

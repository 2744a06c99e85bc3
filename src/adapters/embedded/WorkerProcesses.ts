/**
 * The workers of this process: started together, started again when one ends, stopped together.
 */
import { Deferred, Effect, Metric, Schema, type Scope } from "effect"
import { counterOf, gaugeOf } from "../../domain/metrics/Metrics.ts"
import {
  startWorker,
  type WorkerEnded,
  type WorkerLaunch,
  type WorkerProcess
} from "./WorkerProcess.ts"

/** A worker ended before it ever listened. */
export class WorkerNotStarted extends Schema.TaggedError<WorkerNotStarted>()("WorkerNotStarted", {
  message: Schema.String
}) {}

const RESTART_MILLISECONDS_MIN = 250
const RESTART_MILLISECONDS_MAX = 10_000
/** A worker that listened this long was well: the next restart is quick again. */
const WELL_MILLISECONDS = 60_000

/** Between two questions whether a worker is there. */
const WATCH_INTERVAL = "5 seconds"
/** Nothing that a worker does keeps it from an answer so long. */
const SILENCE_MAX = "30 seconds"
/** Between two lines about a worker that is not ready. */
const START_REMINDER = "30 seconds"

const restarts = counterOf("alk_worker_restarts_total")

const listening = gaugeOf("alk_workers_listening")

/** Milliseconds before a worker is started for the `attempt`th time in a row, from 1. */
export const restartDelay = (attempt: number): number =>
  Math.min(RESTART_MILLISECONDS_MIN * 2 ** (attempt - 1), RESTART_MILLISECONDS_MAX)

/** The workers that listen now, by number. */
export type Listening = Map<number, WorkerProcess>

/** Kills a worker that hangs: its partitions and its connections wait for its end. */
const watch = ({ channel, kill }: WorkerProcess, worker: number) =>
  channel.ask({ ask: "alive" }).pipe(
    Effect.timeoutOrElse({
      duration: SILENCE_MAX,
      orElse: () =>
        Effect.logError(`worker ${worker} has not answered for ${SILENCE_MAX}: it is killed`).pipe(
          Effect.andThen(kill)
        )
    }),
    Effect.andThen(Effect.sleep(WATCH_INTERVAL)),
    Effect.forever
  )

/** Says from time to time that a worker is not ready. */
const remind = (worker: number) =>
  Effect.sleep(START_REMINDER).pipe(
    Effect.andThen(Effect.logWarning(`worker ${worker} is not ready yet`)),
    Effect.forever
  )

/** From one start to the next end; `onReady` runs in between. */
const life = (
  worker: number,
  launch: WorkerLaunch,
  running: Listening,
  onReady: Effect.Effect<void>
): Effect.Effect<WorkerEnded> =>
  Effect.gen(function* () {
    const process = yield* startWorker(worker, launch)
    yield* Effect.raceFirst(process.ready, remind(worker))
    yield* Effect.acquireRelease(
      Effect.sync(() => running.set(worker, process)),
      () => Effect.sync(() => void running.delete(worker))
    )
    yield* Effect.logInfo("a worker listens").pipe(
      Effect.annotateLogs({ worker, pid: process.pid })
    )
    yield* onReady
    yield* Effect.forkScoped(watch(process, worker))
    return yield* process.ended
  }).pipe(
    Effect.scoped,
    Effect.catch((ended) => Effect.succeed(ended))
  )

const shown = (running: Listening) => Effect.suspend(() => Metric.update(listening, running.size))

/** Keeps a worker running; gives up only if it never listened, by failing `first`. */
const supervise = Effect.fnUntraced(function* (
  worker: number,
  launch: WorkerLaunch,
  running: Listening,
  first: Deferred.Deferred<void, WorkerNotStarted>
) {
  for (let attempt = 1; ; attempt++) {
    let readySince = Infinity
    const end = yield* life(
      worker,
      launch,
      running,
      Effect.suspend(() => {
        readySince = Date.now()
        return Effect.andThen(shown(running), Deferred.succeed(first, undefined))
      })
    )
    yield* shown(running)
    const message = `${end.message} before it listened; the lines above say why`
    if (yield* Deferred.fail(first, new WorkerNotStarted({ message }))) return
    if (Date.now() - readySince > WELL_MILLISECONDS) attempt = 1
    const delay = restartDelay(attempt)
    yield* Metric.update(restarts, 1)
    yield* Effect.logWarning(`${end.message}. It is started again in ${delay} ms`)
    yield* Effect.sleep(delay)
  }
})

/** Starts workers 1 to `count` and waits until all of them listen; the scope's end stops them. */
export const startWorkerProcesses = Effect.fnUntraced(function* (
  count: number,
  launch: WorkerLaunch,
  running: Listening
): Effect.fn.Return<void, WorkerNotStarted, Scope.Scope> {
  const workers = yield* Effect.forEach(
    Array.from({ length: count }, (_, index) => index + 1),
    (worker) => Effect.map(Deferred.make<void, WorkerNotStarted>(), (first) => ({ worker, first }))
  )
  yield* Metric.update(restarts, 0)
  // One fiber over all, so that they stop at the same time.
  yield* Effect.forkScoped(
    Effect.forEach(workers, ({ first, worker }) => supervise(worker, launch, running, first), {
      concurrency: "unbounded",
      discard: true
    })
  )
  yield* Effect.forEach(workers, ({ first }) => Deferred.await(first), { discard: true })
})

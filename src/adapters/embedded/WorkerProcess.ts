/**
 * One life of a worker: a child process of the same program, from its start to its end, and the
 * channel over which it ends when this process is gone.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { Deferred, Effect, Schema, type Scope } from "effect"
import { WorkerChannel } from "./WorkerChannel.ts"

/** The worker ended, or never ran. */
export class WorkerEnded extends Schema.TaggedError<WorkerEnded>()("WorkerEnded", {
  worker: Schema.Int,
  how: Schema.String
}) {
  override get message(): string {
    return `worker ${this.worker} ended (${this.how})`
  }
}

export interface WorkerLaunch {
  /** Asked at each start. */
  readonly environment: () => NodeJS.ProcessEnv
  /** What its command line has after its number. */
  readonly more: ReadonlyArray<string>
  /** Answers what the worker asks. */
  readonly answer: (question: unknown) => Promise<unknown>
}

export interface WorkerProcess {
  readonly pid: number | undefined
  /** Ends when the worker listens. */
  readonly ready: Effect.Effect<void, WorkerEnded>
  /** Ends with the worker, and says how that was. */
  readonly ended: Effect.Effect<WorkerEnded>
  readonly channel: WorkerChannel
  /** Ends it at once, whatever it does. */
  readonly kill: Effect.Effect<void>
}

/** Above what a server gives to replies in flight: then it is killed. */
const STOP_MILLISECONDS_MAX = 20_000

/** A session of its own: Ctrl-C reaches this process, which stops its workers in order. */
const spawnWorker = (
  worker: number,
  { environment, more }: Pick<WorkerLaunch, "environment" | "more">
): ChildProcess => {
  const command = [process.argv[1]!, "worker", String(worker), ...more]
  return spawn(process.execPath, [...process.execArgv, ...command], {
    env: environment(),
    detached: true,
    stdio: ["ignore", "inherit", "inherit", "ipc"]
  })
}

const stop = (child: ChildProcess, ended: Effect.Effect<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    child.kill("SIGTERM")
    return ended.pipe(
      Effect.timeoutOrElse({
        duration: STOP_MILLISECONDS_MAX,
        orElse: () =>
          Effect.andThen(
            Effect.sync(() => child.kill("SIGKILL")),
            ended
          )
      }),
      Effect.asVoid
    )
  })

/** Starts it; the scope's end lets it finish its replies, and waits for its end. */
export const startWorker = Effect.fnUntraced(function* (
  worker: number,
  { answer, environment, more }: WorkerLaunch
): Effect.fn.Return<WorkerProcess, never, Scope.Scope> {
  const end = yield* Deferred.make<WorkerEnded>()
  const listening = yield* Deferred.make<void, WorkerEnded>()
  const ended = Deferred.await(end)
  const { channel, child } = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawnWorker(worker, { environment, more })
      const channel = new WorkerChannel({
        // The end of a worker is noticed by its exit.
        send: (message) => void (child.connected && child.send(message, () => undefined)),
        answer,
        onReady: () => Deferred.doneUnsafe(listening, Effect.void)
      })
      const over = (how: string) =>
        Deferred.doneUnsafe(end, Effect.succeed(new WorkerEnded({ worker, how })))
      child.on("message", (message) => channel.receive(message))
      child.on("error", (error) => over(error.message))
      child.once("exit", (code, signal) => over(signal ?? `exit code ${code}`))
      return { channel, child }
    }),
    ({ child }) => stop(child, ended)
  )
  return {
    pid: child.pid,
    channel,
    ended,
    kill: Effect.sync(() => void child.kill("SIGKILL")),
    ready: Effect.raceFirst(Deferred.await(listening), Effect.flatMap(ended, Effect.fail))
  }
})

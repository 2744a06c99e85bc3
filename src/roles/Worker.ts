/**
 * A worker: the process that the first one starts with `worker N`. It serves the API on the port of
 * all, has its share of sequencers and projections, and ends at once when the first process is gone.
 */
import { Effect, Schema } from "effect"
import { WorkerChannel } from "../adapters/embedded/WorkerChannel.ts"
import type { Config } from "../config/Config.ts"
import { type FirstQuestion, ProcessGroup, workerOfGroup } from "../http/server/ProcessGroup.ts"
import type { Report } from "./Log.ts"
import type { PartitionAssignment } from "./PartitionAssignment.ts"
import { startRoles } from "./Roles.ts"

/** The command was called by hand. */
export class NotAWorker extends Schema.TaggedError<NotAWorker>()("NotAWorker", {
  message: Schema.String
}) {}

/** What is left to do without the first process: nothing, its broker and its store are gone. */
const end = () => process.exit(1)

/** The channel to the first process, whose end is the end of this one. */
const channelToFirst = (answer: (question: unknown) => Promise<unknown>) => {
  const channel = new WorkerChannel({
    send: (message) => void (process.connected && process.send?.(message)),
    answer
  })
  process.on("message", (message) => channel.receive(message))
  process.on("disconnect", end)
  if (!process.connected) end()
  return channel
}

/**
 * What the first process says on the command line after `worker`: the number, and of how many
 * processes where the partitions are shared out among them.
 */
const shareOf = ([index, of]: ReadonlyArray<string>): PartitionAssignment | undefined =>
  of === undefined ? undefined : { index: Number(index), of: Number(of) }

/** Serves until the process is stopped. `rest`: the command line after `worker`. */
export const serveAsWorker = Effect.fnUntraced(function* (
  config: Config,
  report: Report,
  rest: ReadonlyArray<string>
) {
  if (process.send === undefined) {
    return yield* new NotAWorker({
      message: "worker is how alk starts its own processes; set ALK_WORKERS to have some"
    })
  }
  let stopServing = Effect.void
  const drain = Effect.suspend(() => stopServing)
  const group = workerOfGroup((question) => channel.ask(question), drain)
  const channel = channelToFirst((question) =>
    Effect.runPromise(group.answer(question as FirstQuestion))
  )
  // gRPC is the first process's: its port can't be shared.
  const http = { ...config.http, sharesPort: true, otlpGrpcPort: undefined }
  const shared = { ...config, http }
  const started = yield* startRoles(shared, report, shareOf(rest)).pipe(
    Effect.provideService(ProcessGroup, group.processes)
  )
  stopServing = started.stopServing
  channel.ready()
  return yield* Effect.never
}, Effect.scoped)

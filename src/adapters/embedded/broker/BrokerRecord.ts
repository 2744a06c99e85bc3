/**
 * Who the running broker of a data folder is, on disk, so that the next start can wait for or end
 * exactly that process.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { hasArgument, isRunning, ProcessIdentity, signal } from "../ProcessIdentity.ts"
import { brokerPaths, folderArgument } from "./BrokerSettings.ts"

/** Time that a broker has for a clean end before it is killed. Unclean ends lose nothing either. */
export const GRACE_SECONDS = 20
/** Time that the system needs to remove a killed process. */
const KILL_SECONDS = 5
const POLL_MILLISECONDS = 50

const BrokerRecord = Schema.Struct({
  process: ProcessIdentity,
  dataFolder: Schema.String,
  port: Schema.Int,
  since: Schema.String
})
type BrokerRecord = typeof BrokerRecord.Type
const BrokerRecordJson = Schema.fromJsonString(BrokerRecord)

export const writeRecord = (folder: string, record: BrokerRecord): void => {
  const path = join(folder, brokerPaths.record)
  fs.writeFileSync(`${path}.partial`, `${Schema.encodeSync(BrokerRecordJson)(record)}\n`)
  fs.renameSync(`${path}.partial`, path)
}

/** The broker that was started last; none if the file is missing or unreadable. */
const readRecord = (folder: string): Option.Option<BrokerRecord> => {
  const path = join(folder, brokerPaths.record)
  return fs.existsSync(path)
    ? Schema.decodeUnknownOption(BrokerRecordJson)(fs.readFileSync(path, "utf8"))
    : Option.none()
}

/** The port of the broker that runs on this folder; undefined if none does. */
export const readRunning = (folder: string, dataFolder: string): number | undefined => {
  const record = Option.getOrUndefined(readRecord(folder))
  return record?.dataFolder === dataFolder && isRunning(record.process) ? record.port : undefined
}

/** Waits until that very process is gone; false if it still runs after `seconds`. */
const goneWithin = (identity: ProcessIdentity, seconds: number): Effect.Effect<boolean> =>
  Effect.sleep(POLL_MILLISECONDS).pipe(
    Effect.repeat({ while: () => isRunning(identity) }),
    Effect.as(true),
    Effect.timeoutOrElse({ duration: `${seconds} seconds`, orElse: () => Effect.succeed(false) })
  )

/** Ends that very process: asks first, kills after `graceSeconds`. */
export const endProcess = Effect.fnUntraced(function* (
  identity: ProcessIdentity,
  graceSeconds = GRACE_SECONDS
) {
  if (!signal(identity, "SIGTERM")) return
  if (yield* goneWithin(identity, graceSeconds)) return
  signal(identity, "SIGKILL")
  yield* goneWithin(identity, KILL_SECONDS)
})

/**
 * Ends the broker of an earlier start, if it still runs: the same process number,
 * the same start time and the same data folder. Any other process is left alone.
 */
export const endOrphan = Effect.fn("BrokerRecord.endOrphan")(function* (
  folder: string,
  dataFolder: string,
  report: (line: string) => void
) {
  const record = Option.getOrUndefined(readRecord(folder))
  // A copy of a data folder also copied the record of the broker that runs in the original.
  if (record?.dataFolder !== dataFolder || !isRunning(record.process)) return
  if (!hasArgument(record.process.pid, folderArgument(dataFolder))) return
  report(`A broker of an earlier start still runs (process ${record.process.pid}): ending it`)
  yield* endProcess(record.process)
})

/** `alk rebuild-view`: beside a service that runs, with its configuration. */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import {
  type PartitionRebuild,
  type RebuildArguments,
  rebuildLines,
  rebuildProgress,
  rebuildReport
} from "../cli/RebuildView.ts"
import { Progress } from "../cli/terminal/Progress.ts"
import type { Config } from "../config/Config.ts"
import { LastRebuild, REBUILD_KEY, type ViewRebuild } from "../domain/records/ViewRebuild.ts"
import { currentTime } from "../domain/Timestamp.ts"
import { refuse, refusing } from "../exports/backup/BackupRefused.ts"
import type { EventLog, Position } from "../ports/EventLog.ts"
import { runningLog } from "./RunningLog.ts"

const FETCH_LIMITS = { waitMs: 500, maxBytes: 1_048_576 }

/** The last request of one partition, read up to an offset. */
class Requested extends LastRebuild {
  offset: number

  constructor(offset: number) {
    super()
    this.offset = offset
  }
}

/** What is said of each partition, read on and on until `isEnough`. */
const readUntil = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  requested: ReadonlyMap<number, Requested>,
  isEnough: () => boolean,
  each: () => void
) {
  const reader = yield* log.reader
  while (!isEnough()) {
    const positions = [...requested].map(
      ([partition, { offset }]): Position => ({ topic: "progress", partition, offset })
    )
    for (const { nextOffset, partition, records } of yield* reader.fetch(positions, FETCH_LIMITS)) {
      const own = requested.get(partition)!
      for (const record of records) if (record.refused === undefined) own.take(record)
      own.offset = nextOffset
    }
    each()
  }
})

/** Asks for it, unless only the status is wanted, and waits until it is done. */
export const rebuildView = Effect.fnUntraced(
  function* (config: Config, args: RebuildArguments, print: (text: string) => void) {
    const { log } = (yield* runningLog(config, "rebuild-view")).source
    const partitions = Array.from({ length: log.partitions }, (_, partition) => partition)
    const requested = new Map<number, Requested>()
    const ends = yield* log.ends(
      partitions.map((partition) => ({ topic: "progress" as const, partition }))
    )
    for (const partition of partitions) {
      const { start } = yield* log.bounds("progress", partition)
      requested.set(partition, new Requested(start))
    }
    const isRead = () => partitions.every((one) => requested.get(one)!.offset >= (ends[one] ?? 0))
    yield* readUntil(log, requested, isRead, () => {})
    const found = (): ReadonlyArray<PartitionRebuild> =>
      partitions.map((partition) => ({ partition, rebuilt: requested.get(partition)!.rebuilt }))
    const isDone = () => found().every(({ rebuilt }) => rebuilt?.done === true)
    const progress = new Progress(args.quiet)
    if (args.status && [...requested.values()].every(({ asked }) => asked === undefined)) {
      return yield* refuse("rebuild-view: nobody has asked for it yet")
    }
    if (!args.status) {
      const request: ViewRebuild = {
        id: randomUUID(),
        ...(args.tenantId === undefined ? {} : { tenant_id: args.tenantId }),
        requested_at: currentTime()
      }
      for (const one of requested.values()) one.asked = request
      const appender = yield* log.appender
      const value = JSON.stringify(request)
      yield* appender.append(
        partitions.map((partition) => ({
          topic: "progress" as const,
          partition,
          key: REBUILD_KEY,
          value
        }))
      )
      yield* readUntil(log, requested, isDone, () => progress.at(() => rebuildProgress(found())))
    }
    progress.end()
    const report = rebuildReport(found())
    const isHuman = !args.json && process.stdout.isTTY === true
    print(isHuman ? rebuildLines(report) : `${JSON.stringify(report)}\n`)
  },
  refusing,
  Effect.scoped
)

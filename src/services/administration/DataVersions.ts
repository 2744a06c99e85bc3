/**
 * Which version of alk may read the topics: the registry keeps the latest version of the data that an
 * API process has started with, and a program that does not know it does not start. API processes are
 * upgraded last, so nothing of a new version is on the topics before.
 */
import { Effect, Redacted, Schedule, Schema } from "effect"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { scanAll } from "../../actors/log/PartitionScan.ts"
import { REGISTRY, registryChangeIn } from "../../actors/log/RegistryChanges.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import {
  DATA_VERSION,
  DATA_VERSION_ID,
  type DataVersion,
  FIRST_DATA_VERSION
} from "../../domain/registry/RegistryEntry.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import type { EventLog, LogRecord } from "../../ports/EventLog.ts"
import { newCommand } from "../commands/NewCommand.ts"
import { submitted } from "./Submit.ts"

/** The topics hold what this program would misread or pass over. */
export class DataIsNewer extends Schema.TaggedError<DataIsNewer>()("DataIsNewer", {
  message: Schema.String
}) {}

const KEY = `data_version/${DATA_VERSION_ID}`

const versionIn = (record: LogRecord): DataVersion | undefined => {
  if (record.key?.toString() !== KEY) return undefined
  const change = registryChangeIn(record)
  return change?.kind === "data_version" ? change.data_version : undefined
}

/** The record of a version that this program, of this version of alk, writes from now on. */
export const dataVersionOf = (program: string, version: number): DataVersion => ({
  id: DATA_VERSION_ID,
  version,
  program,
  noted_at: currentTime()
})

/**
 * Fails if a program that knows more has written to the topics. `log` checks who has written a record.
 */
export const refuseNewerData = Effect.fn("DataVersions.check")(function* (
  log: EventLog["Service"]
) {
  const reader = yield* log.reader
  let latest: DataVersion | undefined
  yield* scanAll(log, reader, REGISTRY, (records) => {
    for (const record of records) {
      const found = versionIn(record)
      if (found !== undefined && found.version > (latest?.version ?? 0)) latest = found
    }
  })
  if (latest === undefined || latest.version <= DATA_VERSION) return
  const { noted_at, program, version } = latest
  return yield* new DataIsNewer({
    message:
      `the topics hold data of version ${version}, written since ${noted_at} by alk ${program}; this `
      + `program knows version ${DATA_VERSION} and would misread it: start alk ${program} or later`
  })
}, Effect.scoped)

/** Writes down the version of the data, unless this or a later one is known; tries until it can. */
export const noteDataVersion = Effect.fn("DataVersions.note")(
  function* (secret: Redacted.Redacted, program: string) {
    const view = yield* RegistryView
    yield* view.caughtUp
    const known = view.registry().dataVersion()?.version ?? 0
    if (known >= FIRST_DATA_VERSION) return
    const command = {
      ...newCommand("registry", Redacted.value(secret), SYSTEM_TENANT),
      operation: {
        op: "note_data_version" as const,
        data_version: dataVersionOf(program, FIRST_DATA_VERSION)
      }
    }
    yield* submitted(command, "note the version of the data")
  },
  Effect.retry({ schedule: Schedule.spaced("5 seconds") })
)

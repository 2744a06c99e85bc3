/**
 * `alk forget`: on the log folders of a broker, which `apply` wants stopped; and how what it did comes
 * into alk's own log.
 */
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect, Redacted } from "effect"
import { brokerPaths } from "../adapters/embedded/broker/BrokerSettings.ts"
import { DataFolder, SECRET_FILE } from "../adapters/embedded/DataFolder.ts"
import { RecordsUnreadable } from "../adapters/kafka/protocol/FetchResponse.ts"
import {
  FORGETTING_TOPICS,
  type ForgettingLog,
  type ForgettingPlan,
  forgetSegment,
  NoRoom,
  openJournal,
  planForgetting
} from "../adapters/kafka/segments/ForgetLog.ts"
import { JOURNAL_FILE, readJournal, writeJournal } from "../adapters/kafka/segments/Journal.ts"
import {
  LogFolderUnusable,
  openLogFolder,
  type PartitionFolders,
  partitionFolders
} from "../adapters/kafka/segments/LogFolder.ts"
import {
  type ForgetArguments,
  type ForgetReport,
  forgetLines,
  partitionsLeft
} from "../cli/Forget.ts"
import { Progress } from "../cli/terminal/Progress.ts"
import type { Config } from "../config/Config.ts"
import type { ForgettingRun } from "../domain/forgetting/ForgettingRun.ts"
import { RecordUnreadable } from "../domain/json/RecordFields.ts"
import { topicName } from "../domain/records/Topics.ts"
import { EventLog } from "../ports/EventLog.ts"
import { logForgetting } from "../services/administration/ForgettingActs.ts"
import { layerCommandLog } from "../services/commands/CommandLog.ts"
import { bootstrapOf, logOf } from "./Log.ts"
import { embedsBroker } from "./Topology.ts"

/** The log folder of the embedded broker. */
const embeddedLogDir = ({ dataDir }: Config): string => join(dataDir, "kafka", brokerPaths.data)

const refuse = (message: string) => new LogFolderUnusable({ message })

/** Where the log is, and the secret of its service. */
interface Place {
  readonly logDirs: ReadonlyArray<string>
  readonly secret: string
}

const secretIn = (dataDir: string): string | undefined => {
  const file = join(dataDir, SECRET_FILE)
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : undefined
}

/** Owns the data folder of an embedded broker, if it is to be changed. */
const placeOf = Effect.fnUntraced(function* (config: Config, { action, logDirs }: ForgetArguments) {
  const { dataDir } = config
  const given = config.secret && Redacted.value(config.secret)
  const placed = (folders: ReadonlyArray<string>, secret = given) =>
    secret === undefined
      ? refuse("forget: set ALK_SECRET to that of the service: by it genuine erasures are known")
      : Effect.succeed<Place>({ logDirs: folders, secret })
  if (logDirs.length > 0) return yield* placed(logDirs)
  if (!embedsBroker(config)) {
    return yield* refuse("forget: name the folders of the broker on this machine: --log-dir")
  }
  const logDir = embeddedLogDir(config)
  if (!fs.existsSync(logDir)) {
    return yield* refuse(
      `forget: ${dataDir} holds no log of an embedded broker: name its folder in ALK_DATA_DIR`
    )
  }
  if (action === "apply") yield* DataFolder.open(dataDir)
  return yield* placed([logDir], given ?? secretIn(dataDir))
})

const expected = [RecordsUnreadable, RecordUnreadable, NoRoom]

/** One step, which is never left half done by a signal. */
const step = <A>(run: () => Promise<A>): Effect.Effect<A, LogFolderUnusable> =>
  Effect.tryPromise({ try: run, catch: (cause) => cause }).pipe(
    Effect.catch((cause) =>
      cause instanceof Error && expected.some((one) => cause instanceof one)
        ? Effect.fail(refuse(`forget: ${cause.message}`))
        : Effect.die(cause)
    ),
    Effect.uninterruptible
  )

const foldersOf = Effect.fnUntraced(function* (prefix: string, logDirs: ReadonlyArray<string>) {
  const found: Array<readonly [string, PartitionFolders]> = []
  for (const kind of FORGETTING_TOPICS) {
    found.push([kind, yield* partitionFolders(logDirs, topicName(prefix, kind))])
  }
  return Object.fromEntries(found) as unknown as ForgettingLog["folders"]
})

const reportOf = (
  prefix: string,
  { logDirs }: Place,
  { erasures, partitions, unproven }: ForgettingPlan,
  applied: boolean
): ForgetReport => ({
  log_dirs: logDirs,
  applied,
  erasures,
  partitions: partitions.map(({ kind, partition, segments }) => ({
    topic: topicName(prefix, kind),
    partition,
    segments: segments.length,
    bytes: segments.reduce((sum, { segment }) => sum + segment.bytes, 0),
    records_replaced: segments.reduce((sum, { replaced }) => sum + replaced, 0),
    records_removed: segments.reduce((sum, { dropped }) => sum + dropped, 0)
  })),
  partitions_left: unproven
})

const apply = Effect.fnUntraced(function* (
  log: ForgettingLog,
  plan: ForgettingPlan,
  folder: string
) {
  const journal = yield* step(async () => openJournal(folder, log))
  for (const partition of plan.partitions) {
    for (const concerned of partition.segments) {
      yield* step(() => forgetSegment(log, partition, concerned, journal))
    }
  }
  yield* step(async () => journal.end())
})

/** Log the runs of a journal, and take them out of it. */
const logRuns = Effect.fnUntraced(function* (
  folder: string,
  secret: Redacted.Redacted,
  serviceName: string,
  isLogged: (run: ForgettingRun) => boolean
) {
  const runs = yield* step(async () => readJournal(folder))
  const logged = runs.filter(isLogged)
  if (logged.length === 0) return 0
  yield* logForgetting(secret, serviceName, logged)
  yield* step(async () =>
    writeJournal(
      folder,
      runs.filter((run) => !isLogged(run))
    )
  )
  return logged.length
})

/** At each start with an embedded broker: what was rewritten before it. Tried again by the next one. */
export const logForgotten = (config: Config, secret: Redacted.Redacted) =>
  logRuns(embeddedLogDir(config), secret, config.serviceName, () => true).pipe(
    Effect.asVoid,
    Effect.catch((failure) =>
      Effect.logError("what alk forget has rewritten could not be logged", { failure })
    )
  )

/** `alk forget record`: the journal of a broker elsewhere, beside a service that runs or not. */
const record = Effect.fnUntraced(function* (config: Config, file: string) {
  const { secret, serviceName } = config
  if (embedsBroker(config)) {
    return yield* refuse("forget: the next start of the service logs what was rewritten by itself")
  }
  if (basename(file) !== JOURNAL_FILE || !fs.existsSync(file)) {
    return yield* refuse(
      `forget: name the file ${JOURNAL_FILE} that apply has left in the log folder`
    )
  }
  if (secret === undefined) return yield* refuse("forget: set ALK_SECRET to that of the service")
  const brokers = yield* bootstrapOf(config, undefined, () => undefined)
  const log = yield* logOf(config, brokers, secret)
  const isEnded = ({ ended_at }: ForgettingRun) => ended_at !== null
  return yield* logRuns(dirname(file), secret, serviceName, isEnded).pipe(
    Effect.provide(layerCommandLog),
    Effect.provideService(EventLog, log)
  )
})

/** Runs the command; `print` gets the result. */
export const forget = Effect.fnUntraced(function* (
  config: Config,
  args: ForgetArguments,
  print: (text: string) => void
) {
  if (args.journal !== undefined) {
    return print(`${JSON.stringify({ logged: yield* record(config, args.journal) })}\n`)
  }
  const { prefix } = config.topics
  const isApplied = args.action === "apply"
  const place = yield* placeOf(config, args)
  const [first = ""] = place.logDirs
  if (isApplied) for (const folder of place.logDirs) yield* openLogFolder(folder)
  const line = new Progress(args.quiet)
  const log: ForgettingLog = {
    prefix,
    folders: yield* foldersOf(prefix, place.logDirs),
    secret: place.secret,
    isWritten: !isApplied,
    progress: (text) => line.at(text)
  }
  const plan = yield* step(() => planForgetting(log))
  if (isApplied) yield* apply(log, plan, first)
  line.end(plan.unproven.length === 0 ? undefined : partitionsLeft(plan.unproven))
  const report = reportOf(prefix, place, plan, isApplied)
  const isHuman = !args.json && process.stdout.isTTY === true
  print(isHuman ? forgetLines(report) : `${JSON.stringify(report)}\n`)
}, Effect.scoped)

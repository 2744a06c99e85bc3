/** `alk backup`: beside a service that runs, with its configuration. */
import { Effect } from "effect"
import {
  type BackupArguments,
  backupLines,
  backupReport,
  WITH_KEYS,
  WITHOUT_KEYS
} from "../cli/Backup.ts"
import { Progress } from "../cli/terminal/Progress.ts"
import type { Config } from "../config/Config.ts"
import { programVersion } from "../config/ProgramVersion.ts"
import { BackupFolder } from "../exports/backup/BackupFolder.ts"
import { refusing } from "../exports/backup/BackupRefused.ts"
import { takeBackup } from "../exports/backup/TakeBackup.ts"
import { runningLog } from "./RunningLog.ts"

/** Runs the command; `print` gets the result. */
export const backup = Effect.fnUntraced(
  function* (config: Config, args: BackupArguments, print: (text: string) => void) {
    const { serviceName, topics } = config
    const { keys, mac, source } = yield* runningLog(config, "backup")
    const folder = new BackupFolder(args.folder)
    yield* Effect.acquireRelease(
      Effect.sync(() => folder.open()),
      ({ release }) => Effect.sync(release)
    )
    const progress = new Progress(args.quiet)
    const done = yield* takeBackup({
      source,
      folder,
      about: {
        alk_version: programVersion(),
        service_name: serviceName,
        topic_prefix: topics.prefix
      },
      keys: args.withKeys ? keys : [],
      mac,
      isGenuine: (_topic, _partition, { refused }) => refused === undefined,
      progress: (line) => progress.at(line)
    })
    progress.end(args.withKeys ? WITH_KEYS : undefined)
    if (!args.withKeys) process.stderr.write(`${WITHOUT_KEYS}\n`)
    const report = backupReport(args.folder, done)
    const isHuman = !args.json && process.stdout.isTTY === true
    print(isHuman ? backupLines(report) : `${JSON.stringify(report)}\n`)
  },
  refusing,
  Effect.scoped
)

/** The log of a service that runs, for a command beside it; and the keys that it needs for that. */
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { readPlacement } from "../actors/log/PlacementOfLog.ts"
import { type RunningBroker, runningBroker } from "../adapters/embedded/broker/RunningBroker.ts"
import { SECRET_FILE } from "../adapters/embedded/DataFolder.ts"
import { existingLog } from "../adapters/kafka/ExistingLog.ts"
import { PREVIOUS_KEY_FILE, SIGNING_KEY_FILE } from "../adapters/keys/SigningKey.ts"
import type { Config } from "../config/Config.ts"
import { RecordMac } from "../domain/records/RecordMac.ts"
import { refuse } from "../exports/backup/BackupRefused.ts"
import { LogUnavailable } from "../ports/EventLog.ts"
import { refuseNewerData } from "../services/administration/DataVersions.ts"
import { authenticated } from "../services/commands/AuthenticatedLog.ts"
import { checkInstallation } from "../services/commands/InstallationMarker.ts"
import { type Brokers, kafkaSettings } from "./Log.ts"

/** Names of the files with keys, in the data folder and in a backup alike. */
export const KEY_FILES = [SECRET_FILE, SIGNING_KEY_FILE, PREVIOUS_KEY_FILE] as const

interface KeyFile {
  readonly name: string
  readonly content: string
}

const contentOf = (name: string, path: string | undefined): ReadonlyArray<KeyFile> =>
  path !== undefined && fs.existsSync(path)
    ? [{ name, content: fs.readFileSync(path, "utf8") }]
    : []

/** The keys of the service, wherever its configuration says that they are. */
const keysOf = (
  { previousKeyFile, secret, signingKeyFile }: Config,
  running: RunningBroker | undefined
): ReadonlyArray<KeyFile> => {
  const kept = (name: string) => running && join(running.folder, name)
  return [
    ...(secret === undefined
      ? contentOf(SECRET_FILE, kept(SECRET_FILE))
      : [{ name: SECRET_FILE, content: `${Redacted.value(secret)}\n` }]),
    ...contentOf(SIGNING_KEY_FILE, signingKeyFile ?? kept(SIGNING_KEY_FILE)),
    ...contentOf(PREVIOUS_KEY_FILE, previousKeyFile ?? kept(PREVIOUS_KEY_FILE))
  ]
}

/** The log of a service that runs, its records authenticated with the secret. */
const sourceOf = Effect.fnUntraced(function* (
  config: Config,
  brokers: Brokers,
  mac: RecordMac,
  command: string
) {
  const { prefix } = config.topics
  const settings = {
    ...(yield* kafkaSettings(config, brokers)),
    clientId: `${config.serviceName}-${command}`,
    isClientIdOwn: false
  }
  const { log, writtenEnds } = yield* existingLog(settings, prefix)
  const readOnly = {
    ...log,
    writer: () =>
      Effect.fail(
        new LogUnavailable({
          operation: "write the marker",
          cause: new Error("these topics are of no installation yet: start the service once")
        })
      )
  }
  yield* checkInstallation({ log: readOnly, mac, prefix })
  const own = authenticated(log, { mac, prefix })
  yield* refuseNewerData(own)
  yield* readPlacement(own)
  return { log: own, writtenEnds }
})

const secretOf = (keys: ReadonlyArray<KeyFile>, command: string) => {
  const found = keys.find(({ name }) => name === SECRET_FILE)?.content.trim()
  return found === undefined || found === ""
    ? refuse(`${command}: the data folder has no secret, and ALK_SECRET is not set`)
    : Effect.succeed(found)
}

/** What a command of this name works on. Becomes no writer of a partition. */
export const runningLog = Effect.fnUntraced(function* (config: Config, command: string) {
  const { kafka } = config
  const running =
    kafka._tag === "Embedded" ? yield* runningBroker(config.dataDir, kafka.isOpen) : undefined
  const brokers: Brokers = running ?? {
    addresses: kafka._tag === "External" ? kafka.brokers : []
  }
  const keys = keysOf(config, running)
  const mac = new RecordMac(yield* secretOf(keys, command))
  return { keys, mac, source: yield* sourceOf(config, brokers, mac, command) }
})

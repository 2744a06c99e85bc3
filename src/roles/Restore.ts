/** `alk restore`: to a data folder or a cluster that holds nothing yet. */
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Redacted } from "effect"
import { DataFolder, RESTORING_FILE, SECRET_FILE } from "../adapters/embedded/DataFolder.ts"
import { emptyLog } from "../adapters/kafka/EmptyLog.ts"
import { PREVIOUS_KEY_FILE, SIGNING_KEY_FILE } from "../adapters/keys/SigningKey.ts"
import { type RestoreArguments, type RestoreReport, restoreLines } from "../cli/Restore.ts"
import { Progress } from "../cli/terminal/Progress.ts"
import type { Config } from "../config/Config.ts"
import { type ChainGap, gapOf, type KeptCheckpoint } from "../domain/backup/BackupGap.ts"
import { type BackupManifest, isOfService } from "../domain/backup/BackupManifest.ts"
import { treeNameOf } from "../domain/chain/Chains.ts"
import { parseJson } from "../domain/json/Json.ts"
import { RecordMac } from "../domain/records/RecordMac.ts"
import { BackupFolder } from "../exports/backup/BackupFolder.ts"
import { refuse, refusing } from "../exports/backup/BackupRefused.ts"
import { keptCheckpoints } from "../exports/backup/KeptNotes.ts"
import { restoreBackup } from "../exports/backup/RestoreBackup.ts"
import { signingKeys, type VerifiedBackup, verifyBackup } from "../exports/backup/VerifyBackup.ts"
import { bootstrapOf, kafkaSettings, type Report } from "./Log.ts"
import { KEY_FILES } from "./RunningLog.ts"
import { embedsBroker } from "./Topology.ts"

/** A backup, read and not yet trusted. */
interface Opened {
  readonly config: Config
  readonly folder: BackupFolder
  readonly manifest: BackupManifest
}

/** Keys that a witness has pinned beside what it kept. */
const pinnedBeside = (file: string): ReadonlyArray<string> => {
  const path = join(dirname(file), "keys.json")
  return fs.existsSync(path)
    ? (parseJson(fs.readFileSync(path, "utf8")) as ReadonlyArray<string>)
    : []
}

const readKept = (
  { folder, manifest }: Opened,
  files: ReadonlyArray<string>
): ReadonlyArray<KeptCheckpoint> => {
  const known = files.length === 0 ? [] : signingKeys({ folder, manifest })
  return files.flatMap((file) => {
    const vkeys = [...new Set([...known, ...pinnedBeside(file)])]
    return keptCheckpoints(fs.readFileSync(file, "utf8"), manifest.service_name, vkeys)
  })
}

const gapsOf = (
  kept: ReadonlyArray<KeptCheckpoint>,
  { chains }: VerifiedBackup
): ReadonlyArray<ChainGap> => {
  const byTree = Map.groupBy(kept, ({ chain, tenantId }) => treeNameOf(tenantId, chain))
  return [...byTree].map(([name, [first, ...others]]) =>
    gapOf([first!, ...others], chains.get(name) ?? { reaches: 0, rootAt: () => undefined })
  )
}

/** What the topics will be called has to be what they were called: MACs and partitions depend on it. */
const checkConfig = ({ config, manifest }: Opened) => {
  const { serviceName, topics } = config
  const wanted = [
    ["ALK_TOPIC_PREFIX", topics.prefix, manifest.topic_prefix],
    ["ALK_PARTITIONS", topics.partitions, manifest.partitions],
    ["ALK_SERVICE_NAME", serviceName, manifest.service_name]
  ] as const
  const wrong = wanted.filter(([, is, was]) => is !== was)
  return wrong.length === 0
    ? Effect.void
    : refuse(`restore: set ${wrong.map(([name, , was]) => `${name}=${was}`).join(" and ")}`)
}

const keyOf = ({ folder, manifest }: Opened, name: string): string | undefined => {
  const found = manifest.keys.find(({ file }) => file === `keys/${name}`)
  return found && folder.check(found).toString()
}

/** The secret with which the service will start. */
const secretOf = (opened: Opened): string | undefined => {
  const { secret } = opened.config
  return secret === undefined ? keyOf(opened, SECRET_FILE)?.trim() : Redacted.value(secret)
}

/** Refuses a backup that was written or edited without the secret, where that is known. */
const checkManifest = (opened: Opened) => {
  const { folder, manifest } = opened
  const secret = secretOf(opened)
  return secret === undefined || isOfService(manifest, new RecordMac(secret))
    ? Effect.void
    : refuse(
        `restore: the MAC of ${folder.path}/manifest.json is not that of the service: ALK_SECRET is not `
          + "the one that the service had, so set it back, or the backup was edited"
      )
}

const checkKeys = (opened: Opened) => {
  const { config } = opened
  if (secretOf(opened) === undefined) {
    return refuse("restore: the backup has no keys: set ALK_SECRET to the service's secret")
  }
  const signs = config.signingKeyFile !== undefined || !embedsBroker(config)
  return signs || keyOf(opened, SIGNING_KEY_FILE) !== undefined
    ? Effect.void
    : refuse(
        "restore: the backup has no keys: name the service's signing key in ALK_SIGNING_KEY_FILE"
      )
}

/** Nothing of another service, or of another restore, may be there. */
const checkFolder = ({ config }: Opened) => {
  const { dataDir } = config
  const found = fs.existsSync(dataDir) ? fs.readdirSync(dataDir) : []
  return found.length === 0
    ? Effect.void
    : refuse(
        `restore: the data folder ${dataDir} is not empty (it holds ${found[0]}): move it away, or set `
          + "ALK_DATA_DIR to a new one"
      )
}

const writeKeys = Effect.fnUntraced(function* (opened: Opened, folder: DataFolder["Service"]) {
  const { config } = opened
  const isGiven: Readonly<Record<string, boolean>> = {
    [SECRET_FILE]: config.secret !== undefined,
    [SIGNING_KEY_FILE]: config.signingKeyFile !== undefined,
    [PREVIOUS_KEY_FILE]: config.signingKeyFile !== undefined
  }
  for (const name of KEY_FILES) {
    const content = isGiven[name] === true ? undefined : keyOf(opened, name)
    if (content !== undefined) yield* folder.file(name).write(content)
  }
})

/** Writes it; a data folder counts as one only when everything is there. */
const writeAll = Effect.fnUntraced(function* (
  opened: Opened,
  progress: (line: () => string) => void,
  report: Report
) {
  const { config, folder, manifest } = opened
  const isEmbedded = embedsBroker(config)
  if (isEmbedded) yield* checkFolder(opened)
  const data = isEmbedded ? yield* DataFolder.open(config.dataDir) : undefined
  if (data !== undefined) {
    yield* data.file(RESTORING_FILE).write("")
    yield* writeKeys(opened, data)
  }
  const written = yield* Effect.gen(function* () {
    const brokers = yield* bootstrapOf(config, data, report)
    const settings = yield* kafkaSettings(config, brokers)
    const target = yield* emptyLog(
      { ...settings, clientId: `${config.serviceName}-restore`, isClientIdOwn: false },
      config.topics
    )
    return yield* restoreBackup({ folder, manifest, target, now: Date.now(), progress })
  }).pipe(Effect.scoped)
  if (data !== undefined) fs.rmSync(join(data.path, RESTORING_FILE))
  return written
}, Effect.scoped)

const isContradicted = (gaps: ReadonlyArray<ChainGap>): boolean =>
  gaps.some(({ verdict }) => verdict === "contradicts")

/** Runs the command; `print` gets the result. Succeeds with false if a kept checkpoint contradicts. */
export const restore = Effect.fnUntraced(function* (
  config: Config,
  args: RestoreArguments,
  print: (text: string) => void,
  report: Report
) {
  const folder = new BackupFolder(args.folder)
  const manifest = folder.manifest()
  if (manifest === undefined) {
    return yield* refuse(`restore: ${args.folder} has no manifest: it is no backup`)
  }
  const opened: Opened = { config, folder, manifest }
  yield* checkManifest(opened)
  const line = new Progress(args.quiet)
  const progress = (text: () => string) => line.at(text)
  const kept = readKept(opened, args.checkpoints)
  const verified = yield* verifyBackup({ folder, manifest, kept, progress })
  const gaps = gapsOf(kept, verified)
  const isWritten = !args.checkOnly && !isContradicted(gaps)
  if (isWritten) {
    yield* checkConfig(opened)
    yield* checkKeys(opened)
  }
  const records = isWritten ? yield* writeAll(opened, progress, report) : 0
  line.end()
  const result: RestoreReport = {
    folder: args.folder,
    taken_at: manifest.taken_at,
    restored: isWritten,
    authenticated: config.secret !== undefined,
    records,
    links_checked: verified.records,
    checkpoints_checked: verified.checkpoints,
    waiting: verified.waiting,
    heads: manifest.heads,
    gaps
  }
  const isHuman = !args.json && process.stdout.isTTY === true
  print(isHuman ? restoreLines(result) : `${JSON.stringify(result)}\n`)
  return !isContradicted(gaps)
}, refusing)

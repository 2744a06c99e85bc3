/**
 * A log folder of a Kafka broker, one of its `log.dirs`: that it is one, that its broker was stopped
 * properly, that none starts while this process works there, and the folders of its partitions.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { isHeldElsewhere, lockFile } from "../../FileLock.ts"

/** The folder can't be worked on; the message is one line with the way out. */
export class LogFolderUnusable extends Schema.TaggedError<LogFolderUnusable>()(
  "LogFolderUnusable",
  { message: Schema.String }
) {}

/** Names of Kafka's, in each of its log folders. */
const PROPERTIES = "meta.properties"
/** The broker holds a lock on it while it runs. */
const LOCK = ".lock"
/** Written when a broker has stopped properly, and removed at its next start. */
const CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
/** A partition that is on its way to another log folder of the same broker. */
const FUTURE = "-future"

const refuse = (message: string) => Effect.fail(new LogFolderUnusable({ message }))

/**
 * A broker that stops removes its lock's file. One that is made here is the folder's owner's: should
 * this process be killed, the broker's user can still open it.
 */
const makeLock = (folder: string): void => {
  const { gid, uid } = fs.statSync(folder)
  const descriptor = fs.openSync(join(folder, LOCK), "wx", 0o644)
  fs.fchownSync(descriptor, uid, gid)
  fs.closeSync(descriptor)
}

const lockOf = (folder: string) => {
  const file = join(folder, LOCK)
  const isMade = !fs.existsSync(file)
  if (isMade) makeLock(folder)
  const held = lockFile(file)
  return {
    release: () => {
      if (isMade) fs.rmSync(file, { force: true })
      held.close()
    }
  }
}

/** Owns the folder until the scope closes. */
export const openLogFolder = Effect.fnUntraced(function* (folder: string) {
  if (!fs.existsSync(join(folder, PROPERTIES))) {
    return yield* refuse(
      `${folder} is no log folder of a Kafka broker: it has no ${PROPERTIES}. Name one of its log.dirs`
    )
  }
  yield* Effect.acquireRelease(
    Effect.try({
      try: () => lockOf(folder),
      catch: (cause) =>
        new LogFolderUnusable({
          message: isHeldElsewhere(cause)
            ? `a broker runs on ${folder}: stop it first`
            : `${folder} can't be locked (${(cause as Error).message}): run as the broker's user`
        })
    }),
    (held) => Effect.sync(() => held.release())
  )
  if (!fs.existsSync(join(folder, CLEAN_SHUTDOWN))) {
    return yield* refuse(
      `the broker of ${folder} was not stopped properly, so its files may end in the middle of a `
        + "record: start it, wait until it serves, and stop it"
    )
  }
})

/** Where the partitions of a topic are. */
export type PartitionFolders = ReadonlyMap<number, string>

/** The partitions of a topic in these folders. */
export const partitionFolders = Effect.fnUntraced(function* (
  folders: ReadonlyArray<string>,
  topic: string
) {
  const found = new Map<number, string>()
  for (const folder of folders) {
    for (const { name } of fs.readdirSync(folder, { withFileTypes: true })) {
      if (!name.startsWith(`${topic}-`)) continue
      if (name.endsWith(FUTURE)) {
        return yield* refuse(`${join(folder, name)} is being moved: let the broker finish that`)
      }
      const partition = name.slice(topic.length + 1)
      if (/^[0-9]+$/.test(partition)) found.set(Number(partition), join(folder, name))
    }
  }
  return found satisfies PartitionFolders
})

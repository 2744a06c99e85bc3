/**
 * The folder that holds the embedded store's data: made, marked with its format, and looked at
 * before the engine opens it, because the engine only says that it failed.
 */
import * as fs from "node:fs"
import { join, resolve } from "node:path"
import { Schema } from "effect"
import { defined } from "../../../domain/Defined.ts"
import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"

/** The embedded store can't be opened on its folder; the message is one line with the way out. */
export class StoreFolderUnusable extends Schema.TaggedError<StoreFolderUnusable>()(
  "StoreFolderUnusable",
  {
    reason: Schema.Literals(["in use", "not writable", "unreadable format"]),
    message: Schema.String,
    cause: Schema.optionalKey(Schema.Defect())
  }
) {}

/** What this program writes into the folder and is able to open. */
const FORMAT = 1
const FORMAT_FILE = "alk-format.json"
/** The engine holds a lock on this file while it runs. */
const LOCK_FILE = "status"

const elsewhere = "or set ALK_DATA_DIR to another folder"
const rebuild = "move it away, and the next start builds it again from the topics"

const inUse = (folder: string, owner: string) =>
  new StoreFolderUnusable({
    reason: "in use",
    message:
      `The store's folder ${folder} is in use by ${owner}: stop it, let this process reach`
      + ` it through CLICKHOUSE_URL, ${elsewhere}`
  })

const notWritable = (folder: string, cause: unknown) =>
  new StoreFolderUnusable({
    reason: "not writable",
    message:
      `The store's folder ${folder} is not writable (${(cause as Error).message}):`
      + ` give this user the right to write there, ${elsewhere}`,
    cause
  })

const unreadable = (folder: string, what: string, cause?: unknown) =>
  new StoreFolderUnusable({
    reason: "unreadable format",
    message: `The store's folder ${folder} can't be read (${what}): ${rebuild}, ${elsewhere}`,
    ...defined({ cause })
  })

/** Process that the kernel says has locked the file; undefined where it does not say. */
const lockHolder = (file: string): string | undefined => {
  let locks: string
  let inode: number
  try {
    inode = fs.statSync(file).ino
    locks = fs.readFileSync("/proc/locks", "utf8")
  } catch {
    return undefined
  }
  // 1: FLOCK  ADVISORY  WRITE 16256 fe:00:10052047 0 EOF
  return locks
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[1] === "FLOCK" && fields[5]?.split(":").at(-1) === String(inode))?.[4]
}

const readFormat = recordDecoder(
  Schema.Struct({ format: Schema.optionalKey(Schema.Unknown) }),
  "format"
)

const checkFormat = (folder: string): void => {
  const file = join(folder, FORMAT_FILE)
  if (!fs.existsSync(file)) {
    const [strange] = fs.readdirSync(folder)
    if (strange !== undefined) {
      throw unreadable(folder, `it holds ${strange}, but not ${FORMAT_FILE}`)
    }
    fs.writeFileSync(file, `${JSON.stringify({ format: FORMAT })}\n`, { mode: 0o600 })
    return
  }
  let format: unknown
  try {
    format = readFormat(fs.readFileSync(file, "utf8")).format
  } catch (cause) {
    throw unreadable(folder, `${FORMAT_FILE} is damaged`, cause)
  }
  if (format !== FORMAT) throw unreadable(folder, `its format is ${format}, known is ${FORMAT}`)
}

/**
 * Makes the folder ready for the engine and gives its absolute path.
 * @throws StoreFolderUnusable
 */
export const prepareFolder = (path: string): string => {
  const folder = resolve(path)
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const probe = join(folder, `.alk-${process.pid}`)
    fs.writeFileSync(probe, "")
    fs.rmSync(probe)
  } catch (cause) {
    throw notWritable(folder, cause)
  }
  const holder = lockHolder(join(folder, LOCK_FILE))
  if (holder !== undefined) throw inUse(folder, `process ${holder}`)
  checkFormat(folder)
  return folder
}

/**
 * What the engine's failure to open a prepared folder means. Where the kernel does not say who
 * holds the lock (another container), the engine's own line on standard error does.
 */
export const openFailure = (folder: string, cause: unknown): StoreFolderUnusable => {
  const holder = lockHolder(join(folder, LOCK_FILE))
  return holder === undefined
    ? unreadable(folder, "the line above says why; if another process uses it, stop that", cause)
    : inUse(folder, `process ${holder}`)
}

/**
 * The folder that one alk process owns while it runs: its lock, its secret, and the places of the
 * broker's and the store's data.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { join, resolve } from "node:path"
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { recordDecoder } from "../../domain/json/RecordDecoder.ts"
import { isHeldElsewhere, lockFile } from "../FileLock.ts"

/** Another live process owns the folder. */
export class DataFolderInUse extends Schema.TaggedError<DataFolderInUse>()("DataFolderInUse", {
  path: Schema.String,
  owner: Schema.String
}) {
  override get message(): string {
    return (
      `The data folder ${this.path} is in use by ${this.owner}: stop it,`
      + " or set ALK_DATA_DIR to another folder"
    )
  }
}

/** The folder can't be made, read or written. */
export class DataFolderUnusable extends Schema.TaggedError<DataFolderUnusable>()(
  "DataFolderUnusable",
  { message: Schema.String, cause: Schema.Defect() }
) {}

/** Below this not even the broker's index files have room. */
const FREE_BYTES_MIN = 32 * 1_048_576
const SECRET_BYTES = 32

/** Name of the file with the secret, in a backup too. */
export const SECRET_FILE = "secret"

const NOT_WRITABLE = "is not writable: give this user the right to write there"
const DISK_FULL = "is on a full disk: free some space"
const NOT_MADE = "can't be made: give this user the right to write in the folder above it"
const NOT_A_FOLDER = "is not a folder: move the file that is there"

/** By the system's error codes and SQLite's result codes (sqlite.org/rescode.html). */
const problems: Readonly<Record<string, string>> = {
  EACCES: NOT_WRITABLE,
  EPERM: NOT_WRITABLE,
  EROFS: NOT_WRITABLE,
  8: NOT_WRITABLE,
  14: NOT_WRITABLE,
  ENOSPC: DISK_FULL,
  EDQUOT: DISK_FULL,
  13: DISK_FULL,
  ENOENT: NOT_MADE,
  ENOTDIR: NOT_A_FOLDER,
  EEXIST: NOT_A_FOLDER
}

interface SystemError extends Error {
  readonly code?: string
  /** SQLite's result code. */
  readonly errcode?: number
}

/** One clear line for what the system said about the folder or one of its files. */
const folderProblem = (path: string, cause: unknown): DataFolderUnusable => {
  const { code, errcode, message } = cause as SystemError
  const wrong = problems[errcode ?? code ?? ""] ?? `can't be used (${message}): look at it`
  return new DataFolderUnusable({
    message: `The data folder ${path} ${wrong}, or set ALK_DATA_DIR to another one`,
    cause
  })
}

const attempt = <A>(path: string, run: () => A): Effect.Effect<A, DataFolderUnusable> =>
  Effect.try({ try: run, catch: (cause) => folderProblem(path, cause) })

/** Writes a file, mode 0600, so that it is there whole or not at all, also after a power failure. */
export const writeWhole = (path: string, content: string): void => {
  const aside = `${path}.${process.pid}.partial`
  const descriptor = fs.openSync(aside, "w", 0o600)
  try {
    fs.writeSync(descriptor, content)
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
  fs.renameSync(aside, path)
}

const readOwner = recordDecoder(
  Schema.Struct({ pid: Schema.Unknown, since: Schema.Unknown }),
  "owner.json"
)

const ownerOf = (path: string): string => {
  try {
    const text = fs.readFileSync(join(path, "owner.json"), "utf8")
    const { pid, since } = readOwner(text)
    return `the alk with process id ${pid}, running since ${since}`
  } catch {
    return "another alk"
  }
}

const lock = Effect.fnUntraced(function* (path: string) {
  const file = join(path, "lock")
  yield* Effect.acquireRelease(
    Effect.try({
      try: () => lockFile(file),
      catch: (cause) =>
        isHeldElsewhere(cause)
          ? new DataFolderInUse({ path, owner: ownerOf(path) })
          : folderProblem(path, cause)
    }),
    (held) => Effect.sync(() => held.close())
  )
  yield* attempt(path, () =>
    writeWhole(
      join(path, "owner.json"),
      `${JSON.stringify({ pid: process.pid, since: new Date().toISOString() })}\n`
    )
  )
})

const checkSpace = Effect.fnUntraced(function* (path: string) {
  const { bavail, bsize } = yield* attempt(path, () => fs.statfsSync(path))
  if (bavail * bsize >= FREE_BYTES_MIN) return
  return yield* folderProblem(path, Object.assign(new Error("disk full"), { code: "ENOSPC" }))
})

/** The secret that an earlier start made, or a new one. A damaged one is never replaced. */
const keptSecret = Effect.fnUntraced(function* (path: string) {
  const file = join(path, SECRET_FILE)
  return yield* attempt(path, () => {
    if (!fs.existsSync(file)) writeWhole(file, `${randomBytes(SECRET_BYTES).toString("hex")}\n`)
    const secret = fs.readFileSync(file, "utf8").trim()
    if (!/^[0-9a-f]{64}$/.test(secret)) {
      throw new Error(`${file} is damaged; restore it from a backup, or set ALK_SECRET`)
    }
    return Redacted.make(secret)
  })
})

/** Name of a file that is there while a backup is restored to the folder. */
export const RESTORING_FILE = "restoring"

/** A restore that was broken off has left a part of the log, which nothing may go on from. */
const checkWhole = (path: string): Effect.Effect<void, DataFolderUnusable> =>
  fs.existsSync(join(path, RESTORING_FILE))
    ? Effect.fail(
        new DataFolderUnusable({
          message:
            `The data folder ${path} holds a part of a backup, whose restore did not end: delete it `
            + "and restore again, or set ALK_DATA_DIR to another folder",
          cause: undefined
        })
      )
    : Effect.void

const FILE_NAME = /^[a-z][a-z.-]*$/

/** A small file of the folder, by its name; read as undefined until it is written. */
const keptFile = (path: string, name: string) => {
  if (!FILE_NAME.test(name)) throw new Error(`no name of a file: ${name}`)
  const file = join(path, name)
  return {
    read: attempt(path, () => (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined)),
    write: (content: string) => attempt(path, () => writeWhole(file, content))
  }
}

export class DataFolder extends Context.Service<
  DataFolder,
  {
    /** Absolute, without symbolic links. */
    readonly path: string
    /** The embedded broker's part. */
    readonly kafka: string
    /** The embedded store's part. */
    readonly clickhouse: string
    /** 64 hex digits, made at the first use, file mode 0600: for when ALK_SECRET is not set. */
    readonly secret: Effect.Effect<Redacted.Redacted, DataFolderUnusable>
    /** A small file, file mode 0600, there whole or not at all. */
    readonly file: (name: string) => {
      readonly read: Effect.Effect<string | undefined, DataFolderUnusable>
      write(content: string): Effect.Effect<void, DataFolderUnusable>
    }
  }
>()("alk/adapters/embedded/DataFolder") {
  /** Makes the folder if it is not there and owns it until the scope closes. */
  static readonly open = (
    folder: string
  ): Effect.Effect<DataFolder["Service"], DataFolderInUse | DataFolderUnusable, Scope.Scope> =>
    Effect.gen(function* () {
      const path = yield* attempt(resolve(folder), () => {
        fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
        return fs.realpathSync(folder)
      })
      const [kafka, clickhouse] = [join(path, "kafka"), join(path, "clickhouse")]
      yield* lock(path)
      yield* checkWhole(path)
      yield* checkSpace(path)
      yield* attempt(path, () => {
        for (const part of [kafka, clickhouse]) fs.mkdirSync(part, { recursive: true, mode: 0o700 })
      })
      return DataFolder.of({
        path,
        kafka,
        clickhouse,
        secret: keptSecret(path),
        file: (name) => keptFile(path, name)
      })
    })

  static readonly layer = (
    folder: string
  ): Layer.Layer<DataFolder, DataFolderInUse | DataFolderUnusable> =>
    Layer.effect(DataFolder, DataFolder.open(folder))
}

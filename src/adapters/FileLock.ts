/**
 * An exclusive lock on a file, by SQLite: the kernel drops it with the process, however that ends, so
 * it can't be stale, and it holds between containers that share a volume. Where another program locks
 * the whole file in the manner of POSIX, as Kafka's broker does, the two exclude each other.
 */
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"

interface SystemError extends Error {
  readonly code?: string
  /** SQLite's result code. */
  readonly errcode?: number
}

const SQLITE_BUSY = 5

/** True if the lock was refused because another process holds it. */
export const isHeldElsewhere = (cause: unknown): boolean =>
  (cause as SystemError).errcode === SQLITE_BUSY

/** Never opens a file that is there: closing it again would drop this process's own lock on it. */
const makeLockFile = (file: string): void => {
  try {
    fs.closeSync(fs.openSync(file, "wx", 0o600))
  } catch (cause) {
    if ((cause as SystemError).code !== "EEXIST") throw cause
  }
}

/** Locks the file, which has to be empty, until `close`. Throws what SQLite or the system says. */
export const lockFile = (file: string): { close(): void } => {
  makeLockFile(file)
  const database = new DatabaseSync(file)
  try {
    // Nothing is ever written, so no journal is made beside it.
    database.exec("PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE")
  } catch (cause) {
    database.close()
    throw cause
  }
  return database
}

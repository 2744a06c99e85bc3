/**
 * How much room the data folder takes and how much its disk has left, for `/metrics`. Measured now
 * and then, since that goes through all of its files; a file that vanishes meanwhile does not count.
 */
import { lstat, opendir, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Metric, Schedule, type Scope } from "effect"
import { gaugeOf } from "../../domain/metrics/Metrics.ts"

const freeBytes = gaugeOf("alk_data_free_bytes")
const diskBytes = gaugeOf("alk_data_disk_bytes")
const folderBytes = gaugeOf("alk_data_folder_bytes")

/** Going through some ten thousand files takes about a second of work. */
const INTERVAL = "1 minute"

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

/** Bytes of all files below a folder. */
export const folderSize = async (path: string): Promise<number> => {
  let sum = 0
  try {
    for await (const entry of await opendir(path)) {
      const inside = join(path, entry.name)
      if (entry.isDirectory()) sum += await folderSize(inside)
      else if (entry.isFile()) sum += await fileSize(inside)
    }
  } catch (error) {
    if (!isGone(error)) throw error
  }
  return sum
}

/** Blocks that the file has on the disk: files of the broker are longer than what is in them. */
const fileSize = async (path: string): Promise<number> => {
  try {
    return (await lstat(path)).blocks * BLOCK_BYTES
  } catch (error) {
    if (isGone(error)) return 0
    throw error
  }
}

/** Bytes of a block as `stat` counts them, on every system. */
const BLOCK_BYTES = 512

/** Measures the folder once. */
export const measureSpace = (path: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { bavail, blocks, bsize } = yield* Effect.tryPromise(() => statfs(path))
    yield* Metric.update(freeBytes, bavail * bsize)
    yield* Metric.update(diskBytes, blocks * bsize)
    yield* Metric.update(folderBytes, yield* Effect.tryPromise(() => folderSize(path)))
  }).pipe(
    Effect.catch(({ cause }) => Effect.logWarning("the data folder can't be measured", cause))
  )

/** Measures the folder for as long as the scope is open. */
export const watchSpace = (path: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.forkScoped(measureSpace(path).pipe(Effect.repeat(Schedule.spaced(INTERVAL))))
  )

/**
 * The folder of exports as files: below it a folder for each tenant, named by a hash, with a record
 * `exp_….json` of each job, its file `exp_….data`, and `exp_….stop` where its end was asked for.
 * What is being written ends with `.partial`. Every file is written anew, and no link is followed.
 */
import { randomBytes } from "node:crypto"
import { constants, createReadStream, promises as fs, type StatsFs } from "node:fs"
import { join } from "node:path"
import { NodeStream } from "@effect/platform-node"
import { Effect, Layer, Stream } from "effect"
import { sha256Hex } from "../../domain/Identifiers.ts"
import {
  ExportFolder,
  ExportFolderUnusable,
  type JobName,
  type KeptJob
} from "../../ports/ExportFolder.ts"
import { type ExportJob, isJobId, readJob } from "../../ports/ExportJob.ts"
import { FileSink } from "./FileSink.ts"

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
/** A link in place of a file is an error: it would lead out of the folder. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW
/** Hex digits of a tenant's folder: 128 bits. */
const FOLDER_DIGITS = 32
/** Bytes of the disk that exports leave free: the log and the store may be on the same one. */
export const FREE_BYTES_MIN = 256 * 1_048_576
export interface FolderSettings {
  /** Absolute; made at the first job. */
  readonly path: string
  readonly freeBytesMin?: number
}

const codeOf = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? ""

const diskFull = (path: string, cause?: unknown) =>
  new ExportFolderUnusable({
    reason: "disk_full",
    message: `the disk of the exports folder (${path}) is full: free some space and ask again`,
    ...(cause === undefined ? {} : { cause })
  })

const problemOf = (path: string, cause: unknown): ExportFolderUnusable => {
  if (cause instanceof ExportFolderUnusable) return cause
  const code = codeOf(cause)
  if (code === "ENOSPC" || code === "EDQUOT") return diskFull(path, cause)
  const message = `the exports folder (${path}) can't be used (${(cause as Error).message})`
  return new ExportFolderUnusable({ reason: "unusable", message, cause })
}

/** undefined in place of a file that is not there. */
const ifThere = <A>(read: Promise<A>): Promise<A | undefined> =>
  read.catch((cause) => {
    if (codeOf(cause) === "ENOENT") return undefined
    throw cause
  })

const suffixes = { record: ".json", file: ".data", partial: ".data.partial", stop: ".stop" }

const recordName = new RegExp(`^(exp_[0-9a-f-]+)\\${suffixes.record}$`, "u")

/** The paths of one folder. */
const makePaths = (root: string) => {
  const tenantFolder = (tenantId: string) => join(root, sha256Hex(tenantId).slice(0, FOLDER_DIGITS))
  const pathOf = ({ id, tenant_id }: JobName, what: keyof typeof suffixes) => {
    if (!isJobId(id)) throw new Error("no id of an export job")
    return join(tenantFolder(tenant_id), `${id}${suffixes[what]}`)
  }
  return { tenantFolder, pathOf }
}

const writeWhole = async (path: string, text: string): Promise<void> => {
  const aside = `${path}.${randomBytes(8).toString("hex")}.partial`
  try {
    await fs.writeFile(aside, text, { mode: FILE_MODE, flag: "wx", flush: true })
    await fs.rename(aside, path)
  } catch (cause) {
    await fs.rm(aside, { force: true })
    throw cause
  }
}

/** Makes the folder of a tenant if it is missing. */
const makeFolder = async (path: string): Promise<void> => {
  await fs.mkdir(path, { recursive: true, mode: FOLDER_MODE })
  if ((await fs.lstat(path)).isSymbolicLink()) throw new Error(`${path} is a link: remove it`)
}

/** A record, and whether there is a wish to stop beside it. */
const readKept = async (folder: string, id: string): Promise<KeptJob | undefined> => {
  const record = join(folder, `${id}${suffixes.record}`)
  const text = await ifThere(fs.readFile(record, { encoding: "utf8", flag: READ }))
  if (text === undefined) return undefined
  const stop = await ifThere(fs.lstat(join(folder, `${id}${suffixes.stop}`)))
  return { job: readJob(text), isStopped: stop !== undefined }
}

const idsIn = async (folder: string): Promise<ReadonlyArray<string>> => {
  const names = (await ifThere(fs.readdir(folder))) ?? []
  return names.flatMap((name) => recordName.exec(name)?.[1] ?? []).filter(isJobId)
}

const byAge = (left: KeptJob, right: KeptJob): number => (left.job.id < right.job.id ? 1 : -1)

/** The places of a folder, and what may be done to them. */
const makePlaces = ({ freeBytesMin = FREE_BYTES_MIN, path: root }: FolderSettings) => {
  const paths = makePaths(root)
  // What has begun is waited for: a record that is written late would replace a later one.
  const attempt = <A>(run: () => Promise<A>): Effect.Effect<A, ExportFolderUnusable> =>
    Effect.uninterruptible(
      Effect.tryPromise({ try: run, catch: (cause) => problemOf(root, cause) })
    )
  const look = async (): Promise<void> => {
    const { bavail, bsize }: StatsFs = await fs.statfs(root)
    if (bavail * bsize < freeBytesMin) throw diskFull(root)
  }
  return { root, ...paths, attempt, look }
}
type Places = ReturnType<typeof makePlaces>

/** The jobs of a tenant's folder. */
const keptIn = Effect.fnUntraced(function* ({ attempt }: Places, folder: string) {
  const found: Array<KeptJob> = []
  for (const id of yield* attempt(() => idsIn(folder))) {
    const one = yield* attempt(() => readKept(folder, id)).pipe(
      Effect.catchIf(
        ({ reason }) => reason === "unusable",
        ({ message }) =>
          Effect.as(Effect.logError("the record of an export is unreadable", message), undefined)
      )
    )
    if (one !== undefined) found.push(one)
  }
  return found.sort(byAge)
})

/** The file that is being written; whatever is not put in its place in the end is nothing. */
const openPartial = ({ attempt, look, pathOf, tenantFolder }: Places, name: JobName) =>
  Effect.acquireRelease(
    attempt(async () => {
      await makeFolder(tenantFolder(name.tenant_id))
      await look()
      const path = pathOf(name, "partial")
      await fs.rm(path, { force: true })
      return fs.open(path, "wx", FILE_MODE)
    }),
    (handle) =>
      Effect.promise(async () => {
        await handle.close()
        await fs.rm(pathOf(name, "partial"), { force: true })
      })
  )

const writeTo = (places: Places): ExportFolder["Service"]["write"] =>
  Effect.fnUntraced(function* (name, content, { bytesMax, onBytes }) {
    const { attempt, look, pathOf } = places
    const sink = new FileSink(yield* openPartial(places, name), bytesMax, look)
    yield* Stream.runForEach(content, (piece) =>
      Effect.andThen(
        attempt(() => sink.write(piece)),
        Effect.suspend(() => onBytes(sink.bytes))
      )
    )
    const sha256 = yield* attempt(async () => {
      const digest = await sink.end()
      await fs.rename(pathOf(name, "partial"), pathOf(name, "file"))
      return digest
    })
    return { bytes: sink.bytes, sha256 }
  }, Effect.scoped)

/** The folder below `path`. */
export const layerExportFolder = (settings: FolderSettings): Layer.Layer<ExportFolder> => {
  const places = makePlaces(settings)
  const { attempt, pathOf, root, tenantFolder } = places
  const removeAll = (name: JobName, parts: ReadonlyArray<keyof typeof suffixes>) =>
    attempt(async () => {
      for (const part of parts) await fs.rm(pathOf(name, part), { force: true })
    })

  return Layer.succeed(ExportFolder, {
    jobs: (tenantId) => keptIn(places, tenantFolder(tenantId)),
    job: (name) =>
      attempt(async () => {
        if (!isJobId(name.id)) return undefined
        const one = await readKept(tenantFolder(name.tenant_id), name.id)
        return one?.job.tenant_id === name.tenant_id ? one : undefined
      }),
    all: Effect.gen(function* () {
      const folders = (yield* attempt(() => ifThere(fs.readdir(root)))) ?? []
      const all = yield* Effect.forEach(folders, (folder) => keptIn(places, join(root, folder)))
      return all.flat()
    }),
    save: (job: ExportJob) =>
      attempt(async () => {
        await makeFolder(tenantFolder(job.tenant_id))
        await writeWhole(pathOf(job, "record"), `${JSON.stringify(job)}\n`)
      }),
    stop: (name) => attempt(() => writeWhole(pathOf(name, "stop"), "")),
    write: writeTo(places),
    read: (name) =>
      attempt(async () => {
        const path = pathOf(name, "file")
        const found = await ifThere(fs.lstat(path))
        if (found?.isFile() !== true) return undefined
        const content = NodeStream.fromReadable<Uint8Array, ExportFolderUnusable>({
          // A number too, which its type does not say.
          evaluate: () => createReadStream(path, { flags: READ as unknown as string }),
          onError: (cause) => problemOf(root, cause)
        })
        return { bytes: found.size, content }
      }),
    removeFile: (name) => removeAll(name, ["file", "partial"]),
    // The record last: a file without one would never be found.
    remove: (name) => removeAll(name, ["file", "partial", "stop", "record"])
  })
}

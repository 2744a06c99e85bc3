/**
 * Where exports wait to be fetched: a folder that every process of the service sees, with the record
 * of each job and its file. Nothing that a client chooses is part of a path.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { ExportJob } from "./ExportJob.ts"

/** The folder can't be used; `message` says what to do. */
export class ExportFolderUnusable extends Schema.TaggedError<ExportFolderUnusable>()(
  "ExportFolderUnusable",
  {
    reason: Schema.Literals(["disk_full", "too_large", "unusable"]),
    message: Schema.String,
    cause: Schema.optionalKey(Schema.Defect())
  }
) {}

/** A job, and whether its end was asked for. */
export interface KeptJob {
  readonly job: ExportJob
  readonly isStopped: boolean
}

/** Names a job: its tenant decides which folder it is looked for in. */
export type JobName = Pick<ExportJob, "tenant_id" | "id">

/** What is known of a file that was written whole. */
export interface WrittenFile {
  readonly bytes: number
  readonly sha256: string
}

type Folder<A> = Effect.Effect<A, ExportFolderUnusable>

export class ExportFolder extends Context.Service<
  ExportFolder,
  {
    /** The jobs of a tenant, newest first. A record that can't be read is left out and logged. */
    jobs(tenantId: string): Folder<ReadonlyArray<KeptJob>>
    /** undefined: there is no such job of this tenant. */
    job(name: JobName): Folder<KeptJob | undefined>
    /** The jobs of all tenants, in no order. */
    readonly all: Folder<ReadonlyArray<KeptJob>>
    /** Writes the record; it is there whole or as it was before. */
    save(job: ExportJob): Folder<void>
    /** Asks the process that runs the job to end it. */
    stop(name: JobName): Folder<void>
    /**
     * Writes the file of a job, as fast as the disk takes it and at most `bytesMax` bytes; it is
     * there whole or not at all. `onBytes` is told how many are written.
     */
    write<E>(
      name: JobName,
      content: Stream.Stream<Uint8Array, E>,
      options: {
        readonly bytesMax: number
        readonly onBytes: (bytes: number) => Effect.Effect<void>
      }
    ): Effect.Effect<WrittenFile, E | ExportFolderUnusable>
    /** The file of a job; undefined if there is none. */
    read(name: JobName): Folder<
      | {
          readonly bytes: number
          readonly content: Stream.Stream<Uint8Array, ExportFolderUnusable>
        }
      | undefined
    >
    /** Removes what there is of the file and keeps the record. */
    removeFile(name: JobName): Folder<void>
    /** Removes all there is of the job. */
    remove(name: JobName): Folder<void>
  }
>()("alk/ExportFolder") {}

/**
 * An export that is made in the background, as its folder keeps it: what was asked for, how far it
 * is, and how it ended. Knows neither files nor processes.
 */
import { Schema } from "effect"
import { form, natural, sha256, tenant, text, time } from "../domain/Forms.ts"
import { recordDecoder } from "../domain/json/RecordDecoder.ts"
import { StoredFilter } from "../domain/registry/RegistryEntry.ts"

const optional = Schema.optionalKey

/** What a job can make. */
export const tableKinds = ["csv", "ndjson", "ocsf"] as const
export const jobKinds = ["pdf", "pack", ...tableKinds] as const
export type TableKind = (typeof tableKinds)[number]
export type JobKind = (typeof jobKinds)[number]

/** True for what has a line for each event. */
export const isTable = (kind: JobKind): kind is TableKind =>
  (tableKinds as ReadonlyArray<JobKind>).includes(kind)

/** What is being done, in this order; a table has neither a checkpoint nor a verdict. */
export const exportStages = ["waiting", "checkpoint", "verifying", "printing", "writing"] as const
export type ExportStage = (typeof exportStages)[number]

/** States in which a job is kept; how old it is makes it `expired` or `interrupted` besides. */
export const keptStatuses = ["queued", "running", "done", "failed", "cancelled"] as const

const ID = /^exp_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u

/** True for the ids of jobs: nothing else becomes part of a path. */
export const isJobId = (id: string): boolean => ID.test(id)

/** How much of a stage is done. */
export const JobProgress = Schema.Struct({
  done: natural("So many are done."),
  total: optional(natural("Of so many, where that is known.")),
  unit: Schema.Literals(["events", "bytes"])
})
export type JobProgress = typeof JobProgress.Type

/** Why a job has failed. */
export const JobError = Schema.Struct({
  code: text("For programs."),
  message: text("For people: what went wrong and what to do.")
})
export type JobError = typeof JobError.Type

export const ExportJob = Schema.Struct({
  id: form(ID, "Names the job."),
  tenant_id: tenant("Whose events it exports."),
  kind: Schema.Literals(jobKinds),
  pdf: Schema.Boolean.annotate({ description: "Whether a pack has the PDF in it." }),
  bom: optional(Schema.Literal(true)).annotateKey({
    description: "Of CSV: it begins with a byte order mark."
  }),
  label: optional(text("For people.")),
  filter: StoredFilter,
  created_by: text("Id of the API key that asked for it; `admin` for the admin token."),
  created_at: time("When it was asked for."),
  status: Schema.Literals(keptStatuses),
  stage: Schema.Literals(exportStages),
  progress: optional(JobProgress),
  alive_at: time("When its process was last seen at it."),
  finished_at: optional(time("When it ended.")),
  expires_at: optional(time("From when on there is no file, or no word of how it ended.")),
  bytes: optional(natural("Size of the file.")),
  sha256: optional(sha256("SHA-256 of the file.")),
  file_name: optional(text("Name of the file for people.")),
  error: optional(JobError)
})
export type ExportJob = typeof ExportJob.Type

/** Throws RecordUnreadable. */
export const readJob = recordDecoder(ExportJob, "an export job")

/** True while it runs, or should run. */
export const isUnderWay = ({ status }: Pick<ExportJob, "status">): boolean =>
  status === "queued" || status === "running"

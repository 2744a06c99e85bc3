/**
 * The routes of export jobs: asked for, listed, fetched, removed. Says nothing of how exports are
 * made or kept.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ExportJob, exportStages, jobKinds, keptStatuses } from "../../../ports/ExportJob.ts"
import { resourcePageQuery } from "../../admin/ResourcePages.ts"
import { mustBe, optionalInput } from "../../contract/Bodies.ts"
import { errorsOf } from "../../contract/ContractErrors.ts"
import { label, pageFields, Timestamp } from "../../contract/ContractSchemas.ts"
import { createdHeaders, operation } from "../../contract/Operation.ts"
import { bomOfTables } from "../../events/QueryContract.ts"
import { scopeFields, scopeInput } from "../../events/ScopeSchemas.ts"
import { CSV_TYPE, NDJSON_TYPE, PDF_TYPE, ZIP_TYPE } from "../../messages/MediaTypes.ts"
import { pageLinkHeader } from "../../messages/Pages.ts"
import { Authorization } from "../../server/Authorization.ts"
import { ifNoneMatch, Unchanged } from "../ExportContract.ts"
import { KEPT_MAX, RECORD_KEPT_DAYS, UNDER_WAY_MAX } from "./JobLimits.ts"

/** Where jobs are made, listed and found. */
export const EXPORTS_PATH = "/v1/exports"

const { bom, bytes, error, file_name, id, progress, sha256 } = ExportJob.fields

const exampleJob = {
  id: "exp_019a8f3c-0000-7000-8000-000000000000",
  kind: "pack" as const,
  pdf: true,
  label: "third quarter",
  status: "running" as const,
  stage: "verifying" as const,
  progress: { done: 40_000, total: 120_000, unit: "events" as const },
  from: "2026-07-01T00:00:00.000000Z",
  to: "2026-09-30T23:59:59.999999Z",
  filters: { actor_id: "user_1" },
  created_by: "key_1",
  created_at: "2026-11-21T10:00:00.000000Z"
}

export const Job = Schema.Struct({
  id,
  kind: Schema.Literals(jobKinds),
  pdf: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Of a pack: whether the PDF is in it."
  }),
  bom,
  label: Schema.optionalKey(Schema.String),
  status: Schema.Literals([...keptStatuses, "expired"]).annotate({
    description: "`queued` and `running` are under way; `done` has a file, until it is `expired`."
  }),
  stage: Schema.Literals(exportStages).annotate({
    description:
      "What is being done, or was last: `waiting` for its turn, `checkpoint` (signing one), "
      + "`verifying`, `printing`, `writing`. A table only waits and is written."
  }),
  progress,
  ...scopeFields("when it is made"),
  created_by: Schema.String.annotate({ description: "Id of the API key that asked for it." }),
  created_at: Timestamp,
  finished_at: Schema.optionalKey(Timestamp),
  expires_at: Schema.optionalKey(Timestamp).annotateKey({
    description: "From when on the file is removed; once it is done."
  }),
  bytes,
  sha256,
  file_name,
  error
}).annotate({
  identifier: "ExportJob",
  description: "An export that is made in the background.",
  examples: [exampleJob]
})

const kindInput = mustBe(
  `one of ${jobKinds.join(", ")}`,
  Schema.Literals(jobKinds).annotate({
    description:
      "`pdf`: the report for people. `pack`: a ZIP that proves itself offline. `csv`, "
      + "`ndjson` and `ocsf`: the events as a table, as lines, or as lines in the form of OCSF."
  })
)

export const JobInput = Schema.Struct({
  kind: kindInput,
  ...scopeInput,
  pdf: optionalInput(mustBe("true or false", Schema.Boolean)).annotateKey({
    description:
      "Of a pack: whether the PDF is in it, true unless given; `false` where there is no Chromium."
  }),
  bom: optionalInput(mustBe("true or false", Schema.Boolean)).annotateKey({
    description: bomOfTables
  }),
  label: optionalInput(label)
}).annotate({
  identifier: "ExportJobInput",
  examples: [
    { kind: "csv", from: "2026-01-01T00:00:00Z", filters: { actor_id: "user_1" }, label: "user_1" }
  ]
})

export const JobList = Schema.Struct({
  exports: Schema.Array(Job),
  ...pageFields
}).annotate({
  identifier: "ExportJobList",
  examples: [{ exports: [exampleJob], total: 1, page: 1, page_size: 1_000 }]
})

const params = {
  id: Schema.String.annotate({ description: "Id of the job.", examples: [exampleJob.id] })
}

const createJob = HttpApiEndpoint.post("createExport", EXPORTS_PATH, {
  payload: JobInput,
  success: Job.pipe(HttpApiSchema.status(202)),
  error: errorsOf("object", 400, 401, 403, 413, 415, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Ask for an export",
    description:
      "Made in the background, whether or not the client stays: the job says how far it is, and its "
      + "file can be fetched until it expires. Any key of the tenant with the scope `read` sees it. "
      + "429 `rate_limited` where the tenant has "
      + `${UNDER_WAY_MAX} exports under way, ${KEPT_MAX} kept, or no room for another.`,
    responseHeaders: { 202: createdHeaders }
  })
)

const listJobs = HttpApiEndpoint.get("listExports", EXPORTS_PATH, {
  query: resourcePageQuery,
  success: JobList,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "List the exports",
    description:
      "Newest first. Those that have failed or expired are listed for "
      + `${RECORD_KEPT_DAYS} days more, as long as there is room.`,
    responseHeaders: pageLinkHeader
  })
)

const getJob = HttpApiEndpoint.get("getExport", `${EXPORTS_PATH}/:id`, {
  params,
  success: Job,
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "One export",
    description:
      "How far it is, or how it has ended. One whose process has ended before it was done is "
      + "`failed` with the code `interrupted`: ask for it again."
  })
)

const getFile = HttpApiEndpoint.get("getExportFile", `${EXPORTS_PATH}/:id/file`, {
  params,
  success: [
    ...[PDF_TYPE, ZIP_TYPE, CSV_TYPE, NDJSON_TYPE].map((contentType) =>
      Schema.Uint8Array.annotate({ description: "The file." }).pipe(
        HttpApiSchema.asUint8Array({ contentType })
      )
    ),
    Unchanged
  ],
  error: errorsOf("object", 400, 401, 403, 404, 409, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "The file of an export",
    description:
      "409 `not_ready` while it is being made; 404 where it has failed, was cancelled, or has "
      + "expired. `sha256` of the job is that of these bytes before compression.",
    headers: ifNoneMatch,
    responseHeaders: {
      200: {
        "Content-Disposition": "A file name made of tenant and time.",
        ETag: "The SHA-256 of the file."
      },
      304: { ETag: "The SHA-256 of the file." }
    }
  })
)

const removeJob = HttpApiEndpoint.delete("removeExport", `${EXPORTS_PATH}/:id`, {
  params,
  success: HttpApiSchema.NoContent.annotate({ description: "It is cancelled, or removed." }),
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Cancel or remove an export",
    description:
      "Cancels one that is under way, which stays in the list; removes one that has ended, its file "
      + "with it. That of another key needs the scope `write` as well."
  })
)

/** The routes of export jobs, under the tag Export. */
export class ExportJobsApi extends HttpApiGroup.make("ExportJobs")
  .add(createJob, listJobs, getJob, getFile, removeJob)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Export", description: "" })) {}

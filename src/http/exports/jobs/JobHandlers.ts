/**
 * Serves the export jobs: reads what is asked for, and shows jobs without what only processes need
 * to know. Who may have how many is decided by `ExportJobs`.
 */
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { defined } from "../../../domain/Defined.ts"
import { Api } from "../../Api.ts"
import { resourcePage } from "../../admin/ResourcePages.ts"
import { BODY_BYTES_MAX, objectOf, readAs } from "../../contract/Bodies.ts"
import { scopeOf, shownScope } from "../../events/ScopeReader.ts"
import { createdAt, json } from "../../messages/Answer.ts"
import { invalid, refusable } from "../../messages/ApiError.ts"
import { ApiSettings } from "../../messages/ApiSettings.ts"
import { JSON_TYPE } from "../../messages/MediaTypes.ts"
import { readBody } from "../../messages/RequestBody.ts"
import { matchesEtag } from "../../messages/StaticAnswer.ts"
import { transfer } from "../../messages/Transfer.ts"
import { CurrentPrincipal } from "../../server/Authorization.ts"
import { HttpListener } from "../../server/HttpListener.ts"
import { refusalOfForeign } from "../../server/OwnThings.ts"
import { asFile, CACHE_CONTROL, fileForms } from "../ExportFiles.ts"
import { ExportJobs } from "./ExportJobs.ts"
import { EXPORTS_PATH, JobInput } from "./JobContract.ts"
import type { CurrentJob } from "./JobState.ts"

const inputFields = Object.keys(JobInput.fields)
const { bom, kind, label, pdf } = JobInput.fields
const Form = Schema.Struct({ bom, kind, label, pdf })

const inputOf = (bytes: Buffer) => {
  const object = objectOf(bytes, inputFields, "an export")
  const { bom, kind, label, pdf } = readAs(Form, object)
  if (typeof pdf === "boolean" && kind !== "pack") {
    throw invalid("pdf", `is for packs only; leave it out for the kind ${kind}`)
  }
  if (typeof bom === "boolean" && kind !== "csv") {
    throw invalid("bom", `is for CSV only; leave it out for the kind ${kind}`)
  }
  return {
    kind,
    pdf: pdf ?? true,
    bom: bom ?? false,
    filter: scopeOf(object),
    ...defined({ label: label ?? undefined })
  }
}

const shown = (job: CurrentJob) => {
  const { alive_at: _alive, filter, pdf, tenant_id: _tenant, ...rest } = job
  return { ...rest, ...(job.kind === "pack" ? { pdf } : {}), ...shownScope(filter) }
}

/** The handlers of ExportJobsApi. */
export const layerExportJobsHandlers = HttpApiBuilder.group(
  Api,
  "ExportJobs",
  Effect.fnUntraced(function* (handlers) {
    const { publicUrl } = yield* ApiSettings
    const { url: ownUrl } = yield* HttpListener
    const jobs = yield* ExportJobs
    const named = (id: string) =>
      Effect.map(CurrentPrincipal, ({ tenantId }) => ({ tenant_id: tenantId, id }))

    return handlers
      .handleRaw(
        "createExport",
        Effect.fnUntraced(function* ({ request }) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
          const input = yield* refusable(() => inputOf(bytes))
          const job = yield* jobs.create({ tenantId, keyId, ownUrl, ...input })
          const headers = createdAt(publicUrl, EXPORTS_PATH, job.id)
          return json(shown(job), { status: 202, headers })
        })
      )
      .handle(
        "listExports",
        Effect.fnUntraced(function* ({ query, request }) {
          const { tenantId } = yield* CurrentPrincipal
          const all = yield* jobs.list(tenantId)
          return yield* resourcePage(request, publicUrl, query, "exports", all, shown)
        })
      )
      .handle(
        "getExport",
        Effect.fnUntraced(function* ({ params: { id } }) {
          return json(shown(yield* jobs.get(yield* named(id))))
        })
      )
      .handleRaw(
        "getExportFile",
        Effect.fnUntraced(function* ({ params: { id }, request }) {
          const name = yield* named(id)
          const { bytes, content, job } = yield* jobs.file(name)
          const etag = `"${job.sha256}"`
          const cached = { etag, "cache-control": CACHE_CONTROL }
          if (matchesEtag(request.headers["if-none-match"], etag)) {
            return HttpServerResponse.empty({ status: 304, headers: cached })
          }
          const { contentType } = fileForms[job.kind]
          const headers = { ...cached, ...asFile(job.file_name ?? id) }
          if (request.method === "HEAD") {
            const ofBody = { "content-type": contentType, "content-length": String(bytes) }
            return HttpServerResponse.empty({ status: 200, headers: { ...headers, ...ofBody } })
          }
          const of = { operation: "getExportFile", tenantId: name.tenant_id }
          const options = { contentType, contentLength: bytes, headers }
          return HttpServerResponse.stream(transfer(request, content, of), options)
        })
      )
      .handle(
        "removeExport",
        Effect.fnUntraced(function* ({ params: { id } }) {
          const name = yield* named(id)
          const { created_by } = yield* jobs.get(name)
          const caller = yield* CurrentPrincipal
          const refusal = refusalOfForeign(caller, created_by, "the export was asked for", "remove")
          if (refusal !== undefined) return yield* refusal
          yield* jobs.remove(name)
          return HttpServerResponse.empty({ status: 204 })
        })
      )
  })
)

/**
 * One job from the queue to its end: waits for its turn, has the export made, puts its bytes into
 * the folder, and gives signs of life meanwhile. It refuses no request: what may be asked for is
 * decided elsewhere.
 */
import { Cause, Effect, Exit, Metric, type PartitionedSemaphore, Schedule, Stream } from "effect"
import type { Keys } from "../../../actors/follower/Keys.ts"
import { defined } from "../../../domain/Defined.ts"
import { counterOf, gaugeOf } from "../../../domain/metrics/Metrics.ts"
import { currentTime, formatMicros, nowMicros } from "../../../domain/Timestamp.ts"
import type { ArchiveFailed } from "../../../ports/Archive.ts"
import type { ExportFolder } from "../../../ports/ExportFolder.ts"
import { type ExportJob, isTable, isUnderWay, type JobError } from "../../../ports/ExportJob.ts"
import { shownScope } from "../../events/ScopeReader.ts"
import { ApiError } from "../../messages/ApiError.ts"
import { type Failure, toApiError } from "../../messages/Failure.ts"
import type { ExportMaker } from "../ExportMaker.ts"
import type { Making } from "../ExportOrder.ts"
import type { ExportSlots } from "../ExportSlots.ts"
import { BEAT_MS, ended, interrupted } from "./JobState.ts"

/** What jobs are run with. */
export interface JobTools {
  readonly folder: ExportFolder["Service"]
  readonly keys: Keys["Service"]
  readonly maker: ExportMaker["Service"]
  readonly slots: ExportSlots["Service"]
  /** Of this process; fair between tenants. */
  readonly turns: PartitionedSemaphore.PartitionedSemaphore<string>
  /** How long a file is kept, in milliseconds. */
  readonly keptMs: number
}

/** A job, and what its process knows of it besides. */
export interface JobStart {
  readonly job: ExportJob
  readonly ownUrl: string
  /** Bytes that its file may have. */
  readonly bytesMax: number
}

/** Time between two tries to get a slot of the tenant. */
const SLOT_RETRY = "1 second"

/** The request as the report shows it: what asks for the same again. */
const lineOf = ({ bom, filter, kind, label, pdf }: ExportJob): string => {
  const { filters, from, to } = shownScope(filter)
  const body = {
    kind,
    ...(kind === "pack" ? { pdf } : {}),
    ...defined({ from: from ?? undefined, to: to ?? undefined, bom, label }),
    ...(Object.keys(filters).length === 0 ? {} : { filters })
  }
  return `POST /v1/exports ${JSON.stringify(body)}`
}

const keyEnded = (keyId: string) =>
  new ApiError({
    code: "unauthenticated",
    message: `the API key ${keyId} that asked for it is no longer valid: ask with another one`
  })

/** Refused where the key that has asked may no longer read. */
const permitOf = ({ keys }: JobTools, { created_by, tenant_id }: ExportJob) =>
  Effect.suspend((): Effect.Effect<void, ApiError> => {
    const principal = keys.known(created_by)?.principal
    const mayRead = principal?.tenantId === tenant_id && principal.scopes.includes("read")
    return mayRead ? Effect.void : Effect.fail(keyEnded(created_by))
  })

const internal: JobError = {
  code: "internal",
  message: "the service made a mistake, which its log names: ask for it again, or tell its operator"
}

const errorOf = (failure: Failure | ArchiveFailed): JobError => {
  switch (failure._tag) {
    case "ArchiveFailed":
      return internal
    case "ExportFolderUnusable": {
      const { message, reason } = failure
      return { code: reason === "unusable" ? "unavailable" : reason, message }
    }
    default: {
      const { code, message } = toApiError(failure)
      return { code, message }
    }
  }
}

/** The run of one job, and what is known of it at the moment. */
class Run {
  job: ExportJob
  readonly tools: JobTools
  readonly start: JobStart

  constructor(tools: JobTools, start: JobStart) {
    this.tools = tools
    this.start = start
    this.job = start.job
  }

  readonly told: NonNullable<Making["told"]> = ({ progress, stage }) =>
    Effect.sync(() => {
      const { progress: _before, ...job } = this.job
      this.job = { ...job, stage, ...defined({ progress }) }
    })

  /** Signs of life, until the end of the job is asked for. */
  readonly beats = Effect.gen({ self: this }, function* () {
    const { folder } = this.tools
    while (true) {
      yield* Effect.sleep(BEAT_MS)
      const kept = yield* folder.job(this.job)
      if (kept === undefined) return "removed" as const
      if (kept.isStopped || !isUnderWay(kept.job)) return "stopped" as const
      this.job = { ...this.job, alive_at: currentTime() }
      yield* folder.save(this.job)
    }
  })

  /** Has the export made and written. */
  readonly making = Effect.gen({ self: this }, function* () {
    const { folder, maker } = this.tools
    const { bom, created_by, filter, kind, pdf, tenant_id: tenantId } = this.job
    const permit = permitOf(this.tools, this.job)
    yield* permit
    this.job = { ...this.job, status: "running" }
    const making: Making = {
      tenantId,
      filter,
      askedBy: { kind: "API key", id: created_by },
      ownUrl: this.start.ownUrl,
      ...defined({ bom }),
      line: lineOf(this.job),
      permit,
      told: this.told
    }
    const { bytesMax } = this.start
    if (isTable(kind)) {
      const { content, fileName } = yield* maker.table(kind, making)
      const onBytes = () => Effect.void
      return { fileName, ...(yield* folder.write(this.job, content, { bytesMax, onBytes })) }
    }
    const document = kind === "pack" && !pdf ? "pack-without-pdf" : kind
    const { content, fileName } = yield* maker.document(document, making)
    const pieces = Stream.isStream(content) ? content : Stream.succeed(content)
    const onBytes = (done: number) =>
      this.told({ stage: "writing", progress: { done, unit: "bytes" } })
    return { fileName, ...(yield* folder.write(this.job, pieces, { bytesMax, onBytes })) }
  })

  /** The same when it is its turn. */
  get work() {
    const { slots, turns } = this.tools
    const { tenant_id } = this.job
    return slots
      .take(tenant_id)
      .pipe(
        Effect.retry(Schedule.spaced(SLOT_RETRY)),
        Effect.andThen(turns.withPermit(tenant_id)(this.making)),
        Effect.scoped
      )
  }
}

type Outcome = Effect.Success<Run["work"]> | "removed" | "stopped"

/** Writes down how a job has ended; undefined if it was removed. */
const endOf = (
  { job, tools: { keptMs } }: Run,
  exit: Exit.Exit<Outcome, Failure | ArchiveFailed>
): ExportJob | undefined => {
  const finished_at = currentTime()
  if (Exit.isFailure(exit)) {
    if (Cause.hasInterruptsOnly(exit.cause)) return interrupted({ ...job, alive_at: finished_at })
    const failure = Cause.findErrorOption(exit.cause)
    const error = failure._tag === "Some" ? errorOf(failure.value) : internal
    return ended(job, { status: "failed", finished_at, error })
  }
  if (exit.value === "removed") return undefined
  if (exit.value === "stopped") return ended(job, { status: "cancelled", finished_at })
  const { bytes, fileName: file_name, sha256 } = exit.value
  const expires_at = formatMicros(nowMicros() + keptMs * 1_000)
  return ended(job, { status: "done", finished_at, expires_at, bytes, sha256, file_name })
}

const jobsEnded = counterOf("alk_exports_total")
const jobsUnderWay = gaugeOf("alk_exports_under_way")

/** Shows that none is under way, before the first one. */
export const noneUnderWay = Metric.update(jobsUnderWay, 0)

const counted = (status: "done" | "failed" | "cancelled") =>
  Metric.update(Metric.withAttributes(jobsEnded, { status }), 1)

/** The log says what the client is not told. */
const logged = ({ job }: Run, exit: Exit.Exit<Outcome, Failure | ArchiveFailed>) =>
  Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
    ? Effect.logWarning("an export has failed").pipe(
        Effect.annotateLogs({
          id: job.id,
          tenantId: job.tenant_id,
          reason: Cause.pretty(exit.cause)
        })
      )
    : Effect.void

/** Runs a job; ends when it has ended, and an interruption is its end. */
export const runJob = (tools: JobTools, start: JobStart): Effect.Effect<void> => {
  const run = new Run(tools, start)
  const { folder } = tools
  return Metric.modify(jobsUnderWay, 1).pipe(
    Effect.andThen(Effect.raceFirst(run.work, run.beats)),
    Effect.onExit((exit) =>
      Effect.gen(function* () {
        yield* logged(run, exit)
        const end = endOf(run, exit)
        yield* Metric.modify(jobsUnderWay, -1)
        const status = end?.status
        const isEnded = status === "done" || status === "failed" || status === "cancelled"
        yield* counted(isEnded ? status : "cancelled")
        if (end?.status !== "done") yield* folder.removeFile(run.job)
        if (end !== undefined) yield* folder.save(end)
      })
    ),
    Effect.exit,
    Effect.flatMap((exit) =>
      Exit.isFailure(exit) ? Effect.logDebug("a job has ended", exit.cause) : Effect.void
    )
  )
}

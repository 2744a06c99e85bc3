/**
 * The export jobs of this service: asked for, listed, fetched and removed, within the limits of a
 * tenant. Any process answers for all of them, by the folder that they share. How one is run is
 * told elsewhere.
 */
import {
  Context,
  Effect,
  Layer,
  Option,
  PartitionedSemaphore,
  Scope,
  Semaphore,
  type Stream
} from "effect"
import { Keys } from "../../../actors/follower/Keys.ts"
import { RegistryView } from "../../../actors/follower/LogFollower.ts"
import { defined } from "../../../domain/Defined.ts"
import type { EventFilter } from "../../../domain/events/EventFilter.ts"
import { uuidv7 } from "../../../domain/Identifiers.ts"
import { currentTime, nowMicros } from "../../../domain/Timestamp.ts"
import {
  ExportFolder,
  type ExportFolderUnusable,
  type JobName,
  type KeptJob
} from "../../../ports/ExportFolder.ts"
import { type ExportJob, isUnderWay, type JobKind } from "../../../ports/ExportJob.ts"
import { ApiError, notFound, unavailable } from "../../messages/ApiError.ts"
import { ExportMaker } from "../ExportMaker.ts"
import { ExportSlots } from "../ExportSlots.ts"
import { JOBS_AT_ONCE, KEPT_MAX, UNDER_WAY_MAX } from "./JobLimits.ts"
import { noneUnderWay, runJob } from "./JobRun.ts"
import { type CurrentJob, currentOf, isLost } from "./JobState.ts"
import { sweeping } from "./JobSweep.ts"

/** What is asked for, and by whom. */
export interface JobOrder {
  readonly tenantId: string
  readonly keyId: string
  readonly kind: JobKind
  /** Whether a pack has the PDF in it. */
  readonly pdf: boolean
  /** Of CSV: it begins with a byte order mark. */
  readonly bom: boolean
  readonly filter: EventFilter
  readonly label?: string
  /** Where this process is reached. */
  readonly ownUrl: string
}

/** A file that can be fetched. */
export interface JobFile {
  readonly job: CurrentJob
  readonly bytes: number
  readonly content: Stream.Stream<Uint8Array, ExportFolderUnusable>
}

export interface JobSettings {
  /** How long a file is kept, in milliseconds. */
  readonly keptMs: number
  /** Bytes of the files of one tenant. */
  readonly bytesMax: number
}

type Answer<A> = Effect.Effect<A, ApiError | ExportFolderUnusable>

export class ExportJobs extends Context.Service<
  ExportJobs,
  {
    /** A job that is kept and begins when it is its turn. */
    create(order: JobOrder): Answer<CurrentJob>
    /** The jobs of a tenant, newest first. */
    list(tenantId: string): Answer<ReadonlyArray<CurrentJob>>
    get(name: JobName): Answer<CurrentJob>
    /** Refuses where there is no file, or not yet. */
    file(name: JobName): Answer<JobFile>
    /** Ends a job that is under way; removes one that has ended. */
    remove(name: JobName): Answer<void>
  }
>()("alk/http/ExportJobs") {}

const noJob = notFound("export job")

const limited = (message: string) => new ApiError({ code: "rate_limited", message })

const gone = (message: string) => new ApiError({ code: "not_found", message })

/** Why a job has no file; undefined if it should have one. */
const withoutFile = ({ error, stage, status }: CurrentJob): ApiError | undefined => {
  switch (status) {
    case "done":
      return undefined
    case "queued":
    case "running":
      return new ApiError({
        code: "not_ready",
        message: `the export is not ready (${status}, ${stage}): ask again, its job says how far it is`
      })
    case "failed":
      return gone(`the export has failed and has no file: ${error?.message ?? "ask for it again"}`)
    case "cancelled":
      return gone("the export was cancelled and has no file: ask for it again")
    case "expired":
      return gone("the file of this export has expired and was removed: ask for it again")
  }
}

/** Jobs that have ended without a file that can be fetched. */
const isSpent = ({ status }: CurrentJob) =>
  status === "failed" || status === "cancelled" || status === "expired"

/** What may be dropped so that there is room for one job more; the oldest come first. */
const spentOver = (jobs: ReadonlyArray<CurrentJob>): ReadonlyArray<CurrentJob> => {
  const over = jobs.length + 1 - KEPT_MAX
  return over <= 0 ? [] : jobs.toReversed().filter(isSpent).slice(0, over)
}

/** The bytes that a further file may have; fails where there is no room for another job. */
const room = Effect.fnUntraced(function* (
  jobs: ReadonlyArray<CurrentJob>,
  { bytesMax }: JobSettings
) {
  if (
    jobs.filter((job) => job.status === "queued" || job.status === "running").length
    >= UNDER_WAY_MAX
  ) {
    return yield* limited(
      `this tenant has ${UNDER_WAY_MAX} exports under way, the most allowed: wait for one, or cancel it`
    )
  }
  if (jobs.length - spentOver(jobs).length >= KEPT_MAX) {
    return yield* limited(`this tenant keeps ${KEPT_MAX} exports, the most allowed: remove some`)
  }
  const used = jobs.reduce((sum, job) => sum + (job.status === "done" ? (job.bytes ?? 0) : 0), 0)
  if (used >= bytesMax) {
    return yield* limited(
      "the exports of this tenant fill ALK_EXPORTS_BYTES_MAX: remove some, or wait until they expire"
    )
  }
  return bytesMax - used
})

const newJob = ({ bom, filter, keyId, kind, label, pdf, tenantId }: JobOrder): ExportJob => {
  const now = currentTime()
  return {
    id: `exp_${uuidv7()}`,
    tenant_id: tenantId,
    kind,
    pdf: kind === "pack" && pdf,
    ...(bom ? { bom: true as const } : {}),
    ...defined({ label }),
    filter,
    created_by: keyId,
    created_at: now,
    status: "queued",
    stage: "waiting",
    alive_at: now
  }
}

/** The jobs that are kept in the folder of this process's context. */
export const layerExportJobs = (settings: JobSettings) =>
  Layer.effect(
    ExportJobs,
    Effect.gen(function* () {
      const folder = yield* ExportFolder
      const scope = yield* Scope.Scope
      const tools = {
        folder,
        keys: yield* Keys,
        maker: yield* ExportMaker,
        slots: yield* ExportSlots,
        turns: yield* PartitionedSemaphore.make<string>({ permits: JOBS_AT_ONCE }),
        keptMs: settings.keptMs
      }
      // The limits hold for what is asked at the same time, too.
      const creating = yield* Semaphore.make(1)
      const view = Option.getOrUndefined(yield* Effect.serviceOption(RegistryView))
      const isGone = (tenantId: string) => view?.registry().tombstone(tenantId) !== undefined
      yield* Effect.forkScoped(sweeping(folder, isGone))
      yield* noneUnderWay

      const now = (kept: KeptJob) => currentOf(kept, nowMicros())
      const list = (tenantId: string) => Effect.map(folder.jobs(tenantId), (jobs) => jobs.map(now))
      const found = (name: JobName) =>
        Effect.flatMap(folder.job(name), (kept) =>
          kept === undefined ? Effect.fail(noJob) : Effect.succeed(kept)
        )

      const create = Effect.fnUntraced(function* (order: JobOrder) {
        const jobs = yield* list(order.tenantId)
        const bytesMax = yield* room(jobs, settings)
        for (const spent of spentOver(jobs)) yield* folder.remove(spent)
        const job = newJob(order)
        yield* folder.save(job)
        yield* Effect.forkIn(runJob(tools, { job, ownUrl: order.ownUrl, bytesMax }), scope)
        return job
      })

      return ExportJobs.of({
        create: (order) => creating.withPermit(create(order)),
        list,
        get: (name) => Effect.map(found(name), now),
        file: Effect.fnUntraced(function* (name) {
          const job = now(yield* found(name))
          const refusal = withoutFile(job)
          if (refusal !== undefined) return yield* refusal
          const file = yield* folder.read(name)
          if (file === undefined || file.bytes !== job.bytes) {
            return yield* unavailable("the file of this export is damaged: ask for it again")
          }
          return { job, ...file }
        }),
        remove: Effect.fnUntraced(function* (name) {
          const { job } = yield* found(name)
          // The process that runs it writes down its end.
          const isAlive = isUnderWay(job) && !isLost(job, nowMicros())
          yield* isAlive ? folder.stop(name) : folder.remove(name)
        })
      })
    })
  )

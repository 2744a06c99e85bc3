/**
 * What becomes of jobs in time: files that have expired go, jobs whose process has gone are written
 * down as ended, and records go a week after that, those of a deleted tenant at once. Every process
 * does it; twice is as good as once.
 */
import { Effect, Schedule } from "effect"
import { microsOf, nowMicros } from "../../../domain/Timestamp.ts"
import type { ExportFolder, KeptJob } from "../../../ports/ExportFolder.ts"
import { isUnderWay } from "../../../ports/ExportJob.ts"
import { RECORD_KEPT_DAYS } from "./JobLimits.ts"
import { currentOf, isLost } from "./JobState.ts"

const SWEEP_EVERY = "1 minute"
const RECORD_KEPT_MICROS = RECORD_KEPT_DAYS * 86_400_000_000

/** True of a tenant that was deleted. */
export type IsGone = (tenantId: string) => boolean

/** One look at one job. */
const sweepJob = (folder: ExportFolder["Service"], kept: KeptJob, now: number, isGone: IsGone) => {
  const { job } = kept
  if (isGone(job.tenant_id)) return Effect.andThen(folder.stop(job), folder.remove(job))
  const current = currentOf(kept, now)
  if (current.status === "queued" || current.status === "running") return Effect.void
  if (isUnderWay(job)) {
    // Its own process writes that down, if it is there.
    if (!isLost(job, now)) return Effect.void
    const { status, ...rest } = current
    const end = { ...rest, status: status === "expired" ? ("done" as const) : status }
    return Effect.andThen(folder.removeFile(job), folder.save(end))
  }
  const endedAt = microsOf(current.expires_at ?? current.finished_at ?? current.created_at)
  if (now - endedAt > RECORD_KEPT_MICROS) return folder.remove(job)
  return current.status === "done" ? Effect.void : folder.removeFile(job)
}

/** One look at all jobs. */
export const sweep = Effect.fnUntraced(function* (
  folder: ExportFolder["Service"],
  isGone: IsGone = () => false
) {
  const now = nowMicros()
  for (const kept of yield* folder.all) yield* sweepJob(folder, kept, now, isGone)
})

/** Looks at all jobs now and each minute. */
export const sweeping = (folder: ExportFolder["Service"], isGone: IsGone) =>
  sweep(folder, isGone).pipe(
    Effect.catch(({ message }) => Effect.logWarning("exports could not be swept", message)),
    Effect.repeat(Schedule.spaced(SWEEP_EVERY))
  )

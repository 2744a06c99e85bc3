/**
 * What the record of a job means at a moment: whose process has gone is interrupted, whose file has
 * gone is expired. Reads no clock and no file.
 */
import { microsOf } from "../../../domain/Timestamp.ts"
import type { KeptJob } from "../../../ports/ExportFolder.ts"
import { type ExportJob, isUnderWay } from "../../../ports/ExportJob.ts"

/** Milliseconds between two signs of life of a job. */
export const BEAT_MS = 1_000
/** Milliseconds without a sign of life after which a job counts as abandoned. */
export const LOST_MS = 30 * BEAT_MS

/** A job as it is now. */
export interface CurrentJob extends Omit<ExportJob, "status"> {
  readonly status: ExportJob["status"] | "expired"
}

/** True if the process of a job has given no sign of life for too long; `now` in microseconds. */
export const isLost = (job: ExportJob, now: number): boolean =>
  isUnderWay(job) && now - microsOf(job.alive_at) > LOST_MS * 1_000

/** A job that has ended: nothing is being done, and nothing is in progress. */
export const ended = (
  { progress: _progress, ...job }: ExportJob,
  how: Pick<ExportJob, "status" | "finished_at"> & Partial<ExportJob>
): ExportJob => ({ ...job, ...how })

/** The end of a job whose process has gone. */
export const interrupted = (job: ExportJob): ExportJob =>
  ended(job, {
    status: "failed",
    finished_at: job.alive_at,
    error: {
      code: "interrupted",
      message: "the process that made it has ended before it was done: ask for it again"
    }
  })

/** The job as it is now; `now` in microseconds. */
export const currentOf = ({ isStopped, job }: KeptJob, now: number): CurrentJob => {
  if (isUnderWay(job)) {
    if (isStopped) return ended(job, { status: "cancelled", finished_at: job.alive_at })
    return isLost(job, now) ? interrupted(job) : job
  }
  const { expires_at } = job
  const isExpired = job.status === "done" && expires_at !== undefined && microsOf(expires_at) <= now
  return isExpired ? { ...job, status: "expired" } : job
}

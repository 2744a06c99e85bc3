/** How far an export is, and how long the rest may take, from what was seen of it. Pure. */
import type { ExportJob } from "../../client/gen/Api.d.ts"

/** A moment at which so much of a stage was done. */
export interface Seen {
  readonly stage: ExportJob["stage"]
  readonly done: number
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Milliseconds of a stage that have to be seen before its speed says anything. */
const SEEN_MIN_MS = 2_000

/** Where a stage was seen first; begins anew with each stage. */
export const firstSeen = (
  before: Seen | undefined,
  { progress, stage }: Pick<ExportJob, "progress" | "stage">,
  at: number
): Seen | undefined => {
  if (progress === undefined) return undefined
  return before?.stage === stage && before.done <= progress.done
    ? before
    : { stage, done: progress.done, at }
}

/** Milliseconds that are left of the stage; undefined where it is unknown. */
export const timeLeft = (
  first: Seen | undefined,
  { progress }: Pick<ExportJob, "progress">,
  at: number
): number | undefined => {
  if (first === undefined || progress?.total === undefined) return undefined
  const [done, passed] = [progress.done - first.done, at - first.at]
  if (done <= 0 || passed < SEEN_MIN_MS) return undefined
  return ((progress.total - progress.done) / done) * passed
}

export const isUnderWay = ({ status }: Pick<ExportJob, "status">): boolean =>
  status === "queued" || status === "running"

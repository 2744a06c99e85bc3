/**
 * No break is reported before the store holds what the log holds: what is missing until then is
 * only late.
 */
import { Effect } from "effect"
import { caughtUpWithin, type ShownTopic } from "../actors/follower/CaughtUp.ts"
import { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { EventLog, LogUnavailable } from "../ports/EventLog.ts"

/** Time that a check waits for the store to hold what the log holds. */
const CATCH_UP_TIMEOUT = "10 seconds"

/** Succeeds once everything of the tenant that is committed now can be read. */
export const caughtUp = Effect.fnUntraced(function* (tenantId: string, topic: ShownTopic) {
  const log = yield* EventLog
  const projection = yield* ProjectionProgress
  const late = (cause: Error) => new LogUnavailable({ operation: "verify", cause })
  yield* caughtUpWithin(tenantId, topic, CATCH_UP_TIMEOUT, late)
  if (projection.partition(log.partitionOf(tenantId)).rebuilding) {
    return yield* late(new Error("the view of this partition is being rebuilt"))
  }
})

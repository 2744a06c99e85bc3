/**
 * Nothing is accused before the store holds what the log holds: what is missing until then is only
 * late.
 */
import { Effect, Option } from "effect"
import { Visibility } from "../actors/Visibility.ts"
import { EventLog, LogUnavailable } from "../ports/EventLog.ts"

/** Time that a check waits for the store to hold what the log holds. */
const CATCH_UP_TIMEOUT = "10 seconds"

/** Succeeds once everything of the tenant that is committed now can be read. */
export const caughtUp = Effect.fnUntraced(function*(tenantId: string) {
  const log = yield* EventLog
  const visibility = yield* Visibility
  const partition = log.partitionOf(tenantId)
  const [end = 0] = yield* log.ends([{ topic: "events", partition }])
  const reached = yield* visibility
    .reached(partition, { events: end })
    .pipe(Effect.timeoutOption(CATCH_UP_TIMEOUT))
  if (Option.isNone(reached) || visibility.partition(partition).rebuilding) {
    const cause = new Error("the store has not caught up with the log")
    return yield* new LogUnavailable({ operation: "verify", cause })
  }
})

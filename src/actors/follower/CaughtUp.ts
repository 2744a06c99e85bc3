/**
 * Waiting until the store shows what the log holds: what is missing until then is only late. What
 * it means that it does not in time is for the caller to say.
 */
import { type Duration, Effect, Option } from "effect"
import { EventLog } from "../../ports/EventLog.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"

/** Topics whose records the store shows. */
export type ShownTopic = Exclude<StoredTopic, "receipts">

/** Asks how far the tenant's partition reaches now; what comes back waits until that is shown. */
export const catchingUp = Effect.fnUntraced(function* (tenantId: string, topic: ShownTopic) {
  const log = yield* EventLog
  const projection = yield* ProjectionProgress
  const partition = log.partitionOf(tenantId)
  const [end = 0] = yield* log.ends([{ topic, partition }])
  return projection.awaitOffset(partition, { [topic]: end })
})

/** Succeeds once everything that is committed now in the tenant's partition is shown. */
export const caughtUpWithin = Effect.fnUntraced(function* <Failure>(
  tenantId: string,
  topic: ShownTopic,
  within: Duration.Input,
  late: (cause: Error) => Failure
) {
  const shown = yield* catchingUp(tenantId, topic)
  if (Option.isSome(yield* Effect.timeoutOption(shown, within))) return
  return yield* Effect.fail(late(new Error("the store has not caught up with the log")))
})

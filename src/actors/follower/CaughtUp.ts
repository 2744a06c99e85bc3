/**
 * Waiting until the store shows what the log holds: what is missing until then is only late. What
 * it means that it does not in time is for the caller to say.
 */
import { type Duration, Effect, Option } from "effect"
import { EventLog } from "../../ports/EventLog.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"

/** Topics whose records the store shows. */
export type ShownTopic = "events" | "traces" | "checkpoints"

/** Asks how far the tenant's partition reaches now; what comes back waits until that is shown. */
export const catchingUp = Effect.fnUntraced(function* (tenantId: string, topic: ShownTopic) {
  const log = yield* EventLog
  const projection = yield* ProjectionProgress
  const partition = log.partitionOf(tenantId)
  const [end = 0] = yield* log.ends([{ topic, partition }])
  return projection.awaitOffset(partition, { [topic]: end })
})

/** True once everything that is committed now in the tenant's partition is shown, false if late. */
export const isCaughtUp = Effect.fnUntraced(function* (
  tenantId: string,
  topic: ShownTopic,
  within: Duration.Input
) {
  const shown = yield* catchingUp(tenantId, topic)
  return Option.isSome(yield* Effect.timeoutOption(shown, within))
})

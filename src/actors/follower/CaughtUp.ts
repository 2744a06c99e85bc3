/**
 * Waiting until the store shows what the log holds: what is missing until then is only late. What
 * it means that it does not in time is for the caller to say.
 */
import { type Duration, Effect } from "effect"
import type { Chain } from "../../domain/chain/Chains.ts"
import { EventLog } from "../../ports/EventLog.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"
import { Heads } from "./Heads.ts"

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

/**
 * The same, and until the heads known here are shown. Each partition learns by a record of its own
 * that a transaction is committed, so a head may be known before the end of its topic has moved. Of a
 * topic that has lost its end that never comes.
 */
export const catchingUpToHeads = Effect.fnUntraced(function* (tenantId: string, topic: Chain) {
  const log = yield* EventLog
  const projection = yield* ProjectionProgress
  const partition = log.partitionOf(tenantId)
  const written = yield* (yield* Heads).written(topic, partition)
  const shown = yield* catchingUp(tenantId, topic)
  return Effect.andThen(shown, projection.awaitOffset(partition, { [topic]: written }))
})

/** Fails with what `late` makes of it where something is not shown in time. */
export const shownWithin = <Failure>(
  shown: Effect.Effect<void>,
  within: Duration.Input,
  late: (cause: Error) => Failure
): Effect.Effect<void, Failure> =>
  Effect.timeoutOrElse(shown, {
    duration: within,
    orElse: () =>
      Effect.suspend(() => Effect.fail(late(new Error("the store has not caught up with the log"))))
  })

/** Succeeds once everything that is committed now in the tenant's partition is shown. */
export const caughtUpWithin = <Failure>(
  tenantId: string,
  topic: ShownTopic,
  within: Duration.Input,
  late: (cause: Error) => Failure
) => Effect.flatMap(catchingUp(tenantId, topic), (shown) => shownWithin(shown, within, late))

/**
 * Members of a consumer group whose program has ended without leaving. Kafka keeps each for the time
 * of its session, and gives its partitions to no other member meanwhile: six seconds of every restart
 * after a kill. A program that is alone on its broker knows that they are gone.
 */
import { Effect, Schedule } from "effect"
import {
  errorOfCode,
  isRetriable,
  type KafkaSettings,
  makeCluster,
  protocolErrorOf,
  type RawCluster
} from "./protocol/KafkaClient.ts"

const GROUP_COORDINATOR = 0
/** Milliseconds for all of it; members that are not removed by then leave when their session ends. */
const GIVE_UP_MS = 5_000

const removeFrom = async (
  cluster: RawCluster,
  groupId: string,
  clientId: string,
  signal: AbortSignal
): Promise<number> => {
  // Once this is given up the program itself joins, with the same client id.
  const unlessGivenUp = async <A>(step: Promise<A>): Promise<A> => {
    const result = await step
    signal.throwIfAborted()
    return result
  }
  try {
    await unlessGivenUp(cluster.connect())
    const coordinator = await unlessGivenUp(
      cluster.findGroupCoordinator({ groupId, coordinatorType: GROUP_COORDINATOR })
    )
    if (!coordinator.isConnected()) await unlessGivenUp(coordinator.connect())
    const { groups } = await unlessGivenUp(coordinator.describeGroups({ groupIds: [groupId] }))
    const group = groups.find((found) => found.groupId === groupId)
    if (group === undefined || group.errorCode !== 0) throw errorOfCode(group?.errorCode ?? -1)
    const dead = group.members.filter((member) => member.clientId === clientId)
    for (const { memberId } of dead) {
      await unlessGivenUp(
        coordinator.leaveGroup({ groupId, memberId }).catch((error: unknown) => {
          if (protocolErrorOf(error) !== "UNKNOWN_MEMBER_ID") throw error
        })
      )
    }
    return dead.length
  } finally {
    await cluster.disconnect().catch(() => undefined)
  }
}

/** Removes the members of the group that joined with the client id of these settings. */
export const removeDeadMembers = (settings: KafkaSettings, groupId: string): Effect.Effect<void> =>
  Effect.tryPromise({
    try: (signal) => removeFrom(makeCluster(settings), groupId, settings.clientId, signal),
    catch: (cause) => cause
  }).pipe(
    // A coordinator that has just started is still reading its groups.
    Effect.retry({ while: isRetriable, schedule: Schedule.spaced("50 millis") }),
    Effect.timeout(GIVE_UP_MS),
    Effect.matchEffect({
      onFailure: (error) =>
        Effect.logDebug("members that have ended were not removed", {
          group: groupId,
          error: String(error)
        }),
      onSuccess: (removed) =>
        removed === 0
          ? Effect.void
          : Effect.logInfo("removed members of the program before", { group: groupId, removed })
    })
  )
